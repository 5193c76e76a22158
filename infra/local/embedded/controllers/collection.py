"""The collector of pods without a node, and of old Events (pkg/controller/podgc, kube-apiserver --event-ttl)."""

from datetime import datetime, timedelta

from infra.local.clients.conditions import Condition
from infra.local.clients.objects import Object, Objects
from infra.local.clients.rounds import each
from infra.local.embedded.controllers import disruption
from infra.local.embedded.controllers.nodes import RECORDER
from infra.local.embedded.controllers.pace import Pace

_LOST = Condition(type=disruption.TARGET, reason="DeletionByPodGC", message="PodGC: node no longer exists")
_INTERVAL = timedelta(minutes=1)


def reconcile(objects: Objects, now: datetime, pace: Pace) -> datetime:
    """Fail and remove the pods of nodes that are gone (the original waits 40 s), and remove Events past their life."""
    nodes = {node["metadata"]["name"] for node in objects.stored("nodes")}

    def collect(pod: Object) -> None:
        if not _waits_for_finalizers(pod):
            disruption.end(objects, pod, _LOST, now, fail=True)

    lost = [pod for pod in objects.stored("pods") if pod["spec"].get("nodeName", "") not in {"", *nodes}]
    each(lost, collect, RECORDER.doubting(objects, now))
    for event in objects.stored("events"):
        if _seen(event) < now - pace.event_life:
            objects.delete("events", event["metadata"]["namespace"], event["metadata"]["name"])
    return now + _INTERVAL


def _waits_for_finalizers(pod: Object) -> bool:
    metadata = pod["metadata"]
    return "deletionTimestamp" in metadata and not metadata.get("deletionGracePeriodSeconds")


def _seen(event: Object) -> datetime:
    """Return when an Event was last repeated."""
    repeated = (event.get("series") or {}).get("lastObservedTime") or event.get("lastTimestamp")
    return datetime.fromisoformat(repeated or event["metadata"]["creationTimestamp"])
