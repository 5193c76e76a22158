"""The life of nodes and what hangs on it, and the pace of all controllers.

Sources: pkg/controller/nodelifecycle (monitorNodeHealth, nodeConditionToTaintKeyStatusMap), pkg/controller/podgc. Ready
False taints a node as not ready, Ready Unknown or missing as unreachable. Pods are not evicted by taints here.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from infra.local.clients.conditions import Condition, find, is_true, of, with_condition
from infra.local.clients.events import Recorder
from infra.local.clients.objects import Object, Objects, timestamp
from infra.local.clients.rounds import each
from infra.local.embedded.store.admission import NOT_READY, UNREACHABLE

RECORDER = Recorder("pod-garbage-collector")
_COLLECTED = Condition(type="DisruptionTarget", reason="DeletionByPodGC", message="PodGC: node no longer exists")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long controllers wait.

    `scheduling_backoff`: until the scheduler says anew why a pod does not fit. `pod_backoff`: from a pod's failure to
    its replacement (Kubernetes doubles it each time). `creation_backoff`: from a pod that is refused to the next try.
    `node_grace`: without a sign of life, until a node is lost. `event_life`: how long an Event is kept.
    """

    scheduling_backoff: timedelta = timedelta(seconds=1)
    pod_backoff: timedelta = timedelta(seconds=10)
    creation_backoff: timedelta = timedelta(seconds=1)
    node_grace: timedelta = timedelta(seconds=40)
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
    """Return when an Event was last repeated."""
    repeated = (event.get("series") or {}).get("lastObservedTime") or event.get("lastTimestamp")
    return datetime.fromisoformat(repeated or event["metadata"]["creationTimestamp"])


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
        """Mark lost nodes, update taints, and say which pods are not ready on their node's account."""
        leases = {lease["metadata"]["name"]: lease for lease in objects.stored("leases", "kube-node-lease")}
        unready: set[str] = set()

        def keep(node: Object) -> datetime | None:
            lost_at = self._seen(node, leases.get(node["metadata"]["name"]), now) + pace.node_grace
            ready = find(of(node), "Ready")
            if lost_at <= now and ready and ready["status"] != "Unknown":
                conditions = [known | _LOST | {"lastTransitionTime": timestamp(now)} for known in of(node)]
                node = objects.update(
                    "nodes", node | {"status": node["status"] | {"conditions": conditions}}, status=True
                )
            wanted = taints(node, now)
            if wanted != (node["spec"].get("taints") or []):
                node = objects.update("nodes", node | {"spec": node["spec"] | {"taints": wanted}})
            if not is_true(node, "Ready"):
                unready.add(node["metadata"]["name"])
            return lost_at if lost_at > now else None

        def mark(pod: Object) -> None:
            conditions = with_condition(of(pod), Condition(type="Ready", status=False), now)
            objects.update("pods", pod | {"status": pod["status"] | {"conditions": conditions}}, status=True)

        doubt = self._recorder.doubting(objects, now)
        wake = each(objects.stored("nodes"), keep, doubt)
        there = (pod for pod in objects.stored("pods") if pod["spec"].get("nodeName") in unready)
        each([pod for pod in there if is_true(pod, "Ready") and not finished(pod)], mark, doubt)
        return wake

    def _seen(self, node: Object, lease: Object | None, now: datetime) -> datetime:
        """Return when the node's last sign of life was seen."""
        uid, ready = node["metadata"]["uid"], find(of(node), "Ready") or {}
        alive = ready if ready.get("status") != "Unknown" else {}
        sign = (lease and lease["spec"].get("renewTime"), alive.get("status"), alive.get("lastHeartbeatTime"))
        known = self._signs.get(uid)
        if known is None or known[0] != sign:
            self._signs[uid] = known = (sign, now)
        return known[1]


def taints(node: Object, now: datetime) -> list[Object]:
    """Return the node's taints by its conditions; taints set by others, and the times of kept ones, are kept (pure)."""
    before: list[Object] = node["spec"].get("taints") or []
    wanted = list(_conditional(node))
    kept = [taint for taint in before if taint["key"] not in _OWN or (taint["key"], taint["effect"]) in wanted]
    there = [(taint["key"], taint["effect"]) for taint in kept]
    added = [(key, effect) for key, effect in wanted if (key, effect) not in there]
    return [*kept, *({"key": key, "effect": effect, "timeAdded": timestamp(now)} for key, effect in added)]


def _conditional(node: Object) -> Iterable[tuple[str, str]]:
    ready = find(of(node), "Ready")
    key = {"True": "", "False": NOT_READY}.get(ready["status"], UNREACHABLE) if ready else UNREACHABLE
    yield from ((key, effect) for effect in ("NoSchedule", "NoExecute") if key)
    if node["spec"].get("unschedulable"):
        yield CORDON["key"], CORDON["effect"]
