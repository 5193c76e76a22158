"""Who is on a slice's hosts, and which wants that makes doubtful. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from tpu_slices.domain.model.facts import LeaderBound, Occupant
from tpu_slices.domain.model.records import SliceRecord
from tpu_slices.domain.model.slices import SliceId, WorkloadUid, slice_id
from tpu_slices.domain.model.workloads import WorkloadRecord


def bound(fact: LeaderBound, record: SliceRecord, now: datetime) -> SliceRecord | None:
    """Take in that a leader came to, or left, the hosts of an attempt; None when nothing changes.

    A leaving counts only for the very pod that is known to be there: the next one may have come before the news.
    """
    if fact.attempt == record.attempt:
        occupants = _occupied(record.occupants, fact)
        if occupants == record.occupants:
            return None
        return replace(record, occupants=occupants, vacant_since=None if occupants else now, next_reconcile_at=now)
    terminating = tuple(
        replace(left, occupants=_occupied(left.occupants, fact)) if left.attempt == fact.attempt else left
        for left in record.terminating
    )
    return (
        None if terminating == record.terminating else replace(record, terminating=terminating, next_reconcile_at=now)
    )


def demand_in_doubt(fact: LeaderBound, record: SliceRecord) -> tuple[tuple[WorkloadUid, SliceId], ...]:
    """Give the wants that must be confirmed again, since a leader of another JobSet came to a slice's hosts.

    That Job's own slice, for it waits no more; and the slice itself, whose Job may have found a place elsewhere too.
    Whoever does wait is reported again within seconds.
    """
    occupant = fact.occupant
    if not fact.bound or occupant.owner.uid == record.owner.uid:
        return ()
    place, _, index = occupant.job.removeprefix(f"{occupant.owner.name}-").rpartition("-")
    demand = [(record.owner.uid, record.id)]
    if place and index.isdecimal():
        own = replace(
            record.job,
            owner=occupant.owner,
            replicated_job=place,
            job_index=int(index[:9]),
        )
        demand.append((own.owner.uid, slice_id(own)))
    return tuple(demand)


def with_stale_demand(jobset: WorkloadRecord, slice_: SliceId) -> WorkloadRecord:
    """Give a JobSet whose want of a slice is not confirmed."""
    return replace(jobset, demand={**jobset.demand, slice_: None})


def _occupied(present: tuple[Occupant, ...], fact: LeaderBound) -> tuple[Occupant, ...]:
    if fact.bound:
        return (fact.occupant,)
    return tuple(occupant for occupant in present if occupant.pod_uid != fact.occupant.pod_uid)
