"""What is true of slots for every record and every observation: each is held for an operation, and none for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import (
    NOW,
    a_record,
    a_spec,
    an_occupant,
    asked_to_close,
    heard,
    settings,
    some_hosts,
    unclaimed,
    with_fields,
)
from tpu_slices.domain.model.observations import (
    Absent,
    Broken,
    Busy,
    Creating,
    Deleting,
    Failure,
    FailureKind,
    Observation,
    Observed,
    Running,
    Unowned,
    Unreadable,
)
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.reconciling.case import Known
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.decisions import CreatePool, Decision, DeletePool, DeleteRemains
from tpu_slices.domain.records.awaited import PoolOperation, SlotAwaited
from tpu_slices.domain.records.hosts import NO_HOSTS
from tpu_slices.domain.records.slices import Desire, SliceRecord

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
def records(draw: st.DrawFn) -> SliceRecord:
    """Draw a claim, and the slice that it has, which may go; or a slice that no claim has."""
    requested = draw(moments)
    claim = a_record(
        desire=draw(st.sampled_from(Desire)),
        demand_confirmed_at=draw(moments),
        phase=draw(st.sampled_from(Phase)),
        reason=draw(st.sampled_from(Reason)),
        attempt=3,
        create_requested_at=requested,
        slot=draw(st.none() | st.just(3)) if requested else None,
        slot_awaited=draw(awaited),
        hosts=draw(hosts),
        earlier=draw(st.sampled_from([(), (1,), (1, 2)])),
        hold=draw(st.booleans()),
        release_requested=draw(st.booleans()),
    )
    if requested is None or draw(st.booleans()):
        return claim
    fields = {
        "ordered": a_spec(),
        "let_go": "nobody used it",
        "delete_requested_at": draw(moments),
        "refused": draw(st.sampled_from(["", "no permission"])),
    }
    if draw(st.booleans()):
        return with_fields(claim, **fields)
    return unclaimed(claim, **fields, earlier=(), fits=draw(st.booleans()))


def seen_by(data: st.DataObject, record: SliceRecord, kinds: st.SearchStrategy[Observation]) -> Observed:
    return Observed(data.draw(kinds) if record.current.create_requested_at else Absent())


def decisions(record: SliceRecord, seen: Observed, now: datetime = NOW, known: Known | None = None) -> list[Decision]:
    """Return what is decided, and then about the slice that was let go by that."""
    known = known or heard()
    first = decide(record, seen, now, settings(), known)
    return [first, *([] if first.let_go is None else decisions(first.let_go, seen, now, known))]


def slots_of(records: Sequence[SliceRecord]) -> dict[int, int | None]:
    return {each.attempt: each.current.slot for each in records}


def orders_of(decided: Sequence[Decision]) -> set[int]:
    """Return the attempts about which the vendor is asked for an operation."""
    actions = (action for decision in decided for action in decision.actions)
    return {action.attempt for action in actions if isinstance(action, CreatePool | DeletePool | DeleteRemains)}


@given(st.data(), records())
def test_no_slot_is_kept_when_nothing_runs_and_no_order_can_arrive(data: st.DataObject, record: SliceRecord) -> None:
    decided = decisions(record, seen_by(data, record, idle), NOW + LONG_AGO)
    held = slots_of([decision.record for decision in decided])
    assert {attempt for attempt, slot in held.items() if slot is not None} <= orders_of(decided)


@given(st.data(), records(), st.dictionaries(st.integers(1, 4), st.integers(20, 30)), st.none() | st.integers(1, 4))
def test_every_order_has_a_slot_of_its_own(
    data: st.DataObject, record: SliceRecord, free: dict[int, int], taken_for: int | None
) -> None:
    """Also if the slot that was handed on to one attempt is taken for another one."""
    slots = {attempt: 10 * attempt + number for attempt, number in free.items()}
    slots |= {taken_for: HANDED_ON} if taken_for is not None else {}
    known = replace(heard(), slots=slots)
    decided = decisions(record, seen_by(data, record, observations), known=known)
    held = slots_of([decision.record for decision in decided])
    assert all(held[attempt] is not None for attempt in orders_of(decided))
    in_hand = (decision.record.slot_awaited for decision in decided)
    numbers = [slot for slot in (*held.values(), *(each and each.number for each in in_hand)) if slot is not None]
    assert len(numbers) == len(set(numbers))


@given(st.data(), records())
def test_a_slot_that_was_handed_on_is_used_or_given_up(data: st.DataObject, record: SliceRecord) -> None:
    """Or kept for a deletion while hosts are closed for it."""
    decided = decisions(record, seen_by(data, record, observations))
    for after in (decision.record for decision in decided):
        if after.slot_awaited is not None and after.slot_awaited.number is not None:
            assert (after.slot_awaited, after.slot_awaited.operation) == (record.slot_awaited, PoolOperation.DELETE)
            assert after.slot_awaited.attempt == after.attempt
            assert after.current.hosts.closing is not None
    held, orders = slots_of([decision.record for decision in decided]), orders_of(decided)
    assert all(slot != HANDED_ON or attempt in orders for attempt, slot in held.items())


@given(st.data(), records())
def test_an_operation_of_ours_that_runs_keeps_its_slot(data: st.DataObject, record: SliceRecord) -> None:
    """Whether its claim still has the slice, or lets it go."""
    seen = seen_by(data, record, running)
    first, *_ = decided = decisions(record, seen)
    runs = seen.pool == Creating() or (record.goes and seen.pool == Deleting())
    for after in ([each for each in (first.record, first.let_go) if each], [each.record for each in decided]):
        assert not runs or slots_of(after)[record.attempt] == record.current.slot
