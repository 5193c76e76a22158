"""Updates a record with the outcome of its actions."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.joining import TOKEN_LIVES
from tpu_slices.domain.model.observations import Failure, FailureKind, Outcome, Refused, Started
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.texts import shortened
from tpu_slices.domain.reconciling.decisions import (
    Action,
    CancelCreation,
    CreatePool,
    DeletePool,
    DeleteRemains,
    EndJoin,
    Relabel,
)
from tpu_slices.domain.reconciling.patience import FAILED, IN_THE_WAY, due_after, failed
from tpu_slices.domain.reconciling.relabelling import labels_replaced
from tpu_slices.domain.records.attempts import Attempt, Hindrance
from tpu_slices.domain.records.slices import SliceRecord


def left_by(record: SliceRecord, action: Action, outcome: Outcome, now: datetime) -> SliceRecord | None:
    """Return what an action left of a slice that its claim does not have, which no claim has; None: nothing.

    Of a creation that was refused when parts of it stood already, on Compute Engine, these stay: the next attempt has
    other ones.
    """
    match action, outcome:
        case CreatePool(), Refused(why, begun=True) if why.kind not in IN_THE_WAY:
            return record.with_current(empty=True).let_go_of(f"it was refused, {FAILED[why.kind]}", now)
        case _:
            return None


def acted(
    record: SliceRecord, action: Action, outcome: Outcome, now: datetime, settings: ClusterSettings
) -> SliceRecord:
    """Return the record after an action's outcome; losing it is harmless, the next reconcile finds the same."""
    match action, outcome:
        case CreatePool(), Started(operation):
            known = record.current
            record = record.with_current(
                operation=operation,
                made_by=operation or known.made_by,
                ours_since=now if operation else known.ours_since,
            )
        case DeletePool() | DeleteRemains(), Started(None):
            return record.looked_at_again(now + settings.limits.delete_retry_after)
        case CreatePool(), Refused(why, begun=True) if why.kind in IN_THE_WAY:
            return record.looked_at_again(now + settings.limits.delete_retry_after)
        case CreatePool(), Refused(why):
            left = left_by(record, action, outcome, now)
            record = failed(record if left is None else record.with_next(left.id), why, now, settings)
        case CancelCreation(), Refused(why):
            record = _uncancelled(record, why)
        case ((DeletePool() | DeleteRemains()), Refused(why)) if why.kind in IN_THE_WAY:
            hindered = _hindered(record.current, why, now)
            record = record.with_current(delete_requested_at=None, slot=None, hindered=hindered)
        case ((DeletePool() | DeleteRemains()), Refused(why)):
            retry_at = now + settings.limits.delete_retry_after
            record = record.with_current(delete_requested_at=None, retry_at=retry_at, slot=None, refused=why.message)
        case Relabel(), _:
            return _relabelled(record, outcome, now, settings)
        case EndJoin(attempt), _:
            return _join_ended(record, attempt, outcome, now, settings)
        case _:
            return record
    return record.looked_at_again(due_after(record, now, settings.limits))


def _uncancelled(record: SliceRecord, why: Failure) -> SliceRecord:
    """Return the record of a slice whose creation goes on.

    | refused as                        | follows                                                          |
    |-----------------------------------|------------------------------------------------------------------|
    | there were too many calls         | it is asked for again                                            |
    | the vendor cancels no creations   | its end is awaited: that is documented, and nobody can change it |
    | of anything else: a permission    | its end is awaited, and the vendor's words are told              |
    """
    told = "" if why.kind in IN_THE_WAY else why.message
    never = why.kind is not FailureKind.RATE
    return record.with_current(delete_requested_at=None, not_cancellable=never, cancel_refused=told)


def cancellation_refused(before: SliceRecord, after: SliceRecord) -> bool:
    """Return whether the vendor refused to cancel its creation in between, although it may cancel creations."""
    return bool(after.current.cancel_refused) and not before.current.cancel_refused


def _join_ended(
    record: SliceRecord, attempt: int, outcome: Outcome, now: datetime, settings: ClusterSettings
) -> SliceRecord:
    """Return the record of a slice whose token was taken away, or is once the hosts can be reached: it expires."""
    asked = record.join_asked
    if asked is None or asked.attempt != attempt:
        return record
    if isinstance(outcome, Refused) and now - asked.at < TOKEN_LIVES:
        again_at = now + settings.limits.requeue_after
        return replace(record, next_reconcile_at=min(record.next_reconcile_at or again_at, again_at))
    return replace(record, join_asked=None)


def _relabelled(record: SliceRecord, outcome: Outcome, now: datetime, settings: ClusterSettings) -> SliceRecord:
    """Return the record of a slice whose labels were put back, or were not.

    | the vendor                             | tried again, if they are still missing, after                    |
    |----------------------------------------|------------------------------------------------------------------|
    | accepted it                            | `resync_after`, or when it says that the operation ended         |
    | is at work, or has too much to do      | `resync_after`                                                   |
    | refused it                             | `blocked_retry_after`: a granted permission is not visible to us |
    """
    if record.current.relabelling is None or not isinstance(outcome, Refused):
        return record if record.current.relabelling is None else _told(record, settings, refused="")
    if outcome.failure.kind in IN_THE_WAY:
        return record
    again_at = now + settings.limits.blocked_retry_after
    return _told(record, settings, refused=outcome.failure.message, again_at=again_at)


def _told(record: SliceRecord, settings: ClusterSettings, **changes: Any) -> SliceRecord:
    """Return the record with these changes to what is done about its labels, and with a message that tells of it."""
    assert record.current.relabelling is not None
    state = replace(record.current.relabelling, **changes)
    told = labels_replaced(state, settings.vendor) if record.reason is Reason.LABELS_REPLACED else record.message
    return replace(record.with_current(relabelling=state), message=shortened(told))


def _hindered(current: Attempt, why: Failure, now: datetime) -> Hindrance | None:
    """Return what is in the way of a deletion: an operation that runs; None: there were too many calls."""
    before = current.hindered
    if why.kind is not FailureKind.BUSY:
        return before
    return Hindrance(at=now, times=before.times + 1 if before else 1, message=why.message)
