"""The node lifecycle controller and the taint manager: taints by node condition, and the eviction of pods by taints.

Sources: k8s.io/kubernetes pkg/controller/nodelifecycle (nodeConditionToTaintKeyStatusMap, processTaintBaseEviction),
pkg/controller/tainteviction. Ready False taints a node as not ready, Ready Unknown or missing as unreachable. For a
pod without its own toleration of these, the 300 s of the admission plugin DefaultTolerationSeconds apply.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from infra.local.cluster.controllers import disruption, events
from infra.local.cluster.controllers.board import finished
from infra.local.cluster.controllers.conditions import Condition, find, moment, of
from infra.local.cluster.controllers.keys import NOT_READY, UNREACHABLE, UNSCHEDULABLE
from infra.local.cluster.controllers.pace import Pace
from infra.local.cluster.controllers.rounds import each, soonest
from infra.local.cluster.controllers.tolerations import tolerating
from infra.local.cluster.objects import Object, Objects, timestamp

Taint = Mapping[str, Any]
"""v1.Taint."""

SOURCE = "node-controller"
TAINT_MANAGER = "taint-eviction-controller"

_TAINT_OF = {"True": None, "False": NOT_READY}
_OWN = (NOT_READY, UNREACHABLE, UNSCHEDULABLE)
_DEFAULT_SECONDS = 300
_EVICTED = Condition(
    type=disruption.TARGET,
    reason="DeletionByTaintManager",
    message="Taint manager: deleting due to NoExecute taint",
)


def reconcile(objects: Objects, now: datetime, pace: Pace) -> datetime | None:
    """Update the taints of every node from its conditions, then evict the pods that do not tolerate them."""

    def keep_taints(node: Object) -> None:
        wanted = taints(node, now)
        if wanted != (node["spec"].get("taints") or []):
            spec = {key: value for key, value in node["spec"].items() if key != "taints"}
            objects.update("nodes", node | {"spec": spec | ({"taints": wanted} if wanted else {})})

    each(objects.stored("nodes"), keep_taints, events.doubting(objects, SOURCE, now))
    driving = {node["metadata"]["name"]: _driving(node) for node in objects.stored("nodes") if _driving(node)}

    def evict(pod: Object) -> datetime | None:
        end = leaves_at(pod, driving[pod["spec"]["nodeName"]], pace.toleration, now)
        if end is None or end > now:
            return end
        message = f"Marking for deletion Pod {pod['metadata']['namespace']}/{pod['metadata']['name']}"
        events.record(objects, events.Happening(pod, "TaintManagerEviction", message, TAINT_MANAGER), now)
        disruption.end(objects, pod, _EVICTED, now)
        return None

    threatened = [pod for pod in objects.stored("pods") if pod["spec"].get("nodeName") in driving and _stays(pod)]
    return each(threatened, evict, events.doubting(objects, TAINT_MANAGER, now))


def _driving(node: Object) -> list[Taint]:
    return [taint for taint in node["spec"].get("taints") or () if taint.get("effect") == "NoExecute"]


def _stays(pod: Object) -> bool:
    return not (finished(pod) or "deletionTimestamp" in pod["metadata"])


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


def leaves_at(pod: Object, driving: Iterable[Taint], scale: float, now: datetime) -> datetime | None:
    """Return when NoExecute taints evict the pod; None: never. `scale` shortens tolerationSeconds (pure)."""
    return soonest([_until(pod, taint, scale, now) for taint in driving])


def _until(pod: Object, taint: Taint, scale: float, now: datetime) -> datetime | None:
    found = tolerating(pod, taint)
    limits = [toleration["tolerationSeconds"] for toleration in found if "tolerationSeconds" in toleration]
    if found and not limits:
        return None
    if not found:
        limits = [_DEFAULT_SECONDS if taint["key"] in (NOT_READY, UNREACHABLE) else 0]
    began = moment(taint["timeAdded"]) if taint.get("timeAdded") else now
    return began + timedelta(seconds=max(min(limits), 0) * scale)
