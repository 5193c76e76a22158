"""How long controllers wait, and the collector of pods without a node and of old Events (pkg/controller/podgc)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from infra.local.clients.conditions import Condition, of, with_condition
from infra.local.clients.events import Recorder
from infra.local.clients.objects import Object, Objects
from infra.local.clients.rounds import each

RECORDER = Recorder("pod-garbage-collector")
_LOST = Condition(type="DisruptionTarget", reason="DeletionByPodGC", message="PodGC: node no longer exists")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    scheduling_backoff: timedelta = timedelta(seconds=1)
    """Minimum interval at which the scheduler says anew why a pod does not fit. A pod that fits is bound at once."""

    pod_backoff: timedelta = timedelta(seconds=10)
    """From a pod's failure to its replacement by the Job. Kubernetes doubles its 10 s each time; this one does not."""

    creation_backoff: timedelta = timedelta(seconds=1)
    """From a pod that is refused to the next attempt."""

    node_grace: timedelta = timedelta(seconds=40)
    """Without a sign of life of its kubelet, after which a node is lost (--node-monitor-grace-period)."""

    event_life: timedelta = timedelta(hours=1)
    """How long an Event is kept (--event-ttl)."""


def finished(pod: Object) -> bool:
    return pod["status"].get("phase") in ("Succeeded", "Failed")


def collect(objects: Objects, now: datetime, pace: Pace) -> datetime:
    """Fail and remove the pods of nodes that are gone (the original waits 40 s), and remove Events past their life."""
    nodes = {node["metadata"]["name"] for node in objects.stored("nodes")}

    def end(pod: Object) -> None:
        metadata = pod["metadata"]
        if "deletionTimestamp" in metadata and not metadata.get("deletionGracePeriodSeconds"):
            return  # only finalizers hold it
        if not finished(pod):
            status = pod["status"] | {"phase": "Failed", "conditions": with_condition(of(pod), _LOST, now)}
            objects.update("pods", pod | {"status": status}, status=True)
        objects.delete("pods", metadata["namespace"], metadata["name"], grace_seconds=0)

    lost = [pod for pod in objects.stored("pods") if pod["spec"].get("nodeName", "") not in {"", *nodes}]
    each(lost, end, RECORDER.doubting(objects, now))
    for event in objects.stored("events"):
        if _seen(event) < now - pace.event_life:
            objects.delete("events", event["metadata"]["namespace"], event["metadata"]["name"])
    return now + timedelta(minutes=1)


def _seen(event: Object) -> datetime:
    """Return when an Event was last repeated."""
    repeated = (event.get("series") or {}).get("lastObservedTime") or event.get("lastTimestamp")
    return datetime.fromisoformat(repeated or event["metadata"]["creationTimestamp"])
