"""The occupants of a slice's hosts, and the demand that they put in doubt. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from tpu_slices.domain.model.facts import LeaderBound, Occupant
from tpu_slices.domain.model.records import SliceRecord
from tpu_slices.domain.model.slices import SliceId, WorkloadUid, slice_id
from tpu_slices.domain.model.workloads import WorkloadRecord


def bound(fact: LeaderBound, record: SliceRecord, now: datetime) -> SliceRecord | None:
    """Return the record after a leader was bound to, or left, the hosts of an attempt, or None if nothing changes.

    A leader that left only counts if it is the known occupant: the fact that the next one was bound may come first.
    """
    if fact.attempt == record.attempt:
        occupants = _occupied(record.occupants, fact)
        if occupants == record.occupants:
            return None
        return replace(record, occupants=occupants, vacant_since=None if occupants else now, next_reconcile_at=now)
    terminating = tuple(
        replace(earlier, occupants=_occupied(earlier.occupants, fact)) if earlier.attempt == fact.attempt else earlier
        for earlier in record.terminating
    )
    return (
        None if terminating == record.terminating else replace(record, terminating=terminating, next_reconcile_at=now)
    )


def demand_in_doubt(fact: LeaderBound, record: SliceRecord) -> tuple[tuple[WorkloadUid, SliceId], ...]:
    """Return the demand that must be confirmed again because a leader of another JobSet was bound to a slice's hosts.

    It is that Job's demand for its own slice, since its leader no longer waits, and the demand for this slice, whose
    Job may run elsewhere too. Leaders that still wait are reported again within seconds.
    """
    occupant = fact.occupant
    if not fact.bound or occupant.owner.uid == record.owner.uid:
        return ()
    replicated_job, _, index = occupant.job.removeprefix(f"{occupant.owner.name}-").rpartition("-")
    demand = [(record.owner.uid, record.id)]
    if replicated_job and index.isdecimal():
        own = replace(
            record.job,
            owner=occupant.owner,
            replicated_job=replicated_job,
            job_index=int(index[:9]),
        )
        demand.append((own.owner.uid, slice_id(own)))
    return tuple(demand)


def with_stale_demand(jobset: WorkloadRecord, slice_: SliceId) -> WorkloadRecord:
    """Return the JobSet with its demand for a slice not confirmed."""
    return replace(jobset, demand={**jobset.demand, slice_: None})


def _occupied(present: tuple[Occupant, ...], fact: LeaderBound) -> tuple[Occupant, ...]:
    if fact.bound:
        return (fact.occupant,)
    return tuple(occupant for occupant in present if occupant.pod_uid != fact.occupant.pod_uid)
