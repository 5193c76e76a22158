"""The status of a TPUNodeGroup's object and its Events, from what the functions say. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from relay.events import Told
from tpu_slices.domain.model.node_groups import FINALIZER, INVALID_TEMPLATE, Condition, ConditionType
from tpu_slices.ports.publisher import NodeGroupUpdate

Json = Mapping[str, Any]

_FAILURES = frozenset(
    {
        "RequestRejected",
        "OperationFailed",
        "InstancesCreationFailed",
        "ReconcileError",
        "NodeLost",
        "NodeNotReady",
        "TPUUnhealthy",
        "Preempted",
        "VMGone",
    }
)
"""Reasons of the condition Ready of which a Warning tells; those of TPU operator, and of what it does not notice."""
_AS_EVENT = {"ReconcileError": "Failed"}


def status_patch(group: Json, update: NodeGroupUpdate) -> Json | None:
    """Return the JSON merge patch of a group's status; None if it has that status already.

    It has the resourceVersion that it is based on: it must not undo another's change.
    """
    before, status = _status(group), update.status
    generation = max(status.generation, before.get("observedGeneration") or 0)
    after = {
        **before,
        "observedGeneration": generation,
        "conditions": [*_conditions(before, update, generation)],
        "nodeSummary": {"ready": status.ready, "reconciling": status.reconciling, "failed": status.failed},
    }
    if after == before:
        return None
    return {"metadata": {"resourceVersion": group["metadata"]["resourceVersion"]}, "status": after}


def held(metadata: Json) -> Json:
    """Return the patch of a group that keeps its object until its slice is GONE."""
    return _finalizers(metadata, *(metadata.get("finalizers") or ()), FINALIZER)


def let_go(group: Json) -> Json | None:
    """Return the patch of a group that lets its object go; None if we do not keep it."""
    kept = group["metadata"].get("finalizers") or ()
    return _finalizers(group["metadata"], *(each for each in kept if each != FINALIZER)) if FINALIZER in kept else None


def events_of(group: Json, update: NodeGroupUpdate) -> Iterator[Told]:
    """Yield the Events that tell what this update changes, with TPU operator's reasons.

    | Event                         | when                                                     |
    |-------------------------------|----------------------------------------------------------|
    | ChildResourcesProvisioned     | all that the slice consists of on Compute Engine stands  |
    | NodesJoining                  | more nodes are ready, and not all                        |
    | Provisioned                   | the group is Ready                                       |
    | InvalidInstanceTemplate       | Compute Engine refuses what comes of the user's template |
    | a failure, as a Warning       | the reason of Ready becomes that                         |
    | Cleanup                       | a deletion, which raises the generation, begins          |
    """
    before = {each["type"]: each for each in _status(group).get("conditions") or ()}
    after = {each.type: each for each in update.status.conditions}
    ready = ready_of(update)
    if _became_true(ConditionType.INSTANCE_GROUP, before, after):
        yield Told("Normal", "ChildResourcesProvisioned", "The managed instance group and all that it needs stand.")
    nodes, was_ready = group["spec"]["nodeCount"], (_status(group).get("nodeSummary") or {}).get("ready") or 0
    if was_ready < update.status.ready < nodes:
        yield Told("Normal", "NodesJoining", f"{update.status.ready} of {nodes} nodes are ready.")
    if _became_true(ConditionType.READY, before, after):
        yield Told("Normal", "Provisioned", ready.message)
    template = after.get(ConditionType.INSTANCE_TEMPLATE)
    if template is not None and template.reason == INVALID_TEMPLATE != _reason(before, template.type):
        yield Told("Warning", "InvalidInstanceTemplate", template.message)
    if ready.reason in _FAILURES and ready.reason != _reason(before, ready.type):
        yield Told("Warning", _AS_EVENT.get(ready.reason, ready.reason), ready.message)
    known = _status(group).get("observedGeneration") or 0
    if "deletionTimestamp" in group["metadata"] and known < update.status.generation:
        yield Told("Normal", "Cleanup", ready.message)


def ready_of(update: NodeGroupUpdate) -> Condition:
    return next(each for each in update.status.conditions if each.type is ConditionType.READY)


def with_reason(update: NodeGroupUpdate, reason: str) -> NodeGroupUpdate:
    """Return the update with another reason of the condition Ready."""
    ready = ready_of(update)
    conditions = (replace(each, reason=reason) if each is ready else each for each in update.status.conditions)
    return replace(update, status=replace(update.status, conditions=tuple(conditions)))


def _became_true(kind: ConditionType, before: Mapping[str, Json], after: Mapping[ConditionType, Condition]) -> bool:
    """Return whether a condition became True."""
    return kind in after and after[kind].status and (before.get(kind) or {}).get("status") != "True"


def _reason(before: Mapping[str, Json], kind: ConditionType) -> str:
    return str((before.get(kind) or {}).get("reason"))


def _status(group: Json) -> Json:
    found: Json = group.get("status") or {}
    return found


def _conditions(before: Json, update: NodeGroupUpdate, generation: int) -> Iterator[Json]:
    """Yield the conditions that are there, as they are now, then new ones; others' stay as they are."""
    now = {each.type.value: each for each in update.status.conditions}
    for each in before.get("conditions") or ():
        found = now.pop(each["type"], None)
        yield _written(found, each, update.at, generation) if found else each
    for new in now.values():
        yield _written(new, {}, update.at, generation)


def _written(condition: Condition, before: Json, at: datetime, generation: int) -> Json:
    status = "True" if condition.status else "False"
    since = before.get("lastTransitionTime") if before.get("status") == status else None
    return {
        "type": condition.type.value,
        "status": status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": since or at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "observedGeneration": generation,
    }


def _finalizers(metadata: Json, *finalizers: str) -> Json:
    return {"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": [*finalizers]}}
