"""The life of nodes: lost without a sign of life, and tainted by their conditions.

Sources: pkg/controller/nodelifecycle (monitorNodeHealth, nodeConditionToTaintKeyStatusMap). Ready False taints a node
as not ready, Ready Unknown or missing as unreachable. Pods are not evicted by taints: that is the real one's.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from infra.local.clients.conditions import Condition, find, is_true, of, with_condition
from infra.local.clients.events import Recorder
from infra.local.clients.objects import Object, Objects, timestamp
from infra.local.clients.rounds import each
from infra.local.embedded.controllers.fit import CORDON
from infra.local.embedded.controllers.pods import Pace, finished
from infra.local.embedded.store.admission import NOT_READY, UNREACHABLE

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

        doubt, nodes = self._recorder.doubting(objects, now), objects.stored("nodes")
        names = {node["metadata"]["name"] for node in nodes}
        self._signs = {name: sign for name, sign in self._signs.items() if name in names}
        wake = each(nodes, keep, doubt)
        there = (pod for pod in objects.stored("pods") if pod["spec"].get("nodeName") in unready)
        each([pod for pod in there if is_true(pod, "Ready") and not finished(pod)], mark, doubt)
        return wake

    def _seen(self, node: Object, lease: Object | None, now: datetime) -> datetime:
        """Return when the node's last sign of life was seen."""
        name, ready = node["metadata"]["name"], find(of(node), "Ready") or {}
        alive = ready if ready.get("status") != "Unknown" else {}
        sign = (lease and lease["spec"].get("renewTime"), alive.get("status"), alive.get("lastHeartbeatTime"))
        known = self._signs.get(name)
        if known is None or known[0] != sign:
            self._signs[name] = known = (sign, now)
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
