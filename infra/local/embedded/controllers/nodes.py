"""The life of nodes: lost without a sign of life, tainted by their conditions; and the eviction of pods by taints.

Sources: pkg/controller/nodelifecycle (monitorNodeHealth, nodeConditionToTaintKeyStatusMap), pkg/controller/
tainteviction. Ready False taints a node as not ready, Ready Unknown or missing as unreachable.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from infra.local.clients.conditions import Condition, find, is_true, moment, of, with_condition
from infra.local.clients.events import Happening, Recorder
from infra.local.clients.objects import Object, Objects, timestamp
from infra.local.clients.rounds import each, soonest
from infra.local.embedded.controllers import disruption
from infra.local.embedded.controllers.disruption import finished
from infra.local.embedded.controllers.pace import Pace
from infra.local.embedded.controllers.tolerations import tolerating
from infra.local.embedded.store.admission import NOT_READY, UNREACHABLE

Taint = Mapping[str, Any]
"""v1.Taint."""

RECORDER = Recorder("node-controller")
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"

_TAINT_OF = {"True": None, "False": NOT_READY}
_OWN = (NOT_READY, UNREACHABLE, UNSCHEDULABLE)
_LEASES = "kube-node-lease"
_LOST = {"status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
_EVICTED = Condition(
    type=disruption.TARGET,
    reason="DeletionByTaintManager",
    message="Taint manager: deleting due to NoExecute taint",
)


@dataclass(slots=True)
class NodeController:
    """Remembers when each node last gave a sign of life: renewed its Lease, or wrote its Ready condition."""

    _signs: dict[str, tuple[object, datetime]] = field(default_factory=dict)

    def reconcile(self, objects: Objects, now: datetime, pace: Pace) -> datetime | None:
        """Mark lost nodes, update taints, say which pods are not ready on their account, evict what must leave."""
        leases = {lease["metadata"]["name"]: lease for lease in objects.stored("leases", _LEASES)}

        def keep(node: Object) -> datetime | None:
            lost_at = self._heard(node, leases.get(node["metadata"]["name"]), now) + pace.node_grace
            ready = find(of(node), "Ready")
            if lost_at <= now and ready and ready["status"] != "Unknown":
                status = node["status"] | {"conditions": [_unknown(each, now) for each in of(node)]}
                node = objects.update("nodes", node | {"status": status}, status=True)
            wanted = taints(node, now)
            if wanted != (node["spec"].get("taints") or []):
                spec = {key: value for key, value in node["spec"].items() if key != "taints"}
                objects.update("nodes", node | {"spec": spec | ({"taints": wanted} if wanted else {})})
            return lost_at if lost_at > now else None

        found = objects.stored("nodes")
        names = {node["metadata"]["name"] for node in found}
        self._signs = {name: sign for name, sign in self._signs.items() if name in names}
        return soonest([each(found, keep, RECORDER.doubting(objects, now)), _settle_pods(objects, now)])

    def _heard(self, node: Object, lease: Object | None, now: datetime) -> datetime:
        """Return when the node's last sign of life was seen."""
        name, ready = node["metadata"]["name"], find(of(node), "Ready") or {}
        alive = ready if ready.get("status") != "Unknown" else {}
        sign = (lease and lease["spec"].get("renewTime"), alive.get("status"), alive.get("lastHeartbeatTime"))
        known = self._signs.get(name)
        if known is None or known[0] != sign:
            self._signs[name] = known = (sign, now)
        return known[1]


def _settle_pods(objects: Objects, now: datetime) -> datetime | None:
    nodes = {node["metadata"]["name"]: node for node in objects.stored("nodes")}

    def settle(pod: Object) -> datetime | None:
        node = nodes[pod["spec"]["nodeName"]]
        if not is_true(node, "Ready") and is_true(pod, "Ready"):
            conditions = with_condition(of(pod), Condition(type="Ready", status=False), now)
            pod = objects.update("pods", pod | {"status": pod["status"] | {"conditions": conditions}}, status=True)
        driving = [taint for taint in node["spec"].get("taints") or () if taint.get("effect") == "NoExecute"]
        end = leaves_at(pod, driving, now)
        if end is None or end > now:
            return end
        message = f"Marking for deletion Pod {pod['metadata']['namespace']}/{pod['metadata']['name']}"
        RECORDER.record(objects, Happening(pod, "TaintManagerEviction", message), now)
        disruption.end(objects, pod, _EVICTED, now)
        return None

    placed = (pod for pod in objects.stored("pods") if pod["spec"].get("nodeName") in nodes)
    living = [pod for pod in placed if not finished(pod) and "deletionTimestamp" not in pod["metadata"]]
    return each(living, settle, RECORDER.doubting(objects, now))


def _unknown(condition: Object, now: datetime) -> Object:
    return condition | _LOST | {"lastTransitionTime": timestamp(now)}


def taints(node: Object, now: datetime) -> list[Object]:
    """Return the node's taints by its conditions; taints set by others, and the times of kept ones, are kept (pure)."""
    before: list[Object] = node["spec"].get("taints") or []
    wanted = list(_conditional(node))
    kept = [taint for taint in before if taint["key"] not in _OWN or _identity(taint) in wanted]
    there = [_identity(taint) for taint in kept]
    added = [{"key": key, "effect": effect} for key, effect in wanted if (key, effect) not in there]
    return [*kept, *(taint | {"timeAdded": timestamp(now)} for taint in added)]


def _identity(taint: Taint) -> tuple[str, str]:
    return taint["key"], taint["effect"]


def _conditional(node: Object) -> Iterable[tuple[str, str]]:
    ready = find(of(node), "Ready")
    key = _TAINT_OF.get(ready["status"], UNREACHABLE) if ready else UNREACHABLE
    if key is not None:
        yield key, "NoSchedule"
        yield key, "NoExecute"
    if node["spec"].get("unschedulable"):
        yield UNSCHEDULABLE, "NoSchedule"


def leaves_at(pod: Object, driving: Iterable[Taint], now: datetime) -> datetime | None:
    """Return when NoExecute taints evict the pod; None: never (pure)."""
    return soonest([_until(pod, taint, now) for taint in driving])


def _until(pod: Object, taint: Taint, now: datetime) -> datetime | None:
    found = tolerating(pod, taint)
    limits = [toleration["tolerationSeconds"] for toleration in found if "tolerationSeconds" in toleration]
    if found and not limits:
        return None
    began = moment(taint["timeAdded"]) if taint.get("timeAdded") else now
    return began + timedelta(seconds=max(min(limits, default=0), 0))
