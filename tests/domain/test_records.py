"""Transitions: which are kept in a slice's record, and which are still to be announced."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import MINUTE, NOW, a_record, an_occupant
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.records import HISTORY, Desire, Phase, SliceRecord
from tpu_slices.domain.model.slices import LAST_ATTEMPT, WorkloadUid

courses = st.lists(st.tuples(st.sampled_from(Phase), st.sampled_from(Reason)), max_size=3 * HISTORY)


def after(course: list[tuple[Phase, Reason]]) -> SliceRecord:
    record = a_record()
    for number, (phase, reason) in enumerate(course):
        record = record.transitioned(NOW + number * MINUTE, phase, reason, f"transition {number}")
    return record


def test_the_first_transition_counts_even_if_it_changes_nothing() -> None:
    record = a_record()
    transitioned = record.transitioned(NOW, record.phase, record.reason, "Heard of.")
    assert (transitioned.transition_count, len(transitioned.transitions)) == (1, 1)


def test_a_new_message_alone_is_no_transition() -> None:
    once = after([(Phase.PROVISIONING, Reason.HOSTS_JOINING)])
    again = once.transitioned(NOW + MINUTE, Phase.PROVISIONING, Reason.HOSTS_JOINING, "3 of 4 hosts.")
    assert again.message == "3 of 4 hosts."
    assert (again.transitions, again.transition_count, again.since) == (
        once.transitions,
        once.transition_count,
        once.since,
    )


def test_a_new_reason_is_a_transition_and_keeps_since() -> None:
    once = after([(Phase.PROVISIONING, Reason.CREATING)])
    again = once.transitioned(NOW + MINUTE, Phase.PROVISIONING, Reason.HOSTS_JOINING, "")
    assert (again.transition_count, again.since) == (2, once.since)


def test_a_new_phase_sets_since() -> None:
    once = after([(Phase.PROVISIONING, Reason.CREATING)])
    assert once.transitioned(NOW + MINUTE, Phase.READY, Reason.READY, "").since == NOW + MINUTE


@given(courses)
def test_no_two_consecutive_transitions_are_equal(course: list[tuple[Phase, Reason]]) -> None:
    kept = [(transition.phase, transition.reason) for transition in after(course).transitions]
    assert all(one != other for one, other in itertools.pairwise(kept))


@given(courses)
def test_the_last_twenty_transitions_are_kept_and_all_are_counted(course: list[tuple[Phase, Reason]]) -> None:
    record = after(course)
    changes = [pair for place, pair in enumerate(course) if place == 0 or pair != course[place - 1]]
    assert record.transition_count == len(changes)
    assert [(each.phase, each.reason) for each in record.transitions] == changes[-HISTORY:]


@given(courses, st.data())
def test_the_unannounced_transitions_are_the_newest_that_are_kept(
    course: list[tuple[Phase, Reason]], data: st.DataObject
) -> None:
    record = after(course)
    announced_count = data.draw(st.integers(0, record.transition_count))
    record = replace(record, announced_count=announced_count)
    assert record.unannounced == (
        record.transitions[-(record.transition_count - announced_count) :]
        if announced_count < record.transition_count
        else ()
    )
    assert len(record.unannounced) == min(record.transition_count - announced_count, HISTORY)


def test_the_pool_is_named_by_slice_and_attempt() -> None:
    record = a_record(attempt=3)
    assert record.pool == f"{record.id}-3"


def test_attempts_beyond_the_last_have_no_pool() -> None:
    record = a_record(attempt=LAST_ATTEMPT + 1)
    with pytest.raises(ValueError, match="is not within"):
        _ = record.pool


@pytest.mark.parametrize(("desire", "wanted"), [(Desire.PRESENT, True), (Desire.ABSENT, False)])
def test_a_slices_demand_follows_from_its_desire(desire: Desire, wanted: bool) -> None:
    assert a_record(desire=desire).wanted is wanted


def test_only_a_job_of_another_jobset_is_another_workloads_occupant() -> None:
    other = an_occupant("other")
    assert a_record().other_workload_occupants == ()
    assert a_record(occupants=(an_occupant(job="llama-slice-3"),)).other_workload_occupants == ()
    assert a_record(occupants=(other,)).other_workload_occupants == (other,)


def test_a_recreated_jobset_of_the_same_name_is_another_workloads_occupant() -> None:
    recreated = an_occupant(uid=WorkloadUid("uid-recreated"))
    assert a_record(occupants=(recreated,)).other_workload_occupants == (recreated,)
