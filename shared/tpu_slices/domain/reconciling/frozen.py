"""Slices to which nothing is done: that are held, of a paused cluster, or whose pool cannot be read. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from tpu_slices.domain.model.observations import Absent, Unreadable
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.reconciling import messages
from tpu_slices.domain.reconciling.case import Situation
from tpu_slices.domain.reconciling.decisions import Arm, Decision
from tpu_slices.domain.reconciling.ending import held_slot
from tpu_slices.domain.reconciling.evidence import with_seen
from tpu_slices.domain.reconciling.giving_up import HOSTS_AWAITED
from tpu_slices.domain.reconciling.returning import returning
from tpu_slices.domain.records.slices import SliceRecord

_UNREAD = frozenset({Phase.QUEUED, Phase.PROVISIONING, Phase.READY, Phase.RELEASING})
"""The phases of slices that wait for what the vendor would say; those in another one wait for something else."""


def as_held(record: SliceRecord, now: datetime) -> SliceRecord:
    """Return the record with the time since when it is held: people edit the hold alone in the console, too."""
    return record.with_changes(
        held_by=record.held_by if record.hold else "",
        held_since=(record.held_since or now) if record.hold else None,
    )


def why_frozen(case: Situation) -> tuple[Reason, str] | None:
    """Return why nothing is created or deleted for the slice now, whatever is seen; None: it may be."""
    if case.record.hold:
        return Reason.HELD, messages.held(case.record)
    if case.settings.paused is not None:
        return Reason.PAUSED, f"The cluster is paused, so nothing is created or deleted: {case.settings.paused}"
    if isinstance(case.seen.pool, Unreadable):
        return Reason.POOL_UNREADABLE, case.seen.pool.message
    return None


def unread(case: Situation) -> Arm | None:
    """Return what is told of a slice whose pool cannot be read; None: nothing yet, or nothing else than before.

    A look that fails is repeated after `requeue_after`, and an outage of minutes changes no slice. It is told once it
    has lasted for `resync_after`: by then the slice would have been looked at again, whatever else was lost. One that
    serves stays READY for its reason: its Job runs.
    """
    record, seen, since = case.record, case.seen.pool, case.record.current.unreadable_since
    if since is None or not isinstance(seen, Unreadable) or record.phase not in _UNREAD:
        return None
    if case.now - since < case.limits.resync_after:
        return None
    message = messages.unreadable(record, case.vendor, since, seen.message, case.now)
    served = not record.goes and record.phase is Phase.READY
    return Arm(record.seen_as if served else Reason.POOL_UNREADABLE, message)


def hosts_awaited_since(record: SliceRecord, arm: Arm, now: datetime) -> datetime | None:
    """Return since when usable hosts have been missing, if that is what is told; None: it is not."""
    return (record.current.hosts_awaited_since or now) if arm.reason in HOSTS_AWAITED else None


def unchanged(case: Situation, why: tuple[Reason, str], told: Arm | None) -> Decision:
    """Return a decision that does nothing, except that slots without an operation that runs or may begin are freed.

    A pool that is seen is told of; of a held slice without one, or that is not needed, that it is held; and that a pool
    cannot be read, if that lasts. A queued slice that may not be created becomes BLOCKED with the reason. One that was
    in line for a slot, or whose pool cannot be read, is looked at again instead.
    """
    (reason, message), record = why, case.record
    is_read = not isinstance(case.seen.pool, Unreadable)
    if told is not None:
        awaited = {"hosts_awaited_since": hosts_awaited_since(record, told, case.now), "returning": returning(case)}
        record = told.said_of(record, case.now).with_current(**(awaited if is_read else {}))
    soon = case.now + case.limits.requeue_after
    next_at = soon if record.next_reconcile_at or record.slot_awaited or not is_read else None
    after = replace(
        with_seen(record, case.seen, case.now),
        slot_awaited=None,
        next_reconcile_at=next_at,
        look_at=next_at,
    )
    creating = after.current.slot if case.creates_current else None
    after = after.with_current(slot=held_slot(case) if record.goes else creating)
    queued = record.phase is Phase.QUEUED and record.wanted and isinstance(case.seen.pool, Absent)
    if queued and reason.phase is Phase.BLOCKED:
        after = replace(after.transitioned(case.now, reason, message), next_reconcile_at=soon, look_at=soon)
    return Decision(after, (), reason, message)
