"""What is true of `decide` for every record, every observation and whatever else is known."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from tests.builders import NOW, settings, with_fields
from tests.domain.cases import every_record, situations, wanted
from tpu_slices.domain.model.observations import Absent, Begun, Observation, PoolObservations, Unowned, Unreadable
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
from tpu_slices.domain.records.slices import PoolOperation, SliceRecord

SETTLED = {Phase.READY, Phase.REFUSED, Phase.GONE}
MUST_END = (CloseHosts, CancelCreation, DeletePool)


def decided(case: Situation) -> Decision:
    return decide(case.record, case.seen, case.now, case.settings, case.known)


def found(case: Situation) -> dict[int, Observation]:
    """Return what is observed by attempt."""
    return {**case.seen.terminating, case.record.attempt: case.seen.current}


def again(case: Situation, after: SliceRecord) -> Situation:
    """Return the case in which the decision is saved, and nothing else happened."""
    pools = found(case)
    current = pools.get(after.attempt, Absent()) if after.current.create_requested_at else Absent()
    return case.with_record(
        after, PoolObservations(current, {each.number: pools[each.number] for each in after.terminating})
    )


def may_exist(case: Situation) -> set[int]:
    """Return the attempts whose pools exist, or may come into being without another decision.

    The creation of one that had hosts and was deleted has taken its effect.
    """
    record, pools = case.record, found(case)
    deleted = {each.number for each in record.terminating if each.delete_requested_at and had_hosts(each)}
    requested = {each.number: each.create_requested_at for each in record.terminating}
    if record.current.create_requested_at:
        requested[record.attempt] = record.current.create_requested_at
    gone = {
        attempt
        for attempt, at in requested.items()
        if isinstance(pools[attempt], Unowned)
        or (isinstance(pools[attempt], Absent) and (attempt in deleted or not case.order_may_arrive(at)))
    }
    return set(requested) - gone


def had_hosts(attempt: Attempt) -> bool:
    return bool(attempt.hosts.joined or attempt.hosts.occupants or attempt.hosts.departures)


@given(situations(), st.booleans(), st.booleans(), st.sampled_from([None, None, "an upgrade"]))
def test_a_record_that_is_not_settled_is_reconciled_again_or_waits_for_a_slot(
    case: Situation, waits: bool, hold: bool, paused: str | None
) -> None:
    """One that waited for a slot is not due, and is looked at since somebody asked."""
    waits = waits and case.record.slot_awaited is not None
    record = replace(case.record, hold=hold, next_reconcile_at=None if waits else NOW)
    after = decided(replace(case, record=record, settings=settings(paused=paused))).record
    if after.next_reconcile_at is None and after.slot_awaited is not None:
        assert after.slot_awaited.number is None
        creates = after.slot_awaited.operation is PoolOperation.CREATE
        assert after.reason is Reason.OPERATION_LIMIT or not creates
    elif after.next_reconcile_at is None:
        assert after.phase in SETTLED
        assert not after.terminating
        assert after.phase is not Phase.READY or after.current.hosts.occupants
    else:
        assert after.next_reconcile_at >= NOW


@given(situations(current=st.just(Unreadable("503"))))
def test_a_slice_whose_pool_is_unreadable_changes_nothing(case: Situation) -> None:
    assume(case.record.current.create_requested_at is not None)
    decision = decided(case)
    assert decision.actions == ()
    assert decision.record.phase is case.record.phase


@given(situations())
def test_no_pool_is_closed_cancelled_or_deleted_on_which_a_live_job_is(case: Situation) -> None:
    ends = {action.attempt for action in decided(case).actions if isinstance(action, MUST_END)}
    spared = case.record.owner.uid if case.record.release_requested else None
    in_use = {
        attempt
        for attempt, hosts in case.record.all_hosts
        if any(each.owner.uid != spared for each in case.users_of(hosts, None).without_return_of(case.record.job).jobs)
    }
    assert not ends & in_use


@given(situations())
def test_no_pool_is_deleted_unless_it_is_ours_and_was_given_up(case: Situation) -> None:
    decision = decided(case)
    ends = {action.attempt for action in decision.actions if isinstance(action, MUST_END)}
    assert ends <= {each.number for each in decision.record.terminating}
    assert all(not isinstance(found(case)[attempt], Unowned | Absent | Unreadable) for attempt in ends)
    remains = {action.attempt for action in decision.actions if isinstance(action, DeleteRemains)}
    assert remains <= {each.number for each in decision.record.terminating}
    assert all(isinstance(found(case)[attempt], Begun) for attempt in remains)


@given(situations())
def test_no_pool_is_deleted_before_the_relay_answered_that_nobody_can_come(case: Situation) -> None:
    before = dict(case.record.all_hosts)
    for action in decided(case).actions:
        if isinstance(action, DeletePool):
            hosts = before[action.attempt]
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
        assert not case.runs_elsewhere
        assert record.refusal is None
        assert creates == [decision.record.attempt]
        assert creates[0] not in {attempt for attempt in may_exist(case) if attempt != record.attempt}


@given(situations())
def test_every_pool_that_may_exist_stays_on_record(case: Situation) -> None:
    after = decided(case).record
    kept = [each.number for each in after.all_attempts if each is not after.current or each.create_requested_at]
    assert may_exist(case) <= set(kept)
    assert len(kept) == len(set(kept))


@given(situations())
def test_a_new_attempt_has_a_number_that_none_ever_had(case: Situation) -> None:
    after = decided(case).record
    assert after.attempts >= case.record.attempts
    known = {case.record.attempt, *(each.number for each in case.record.terminating)}
    if after.attempt not in known:
        assert after.attempt == after.attempts > case.record.attempts


def pools_of(record: SliceRecord) -> tuple[object, ...]:
    return (
        record.attempt,
        record.attempts,
        record.current.create_requested_at,
        record.slots,
        record.terminating,
        record.failures,
    )


@given(situations())
def test_deciding_again_changes_nothing_more(case: Situation) -> None:
    """`decide` tells a failure first, and in a second decision what else the slice waits for: there is never a third.

    Likewise it tells of a pool of others under the slice's name before it makes the next attempt.
    """
    first = decided(case)
    second = decided(again(case, first.record))
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
    asked = {attempt: hosts.asked for attempt, hosts in decision.record.all_hosts}
    for action in decision.actions:
        if isinstance(action, CloseHosts | OpenHosts):
            question = asked[action.attempt]
            assert question is not None
            assert (question.number, question.close) == (action.number, isinstance(action, CloseHosts))


@given(situations())
def test_a_decision_is_the_same_each_time(case: Situation) -> None:
    assert decided(case) == decided(case)
