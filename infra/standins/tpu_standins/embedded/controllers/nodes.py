"""The life of nodes and of what hangs on it (pkg/controller/nodelifecycle, podgc), and the pace of all controllers.

Ready False taints a node as not ready, Ready Unknown or missing as unreachable.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tpu_standins.clients.conditions import Condition, find, is_true, moment, of, with_condition
from tpu_standins.clients.events import Recorder
from tpu_standins.clients.objects import Object, Objects, timestamp
from tpu_standins.clients.rounds import each, soonest
from tpu_standins.clients.tolerations import matches
from tpu_standins.embedded.store.admission import NOT_READY, UNREACHABLE

RECORDER = Recorder("pod-garbage-collector")
_EVICTED = Condition(
    type="DisruptionTarget", reason="DeletionByTaintManager", message="deleting due to NoExecute taint"
)
_COLLECTED = Condition(type="DisruptionTarget", reason="DeletionByPodGC", message="PodGC: node no longer exists")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long until a scheduler's message, a pod and its creation come anew, a node is lost, and an Event goes.

    The original loses a node after 40 s; a busy machine may not renew its Lease in that time.
    """

    scheduling_backoff: timedelta = timedelta(seconds=1)
    told_again_at_once: int = 50
    """How many pods are told anew in one round of the scheduler."""
    pod_backoff: timedelta = timedelta(seconds=10)
    creation_backoff: timedelta = timedelta(seconds=1)
    node_grace: timedelta = timedelta(minutes=10)
    event_life: timedelta = timedelta(hours=1)


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
            status = pod["status"] | {"phase": "Failed", "conditions": with_condition(of(pod), _COLLECTED, now)}
            objects.update("pods", pod | {"status": status}, status=True)
        objects.delete("pods", metadata["namespace"], metadata["name"], grace_seconds=0)

    lost = [pod for pod in objects.stored("pods") if pod["spec"].get("nodeName", "") not in {"", *nodes}]
    each(lost, end, RECORDER.doubting(objects, now))
    for event in objects.stored("events"):
        if _seen(event) < now - pace.event_life:
            objects.delete("events", event["metadata"]["namespace"], event["metadata"]["name"])
    return now + timedelta(minutes=1)


def _seen(event: Object) -> datetime:
    """Return when an Event was last repeated; what it tells of may be longer ago."""
    times = (event.get("series") or {}).get("lastObservedTime"), event.get("lastTimestamp")
    return max(datetime.fromisoformat(each or event["metadata"]["creationTimestamp"]) for each in (None, *times))


CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
"""The taint of a cordoned node."""

_OWN = (NOT_READY, UNREACHABLE, CORDON["key"])
_LOST = {"status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}


@dataclass(slots=True)
class NodeController:
    """Remembers when each node last gave a sign of life: renewed its Lease, or wrote its Ready condition."""

    _recorder: Recorder = field(default_factory=lambda: Recorder("node-controller"))
    _signs: dict[str, tuple[object, datetime]] = field(default_factory=dict)

    def reconcile(self, objects: Objects, now: datetime, pace: Pace) -> datetime | None:
        """Mark lost nodes, update taints; then mark, and evict in time, the pods on them."""
        leases = {lease["metadata"]["name"]: lease for lease in objects.stored("leases", "kube-node-lease")}
        nodes: dict[str, Object] = {}

        def keep(node: Object) -> datetime | None:
            name, ready = node["metadata"]["name"], find(of(node), "Ready")
            lost_at = self._seen(node, leases.get(name), now) + pace.node_grace
            if lost_at <= now and ready and ready["status"] != "Unknown":
                conditions = [known | _LOST | {"lastTransitionTime": timestamp(now)} for known in of(node)]
                lost = node | {"status": node["status"] | {"conditions": conditions}}
                node = objects.update("nodes", lost, status=True)
            wanted = taints(node, now)
            if wanted != (node["spec"].get("taints") or []):
                node = objects.update("nodes", node | {"spec": node["spec"] | {"taints": wanted}})
            nodes[name] = node
            return lost_at if lost_at > now else None

        def settle(pod: Object) -> datetime | None:
            node, metadata = nodes[pod["spec"]["nodeName"]], pod["metadata"]
            end, conditions = leaves_at(pod, node, now), of(pod)
            if not is_true(node, "Ready") and is_true(pod, "Ready"):
                conditions = with_condition(conditions, Condition(type="Ready", status=False), now)
            if end is not None and end <= now:
                conditions = with_condition(conditions, _EVICTED, now)
            if conditions != of(pod):
                objects.update("pods", pod | {"status": pod["status"] | {"conditions": conditions}}, status=True)
            if end is not None and end <= now:
                objects.delete("pods", metadata["namespace"], metadata["name"])
            return end

        doubt = self._recorder.doubting(objects, now)
        wake = each(objects.stored("nodes"), keep, doubt)
        there = (pod for pod in objects.stored("pods") if pod["spec"].get("nodeName") in nodes and not finished(pod))
        return soonest(
            [wake, each([pod for pod in there if "deletionTimestamp" not in pod["metadata"]], settle, doubt)]
        )

    def _seen(self, node: Object, lease: Object | None, now: datetime) -> datetime:
        """Return when the node's last sign of life was seen."""
        uid, ready = node["metadata"]["uid"], find(of(node), "Ready") or {}
        alive = ready if ready.get("status") != "Unknown" else {}
        sign = (lease and lease["spec"].get("renewTime"), alive.get("status"), alive.get("lastHeartbeatTime"))
        known = self._signs.get(uid)
        if known is None or known[0] != sign:
            self._signs[uid] = known = (sign, now)
        return known[1]


def leaves_at(pod: Object, node: Object, now: datetime) -> datetime | None:
    """Return when NoExecute taints of its node evict the pod; None: never (pkg/controller/tainteviction; pure)."""
    ends = []
    for taint in node["spec"].get("taints") or ():
        found = [each for each in pod["spec"].get("tolerations") or () if matches(each, taint)]
        if taint["effect"] == "NoExecute" and not any("tolerationSeconds" not in each for each in found):
            seconds = min((each["tolerationSeconds"] for each in found), default=0)
            ends.append(moment(taint.get("timeAdded") or timestamp(now)) + timedelta(seconds=max(seconds, 0)))
    return min(ends, default=None)


def taints(node: Object, now: datetime) -> list[Object]:
    """Return the node's taints by its conditions; taints set by others, and the times of kept ones, are kept (pure)."""
    before: list[Object] = node["spec"].get("taints") or []
    ready = find(of(node), "Ready")
    key = {"True": "", "False": NOT_READY}.get(ready["status"], UNREACHABLE) if ready else UNREACHABLE
    wanted = [(key, effect) for effect in ("NoSchedule", "NoExecute") if key]
    wanted += [(CORDON["key"], CORDON["effect"])] if node["spec"].get("unschedulable") else []
    kept = [taint for taint in before if taint["key"] not in _OWN or (taint["key"], taint["effect"]) in wanted]
    there = [(taint["key"], taint["effect"]) for taint in kept]
    added = [(key, effect) for key, effect in wanted if (key, effect) not in there]
    return [*kept, *({"key": key, "effect": effect, "timeAdded": timestamp(now)} for key, effect in added)]
