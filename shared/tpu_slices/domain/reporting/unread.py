"""How many slices of a workload there are for each reason, where the records of some were not read. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import ClaimId
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.domain.reporting.waits import QueueState

CONFIRMED_WITHIN = timedelta(minutes=10)
"""Demand that was confirmed no longer before the relay fell silent is taken to last: it is within 5."""
_UNAWAITED = {Phase.READY, Phase.RELEASING, Phase.GONE}
"""The phases of slices for which no leader waits."""


@dataclass(frozen=True, slots=True)
class NotRead:
    """The slices of a workload whose records were not read."""

    unreadable: Collection[ClaimId] = ()
    """They cannot be."""
    alike: Mapping[tuple[Phase, Reason], int] = field(default_factory=dict, hash=False)
    """How many are in the phase, for the reason, of some that were."""


ALL_READ = NotRead()


@dataclass(frozen=True, slots=True)
class Slices:
    records: Sequence[SliceRecord]
    not_read: NotRead


def of_groups(
    jobset: WorkloadRecord, read: int, more: Mapping[tuple[Phase, Reason], int]
) -> Mapping[tuple[Phase, Reason], int]:
    """Return the counts without slices of groups that are scaled away: those that are READY are of groups it has."""
    if jobset.groups is None or jobset.state is not WorkloadState.ACTIVE:
        return more
    ready_first = sorted(more.items(), key=lambda each: each[0][0] is not Phase.READY)
    return _at_most(max(0, jobset.groups - read), dict(ready_first))


def of_leaders(
    jobset: WorkloadRecord, slices: Slices, queue: QueueState, now: datetime
) -> Mapping[tuple[Phase, Reason], int]:
    """Return how many were not read, without REFUSED ones of Jobs whose leaders are gone.

    Which these are is not known, but for how many claims no leader waits: those without a slice are some of them, and
    those whose slices serve or go; the others are of slices that are refused.
    """
    more, read = slices.not_read.alike, {record.last_claim for record in slices.records}
    refused = {why: count for why, count in more.items() if why[0] is Phase.REFUSED}
    if not refused or queue.silent_since is not None or jobset.owner.kind.declares:
        return more
    unread = jobset.demand.keys() - read
    gone = sum(not is_awaited(claim, jobset, queue, now) for claim in unread)
    gone -= max(0, len(unread) - sum(more.values()))
    gone -= sum(count for (phase, _), count in more.items() if phase in _UNAWAITED)
    others = {why: count for why, count in more.items() if why not in refused}
    return others | _at_most(sum(refused.values()) - max(0, gone), refused)


def _at_most(left: int, counts: Mapping[tuple[Phase, Reason], int]) -> dict[tuple[Phase, Reason], int]:
    """Return the counts, the first of them as they are, without what exceeds a sum."""
    found = dict[tuple[Phase, Reason], int]()
    for why, count in counts.items():
        found[why] = min(count, max(0, left))
        left -= count
    return {why: count for why, count in found.items() if count}


def is_awaited(claim: ClaimId, jobset: WorkloadRecord, queue: QueueState, now: datetime) -> bool:
    """Return whether a leader waited for a claim's slice lately."""
    confirmed_at = jobset.demand_confirmed_at(claim, queue.demand_listed_at)
    return confirmed_at is not None and now - confirmed_at <= CONFIRMED_WITHIN
