"""What is known of a slice's pools without asking the vendor, and how it is kept. Pure.

Whatever is known so, nothing is created or deleted for it, and no pool forgotten: the vendor is asked before.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from tpu_slices.domain.model.observations import (
    Absent,
    Busy,
    Creating,
    Observation,
    Observed,
    Running,
    Unreadable,
    Witness,
)
from tpu_slices.domain.records.attempts import Attempt, Seen
from tpu_slices.domain.records.hosts import Hosts
from tpu_slices.domain.records.slices import SliceRecord


def on_record(record: SliceRecord, now: datetime, created: str | None = None) -> Observed | None:
    """Return what is known of the pool of a slice; None: the vendor is to be asked.

    `created`: the operation that created a pool, as the vendor's log has just told. A pool that somebody deleted is
    created once more under its name, so that its name says less.

    | a pool                                                             | is known to                        |
    |--------------------------------------------------------------------|------------------------------------|
    | was never requested                                                | be absent, as if looked at         |
    | is created by the operation on record, which ended well; on        | run                                |
    | Compute Engine that may be one step of several                     |                                    |
    | was last seen to run, or to be worked on                           | be so, until `look_at`             |
    | was last seen to be created; on Compute Engine each step may have  | be so, until `look_at`             |
    | ended since                                                        |                                    |
    | is to be created by a request that may not have been sent          | -                                  |
    | could not be read last, or is to be deleted by a request of ours   | -                                  |
    | was seen otherwise, or never                                       | -                                  |
    """
    current = record.current
    if current.create_requested_at is None:
        return Observed(Absent())
    if created is not None and created == current.operation and _is_made_by_one(record):
        return Observed(Running(current.made_for), Witness.EVENT)
    if record.look_at is not None and now >= record.look_at:
        return None
    known = _known(current, in_steps=record.made_in_steps)
    return Observed(known, Witness.RECORD) if known is not None else None


def _is_made_by_one(record: SliceRecord) -> bool:
    return record.current.under_creation and not record.made_in_steps


def _known(each: Attempt, *, in_steps: bool) -> Running | Busy | Creating | None:
    doubtful = each.unreadable_since is not None or each.delete_requested_at is not None
    match each.seen:
        case Seen(pool=Creating(operation_runs=True) as known, by=by) if not (doubtful or in_steps):
            return known if by is Witness.LOOK or each.operation is not None else None
        case Seen(pool=(Running() | Busy()) as known) if not doubtful:
            return known
        case _:
            return None


def with_seen(record: SliceRecord, seen: Observed, now: datetime) -> SliceRecord:
    """Return the record with what was seen of its pool."""
    return record.with_changes(current=seen_so(record.current, seen.pool, now, seen.by))


def with_look(before: SliceRecord, after: SliceRecord, next_at: datetime | None, by: Witness) -> SliceRecord:
    """Return a record that is reconciled again then, when its pools are looked at.

    While it is in the same phase, they are looked at no later than they would have been without a decision by record.
    """
    goes_on = by is not Witness.LOOK and after.phase is before.phase
    times = (next_at, before.look_at if goes_on else None)
    look_at = min((at for at in times if at is not None), default=None)
    return after.looked_at_again(look_at)


def seen_so(each: Attempt, seen: Observation, now: datetime, by: Witness) -> Attempt:
    """Return an attempt with what was seen of its pool; that this could not be read says nothing of it but that."""
    if each.create_requested_at is None:
        return each
    if isinstance(seen, Unreadable):
        return each if each.unreadable_since is not None else replace(each, unreadable_since=now)
    kept = each.seen if each.seen is not None and each.seen.pool == seen else Seen(pool=seen, since=now, by=by)
    return replace(each, seen=kept, unreadable_since=None)


def contradicts(each: Attempt, hosts: Hosts, *, whole: bool) -> bool:
    """Return whether a count of hosts tells that what was seen of their pool is not so any more.

    | seen to          | and now                                                        |
    |------------------|----------------------------------------------------------------|
    | run              | fewer hosts are there, or usable, but for those that we close  |
    | be created, or   | all hosts are usable                                           |
    | worked on        |                                                                |
    """
    before = each.hosts
    match each.seen.pool if each.seen else None:
        case Running():
            fewer = hosts.usable + hosts.closed < before.usable + before.closed
            return hosts.joined < before.joined or (fewer and before.closing is None)
        case Creating() | Busy():
            return whole
        case _:
            return False
