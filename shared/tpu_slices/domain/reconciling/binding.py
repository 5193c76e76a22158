"""Which slice a claim has, whether one is made for it, and why it waits without one. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from tpu_slices.domain.model.observations import (
    Absent,
    Begun,
    Broken,
    Busy,
    Creating,
    Observation,
    PoolObservations,
    Running,
    Unreadable,
    Witness,
)
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import LAST_ATTEMPT, same_request
from tpu_slices.domain.reconciling import messages
from tpu_slices.domain.reconciling.case import Known, Situation
from tpu_slices.domain.reconciling.decisions import Action, Arm
from tpu_slices.domain.reconciling.evidence import seen_so
from tpu_slices.domain.reconciling.giving_up import GivingUp, giving_up
from tpu_slices.domain.reconciling.limiter import slot_awaited
from tpu_slices.domain.reconciling.patience import failure
from tpu_slices.domain.reconciling.refusals import refusal_of
from tpu_slices.domain.reconciling.terminating import UNSEEN, opening
from tpu_slices.domain.records.attempts import Attempt
from tpu_slices.domain.records.hosts import Hosts
from tpu_slices.domain.records.seen import Seen
from tpu_slices.domain.records.slices import PoolOperation, Refusal, Rejection, SliceRecord


@dataclass(frozen=True, slots=True)
class Bound:
    """What a claim has from now on."""

    case: Situation
    """With the slice that the claim has as the current one; those that it had before are let go."""
    opened: tuple[Action, ...] = ()
    """What opens the hosts of its slice again."""
    waits: Arm | None = None
    """Why no slice of it stands, or that one is made; None: one stands, or is not needed."""


def bind(case: Situation) -> Bound:
    """Return which slice the claim of a Job has from now on. The first row that holds counts.

    | the claim                                                 | has, or says                                        |
    |-----------------------------------------------------------|-----------------------------------------------------|
    | its Job runs on a slice that it had before                | that slice; the one that it has is let go           |
    | has a slice, which is to be given up (`giving_up`)        | none: as below                                      |
    | has a slice                                               | that                                                |
    | is not needed any more, or not now                        | none                                                |
    | is not served, a slice that it had before fits, is not    | that slice                                          |
    | being deleted, and nobody else uses it                    |                                                     |
    | its slice has just failed, or was not used though ready   | none: why, and when the next is tried               |
    | another's pool has the name of its slice                  | none: that; the next slice has another name         |
    | its Job runs on another claim's slice                     | none: RUNS_ELSEWHERE                                |
    | is refused, or not allowed                                | none: why                                           |
    | failed before, and may not be tried yet                   | none: as before                                     |
    | nobody waits for it, as was confirmed lately              | none: DEMAND_STALE                                  |
    | every name was used                                       | none: ATTEMPTS_EXHAUSTED                            |
    | cannot know whether a slice that it had before stands,    | none: EARLIER_POOL_UNREADABLE                       |
    | which would fit                                           |                                                     |
    | lacks a slot, or its turn to try what ran out             | none: OPERATION_LIMIT, AWAITING_TURN                |
    | else                                                      | a slice that is made now, or whose making goes on   |

    Slices that it had before and does not get back are deleted (`terminating`). No name is used twice.
    """
    best, opened = _with_best(case)
    ended = giving_up(best)
    if ended is None:
        return Bound(best, opened, _waits(best))
    rest, reopened = _with_best(_without_current(best, ended))
    still = (each for each in opened if each.attempt == rest.record.attempt)
    has_another = rest.record.current.create_requested_at is not None
    return Bound(rest, (*still, *reopened), _waits(rest, None if has_another else ended))


def _waits(case: Situation, ended: GivingUp | None = None) -> Arm | None:
    """Return why no slice of a claim stands, or that one is made; `ended`: how the last one has just ended."""
    if not case.record.wanted:
        return None
    if ended is not None and ended.rejection is not None:
        return _rejected(ended.rejection, case)
    if ended is not None and not case.runs_elsewhere:
        if ended.failure is not None:
            return failure(case.record, ended.failure, case.now, case.settings)
        if ended.unowned:
            message = f"{ended.unowned} The next attempt has another name."
            return Arm(Reason.UNOWNED_POOL, message, {"retry_at": case.now})
    return _made(case) if isinstance(case.seen.current, Absent | Begun) else None


def _rejected(why: Refusal, case: Situation) -> Arm:
    rejection = Rejection(reason=why.reason, message=why.message, settings_version=case.settings.version)
    return Arm(why.reason, why.message, {"rejection": rejection})


def _made(case: Situation) -> Arm:
    """Return why no slice is made for a claim that has none, or that one is."""
    record = case.record
    if case.runs_elsewhere:
        return elsewhere(record)
    refusal = refusal_of(record, case.settings, case.known.held, case.known.limited)
    if refusal is not None and (refusal.reason is not Reason.CHIP_LIMIT_REACHED or not case.unawaited):
        return Arm(refusal.reason, refusal.message, {"retry_at": None, "blocked_settings_version": None})
    if _has_to_wait(case):
        return Arm(record.reason, record.message)
    if not case.waiting or record.spec is None:
        return Arm(Reason.DEMAND_STALE, messages.demand_stale(record))
    if record.attempt > LAST_ATTEMPT:
        message = f"All {LAST_ATTEMPT} attempts failed: delete and re-create the {record.owner.kind}."
        return Arm(Reason.ATTEMPTS_EXHAUSTED, message)
    if (unread := _unreadable(case)) is not None:
        earlier, seen = unread
        pool = f"{case.vendor.pool} {record.pool_of(earlier.number)}"
        message = f"{case.vendor} does not say whether {pool} stands, which could serve: {seen.message}"
        return Arm(Reason.EARLIER_POOL_UNREADABLE, message)
    slot = record.current.slot if record.current.slot is not None else case.slot_for(record.attempt)
    return _without_slot(case) if slot is None else _create(case, slot)


def elsewhere(record: SliceRecord) -> Arm:
    """Return that a Job runs on another claim's slice."""
    place = record.runs_on
    assert place is not None
    verb = "runs" if place.left_at is None else "ran moments ago, and may restart,"
    return Arm(Reason.RUNS_ELSEWHERE, f"Its Job {verb} on the hosts of slice {place.slice_id}.")


def _has_to_wait(case: Situation) -> bool:
    """Return whether to wait for `retry_at`; a claim blocked under other settings is served at once."""
    record = case.record
    if record.phase not in {Phase.WAITING, Phase.BLOCKED}:
        return False
    if record.blocked_settings_version not in {None, case.settings.version}:
        return False
    return record.retry_at is not None and case.now < record.retry_at


def _without_slot(case: Situation) -> Arm:
    awaits, shortage = (
        slot_awaited(case.record, PoolOperation.CREATE, case.record.attempt, case.now),
        case.known.shortage,
    )
    if shortage is None:
        message = "Waiting for another operation to end: the cluster's limit is reached."
        return Arm(Reason.OPERATION_LIMIT, message, slot_awaited=awaits)
    message = messages.awaiting_turn(case.record, shortage, case.now)
    return Arm(Reason.AWAITING_TURN, message, slot_awaited=replace(awaits, shortage=shortage))


def _create(case: Situation, slot: int) -> Arm:
    record, seen, noun = case.record, case.seen.current, case.vendor.pool
    known, spec, begun = record.current, record.spec, isinstance(seen, Begun)
    current = {
        "create_requested_at": case.now,
        "ordered": record.made_as if begun else spec,
        "slot": slot,
        "operation": None,
        "seen": Seen(pool=Creating(), since=case.now, by=Witness.REQUEST),
        "ours_since": known.ours_since if begun else None,
        "hosts": Hosts(sequence=known.hosts.sequence, highest=known.hosts.highest),
    }
    changes = {
        "retry_at": None,
        "blocked_settings_version": None,
        "rejection": None,
        "expire_at": None,
        "pinned_settings": case.settings.pools if known.create_requested_at is None else record.pinned_settings,
    }
    if isinstance(seen, Begun):
        message = f"Creating {noun} {record.pool} goes on, {seen.message} stands."
        return Arm(Reason.CREATING, message, changes, current, creates=True)
    what = messages.created(spec) if spec else "hosts"
    ahead = messages.attempt_ahead(record.with_current(create_requested_at=case.now), case.vendor, case.now)
    message = f"Creating {noun} {record.pool}: {what}{ahead}."
    return Arm(Reason.CREATION_STARTED, message, changes, current, creates=True)


def given_up(record: SliceRecord, *, fits: bool, empty: bool = False) -> SliceRecord:
    """Return the record with its current attempt let go and the next one, not yet requested, as current.

    `fits`: the attempt is current again if it is needed. `empty`: no host of it exists or will.
    """
    ended = _set_aside(record, fits=fits, empty=empty)
    following = Attempt(number=min(record.attempts, LAST_ATTEMPT) + 1)
    return _with_current(record, following, (*record.terminating, ended))


def _set_aside(record: SliceRecord, *, fits: bool, empty: bool = False) -> Attempt:
    """Return the current attempt as one that was given up."""
    return replace(
        record.current,
        ordered=record.made_as,
        fits=fits,
        empty=empty,
        hosts_awaited_since=None,
        returning=None,
        relabelling=None,
    )


def _with_current(record: SliceRecord, current: Attempt, terminating: tuple[Attempt, ...]) -> SliceRecord:
    return replace(
        record,
        current=current,
        attempts=max(record.attempts, current.number),
        terminating=terminating,
        rebuild_allowed=False,
        rejection=None,
    )


def _without_current(case: Situation, ended: GivingUp) -> Situation:
    """Return the case after its current attempt was given up."""
    hosts = case.record.current.hosts
    failed = ended.failure is not None and isinstance(case.seen.current, Broken)
    nothing_bought = failed and not hosts.joined and not hosts.occupants
    as_seen = seen_so(case.record.current, case.seen.current, case.now, case.seen.by)
    record = given_up(replace(case.record, current=as_seen), fits=ended.fits, empty=nothing_bought)
    seen = PoolObservations(Absent(), {**case.seen.terminating, case.record.attempt: case.seen.current}, case.seen.by)
    return replace(
        case.with_record(record, seen), known=_known_beside(case, 0 if nothing_bought else case.record.own_chips)
    )


def _known_beside(case: Situation, chips: int) -> Known:
    """Return what is known, the chips of the attempt that was given up among those that other pools hold."""
    if case.known.held is None or case.record.lent(case.record.current.hosts):  # then they are among them
        return case.known
    return replace(case.known, held=case.known.held.plus(chips))


def _with_best(case: Situation) -> tuple[Situation, tuple[Action, ...]]:
    """Return the case with that attempt as current which serves the slice's Job best, and what opens its hosts again.

    | an earlier attempt                                      | current if                                        |
    |---------------------------------------------------------|---------------------------------------------------|
    | whose hosts the Job runs on                             | the Job is not on the current one                 |
    | that fits, is not being deleted, and nobody else uses   | a leader waits, and the current does not exist,   |
    |                                                         | nor may it still come                             |

    One whose deletion GKE did not accept, or failed to carry out, is not being deleted.
    """
    best = _best(case)
    if best is None:
        return _with_current_opened(case) if case.record.wanted else (case, ())
    record, seen = case.record, case.seen
    others = tuple(each for each in record.terminating if each is not best)
    now_seen = {each.number: seen.terminating[each.number] for each in others if each.number in seen.terminating}
    if record.current.create_requested_at is not None:
        others, now_seen = (*others, _set_aside(record, fits=True)), {**now_seen, record.attempt: seen.current}
    offered_again = _taken_back(best, case.now)
    after = case.with_record(
        _with_current(record, offered_again, others), PoolObservations(seen.terminating[best.number], now_seen, seen.by)
    )
    return _with_current_opened(after)


def _taken_back(each: Attempt, now: datetime) -> Attempt:
    """Return an earlier attempt as the current one: what was done about its end counts no more."""
    return Attempt(
        number=each.number,
        create_requested_at=each.create_requested_at,
        ordered=each.ordered,
        ours_since=each.ours_since,
        seen=each.seen,
        operation=each.operation,
        slot=each.slot,
        hosts=replace(each.hosts, vacant_since=each.hosts.vacant_since and now, ends_by=None),
        spared_until=each.spared_until,
    )


def _with_current_opened(case: Situation) -> tuple[Situation, tuple[Action, ...]]:
    """Return the case with the hosts of its pool to be open, if there is one: one that is made anew has others."""
    if isinstance(case.seen.current, Absent | Begun):
        return case, ()
    hosts, opened = opening(case.record.attempt, case.record.current.hosts, case)
    return replace(case, record=case.record.with_current(hosts=hosts)) if opened else case, opened


def _unreadable(case: Situation) -> tuple[Attempt, Unreadable] | None:
    """Return an earlier attempt that is to be current if its pool stands, which is not known; None: there is none."""
    unread = ((each, seen) for each, seen in _kept(case) if isinstance(seen, Unreadable))
    return next(((each, seen) for each, seen in unread if _serves_again(each, seen, case)), None)


def _kept(case: Situation) -> list[tuple[Attempt, Observation]]:
    """Return the earlier attempts whose deletion is not under way, latest first, and what is seen of them."""
    return [
        (each, case.seen.terminating.get(each.number, UNSEEN))
        for each in reversed(case.record.terminating)
        if not case.order_may_arrive(each.delete_requested_at)
    ]


def _best(case: Situation) -> Attempt | None:
    if not case.record.wanted or case.record.on(case.record.current.hosts):
        return None
    useful = [(each, seen) for each, seen in _kept(case) if isinstance(seen, Creating | Running | Busy | Broken)]
    in_use = (each for each, _ in useful if case.record.on(each.hosts))
    return next(in_use, next((each for each, seen in useful if _serves_again(each, seen, case)), None))


def _serves_again(each: Attempt, seen: Observation, case: Situation) -> bool:
    if not (each.fits and case.waiting and not case.runs_elsewhere and case.nothing_stands):
        return False
    fits = case.record.spec is not None and same_request(each.made_for, case.record.spec)
    others = [user for user in case.users_of(each.hosts, each.made_for).jobs if user.owner.uid != case.record.owner.uid]
    free = not others and (not each.hosts.occupants or case.record.on(each.hosts))
    return fits and free and seen != Creating(operation_runs=False) and not isinstance(seen, Broken)
