"""Attempts that were given up: deleted by the one rule, taken back if they are needed again; no name is used twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

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
from tpu_slices.domain.reconciling.deletion import Assessment, Step, assess, told, with_times
from tpu_slices.domain.reconciling.limiter import slot_awaited
from tpu_slices.domain.reconciling.messages import not_said
from tpu_slices.domain.records.attempts import Attempt
from tpu_slices.domain.records.hosts import Hosts
from tpu_slices.domain.records.slices import PoolOperation, SlotAwaited

_OPEN = frozenset({Reason.OCCUPIED, Reason.RESTART_POSSIBLE, Reason.RELEASES_STOPPED})
"""The reasons to keep a pool with which its hosts are opened again: they serve whoever is scheduled to them."""
UNSEEN = Unreadable("it was not observed")
_BESIDE = timedelta(hours=1)
"""How often a deletion is asked for while GKE works on the pool: a repair may run beside other operations."""


@dataclass(frozen=True, slots=True)
class Followed:
    """The terminating attempts after a look at their pools, what is to be done, and why each still exists."""

    attempts: tuple[Attempt, ...] = ()
    actions: tuple[Action, ...] = ()
    assessments: tuple[Assessment, ...] = ()
    slot_awaited: SlotAwaited | None = None

    def with_attempt(
        self, attempt: Attempt, why: Assessment, *actions: Action, awaited: SlotAwaited | None = None
    ) -> Followed:
        return Followed(
            (*self.attempts, attempt),
            (*self.actions, *actions),
            (*self.assessments, why),
            self.slot_awaited or awaited,
        )


def follow(case: Situation) -> Followed:
    """Return the terminating attempts whose pools are not known to be gone, each a step nearer to its end."""
    followed = Followed()
    for each in case.record.terminating:
        followed = _followed(followed, each, case.seen.terminating, case)
    return replace(followed, attempts=with_times(followed.attempts, followed.assessments, case.now))


def _followed(followed: Followed, each: Attempt, observations: Mapping[int, Observation], case: Situation) -> Followed:
    seen = observations.get(each.number, UNSEEN)
    kept = replace(each, slot=held_slot(each, case))
    match seen:
        case Absent() | Begun() if case.order_may_arrive(each.create_requested_at) and not _was_deleted(each, seen):
            message = "its creation was requested moments ago, and may still take effect"
            until = (each.create_requested_at or case.now) + case.limits.orders_arrive_within
            return followed.with_attempt(kept, Assessment(Step.WAIT, Reason.CREATION_IN_DOUBT, message, until))
        case Absent() | Unowned():
            return followed
        case Unreadable(says):
            pool, since = case.record.pool_of(each.number), each.unreadable_since or case.now
            message = f"{not_said(pool, case.vendor, since, case.now)}: {says}"
            return followed.with_attempt(kept, Assessment(Step.WAIT, Reason.POOL_UNREADABLE, message))
        case Deleting(what):
            message = f"{case.vendor} is deleting {what or 'it'}"
            why = Assessment(Step.WAIT, Reason.DELETION_STARTED, message, _resync(case))
            return followed.with_attempt(replace(kept, refused="", hindered=None, operation=None), why)
        case Begun(what):  # without hosts, so that nobody is asked
            why = Assessment(Step.DELETE, Reason.DELETION_STARTED, f"{what} is being deleted")
            return _deleted(followed, replace(kept, operation=None), seen, case, why)
        case Creating(operation_runs=True):
            return _advanced(followed, kept, seen, case)
        case Creating() | Running() | Busy() | Broken():
            return _advanced(followed, replace(kept, operation=None, cancel_refused=""), seen, case)
        case _:
            assert_never(seen)


def _was_deleted(each: Attempt, seen: Observation) -> bool:
    """Return whether a pool that is gone had hosts, and was deleted: its creation has taken its effect before."""
    had_hosts = each.hosts.joined or each.hosts.occupants or each.hosts.departures
    return isinstance(seen, Absent) and each.delete_requested_at is not None and bool(had_hosts)


def _advanced(followed: Followed, each: Attempt, seen: Observation, case: Situation) -> Followed:
    """Return the attempt one step on: hosts closed or opened, creation cancelled, or pool deleted.

    What the relay answered during the creation counts no longer once that has ended: it is asked again.
    """
    was_created = each.seen is not None and each.seen.pool == Creating() != seen
    if was_created and each.hosts.closing is not None:
        each = replace(each, hosts=replace(each.hosts, asked=None))
    why = told(each, assess(each, case.evidence(each.hosts, each.made_for), case.now, case.limits), case.vendor)
    if why.reason in _OPEN:
        hosts, opened = opening(each.number, each.hosts, case)
        return followed.with_attempt(replace(each, hosts=hosts), why, *opened)
    postponed = _postponed(each, seen, case)
    if postponed is not None and why.reason in {Reason.CLOSING_HOSTS, Reason.DELETION_STARTED}:
        return followed.with_attempt(each, postponed)
    match why.step:
        case Step.WAIT:
            return followed.with_attempt(each, why, awaited=_in_hand(each, why, case))
        case Step.CLOSE:
            return _closed(followed, each, case, why)
        case Step.DELETE:
            return _deleted(followed, each, seen, case, why)


def _closed(followed: Followed, each: Attempt, case: Situation, why: Assessment) -> Followed:
    """Return the attempt with its hosts to be closed; if its deletion waits for a slot, once it has that in hand."""
    waits = case.record.slot_awaited if followed.slot_awaited is None else None  # one of a slice is in line
    if waits is not None and _is_for(waits, each) and case.slot_for(each.number) is None:
        return _queued(followed, each, case, why)
    asking = _asked_to_close(each.hosts, case.now)
    close = CloseHosts(each.number, asking.highest, case.evict_by)
    kept, why = replace(each, hosts=asking), replace(why, until=_next(case))
    return followed.with_attempt(kept, why, close, awaited=_in_hand(each, why, case))


def opening(attempt: int, hosts: Hosts, case: Situation) -> tuple[Hosts, tuple[OpenHosts, ...]]:
    """Return hosts of a pool that are to be open, and what opens them.

    Nothing if that was asked lately: they may be closed by others.
    """
    asked = hosts.asked
    lately = asked is not None and not asked.close and case.now - asked.at < case.limits.requeue_after
    if hosts.closing is None and (lately or not hosts.closed):
        return hosts, ()
    asking = hosts.asked_to(close=False, now=case.now)
    return asking, (OpenHosts(attempt, asking.highest),)


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


def _deleted(followed: Followed, each: Attempt, seen: Observation, case: Situation, why: Assessment) -> Followed:
    tried = each.delete_requested_at
    again = tried is None or isinstance(seen, Begun) or case.now - tried >= case.limits.delete_retry_after
    if seen == Creating():
        return _cancelled(followed, each, case, again=again)
    if (postponed := _postponed(each, seen, case)) is not None:
        return followed.with_attempt(each, postponed)
    if not again or (each.retry_at is not None and case.now < each.retry_at):
        return followed.with_attempt(each, replace(why, until=case.now + case.limits.delete_retry_after))
    slot = each.slot if each.slot is not None else case.slot_for(each.number)
    if slot is None:
        return _queued(followed, each, case, why)
    deleting = replace(each, slot=slot, delete_requested_at=case.now)
    action = DeleteRemains(each.number) if isinstance(seen, Begun) else DeletePool(each.number)
    return followed.with_attempt(deleting, replace(why, until=_resync(case)), action)


def _queued(followed: Followed, each: Attempt, case: Situation, why: Assessment) -> Followed:
    """Return the attempt with its deletion waiting for a slot."""
    queued = Assessment(Step.WAIT, Reason.DELETION_QUEUED, "the cluster's limit of operations is reached")
    queued = why if each.refused else queued
    awaits = slot_awaited(case.record, PoolOperation.DELETE, each.number, case.now)
    return followed.with_attempt(each, replace(queued, until=_resync(case)), awaited=awaits)


def _cancelled(followed: Followed, each: Attempt, case: Situation, *, again: bool) -> Followed:
    """Return the attempt with its creation cancelled, if nobody needs it any more and GKE takes that."""
    goes_on = Assessment(Step.WAIT, Reason.CREATION_IN_DOUBT, f"{case.vendor} is still creating it", _next(case))
    why = told(each, goes_on, case.vendor)
    if each.not_cancellable or not case.owner_ended or not again:
        return followed.with_attempt(each, why)
    return followed.with_attempt(replace(each, delete_requested_at=case.now), why, CancelCreation(each.number))


def held_slot(each: Attempt, case: Situation) -> int | None:
    """Return the slot of an attempt if an operation of it runs or may still begin."""
    seen, requested = case.seen.terminating.get(each.number, UNSEEN), each.delete_requested_at
    if isinstance(seen, Absent) and requested is not None:
        return None
    begins = requested is not None and case.now - requested < case.limits.act_window
    runs = isinstance(seen, Deleting | Unreadable) or case.creates(seen, each.create_requested_at)
    return each.slot if begins or runs else None


def _next(case: Situation) -> datetime:
    return case.now + case.limits.requeue_after


def _resync(case: Situation) -> datetime:
    return case.now + case.limits.resync_after
