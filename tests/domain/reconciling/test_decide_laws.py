"""What is true of `decide` for every record, every observation and whatever else is known."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from tests.builders import NOW, had, settings, unclaimed, with_fields
from tests.domain.cases import every_record, situations, wanted
from tpu_slices.domain.model.observations import Absent, Begun, Observed, Unowned, Unreadable
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.reconciling.case import Situation
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.decisions import (
    CancelCreation,
    CloseHosts,
    CreatePool,
    Decision,
    DeletePool,
    DeleteRemains,
    OpenHosts,
)
from tpu_slices.domain.records.attempts import Attempt
from tpu_slices.domain.records.awaited import PoolOperation
from tpu_slices.domain.records.slices import SliceRecord

SETTLED = {Phase.READY, Phase.REFUSED, Phase.GONE}
MUST_END = (CloseHosts, CancelCreation, DeletePool)


def decided(case: Situation) -> Decision:
    return decide(case.record, case.seen, case.now, case.settings, case.known)


def again(case: Situation, after: SliceRecord) -> Situation:
    """Return the case in which the decision is saved, and nothing else happened."""
    same = after.attempt == case.record.attempt and after.current.create_requested_at is not None
    return case.with_record(after, case.seen if same else Observed(Absent()))


def may_exist(case: Situation) -> bool:
    """Return whether the pool of a slice exists, or may come into being without another decision.

    The creation of one that had hosts and was deleted has taken its effect.
    """
    current, seen = case.record.current, case.seen.pool
    if current.create_requested_at is None or isinstance(seen, Unowned):
        return False
    was_deleted = current.delete_requested_at is not None and had_hosts(current)
    return not isinstance(seen, Absent) or (case.order_may_arrive(current.create_requested_at) and not was_deleted)


def had_hosts(attempt: Attempt) -> bool:
    return bool(attempt.hosts.joined or attempt.hosts.occupants or attempt.hosts.departures)


def without_claim(record: SliceRecord) -> SliceRecord:
    """Return a slice like this one that no claim has."""
    kept = record if record.unclaimed else unclaimed(wanted(record), earlier=(), demand_confirmed_at=None)
    return replace(kept, phase=Phase.RELEASING, reason=Reason.CLOSING_HOSTS)


@given(situations(), st.booleans(), st.booleans(), st.sampled_from([None, None, "an upgrade"]))
def test_a_record_that_is_not_settled_is_reconciled_again_or_waits_for_a_slot(
    case: Situation, waits: bool, hold: bool, paused: str | None
) -> None:
    """One that waited for a slot is not due, and is looked at since somebody asked."""
    waits = waits and case.record.slot_awaited is not None
    record = replace(case.record, hold=hold, next_reconcile_at=None if waits else NOW)
    decision = decided(replace(case, record=record, settings=settings(paused=paused)))
    after, let_go = decision.record, decision.let_go
    assert let_go is None or let_go.next_reconcile_at == NOW
    if after.next_reconcile_at is None and after.slot_awaited is not None:
        assert after.slot_awaited.number is None
        creates = after.slot_awaited.operation is PoolOperation.CREATE
        assert after.reason is Reason.OPERATION_LIMIT or not creates
    elif after.next_reconcile_at is None:
        assert after.phase in SETTLED
        assert after.phase is not Phase.GONE or not had(after)
        assert after.phase is not Phase.READY or after.current.hosts.occupants
    else:
        assert after.next_reconcile_at >= NOW


@given(situations(current=st.just(Unreadable("503"))))
def test_a_slice_whose_pool_is_unreadable_changes_nothing(case: Situation) -> None:
    assume(case.record.current.create_requested_at is not None)
    decision = decided(case)
    assert (decision.actions, decision.let_go) == ((), None)
    assert decision.record.phase is case.record.phase


@given(situations())
def test_no_pool_is_closed_cancelled_or_deleted_on_which_a_live_job_is(case: Situation) -> None:
    ends = {action.attempt for action in decided(case).actions if isinstance(action, MUST_END)}
    spared = case.record.owner.uid if case.record.release_requested else None
    users = case.users_of(None).without_return_of(case.record.job)
    assert not ends or all(each.owner.uid == spared for each in users.jobs)


@given(situations())
def test_no_pool_is_deleted_unless_it_is_ours_and_its_slice_goes(case: Situation) -> None:
    decision = decided(case)
    ends = {action.attempt for action in decision.actions if isinstance(action, MUST_END)}
    remains = {action.attempt for action in decision.actions if isinstance(action, DeleteRemains)}
    if ends or remains:
        assert decision.record.goes
        assert ends | remains == {case.record.attempt} == {decision.record.attempt}
    assert not ends or not isinstance(case.seen.pool, Unowned | Absent | Unreadable)
    assert not remains or isinstance(case.seen.pool, Begun)


@given(situations())
def test_no_pool_is_deleted_before_the_relay_answered_that_nobody_can_come(case: Situation) -> None:
    hosts = case.record.current.hosts
    for action in decided(case).actions:
        if isinstance(action, DeletePool):
            assert not case.known.relay.silent(NOW)
            assert hosts.closing is not None
            assert hosts.answered == hosts.closing.number == hosts.highest
            vacant_since = hosts.vacant_since or NOW
            nobody_came = NOW - vacant_since >= case.limits.restart_grace
            assert hosts.closed >= hosts.joined or nobody_came or (case.record.release_requested and hosts.occupants)


@given(
    situations(every_record | every_record.map(lambda record: with_fields(wanted(record), create_requested_at=None)))
)
def test_a_creation_needs_a_desire_fresh_demand_a_slot_and_an_unused_name(case: Situation) -> None:
    record = case.record
    decision = decided(case)
    creates = [action.attempt for action in decision.actions if isinstance(action, CreatePool)]
    assert len(creates) <= 1
    if creates:
        assert record.wanted
        assert decision.record.current.slot is not None
        assert case.waiting
        assert record.claim.refusal is None
        assert creates == [decision.record.attempt]
        assert not record.unclaimed
        assert creates[0] not in had(decision.record)
        assert creates[0] != record.attempt or isinstance(case.seen.pool, Absent | Begun)


@given(situations())
def test_every_pool_that_may_exist_stays_on_record(case: Situation) -> None:
    decision = decided(case)
    after, let_go = decision.record, decision.let_go
    kept = {each.attempt for each in (after, let_go) if each is not None and each.current.create_requested_at}
    assert not may_exist(case) or case.record.attempt in kept
    assert had(after) == (*had(case.record), *([let_go.attempt] if let_go else []))
    assert after.attempt not in had(after)


@given(situations(every_record.map(without_claim)))
def test_a_slice_that_no_claim_has_is_gone_only_once_no_pool_of_it_may_exist(case: Situation) -> None:
    decision = decided(case)
    assert (decision.record.name, decision.record.attempt) == (case.record.name, case.record.attempt)
    assert decision.let_go is None
    assert decision.record.phase is not Phase.GONE or not may_exist(case)


@given(situations(every_record.map(wanted)))
def test_a_slice_leaves_its_claim_as_it_is_and_goes(case: Situation) -> None:
    let_go = decided(case).let_go
    if let_go is not None:
        before = case.record
        assert (let_go.maker, let_go.attempt, let_go.pool) == (before.maker, before.attempt, before.pool)
        assert let_go.current.hosts == before.current.hosts
        assert let_go.slots <= before.slots
        assert let_go.goes
        assert decided(again(case, let_go)).record.phase is Phase.RELEASING


@given(situations())
def test_a_new_attempt_has_a_number_that_none_ever_had(case: Situation) -> None:
    after = decided(case).record
    assert after.claim.tried >= case.record.claim.tried
    if after.attempt != case.record.attempt:
        assert after.attempt == after.claim.tried > case.record.claim.tried


def pools_of(record: SliceRecord) -> tuple[object, ...]:
    return (
        record.attempt,
        record.claim.tried,
        record.current.create_requested_at,
        record.slots,
        had(record),
        record.let_go,
        record.current if record.goes else None,
        record.claim.failures,
    )


@given(situations())
def test_deciding_again_changes_nothing_more(case: Situation) -> None:
    """`decide` tells a failure first, and in a second decision what else the slice waits for: there is never a third.

    Likewise it tells of a pool of others under the slice's name before it makes the next attempt.
    """
    first = decided(case)
    second = decided(again(case, first.record))
    assert second.let_go is None
    creation = CreatePool(first.record.attempt)
    if first.reason is Reason.UNOWNED_POOL and creation in second.actions:
        begun = with_fields(first.record, create_requested_at=case.now, slot=second.record.current.slot)
        assert pools_of(second.record) == pools_of(begun)
        assert set(second.actions) <= {*first.actions, creation}
    else:
        assert pools_of(second.record) == pools_of(first.record)
        assert set(second.actions) <= set(first.actions)
    assert decided(again(case, second.record)).record == second.record


@given(situations())
def test_the_number_of_each_question_is_on_record(case: Situation) -> None:
    decision = decided(case)
    question = decision.record.current.hosts.asked
    for action in decision.actions:
        if isinstance(action, CloseHosts | OpenHosts):
            assert action.attempt == decision.record.attempt
            assert question is not None
            assert (question.number, question.close) == (action.number, isinstance(action, CloseHosts))


@given(situations())
def test_a_decision_is_the_same_each_time(case: Situation) -> None:
    assert decided(case) == decided(case)
