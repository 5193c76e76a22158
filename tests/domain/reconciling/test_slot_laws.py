"""What is true of slots for every record and every observation: each is held for an operation, and none for nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import NOW, a_record, a_spec, an_occupant, asked_to_close, heard, settings, some_hosts
from tpu_slices.domain.model.observations import (
    Absent,
    Broken,
    Busy,
    Creating,
    Deleting,
    Failure,
    FailureKind,
    Observation,
    PoolObservations,
    Running,
    Unowned,
    Unreadable,
)
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.decisions import CreatePool, DeletePool, DeleteRemains
from tpu_slices.domain.records.attempts import Attempt
from tpu_slices.domain.records.hosts import NO_HOSTS
from tpu_slices.domain.records.slices import Desire, PoolOperation, SliceRecord, SlotAwaited

SECONDS = (1, 30, 59, 61, 119, 121, 3600)
LONG_AGO = timedelta(seconds=120)
HANDED_ON = 9
"""The slot that was handed on."""
moments = st.none() | st.sampled_from([NOW - timedelta(seconds=seconds) for seconds in SECONDS])
hosts = st.sampled_from(
    [
        NO_HOSTS,
        some_hosts(),
        some_hosts(occupants=(an_occupant(),)),
        some_hosts(occupants=(an_occupant("other"),)),
        some_hosts(closed=4, usable=0, asked=asked_to_close(), answered=1),
        some_hosts(asked=asked_to_close()),
    ]
)
idle: st.SearchStrategy[Observation] = st.sampled_from(
    [
        Absent(),
        Running(a_spec().fingerprint),
        Busy("repair"),
        Broken(Failure(FailureKind.STOCKOUT, "none left")),
        Creating(operation_runs=False),
        Unowned("not ours"),
    ]
)
running: st.SearchStrategy[Observation] = st.sampled_from([Creating(), Deleting(), Unreadable("503")])
observations = idle | running
awaited = st.none() | st.builds(
    SlotAwaited,
    operation=st.sampled_from(PoolOperation),
    attempt=st.integers(1, 3),
    since=st.just(NOW - timedelta(minutes=3)),
    number=st.none() | st.just(HANDED_ON),
)


@st.composite
def attempts(draw: st.DrawFn, attempt: int) -> Attempt:
    return Attempt(
        number=attempt,
        ordered=a_spec(),
        create_requested_at=draw(moments),
        delete_requested_at=draw(moments),
        slot=draw(st.none() | st.just(attempt)),
        hosts=draw(hosts),
        fits=draw(st.booleans()),
        refused=draw(st.sampled_from(["", "no permission"])),
    )


@st.composite
def records(draw: st.DrawFn) -> SliceRecord:
    requested = draw(moments)
    return a_record(
        desire=draw(st.sampled_from(Desire)),
        demand_confirmed_at=draw(moments),
        phase=draw(st.sampled_from(Phase)),
        reason=draw(st.sampled_from(Reason)),
        attempt=3,
        create_requested_at=requested,
        slot=draw(st.none() | st.just(3)) if requested else None,
        slot_awaited=draw(awaited),
        hosts=draw(hosts),
        terminating=tuple(draw(attempts(number)) for number in draw(st.sampled_from([(), (1,), (1, 2)]))),
        hold=draw(st.booleans()),
        release_requested=draw(st.booleans()),
    )


def seen_by(data: st.DataObject, record: SliceRecord, kinds: st.SearchStrategy[Observation]) -> PoolObservations:
    current = data.draw(kinds) if record.current.create_requested_at else Absent()
    return PoolObservations(current, {each.number: data.draw(kinds) for each in record.terminating})


def slots_of(record: SliceRecord) -> dict[int, int | None]:
    return {record.attempt: record.current.slot, **{each.number: each.slot for each in record.terminating}}


@given(st.data(), records())
def test_no_slot_is_kept_when_nothing_runs_and_no_order_can_arrive(data: st.DataObject, record: SliceRecord) -> None:
    later = NOW + LONG_AGO
    seen = seen_by(data, record, idle)
    decision = decide(record, seen, later, settings(), heard())
    orders = {
        action.attempt for action in decision.actions if isinstance(action, CreatePool | DeletePool | DeleteRemains)
    }
    kept = {attempt for attempt, slot in slots_of(decision.record).items() if slot is not None}
    assert kept <= orders


@given(st.data(), records(), st.dictionaries(st.integers(1, 4), st.integers(20, 30)), st.none() | st.integers(1, 4))
def test_every_order_has_a_slot_of_its_own(
    data: st.DataObject, record: SliceRecord, free: dict[int, int], taken_for: int | None
) -> None:
    """Also if the slot that was handed on to one attempt is taken for another one."""
    slots = {attempt: 10 * attempt + number for attempt, number in free.items()}
    slots |= {taken_for: HANDED_ON} if taken_for is not None else {}
    known = replace(heard(), slots=slots)
    decision = decide(record, seen_by(data, record, observations), NOW, settings(), known)
    held = slots_of(decision.record)
    for action in decision.actions:
        if isinstance(action, CreatePool | DeletePool | DeleteRemains):
            assert held[action.attempt] is not None
    in_hand = decision.record.slot_awaited
    numbers = [slot for slot in (*held.values(), in_hand and in_hand.number) if slot is not None]
    assert len(numbers) == len(set(numbers))


@given(st.data(), records())
def test_a_slot_that_was_handed_on_is_used_or_given_up(data: st.DataObject, record: SliceRecord) -> None:
    """Or kept for a deletion while hosts are closed for it."""
    decision = decide(record, seen_by(data, record, observations), NOW, settings(), heard())
    after = decision.record.slot_awaited
    if after is not None and after.number is not None:
        assert (after, after.operation) == (record.slot_awaited, PoolOperation.DELETE)
        assert dict(decision.record.all_hosts)[after.attempt].closing is not None
    orders = {
        action.attempt for action in decision.actions if isinstance(action, CreatePool | DeletePool | DeleteRemains)
    }
    assert all(slot != HANDED_ON or attempt in orders for attempt, slot in slots_of(decision.record).items())


@given(st.data(), records())
def test_an_operation_of_ours_that_runs_keeps_its_slot(data: st.DataObject, record: SliceRecord) -> None:
    seen = seen_by(data, record, observations)
    after = slots_of(decide(record, seen, NOW, settings(), heard()).record)
    under_way = {attempt for attempt, pool in seen.terminating.items() if pool in (Creating(), Deleting())}
    under_way |= {record.attempt} if seen.current == Creating() else set()
    assert all(after[attempt] == slot for attempt, slot in slots_of(record).items() if attempt in under_way)
