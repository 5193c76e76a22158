"""Reconciles one slice once: look, decide, remember, act, note. Never waits for an operation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import Family
from tpu_slices.domain.model.observations import (
    Observed,
    Witness,
)
from tpu_slices.domain.model.questions import RepeatQuestion
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import ClaimId, ClusterId, SliceId
from tpu_slices.domain.planning.expected_nodes import nodes_expected
from tpu_slices.domain.reconciling.decisions import Decision
from tpu_slices.domain.records.awaited import PoolOperation
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.flows import slots
from tpu_slices.flows.acting import Acted, act
from tpu_slices.flows.budget import tell_waiting
from tpu_slices.flows.capacity import warm
from tpu_slices.flows.capacity.ladders import check_rung, step_after
from tpu_slices.flows.gangs.settling import settle
from tpu_slices.flows.hosts import is_taken
from tpu_slices.flows.looking import NOTHING, Looked, Told, look, with_known, with_limit, with_pools
from tpu_slices.flows.node_groups import tell_gone, tell_node_group
from tpu_slices.flows.outcomes import Reconciled, announce
from tpu_slices.flows.reservations.looking import is_handed_on, look_before, without_slot
from tpu_slices.flows.reservations.outlasting import tell_if_it_outlasts
from tpu_slices.flows.retrying import retry_on_conflict
from tpu_slices.flows.unclaimed import forget, hand_over, regain, take_over
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.errors import StaleRecord
from tpu_slices.ports.store import Change, Revision, Stored, moved


def reconcile(
    cluster: ClusterId, slice_: ClaimId | SliceId, deps: ReconcileDeps, told: Told = NOTHING
) -> Reconciled | None:
    """Reconcile one slice; return None if it does not exist, or is GONE and settled.

    Those to which it hands slots on are requested. Permanent: unknown cluster. Temporary: the request is redelivered.
    """
    done, served = _reconciled(cluster, slice_, told, deps)
    _request(cluster, served, deps)
    return done


def reconcile_in_turn(
    cluster: ClusterId, slice_: ClaimId | SliceId, deps: ReconcileDeps, told: Told = NOTHING
) -> Iterator[Reconciled]:
    """Reconcile one slice, and then the first that gets a slot from it: that slot does not wait for a message.

    If it hands no slot on, the slice that it lets go, or the claim that has it again. The others are requested. So is
    the first if it raises anything: its own message tells.
    """
    done, served = _reconciled(cluster, slice_, told, deps)
    _request(cluster, served[1:], deps)
    if done is not None:
        yield done
    if not served:
        return
    try:
        follows = reconcile(cluster, served[0].name, deps, Told(waiting=served[0].owner.uid))
    except Exception:  # noqa: BLE001 - it is told by the message of the slice that it is about
        _request(cluster, served[:1], deps)
    else:
        yield from [follows] if follows else []


def _reconciled(
    cluster: ClusterId, slice_: ClaimId | SliceId, told: Told, deps: ReconcileDeps
) -> tuple[Reconciled | None, list[SliceRecord]]:
    """Return what came of it, and who is to be reconciled for that."""
    served: list[SliceRecord] = []
    try:
        return retry_on_conflict(lambda: _once(cluster, slice_, told, deps, served), deps.clock), served
    except Exception:
        _request(cluster, served, deps)
        raise


def _request(cluster: ClusterId, slices: Sequence[SliceRecord], deps: ReconcileDeps) -> None:
    if slices:
        deps.publisher.request_reconcile(cluster, [each.name for each in slices])


@dataclass(frozen=True, slots=True)
class Explained:
    """The input of `reconcile` at this time, and what it would decide."""

    record: SliceRecord
    """With its current desire."""
    seen: Observed
    decision: Decision
    settings: ClusterSettings


def explain(cluster: ClusterId, slice_: ClaimId | SliceId, deps: ReconcileDeps) -> Explained | None:
    """Return what `reconcile` would decide now, or None if there is no such cluster or slice. Changes nothing."""
    settings = deps.store.settings(cluster)
    looked = look(cluster, slice_, Told(settings), deps) if settings is not None else None
    looked = with_pools(looked, deps) if looked is not None else None
    if looked is None:
        return None
    looked = with_limit(looked, looked.decide({}), deps) or looked
    looked = warm.with_limit(looked, looked.decide({}), deps) or looked
    return Explained(looked.record, looked.seen, _decide(looked, _taking(looked, deps)), looked.settings)


@dataclass(frozen=True, slots=True)
class _Decided:
    """What was decided, and on what."""

    looked: Looked
    decision: Decision
    slots_taken: tuple[Change, ...]

    @property
    def before(self) -> SliceRecord:
        """The record as it was read."""
        return self.looked.stored.value

    @property
    def is_gone(self) -> bool:
        """Whether the slice that its claim had is gone."""
        after, stood = self.decision.record, self.before.current.create_requested_at is not None
        return stood and self.decision.let_go is None and (after.current.gone or after.id != self.before.id)


@dataclass(frozen=True, slots=True)
class _Remembered:
    """The decision as it was saved, and what it does to slots."""

    stored: Stored[SliceRecord]
    settling: slots.Settling


def _once(
    cluster: ClusterId, slice_: ClaimId | SliceId, told: Told, deps: ReconcileDeps, served: list[SliceRecord]
) -> Reconciled | None:
    """Reconcile the slice as it is now; add to `served` who is to be reconciled for that."""
    looked = look(cluster, slice_, told, deps)
    if looked is None or _needs_nothing(looked, deps, served):
        return None
    decided = _decided(with_known(looked, told) or with_pools(looked, deps), deps)
    if given := _changes_hands(decided, deps):
        served += given
        return None
    announce(decided.before, decided.before.announced_count, deps)  # again: the instance that saved them may have died
    if decided.decision.record.unclaimed and decided.decision.record.phase is Phase.GONE:
        done = forget(decided.looked, decided.decision, deps, served)
    else:
        done = _follow(decided, deps, served)
    own = looked.known.workloads.get(done.after.owner.uid)
    step_after(done.after, own, deps)
    _ask_after_attempt(done, own, deps)
    left = decided.decision.let_go
    served += warm.follow(decided.looked, done.before, done.after, deps)
    if done.before.chips_bought > done.after.chips_bought + (left.chips_bought if left is not None else 0):
        tell_waiting(looked.settings, deps, released_in=done.before.owner.namespace)
    return done


def _ask_after_attempt(done: Reconciled, own: WorkloadRecord | None, deps: ReconcileDeps) -> None:
    """Ask for the demand of a claim again if its pool came to nothing, and it was not planned as it was told last.

    A claim keeps the request by which its pool was ordered as long as that may exist, whatever settings say since.
    """
    after = done.after
    ended = done.before.current.create_requested_at is not None and after.current.create_requested_at is None
    waits = own is not None and own.demand.get(after.last_claim) is not None and after.last_claim not in own.asked
    if ended and waits:
        deps.publisher.ask(after.cluster, [RepeatQuestion(family=Family.DEMAND, keys=(after.owner.uid,))])


def _follow(decided: _Decided, deps: ReconcileDeps, served: list[SliceRecord]) -> Reconciled:
    """Remember what was decided, act on it, and note what came of that."""
    if decided.is_gone:  # before that is saved: an instance that dies in between has it told once more
        tell_gone(decided.before, decided.looked.settings, deps)
    remembered = _remember(decided, deps, served)
    if decided.decision.creates:
        tell_if_it_outlasts(remembered.stored.value, decided.looked.limiter, decided.looked.settings, deps)
    done = act(remembered.stored.value, decided.decision.actions, decided.looked, deps)
    return _note(decided, remembered, done, deps, served)


def _needs_nothing(looked: Looked, deps: ReconcileDeps, served: list[SliceRecord]) -> bool:
    """Return whether nothing is left to decide: a claim has the slice again, or the slice is GONE and announced."""
    if regaining := regain(looked, deps):
        served += regaining
        return True
    record = looked.record
    gone = record.phase is Phase.GONE and not record.wanted and record.next_reconcile_at is None
    if settled := gone and record.announced_count == record.transition_count:
        tell_node_group(record, looked.known, deps)
    return settled


def _changes_hands(decided: _Decided, deps: ReconcileDeps) -> list[SliceRecord]:
    """Return who is to be reconciled since a slice that is about to be deleted serves who would get one created."""
    looked, decision = decided.looked, decided.decision
    return hand_over(looked, decision, deps) or take_over(looked, decision, deps)


def _taking(looked: Looked, deps: ReconcileDeps) -> slots.Taking:
    return slots.Taking(looked.stored.value, looked.limiter, looked.settings, deps, looked.slots)


def _decided(looked: Looked, deps: ReconcileDeps) -> _Decided:
    """Return what is decided: after a look if it changes pools, and within what limits a creation, if anything does."""
    taking = _taking(looked, deps)
    decision = _decide(looked, taking)
    if (reserved := _with_reservation(looked, decision, deps)) is not None:
        looked = reserved
    if reserved is not None or is_handed_on(looked.record, decision):
        looked = replace(looked, record=without_slot(looked.record))
        taking = _taking(looked, deps)
        decision = _decide(looked, taking)
    looked, decision = _seen_if_changed(looked, decision, taking, deps)
    if (limit := with_limit(looked, decision, deps)) is not None:
        looked, decision = limit, _decide(limit, taking)
    if (limit := warm.with_limit(looked, decision, deps)) is not None:
        looked, decision = limit, _decide(limit, taking)
        looked, decision = _seen_if_changed(looked, decision, taking, deps)
    return _Decided(looked, decision, taking.used_by(decision.record))


def _seen_if_changed(
    looked: Looked, decision: Decision, taking: slots.Taking, deps: ReconcileDeps
) -> tuple[Looked, Decision]:
    """Return what is decided after a look, if it changes pools by what is on record."""
    if not decision.changes_pools or looked.seen.by is Witness.LOOK:
        return looked, decision
    seen = with_pools(looked, deps)
    return seen, _decide(seen, taking)


def _with_reservation(looked: Looked, decision: Decision, deps: ReconcileDeps) -> Looked | None:
    """Return it with what is known of the reservation that a decision creates in; None: there is nothing new.

    A gang is decided on anew first, by what its reservation has as a whole: then raise StaleRecord.
    """
    if not decision.creates:
        return None
    limiter = looked.limiter or slots.limiter_of(
        deps.store.limiter(looked.settings.cluster), looked.settings, looked.at
    )
    found = look_before(decision.record, limiter, looked.settings, deps)
    if found is None:
        return None
    own = looked.known.workloads.get(decision.record.owner.uid)
    if own is not None and own.gang(decision.record.replicated_job) is not None:
        cluster = looked.settings.cluster
        if claims := settle(cluster, own.owner.uid, deps):
            deps.publisher.request_reconcile(cluster, sorted(claims))
        raise StaleRecord(f"the gang of {decision.record.name} was decided on anew")
    return replace(looked, limiter=found)


def _decide(looked: Looked, taking: slots.Taking) -> Decision:
    """Return the decision, and take its slots: while only a slot is missing for an operation, decide again.

    Once more if it is not a slot that is missing, but its turn to try what ran out. A spare stands in no line.
    """
    decision = looked.decide(taking.numbers)
    while (
        (awaited := decision.record.slot_awaited) is not None
        and awaited.number is None
        and taking.take(decision.record, awaited)
    ):
        decision = looked.decide(taking.numbers)
    decision = looked.decide(taking.numbers, taking.shortage) if taking.shortage else decision
    awaited, is_spare = decision.record.slot_awaited, decision.record.owner.kind.is_spare
    if awaited is not None and is_spare and (awaited.operation, awaited.number) == (PoolOperation.CREATE, None):
        return replace(decision, record=replace(decision.record, slot_awaited=None))
    return decision


def _remember(decided: _Decided, deps: ReconcileDeps, served: list[SliceRecord]) -> _Remembered:
    """Save the decision and its slots; under a chip limit, fail if a creation was saved since chips were counted.

    Fail, too, if the workload of a creation asks at another rung since.
    """
    looked, decision, record = decided.looked, decided.decision, decided.decision.record
    settling = slots.Settling(decided.before, record, looked.settings, deps, looked.slots, decision.let_go)
    if record == decided.before:
        return _Remembered(looked.stored, settling)
    record = record.with_changes(announced_count=decided.before.transition_count)
    if decision.creates:
        check_rung(record, looked.known.workloads.get(record.owner.uid), deps)
    guards = looked.guards if decision.creates else ()
    revision = _save(looked.stored, record, decision.let_go, (*decided.slots_taken, *guards), deps)
    served += [] if decision.let_go is None else [decision.let_go]
    return _Remembered(Stored(record, revision), settling)


def _save(
    stored: Stored[SliceRecord],
    after: SliceRecord,
    left: SliceRecord | None,
    others: Sequence[Change],
    deps: ReconcileDeps,
) -> Revision:
    """Write a claim's slice with other changes, and return its revision; StaleRecord: others were faster.

    A claim that was forgotten may have made a slice that another has. If the next one's number is that of such a
    slice, it is noted as tried.
    """
    try:
        return deps.store.commit(*moved(stored, after, left), *others)[0]
    except StaleRecord:
        before = stored.value
        if after.id != before.id and is_taken(after.id, before.cluster, deps):
            deps.store.commit(Change(stored, before.with_claim(tried=after.attempt)))
        raise


def _note(
    decided: _Decided, remembered: _Remembered, done: Acted, deps: ReconcileDeps, served: list[SliceRecord]
) -> Reconciled:
    """Announce what happened, save what came of the actions, and hand on the slots of operations that ended."""
    looked, settings, saved = decided.looked, decided.looked.settings, remembered.stored.value
    after, left = done.record, done.left
    served[:0] = remembered.settling.saved(looked.seen)
    announce(after, decided.before.transition_count, deps)
    tell_node_group(after, looked.known, deps)
    if (expected := nodes_expected(after, settings)) is not None:
        deps.publisher.ask(settings.cluster, [expected])
    if after != saved:
        after = after.with_changes(announced_count=after.transition_count)
        settling = slots.Settling(saved, after, settings, deps, let_go=left)
        _save(remembered.stored, after, left, (), deps)
        served += settling.saved(looked.seen)
        served += [] if left is None else [left]
    return Reconciled(decided.before, decided.decision, after)
