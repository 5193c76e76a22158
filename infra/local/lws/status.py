"""The status of a LeaderWorkerSet (pure; sigs.k8s.io/lws pkg/controllers/leaderworkerset_controller.go)."""

from collections.abc import Sequence
from datetime import datetime

from infra.local.clients.conditions import Condition, find, of, with_condition
from infra.local.clients.objects import Object
from infra.local.lws.groups import Group
from infra.local.lws.keys import NAME, WORKER_INDEX

_AVAILABLE = Condition(type="Available", reason="AllGroupsReady", message="All replicas are ready")
_PROGRESSING = Condition(type="Progressing", reason="GroupsProgressing", message="Replicas are progressing")
_UPDATING = Condition(type="UpdateInProgress", reason="GroupsUpdating", message="Rolling Upgrade is in progress")


def status_of(lws: Object, leader_set: Object, groups: Sequence[Group], now: datetime) -> Object:
    """Return the status; it has the conditions that there were, too."""
    conditions = of(lws)
    for condition in true_now(lws, groups):
        conditions = _without(conditions, condition.type, now)
        conditions = with_condition(conditions, condition, now)
    return {
        "replicas": leader_set.get("status", {}).get("replicas", 0),
        "readyReplicas": sum(group.ready for group in groups),
        "updatedReplicas": sum(group.updated for group in groups),
        "hpaPodSelector": f"{NAME}={lws['metadata']['name']},{WORKER_INDEX}=0",
        "observedGeneration": lws["metadata"].get("generation", 0),
        "conditions": conditions,
    }


def true_now(lws: Object, groups: Sequence[Group]) -> tuple[Condition, ...]:
    """Return the conditions that are true, the one to tell first."""
    if any(group.outdated for group in groups):
        return _UPDATING, _PROGRESSING
    ready = sum(group.ready for group in groups if group.index < lws["spec"]["replicas"])
    return (_AVAILABLE,) if ready == lws["spec"]["replicas"] else (_PROGRESSING,)


def _without(conditions: list[Object], kind: str, now: datetime) -> list[Object]:
    """Return the conditions, of which those are false now that exclude the one of this type."""
    excluded = (_PROGRESSING, _UPDATING) if kind == _AVAILABLE.type else (_AVAILABLE,)
    for each in excluded:
        if find(conditions, each.type) is not None:
            ended = Condition(type=each.type, status=False, reason=each.reason, message=each.message)
            conditions = with_condition(conditions, ended, now)
    return conditions
