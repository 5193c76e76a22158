"""Slices that go: each look brings them a step nearer to their end, by the one rule of `deletion`. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

from tpu_slices.domain.capacity import warmth
from tpu_slices.domain.model.observations import (
    Absent,
    Begun,
    Broken,
    Busy,
    Creating,
    Deleting,
    FailureKind,
    Observation,
    Running,
    Unowned,
    Unreadable,
)
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.reconciling.case import Situation
from tpu_slices.domain.reconciling.decisions import (
    Action,
    CancelCreation,
    CloseHosts,
    DeletePool,
    DeleteRemains,
    OpenHosts,
)
from tpu_slices.domain.reconciling.deletion import Assessment, Step, assess, told
from tpu_slices.domain.reconciling.limiter import slot_awaited
from tpu_slices.domain.reconciling.taking import changes_hands
from tpu_slices.domain.records.attempts import Attempt
from tpu_slices.domain.records.awaited import PoolOperation, SlotAwaited
from tpu_slices.domain.records.hosts import Hosts

_OPEN = frozenset({Reason.OCCUPIED, Reason.RESTART_POSSIBLE, Reason.RELEASES_STOPPED})
"""The reasons to keep a pool with which its hosts are opened again: they serve whoever is scheduled to them."""
_BESIDE = timedelta(hours=1)
"""How often a deletion is asked for while GKE works on the pool: a repair may run beside other operations."""


@dataclass(frozen=True, slots=True)
class Ending:
    """A slice that goes, after a look at its pool: what is to be done, and why it still exists."""

    attempt: Attempt
    why: Assessment
    actions: tuple[Action, ...] = ()
    slot_awaited: SlotAwaited | None = None


def is_gone(case: Situation) -> bool:
    """Return whether there is no pool of a slice, none may still come, or its name is another's."""
    current = case.record.current
    if current.create_requested_at is None or isinstance(case.seen.pool, Unowned):
        return True
    may_come = case.order_may_arrive(current.create_requested_at) and not _was_deleted(current)
    return isinstance(case.seen.pool, Absent) and not may_come


def ending(case: Situation) -> Ending:
    """Return a slice that goes, and is not gone, a step nearer to its end."""
    seen, kept = case.seen.pool, case.record.current
    kept = replace(kept, slot=held_slot(case), hosts_awaited_since=None, returning=None, relabelling=None)
    match seen:
        case Begun(what) if not case.order_may_arrive(kept.create_requested_at):  # without hosts, so nobody is asked
            why = Assessment(Step.DELETE, Reason.DELETION_STARTED, f"{what} is being deleted")
            return _deleted(replace(kept, operation=None), seen, case, why)
        case Absent() | Begun():
            until = (kept.create_requested_at or case.now) + case.limits.orders_arrive_within
            gone = "it is gone" if kept.delete_requested_at is not None else "it is not there"
            message = f"{gone}, and a late request may create it until {until:%H:%M:%S} UTC"
            return Ending(kept, Assessment(Step.WAIT, Reason.CREATION_IN_DOUBT, message, until))
        case Deleting(what):
            message = f"{case.vendor} is deleting {what or 'it'}"
            why = Assessment(Step.WAIT, Reason.DELETION_STARTED, message, _resync(case))
            return Ending(replace(kept, refused="", hindered=None, operation=None), why)
        case Creating(operation_runs=True):
            return _advanced(kept, seen, case)
        case Creating() | Running() | Busy() | Broken():
            return _advanced(replace(kept, operation=None, cancel_refused=""), seen, case)
        case Unowned() | Unreadable():
            raise AssertionError(f"{seen} is no case of a pool that is to be deleted")
        case _:
            assert_never(seen)


def _was_deleted(current: Attempt) -> bool:
    """Return whether a pool that is gone had hosts, and was deleted: its creation has taken its effect before."""
    had_hosts = current.hosts.joined or current.hosts.occupants or current.hosts.departures
    return current.delete_requested_at is not None and bool(had_hosts)


def _advanced(each: Attempt, seen: Observation, case: Situation) -> Ending:
    """Return the slice one step on: hosts closed or opened, creation cancelled, or pool deleted.

    What the relay answered during the creation counts no longer once that has ended: it is asked again.
    """
    was_created = each.seen is not None and each.seen.pool == Creating() != seen
    if was_created and each.hosts.closing is not None:
        each = replace(each, hosts=replace(each.hosts, asked=None))
    why = told(each, assess(each, case.evidence(), case.now, case.limits), case.vendor)
    if why.reason in _OPEN:
        hosts, opened = opening(each.number, each.hosts, case)
        return Ending(replace(each, hosts=hosts), why, opened)
    if (kept := _kept_warm(each, seen, case, why)) is not None:
        return kept
    postponed = _postponed(each, seen, case)
    if postponed is not None and why.reason in {Reason.CLOSING_HOSTS, Reason.DELETION_STARTED}:
        return Ending(each, postponed)
    match why.step:
        case Step.WAIT:
            return Ending(each, why, slot_awaited=_in_hand(each, why, case))
        case Step.CLOSE:
            return _closed(each, case, why)
        case Step.DELETE:
            return _deleted(each, seen, case, why)


def _kept_warm(each: Attempt, seen: Observation, case: Situation, why: Assessment) -> Ending | None:
    """Return the slice that is kept for the next claim, in place of its deletion; None: it goes on to its end.

    Once it is warm its hosts are closed: how old the answer is that nobody is there counts before they are deleted.
    """
    closed = each.hosts.closed >= each.hosts.joined and not each.hosts.occupants and each.hosts.ends_by is None
    still = each.warm is not None and why.reason is Reason.CLOSING_HOSTS and closed
    if why.step is not Step.DELETE and not still:
        return None
    own = case.known.workloads.get(case.record.owner.uid)
    around = warmth.Around(settings=case.settings, own=own, beside=case.known.beside)
    warm = warmth.kept_warm(case.record, seen, around, case.now)
    if warm is None:
        return None
    message = warmth.told(warm, case.record, case.settings, case.now)
    return Ending(replace(each, warm=warm), Assessment(Step.WAIT, Reason.WARM, message, min(warm.until, _resync(case))))


def _closed(each: Attempt, case: Situation, why: Assessment) -> Ending:
    """Return the slice with its hosts to be closed; if its deletion waits for a slot, once it has that in hand."""
    waits = case.record.slot_awaited
    if waits is not None and _is_for(waits, each) and case.slot_for(each.number) is None:
        return _queued(each, case, why)
    asking = _asked_to_close(each.hosts, case.now)
    close = CloseHosts(each.number, asking.highest, case.evict_by)
    kept, why = replace(each, hosts=asking), replace(why, until=_next(case))
    return Ending(kept, why, (close,), _in_hand(each, why, case))


def opening(attempt: int, hosts: Hosts, case: Situation) -> tuple[Hosts, tuple[CloseHosts | OpenHosts, ...]]:
    """Return hosts of a pool that are to be open, and to carry their key, and what sees to that.

    Nothing if that was asked lately: they may be closed by others. Hosts that change hands are closed first.
    """
    asked, key, why = hosts.asked, case.record.key, changes_hands(case)
    lately = asked is not None and case.now - asked.at < case.limits.requeue_after
    same = asked is not None and (asked.close, asked.key) == (False, key)
    if hosts.closing is None and ((same and lately) or not (hosts.closed or hosts.lacking(key))):
        return hosts, ()
    if why is not None and why.step is not Step.DELETE:
        return _closing(attempt, hosts, why, case)
    asking = hosts.asked_to(close=False, key=key, now=case.now)
    return asking, (OpenHosts(attempt, asking.highest, key),)


def _closing(
    attempt: int, hosts: Hosts, why: Assessment, case: Situation
) -> tuple[Hosts, tuple[CloseHosts | OpenHosts, ...]]:
    if why.step is Step.WAIT:
        return hosts, ()
    asking = _asked_to_close(hosts, case.now)
    return asking, (CloseHosts(attempt, asking.highest),)


def keyed_until(case: Situation) -> datetime | None:
    """Return when hosts that still lack their key then are asked for it again; None: none does, or nobody is asked."""
    hosts, why = case.record.current.hosts, changes_hands(case)
    if why is not None:
        return why.until or _next(case)
    if case.record.goes or hosts.asked is None or not hosts.lacking(case.record.key):
        return None
    return hosts.asked.at + case.limits.resync_after


def _asked_to_close(hosts: Hosts, now: datetime) -> Hosts:
    """Return hosts that are asked to be closed: once more by the same question, or by a new one if that has an answer.

    It has none, either, if the relay has seen a later one.
    """
    asked = hosts.closing
    if asked is None or hosts.overtaken or hosts.answered >= asked.number:
        return hosts.asked_to(close=True, now=now)
    return hosts


def _in_hand(each: Attempt, why: Assessment, case: Situation) -> SlotAwaited | None:
    """Return the slot for the attempt's deletion, which is kept while its hosts are closed; None: it has none."""
    waits, slot = case.record.slot_awaited, case.slot_for(each.number)
    if waits is None or slot is None or not _is_for(waits, each) or why.reason is not Reason.CLOSING_HOSTS:
        return None
    return replace(waits, number=slot)


def _is_for(waits: SlotAwaited, each: Attempt) -> bool:
    return (waits.operation, waits.attempt) == (PoolOperation.DELETE, each.number)


def _postponed(each: Attempt, seen: Observation, case: Situation) -> Assessment | None:
    """Return that the deletion, which GKE did not take for another operation, is not asked for again yet; else None.

    While that operation is seen to run on the pool, its end is waited for. Operations may also run beside each other:
    so it is asked again each hour. Of one on the cluster nothing is seen, so the pause grows.
    """
    hindered = each.hindered
    if hindered is None:
        return None
    busy = isinstance(seen, Busy)
    again_at = hindered.at + (_BESIDE if busy else case.limits.backoff[FailureKind.BUSY].after(hindered.times))
    if case.now >= again_at:
        return None
    message = (
        f"{case.vendor} does not delete its {case.vendor.pool} while another operation is in progress, and is asked "
        f"again once that has ended, or at {again_at:%H:%M:%S} UTC: {hindered.message}"
    )
    return Assessment(Step.WAIT, Reason.DELETION_POSTPONED, message, min(again_at, _resync(case)))


def _deleted(each: Attempt, seen: Observation, case: Situation, why: Assessment) -> Ending:
    tried = each.delete_requested_at
    again = tried is None or isinstance(seen, Begun) or case.now - tried >= case.limits.delete_retry_after
    if seen == Creating():
        return _cancelled(each, case, again=again)
    if (postponed := _postponed(each, seen, case)) is not None:
        return Ending(each, postponed)
    if not again or (each.retry_at is not None and case.now < each.retry_at):
        return Ending(each, replace(why, until=case.now + case.limits.delete_retry_after))
    slot = each.slot if each.slot is not None else case.slot_for(each.number)
    if slot is None:
        return _queued(each, case, why)
    deleting = replace(each, slot=slot, delete_requested_at=case.now)
    action = DeleteRemains(each.number) if isinstance(seen, Begun) else DeletePool(each.number)
    return Ending(deleting, replace(why, until=_resync(case)), (action,))


def _queued(each: Attempt, case: Situation, why: Assessment) -> Ending:
    """Return the attempt with its deletion waiting for a slot."""
    queued = Assessment(Step.WAIT, Reason.DELETION_QUEUED, "the cluster's limit of operations is reached")
    queued = why if each.refused else queued
    awaits = slot_awaited(case.record, PoolOperation.DELETE, each.number, case.now)
    return Ending(each, replace(queued, until=_resync(case)), slot_awaited=awaits)


def _cancelled(each: Attempt, case: Situation, *, again: bool) -> Ending:
    """Return the attempt with its creation cancelled, if nobody needs it any more and GKE takes that."""
    goes_on = Assessment(Step.WAIT, Reason.CREATION_IN_DOUBT, f"{case.vendor} is still creating it", _next(case))
    why = told(each, goes_on, case.vendor)
    if each.not_cancellable or not case.owner_ended or not again:
        return Ending(each, why)
    return Ending(replace(each, delete_requested_at=case.now), why, (CancelCreation(each.number),))


def held_slot(case: Situation) -> int | None:
    """Return the slot of a slice that goes, if an operation of it runs or may still begin."""
    current, seen = case.record.current, case.seen.pool
    requested = current.delete_requested_at
    if isinstance(seen, Absent) and requested is not None:
        return None
    begins = requested is not None and case.now - requested < case.limits.act_window
    runs = isinstance(seen, Deleting | Unreadable) or case.creates_current
    return current.slot if begins or runs else None


def _next(case: Situation) -> datetime:
    return case.now + case.limits.requeue_after


def _resync(case: Situation) -> datetime:
    return case.now + case.limits.resync_after
