"""Which slice a claim has, whether one is made for it, and why it waits without one. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from tpu_slices.domain.capacity.crossing import crosses
from tpu_slices.domain.capacity.places import with_place
from tpu_slices.domain.capacity.spares import why_not_now
from tpu_slices.domain.model.observations import (
    Absent,
    Begun,
    Broken,
    Busy,
    Creating,
    Observed,
    Running,
    Witness,
)
from tpu_slices.domain.model.reasons import LIMITED, Phase, Reason
from tpu_slices.domain.model.slices import LAST_ATTEMPT, SliceId, SliceSpec, same_request
from tpu_slices.domain.reconciling import messages
from tpu_slices.domain.reconciling.case import Known, Situation
from tpu_slices.domain.reconciling.decisions import Action, Arm
from tpu_slices.domain.reconciling.ending import held_slot, is_gone, opening
from tpu_slices.domain.reconciling.evidence import seen_so
from tpu_slices.domain.reconciling.giving_up import GIVEN_UP, GivingUp, giving_up
from tpu_slices.domain.reconciling.limiter import slot_awaited
from tpu_slices.domain.reconciling.patience import failure
from tpu_slices.domain.reconciling.refusals import refusal_of
from tpu_slices.domain.records.attempts import Attempt, Seen
from tpu_slices.domain.records.awaited import PoolOperation
from tpu_slices.domain.records.claims import Refusal, Rejection
from tpu_slices.domain.records.hosts import Hosts
from tpu_slices.domain.records.slices import SliceRecord

C = TypeVar("C", bound=Situation)


@dataclass(frozen=True, slots=True)
class Bound:
    """What a claim has from now on."""

    case: Situation
    """With the slice that the claim has, or that is made for it next."""
    let_go: SliceRecord | None = None
    """The record of the slice that the claim lets go, which no claim has from now on; None: it lets none go."""
    opened: tuple[Action, ...] = ()
    """What opens the hosts of its slice again."""
    waits: Arm | None = None
    """What the claim says while no slice of it stands: why it waits, or that a slice is made. None: it has a slice, or
    needs none."""


def bind(case: Situation) -> Bound:
    """Return which slice the claim of a Job has from now on. The first row that holds counts.

    | the claim                                                 | has, or says                                        |
    |-----------------------------------------------------------|-----------------------------------------------------|
    | its slice goes, and is gone                               | none: as below                                      |
    | its slice goes, and the claim is not needed               | that, until it is gone                              |
    | its slice goes; its Job is on it, or waits for it, nobody | that again: its hosts are opened                    |
    | else uses it, and it is not being deleted                 |                                                     |
    | its slice goes; its Job waits                             | none: as below                                      |
    | its slice goes                                            | that, until it is gone                              |
    | its slice is gone for good, or was made for another Job,  | none: as below                                      |
    | and somebody deleted its pool                             |                                                     |
    | has a slice, which nobody uses any more (`giving_up`)     | that, until it is gone                              |
    | has a slice, which does not serve (`giving_up`)           | none: as below                                      |
    | has a slice                                               | that                                                |
    | is not needed any more, or not now                        | none                                                |
    | its slice has just failed, or was not used though ready   | none: why, and when the next is tried               |
    | another's pool has the name of its slice                  | none, says so; the next has another name            |
    | is refused, or not allowed                                | none: why                                           |
    | is the seat of a spare, and claims come first, or a limit | none: SPARE_WAITS                                   |
    | is in the way                                             |                                                     |
    | is of a gang that waits                                   | none: AWAITING_GANG, LET_GO_WITH_GANG or            |
    |                                                           | GANG_TOO_LARGE                                      |
    | exceeds a limit of chips, and its leader waits            | none: CHIP_LIMIT_REACHED                            |
    | is of a workload that has slices in a zone of which its   | none: NO_RUNG_IN_ZONE                               |
    | ladder has no rung                                        |                                                     |
    | failed before, and may not be tried yet                   | none: as before                                     |
    | no leader was lately seen to wait for it                  | none: DEMAND_STALE                                  |
    | every name was used                                       | none: ATTEMPTS_EXHAUSTED                            |
    | lacks a slot, or its turn to try what ran out             | none: OPERATION_LIMIT, AWAITING_TURN                |
    | its reservation is known to have no hosts for it now      | none: RESERVATION_NOT_OPEN                          |
    | else                                                      | a slice that is made now, or whose making goes on   |

    A slice that it has no more stays on record, without a claim, until it is gone. No name is used
    twice.
    """
    if case.record.wanted and _needs_another_name(case):
        case = _with_another(case)
    if case.record.current.create_requested_at is None:
        return Bound(case, waits=_waits(case))
    if not case.record.wanted:
        case = replace(case, record=case.record.with_changes(let_go=case.record.why_it_goes))
    if case.record.goes and is_gone(case):
        rest = without_gone(case)
        return Bound(rest, waits=_waits(rest))
    if case.record.goes and not _returns(case):
        passed_over = case.record.wanted and case.waiting
        fits = case.record.current.delete_requested_at is None
        return _without(case, GivingUp(why=case.record.let_go, fits=fits)) if passed_over else Bound(case)
    back = replace(case, record=_kept(case.record, case.now)) if case.record.goes else case
    ended = giving_up(back)
    if ended is None:
        opened, actions = _with_current_opened(back)
        stands = not isinstance(back.seen.pool, Absent | Begun)
        return Bound(opened, opened=actions, waits=None if stands else _made(opened))
    if ended.unneeded:
        return Bound(replace(back, record=replace(back.record, let_go=ended.why)))
    return _without(back, ended)


def without_gone(case: C) -> C:
    """Return a claim whose slice was to go and is gone, whatever else is decided: with the next, if it needs one."""
    record = case.record
    stood = record.goes and not record.unclaimed and record.current.create_requested_at is not None
    if not (stood and is_gone(case)):
        return case
    if record.wanted:
        return _with_another(case)
    gone = replace(record, current=Attempt(number=record.attempt, gone=True), let_go="")
    after = gone.with_claim(rebuild_allowed=False, rejection=None)
    return case.with_record(after, Observed(Absent(), case.seen.by))


def _needs_another_name(case: Situation) -> bool:
    """Return whether a claim's slice is gone for good, or was made for another Job, and somebody deleted its pool."""
    record = case.record
    return record.current.gone or (record.first_job is not None and case.nothing_stands and not record.goes)


def _with_another(case: C) -> C:
    """Return a claim with the next number after a slice that is gone."""
    return case.with_record(_next_of(case, None), Observed(Absent(), case.seen.by))


def _next_of(case: Situation, stands: SliceId | None) -> SliceRecord:
    """Return a claim with its next slice, at the place where its workload asks by now; `stands`: the one before."""
    own, after = case.known.workloads.get(case.record.owner.uid), case.record.with_next(stands)
    return after if own is None else with_place(after, own)


def _without(case: Situation, ended: GivingUp) -> Bound:
    """Return a claim without the slice that it had; `ended`: how that ended."""
    record, seen = case.record, case.seen
    as_seen = replace(record, current=seen_so(record.current, seen.pool, case.now, seen.by))
    stands = None if is_gone(case) else let_go(as_seen, ended, case)
    before = stands.id if stands is not None else None
    after = record.with_next(before) if ended.failure is not None else _next_of(case, before)
    known = _known_beside(case, stands.chips_bought) if stands is not None else case.known
    rest = replace(case, record=after, seen=Observed(Absent(), seen.by), known=known)
    return Bound(rest, stands, waits=_waits(rest, ended))


def _waits(case: Situation, ended: GivingUp | None = None) -> Arm | None:
    """Return what a claim without a slice says: why it waits, or that one is made; `ended`: how its last one ended."""
    if not case.record.wanted:
        return None
    if ended is not None and ended.rejection is not None:
        return _rejected(ended.rejection, case, case.settings.version if not ended.evicts else "")
    if ended is not None:
        if ended.failure is not None:
            return failure(case.record, ended.failure, case.now, case.settings)
        if ended.unowned:
            message = f"{ended.unowned} The next attempt has another name."
            return Arm(Reason.UNOWNED_POOL, message, {"retry_at": case.now})
    return _made(case)


def _rejected(why: Refusal, case: Situation, settings_version: str) -> Arm:
    own = case.known.workloads.get(case.record.owner.uid)
    rejection = Rejection(
        reason=why.reason,
        message=why.message,
        settings_version=settings_version,
        generation=own.edition if own is not None else None,
    )
    claim = {"rejection": rejection, "retry_at": None, "blocked_settings_version": None}
    return Arm(why.reason, why.message, claim)


def _made(case: Situation) -> Arm:
    """Return what a claim without a slice says, however its last one ended: why it waits, or that a slice is made."""
    record = case.record
    refusal = refusal_of(record, case.settings, case.known.held, case.known.limited)
    if record.owner.kind.is_spare and (why := _not_yet(case, refusal)):
        return Arm(Reason.SPARE_WAITS, why, {"retry_at": None, "blocked_settings_version": None})
    gang = case.gang if refusal is None or refusal.reason in LIMITED else None
    if gang is not None and gang.waits and not case.run_given_up:
        return Arm(gang.reason, gang.message, {"retry_at": gang.back_at, "blocked_settings_version": None})
    if refusal is not None and (refusal.reason is not Reason.CHIP_LIMIT_REACHED or not case.unawaited):
        return Arm(refusal.reason, refusal.message, {"retry_at": None, "blocked_settings_version": None})
    if case.run_given_up:
        return _rejected(Refusal(reason=Reason.PODS_DID_NOT_RUN, message=GIVEN_UP), case, "")
    if nowhere := case.asks_nowhere:
        return Arm(Reason.NO_RUNG_IN_ZONE, nowhere, {"retry_at": None, "blocked_settings_version": None})
    if _has_to_wait(case):
        return Arm(record.reason, record.message)
    if not case.waiting or record.spec is None:
        return Arm(Reason.DEMAND_STALE, messages.demand_stale(record))
    if record.attempt > LAST_ATTEMPT:
        message = f"All {LAST_ATTEMPT} attempts failed: delete and re-create the {record.owner.kind}."
        return Arm(Reason.ATTEMPTS_EXHAUSTED, message)
    slot = record.current.slot if record.current.slot is not None else case.slot_for(record.attempt)
    return _without_slot(case) if slot is None else _create(case, slot)


def _not_yet(case: Situation, refusal: Refusal | None) -> str:
    """Return why a spare is not made now; empty: it may be, unless it failed lately or lacks a slot."""
    if refusal is not None:
        return refusal.message
    if _has_to_wait(case) or case.record.spec is None:
        return ""
    if isinstance(case.seen.pool, Begun):
        return ""
    if case.known.first is None:
        return "What comes before it is not known yet."
    namespace = case.record.owner.namespace
    return why_not_now(case.record.spec, namespace, case.known.first, case.known.held, case.settings)


def _has_to_wait(case: Situation) -> bool:
    """Return whether to wait for `retry_at`; a claim blocked under other settings is served at once."""
    record = case.record
    if record.phase not in {Phase.WAITING, Phase.BLOCKED}:
        return False
    if record.claim.blocked_settings_version not in {None, case.settings.version}:
        return False
    return record.claim.retry_at is not None and case.now < record.claim.retry_at


def _without_slot(case: Situation) -> Arm:
    awaits = slot_awaited(case.record, PoolOperation.CREATE, case.record.attempt, case.now)
    shortage = case.known.shortage
    if shortage is None:
        message = "Waiting for another operation to end: the cluster's limit is reached."
        return Arm(Reason.OPERATION_LIMIT, message, slot_awaited=awaits)
    if shortage.message:
        return Arm(Reason.RESERVATION_NOT_OPEN, f"{shortage.message}.", slot_awaited=replace(awaits, shortage=shortage))
    message = messages.awaiting_turn(case.record, shortage, case.now)
    return Arm(Reason.AWAITING_TURN, message, slot_awaited=replace(awaits, shortage=shortage))


def _create(case: Situation, slot: int) -> Arm:
    record, seen, noun = case.record, case.seen.pool, case.vendor.pool
    known, spec, begun = record.current, record.spec, isinstance(seen, Begun)
    current = {
        "create_requested_at": case.now,
        "ordered": record.made_as if begun else _ordered(case),
        "slot": slot,
        "operation": None,
        "seen": Seen(pool=Creating(), since=case.now, by=Witness.REQUEST),
        "ours_since": known.ours_since if begun else None,
        "made_by": known.made_by if begun else None,
        "hosts": Hosts(sequence=known.hosts.sequence, highest=known.hosts.highest),
    }
    claim = {"retry_at": None, "blocked_settings_version": None, "rejection": None}
    pinned = case.settings.pools if known.create_requested_at is None else record.pinned_settings
    others = {"pinned_settings": pinned}
    if isinstance(seen, Begun):
        message = f"Creating {noun} {record.pool} goes on, {seen.message} stands."
        return Arm(Reason.CREATING, message, claim, current, others, creates=True)
    what = messages.created(spec) if spec else "hosts"
    ahead = messages.attempt_ahead(record.with_current(create_requested_at=case.now), case.vendor, case.now)
    message = f"Creating {noun} {record.pool}: {what}{ahead}.{messages.stepped_on(case)}"
    return Arm(Reason.CREATION_STARTED, message, claim, current, others, creates=True)


def _ordered(case: Situation) -> SliceSpec | None:
    """Return what is ordered for a claim, with whether its hosts may come to other namespaces."""
    spec = case.record.spec
    return spec and replace(spec, crosses=crosses(case.record, case.settings, case.known.relay))


def let_go(record: SliceRecord, ended: GivingUp, case: Situation) -> SliceRecord:
    """Return the slice that a claim had, and that no claim has any more."""
    nothing_bought = isinstance(case.seen.pool, Broken) and not (
        record.current.hosts.joined or record.current.hosts.occupants
    )
    empty = ended.failure is not None and nothing_bought
    going = record.with_current(empty=empty, slot=held_slot(case))
    gone = going.let_go_of(ended.told, case.now)
    return replace(gone, fits=ended.fits, release_requested=gone.release_requested or ended.evicts)


def _known_beside(case: Situation, chips: int) -> Known:
    """Return what is known, with the chips of the slice that the claim lets go among those of other pools."""
    if case.known.held is None:
        return case.known
    return replace(case.known, held=case.known.held.plus(chips))


def _returns(case: Situation) -> bool:
    """Return whether a claim has a slice again that was about to go.

    One whose deletion the vendor did not accept, or failed to carry out, is not being deleted.
    """
    record, seen = case.record, case.seen.pool
    if not record.wanted or case.order_may_arrive(record.current.delete_requested_at):
        return False
    if not isinstance(seen, Creating | Running | Busy | Broken):
        return False
    if record.occupied:
        return True
    if not case.waiting or seen == Creating(operation_runs=False) or isinstance(seen, Broken):
        return False
    made_for, hosts = record.current.made_for, record.current.hosts
    others = any(user.owner.uid != record.owner.uid for user in case.users_of(made_for).jobs)
    return record.spec is not None and same_request(made_for, record.spec) and not others and not hosts.occupants


def _kept(record: SliceRecord, now: datetime) -> SliceRecord:
    """Return a claim's record with a slice that stays after all."""
    return replace(record, current=record.current.kept(now), let_go="")


def _with_current_opened(case: Situation) -> tuple[Situation, tuple[Action, ...]]:
    """Return the case with the hosts of its pool to be open, if there is one: one that is made anew has others."""
    if isinstance(case.seen.pool, Absent | Begun):
        return case, ()
    hosts, opened = opening(case.record.attempt, case.record.current.hosts, case)
    return replace(case, record=case.record.with_current(hosts=hosts)) if opened else case, opened
