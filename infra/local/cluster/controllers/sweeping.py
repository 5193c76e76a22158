"""Removal of outdated events, as when their lease in etcd expires, and of excess finished pods.

Sources: kube-apiserver --event-ttl (1 h), kube-controller-manager --terminated-pod-gc-threshold (12 500).
"""

from collections.abc import Iterable
from datetime import datetime

from infra.local.cluster.controllers.board import finished
from infra.local.cluster.controllers.pace import Pace
from infra.local.cluster.objects import Object, Objects, timestamp


def sweep(objects: Objects, now: datetime, pace: Pace) -> None:
    """Delete events not renewed for `pace.event_life`, and finished pods in excess of `pace.finished_pods`."""
    outdated = timestamp(now - pace.event_life)
    _delete(objects, "events", [event for event in objects.stored("events") if _renewed(event) < outdated])
    ended = [pod for pod in objects.stored("pods") if finished(pod) and "deletionTimestamp" not in pod["metadata"]]
    ended.sort(key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
    _delete(objects, "pods", ended[: max(len(ended) - pace.finished_pods, 0)])


def _delete(objects: Objects, plural: str, found: Iterable[Object]) -> None:
    for obj in found:
        objects.delete(plural, obj["metadata"]["namespace"], obj["metadata"]["name"])


def _renewed(event: Object) -> str:
    """Return the time of the last occurrence, to the second; events of the newer API have only their own times."""
    last = event.get("lastTimestamp") or (event.get("series") or {}).get("lastObservedTime") or event.get("eventTime")
    return max(str(last or ""), str(event["metadata"]["creationTimestamp"]))
