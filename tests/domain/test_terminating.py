"""Earlier attempts that are being deleted: names are never reused, and no occupant is evicted."""

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
attempts = st.lists(
    st.builds(
        TerminatingAttempt,
        attempt=st.integers(1, 9),
        delete_requested_at=st.none() | st.integers(-60, 0).map(lambda seconds: NOW + seconds * MINUTE / 30),
        occupants=st.sampled_from([(), (an_occupant("other"),)]),
    ),
    max_size=4,
    unique_by=lambda each: each.attempt,
).map(tuple)


@given(st.integers(1, 9), attempts)
def test_the_next_attempts_number_is_above_every_earlier_one(
    attempt: int, terminating: tuple[TerminatingAttempt, ...]
) -> None:
    record = a_record(attempt=attempt, terminating=terminating)
    after = begin_next_attempt(record)
    assert after.attempt > max(attempt, *(each.attempt for each in terminating), 0)
    assert [each.attempt for each in after.terminating] == [*(each.attempt for each in terminating), attempt]


def test_the_next_attempt_starts_without_the_state_of_the_last() -> None:
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


def test_a_terminating_attempt_keeps_its_occupants_and_the_time_of_its_deletion() -> None:
    after = begin_next_attempt(a_record(), delete_requested_at=NOW, occupants=(an_occupant("other"),))
    assert after.terminating == (
        TerminatingAttempt(attempt=1, delete_requested_at=NOW, occupants=(an_occupant("other"),)),
    )


@given(attempts, st.data())
def test_only_absent_and_unowned_pools_are_removed_from_the_record(
    terminating: tuple[TerminatingAttempt, ...], data: st.DataObject
) -> None:
    seen = {each.attempt: data.draw(observations) for each in terminating}
    after, _ = follow(a_record(terminating=terminating), seen, NOW, LIMITS)
    removed = {each.attempt for each in terminating} - {each.attempt for each in after.terminating}
    assert removed == {attempt for attempt, pool in seen.items() if isinstance(pool, Absent | Unowned)}


@given(attempts, st.data())
def test_only_pools_seen_unoccupied_and_not_deleting_are_deleted(
    terminating: tuple[TerminatingAttempt, ...], data: st.DataObject
) -> None:
    seen = {each.attempt: data.draw(observations) for each in terminating}
    _, deletes = follow(a_record(terminating=terminating), seen, NOW, LIMITS)
    by_attempt = {each.attempt: each for each in terminating}
    for delete in deletes:
        assert by_attempt[delete.attempt].occupants == ()
        assert isinstance(seen[delete.attempt], Creating | Running | Busy | Broken)


def test_an_attempt_that_was_not_observed_is_kept_and_left_alone() -> None:
    record = a_record(terminating=(TerminatingAttempt(attempt=1),))
    assert follow(record, {}, NOW, LIMITS) == (record, ())


def test_a_deletion_is_repeated_at_intervals_until_the_pool_is_absent() -> None:
    record = a_record(attempt=2, terminating=(TerminatingAttempt(attempt=1),))
    orders = []
    for second in range(61):
        at = NOW + second * MINUTE / 60
        record, ordered = _followed(record, Running(), at)
        orders += [second] if ordered else []
    assert orders == [0, 20, 40, 60]
    record, ordered = _followed(record, Absent(), NOW + 2 * MINUTE)
    assert (record.terminating, ordered) == ((), False)


def _followed(record: SliceRecord, seen: Observation, at: datetime) -> tuple[SliceRecord, bool]:
    after, deletes = follow(record, {1: seen}, at, LIMITS)
    return after, deletes == (DeletePool(1),)


def test_a_pool_is_deleted_as_soon_as_its_last_occupant_has_left() -> None:
    stays = TerminatingAttempt(attempt=1, occupants=(an_occupant("other"),))
    record = a_record(attempt=2, terminating=(stays,))
    assert follow(record, {1: Running()}, NOW, LIMITS) == (record, ())
    _, deletes = follow(a_record(attempt=2, terminating=(TerminatingAttempt(attempt=1),)), {1: Running()}, NOW, LIMITS)
    assert deletes == (DeletePool(1),)
