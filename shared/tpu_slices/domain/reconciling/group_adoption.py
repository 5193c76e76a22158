"""Adoption of the slices that TPU operator made for TPUNodeGroups, without a rebuild or a restart. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import WorkloadRef, WorkloadState
from tpu_slices.domain.model.node_groups import NodeGroup
from tpu_slices.domain.model.observations import (
    Absent,
    Begun,
    Broken,
    Busy,
    LegacyPool,
    Running,
    Unowned,
    Visible,
)
from tpu_slices.domain.model.slices import SliceSpec, WorkloadJob
from tpu_slices.domain.planning.node_groups import declared_slice
from tpu_slices.domain.planning.tpu_operator import operator_names
from tpu_slices.domain.reconciling.adoption import ALREADY_ADOPTED, Adoption, adopted_record
from tpu_slices.domain.records.claims import Refusal
from tpu_slices.domain.records.slices import SliceRecord

FINISH = "start TPU operator again and let it finish, or delete the TPUNodeGroup while it runs"
"""What is done about a slice that TPU operator has not made whole, or has not deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorPart:
    """An object of TPU operator's about one part of a slice: policy, template or group."""

    kind: str
    name: str
    link: str
    """That of the resource on Compute Engine, as TPU operator has written it; empty: it has not."""
    ready: bool
    operation: str
    """The operation that TPU operator waits for; empty: none."""
    deleted: bool
    finalizers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorGroup:
    """A TPUNodeGroup as read from the API server now, with the objects that TPU operator made for it."""

    ref: WorkloadRef
    state: WorkloadState
    declared: NodeGroup | str
    """What it declares, or why that cannot be read."""
    unready: str
    """Why TPU operator says that it is not Ready; empty: it says that it is."""
    finalizers: tuple[str, ...]
    parts: tuple[OperatorPart, ...]

    @property
    def pool(self) -> LegacyPool:
        owner = self.ref.owner
        return LegacyPool(
            name=operator_names(owner).group, namespace=owner.namespace, jobset=owner.name, job=owner.name
        )


def planned_adoption(
    group: OperatorGroup, present: SliceRecord | None, settings: ClusterSettings, now: datetime
) -> Adoption:
    """Return whether a group may be adopted, by what is known of it without Compute Engine. The first row counts.

    | the TPUNodeGroup                                          | outcome                                              |
    |-----------------------------------------------------------|------------------------------------------------------|
    | was adopted                                               | left alone                                           |
    | has a slice of ours, created or being created             | left alone: TPU operator holds another one for it    |
    | has nothing of TPU operator's                             | left alone: it gets its slice as any other           |
    | is being deleted, or a part of it is                      | left alone: TPU operator finishes that               |
    | lacks a part, or one is not Ready, or is being made       | left alone: TPU operator finishes that               |
    | has parts whose names have no digest of its UID           | left alone: they do not prove whose they are         |
    | is not Ready                                              | left alone: TPU operator finishes that               |
    | is refused by our plan: its policy, for example           | left alone, with the reasons                         |
    | else                                                      | adopted, if Compute Engine agrees                    |
    """
    pool = group.pool
    if present is not None and present.legacy_pool == pool.name:
        return Adoption(pool, None, ALREADY_ADOPTED)
    if present is not None and (present.current.create_requested_at is not None or present.claim.earlier):
        return Adoption(
            pool, None, f"it has {present.pool} of ours, too: find out which one is in use, delete the other"
        )
    if not group.parts:
        return Adoption(pool, None, "TPU operator has made nothing for it: it gets its slice as any other")
    why = next(_not_whole(group), None)
    if why is not None:
        return Adoption(pool, None, why)
    job = WorkloadJob.declared(settings.cluster, group.ref.owner)
    spec = _spec(group, job, settings)
    if isinstance(spec, str):
        return Adoption(pool, None, f"{spec}: change the settings, or delete the TPUNodeGroup while TPU operator runs")
    record = replace(present or SliceRecord.of(job, now), spec=spec, pinned_settings=settings.pools)
    return Adoption(pool, adopted_record(pool, record, now), "adopted: kept until its TPUNodeGroup is deleted")


def confirmed_adoption(planned: Adoption, seen: Visible) -> Adoption:
    """Return a planned adoption as Compute Engine shows the instance group.

    | Compute Engine shows                         | outcome                                    |
    |----------------------------------------------|--------------------------------------------|
    | the group with its machines                  | adopted                                    |
    | no group, or parts of it alone               | left alone: there is nothing to adopt      |
    | what is not TPU operator's under the name    | left alone                                 |
    | a failure, or machines that are gone         | left alone, with it                        |
    | that it is at work on it, or on its machines | left alone for now                         |
    """
    pool = planned.pool
    match seen:
        case Running() if not seen.awaiting:
            return planned
        case Absent() | Begun():
            return Adoption(pool, None, f"Compute Engine has no such group where the TPUNodeGroup has it: {FINISH}")
        case Unowned(message):
            return Adoption(pool, None, f"it is not TPU operator's: {message}")
        case Broken(failure):
            return Adoption(pool, None, f"{failure.message} Delete the TPUNodeGroup while TPU operator runs")
        case Busy() | Running():
            about = seen.message if isinstance(seen, Busy) else seen.awaiting
            return Adoption(pool, None, f"Compute Engine is at work on it: {about} Repeat this once that has ended")
        case _:
            return Adoption(pool, None, "an operation on it runs: repeat this once that has ended")


def _not_whole(group: OperatorGroup) -> Iterator[str]:
    """Yield why a group is not one that TPU operator has made whole and has to do nothing about."""
    if group.state is not WorkloadState.ACTIVE:
        yield f"it is being deleted: {FINISH}"
    names = dict(zip(_KINDS, operator_names(group.ref.owner), strict=True))
    found = {part.kind: part for part in group.parts}
    for kind in _needed(group):
        part = found.get(kind)
        if part is None or not part.link:
            yield f"TPU operator has not made its {kind}: {FINISH}"
        elif part.deleted or part.operation or not part.ready:
            yield f"TPU operator is not done with its {kind} {part.name}: {FINISH}"
        elif names[kind] != part.name or part.link.rpartition("/")[2] != part.name:
            yield (
                f"its {kind} is {part.name}, not {names[kind]}: a name without the digest of its UID, as earlier TPU "
                "operators chose it, does not prove whose it is: delete the TPUNodeGroup while TPU operator runs, and "
                "apply it again here"
            )
    if group.unready:
        yield f"it is not Ready ({group.unready}): {FINISH}"


_KINDS = ("WorkloadPolicy", "InstanceTemplate", "ManagedInstanceGroup")
"""Of the objects of TPU operator's, in the order of `PartNames`."""


def _needed(group: OperatorGroup) -> Iterator[str]:
    """Yield the kinds of parts that a group must have: one host has no policy, a template of the user's no object."""
    declared = group.declared
    policy, template, instances = _KINDS
    if not isinstance(declared, NodeGroup) or declared.nodes > 1:
        yield policy
    if not isinstance(declared, NodeGroup) or declared.template is None:
        yield template
    yield instances


def _spec(group: OperatorGroup, job: WorkloadJob, settings: ClusterSettings) -> SliceSpec | str:
    """Return the spec of a group's slice, or every reason why there is none."""
    if isinstance(group.declared, str):
        return group.declared
    planned = declared_slice(group.declared, job, settings)
    return planned.message.rstrip(".") if isinstance(planned, Refusal) else planned
