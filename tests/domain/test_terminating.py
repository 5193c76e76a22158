"""Attempts that are left behind: names are never used again, and nobody is evicted."""

from __future__ import annotations

from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import MINUTE, NOW, a_record, an_occupant
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.decisions import DeletePool
from tpu_slices.domain.model.observations import (
    Absent,
    Broken,
    Busy,
    Creating,
    Deleting,
    Failure,
    FailureKind,
    Observation,
    Running,
    Unowned,
    Unreadable,
)
from tpu_slices.domain.model.records import SliceRecord, TerminatingAttempt
from tpu_slices.domain.reconciling.terminating import begin_next_attempt, follow

LIMITS = Limits()
observations: st.SearchStrategy[Observation] = st.sampled_from(
    [
        Absent(),
        Creating(),
        Running(),
        Busy("repair"),
        Broken(Failure(FailureKind.STOCKOUT, "none left")),
        Deleting(),
        Unowned("not ours"),
        Unreadable("503"),
    ]
)
leavings = st.lists(
    st.builds(
        TerminatingAttempt,
        attempt=st.integers(1, 9),
        delete_requested_at=st.none() | st.integers(-60, 0).map(lambda seconds: NOW + seconds * MINUTE / 30),
        occupants=st.sampled_from([(), (an_occupant("other"),)]),
    ),
    max_size=4,
    unique_by=lambda left: left.attempt,
).map(tuple)


@given(st.integers(1, 9), leavings)
def test_the_next_attempt_is_above_every_earlier_one(attempt: int, terminating: tuple[TerminatingAttempt, ...]) -> None:
    record = a_record(attempt=attempt, terminating=terminating)
    after = begin_next_attempt(record)
    assert after.attempt > max(attempt, *(left.attempt for left in terminating), 0)
    assert [left.attempt for left in after.terminating] == [*(left.attempt for left in terminating), attempt]


def test_nothing_of_the_attempt_that_is_left_sticks_to_the_next() -> None:
    record = a_record(
        create_requested_at=NOW,
        creating=True,
        operation="operation-1",
        rebuild_allowed=True,
        hosts_usable=3,
        hosts_joined=4,
        hosts_sequence=9,
        occupants=(an_occupant(),),
    )
    assert begin_next_attempt(record) == a_record(attempt=2, terminating=(TerminatingAttempt(attempt=1),))


def test_whoever_stays_on_the_hosts_and_when_they_were_told_to_go_is_remembered() -> None:
    after = begin_next_attempt(a_record(), delete_requested_at=NOW, occupants=(an_occupant("other"),))
    assert after.terminating == (
        TerminatingAttempt(attempt=1, delete_requested_at=NOW, occupants=(an_occupant("other"),)),
    )


@given(leavings, st.data())
def test_only_what_is_seen_gone_or_not_ours_is_forgotten(
    terminating: tuple[TerminatingAttempt, ...], data: st.DataObject
) -> None:
    seen = {left.attempt: data.draw(observations) for left in terminating}
    after, _ = follow(a_record(terminating=terminating), seen, NOW, LIMITS)
    forgotten = {left.attempt for left in terminating} - {left.attempt for left in after.terminating}
    assert forgotten == {attempt for attempt, sight in seen.items() if isinstance(sight, Absent | Unowned)}


@given(leavings, st.data())
def test_a_deletion_is_only_ordered_of_what_is_seen_unoccupied_and_not_going(
    terminating: tuple[TerminatingAttempt, ...], data: st.DataObject
) -> None:
    seen = {left.attempt: data.draw(observations) for left in terminating}
    _, deletes = follow(a_record(terminating=terminating), seen, NOW, LIMITS)
    by_attempt = {left.attempt: left for left in terminating}
    for delete in deletes:
        assert by_attempt[delete.attempt].occupants == ()
        assert isinstance(seen[delete.attempt], Creating | Running | Busy | Broken)


def test_what_was_not_looked_at_is_kept_and_left_alone() -> None:
    record = a_record(terminating=(TerminatingAttempt(attempt=1),))
    assert follow(record, {}, NOW, LIMITS) == (record, ())


def test_a_deletion_is_repeated_no_sooner_than_its_patience_until_the_pool_goes() -> None:
    record = a_record(attempt=2, terminating=(TerminatingAttempt(attempt=1),))
    orders = []
    for second in range(61):
        at = NOW + second * MINUTE / 60
        record, ordered = _looked(record, Running(), at)
        orders += [second] if ordered else []
    assert orders == [0, 20, 40, 60]
    record, ordered = _looked(record, Absent(), NOW + 2 * MINUTE)
    assert (record.terminating, ordered) == ((), False)


def _looked(record: SliceRecord, seen: Observation, at: datetime) -> tuple[SliceRecord, bool]:
    after, deletes = follow(record, {1: seen}, at, LIMITS)
    return after, deletes == (DeletePool(1),)


def test_once_its_guest_has_gone_a_pool_is_deleted_at_once() -> None:
    stays = TerminatingAttempt(attempt=1, occupants=(an_occupant("other"),))
    record = a_record(attempt=2, terminating=(stays,))
    assert follow(record, {1: Running()}, NOW, LIMITS) == (record, ())
    _, deletes = follow(a_record(attempt=2, terminating=(TerminatingAttempt(attempt=1),)), {1: Running()}, NOW, LIMITS)
    assert deletes == (DeletePool(1),)
