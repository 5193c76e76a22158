"""Which questions a part of a list leads to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import MINUTE, NOW, a_jobset, a_list, an_owner
from tpu_slices.domain.model.facts import Family, WorkloadState
from tpu_slices.domain.model.questions import Question, RepeatQuestion
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.domain.reconciling.inventory import QUESTIONS_PER_LIST, lacking, questions, to_be_repeated
from tpu_slices.domain.records.standings import standing

OURS = a_jobset(last_seen_at=NOW - 60 * MINUTE)
OTHER = WorkloadUid("uid-other")
RECORDED = {OURS.owner.uid: 7}

workloads = partial(a_list, Family.WORKLOADS)


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 3)),
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 3)),
    st.sets(st.sampled_from("abcdefgh"), max_size=3),
)
def test_the_parts_of_a_list_together_find_what_the_whole_list_finds(
    recorded: dict[str, int], seen: dict[str, int], ends: set[str]
) -> None:
    bounds = [None, *sorted(ends), None]
    parts = [
        workloads(
            {key: seen[key] for key in seen if (after is None or key > after) and (up_to is None or key <= up_to)},
            after=after,
            up_to=up_to,
        )
        for after, up_to in pairwise(bounds)
    ]
    found = [key for part in parts for key in part.unlike(recorded)]
    assert found == workloads(seen).unlike(recorded)
    assert set(found) == {key for key in recorded | seen if recorded.get(key) != seen.get(key)}


def test_a_jobset_that_the_list_lacks_is_asked_about() -> None:
    listed = workloads({OTHER: 1})
    assert lacking(listed, [OURS.owner.uid, OTHER]) == (OURS.owner.uid,)
    assert questions(listed, [OURS]) == (Question(owner=OURS.owner),)


@pytest.mark.parametrize(
    ("listed", "repeated"),
    [
        pytest.param({}, False, id="lacking"),
        pytest.param({OURS.owner.uid: 7}, False, id="as recorded"),
        pytest.param({OURS.owner.uid: 8}, True, id="otherwise than recorded"),
        pytest.param({OURS.owner.uid: 0}, False, id="not readable for the relay"),
    ],
)
def test_what_the_list_has_otherwise_than_the_record_is_to_be_repeated(
    listed: Mapping[str, int], repeated: bool
) -> None:
    asked = (RepeatQuestion(family=Family.WORKLOADS, keys=(OURS.owner.uid,)),) if repeated else ()
    part = workloads(listed)
    assert to_be_repeated(part, part.unlike(RECORDED)) == asked


def test_what_is_listed_and_not_on_record_is_to_be_repeated() -> None:
    part = workloads({OTHER: 1})
    assert to_be_repeated(part, part.unlike({})) == (RepeatQuestion(family=Family.WORKLOADS, keys=(OTHER,)),)


@pytest.mark.slow
def test_all_parts_of_a_list_together_lead_to_a_limited_number_of_repetitions() -> None:
    seen = {f"uid-{number:05}": 1 for number in range(27_000)}
    for parts in (1, 40, 1_000):
        (question,) = to_be_repeated(workloads(seen, parts=parts), seen)
        assert len(question.keys) == max(1, QUESTIONS_PER_LIST // parts)
    (later,) = to_be_repeated(workloads(seen, asked_at=NOW + MINUTE), seen)
    assert set(later.keys) != set(to_be_repeated(workloads(seen), seen)[0].keys)


def test_a_standing_tells_states_queues_template_errors_and_groups_apart() -> None:
    told = [("ACTIVE", "", "", None), ("SUSPENDED", "", "", None), ("ACTIVE", "a", "", None), ("ACTIVE", "", "a", None)]
    assert len({standing(OTHER, *each) for each in [*told, ("ACTIVE", "", "", 0), ("ACTIVE", "", "", 1)]}) == 6
    assert standing(OTHER, "ACTIVE", None, None, None) == standing(OTHER, "ACTIVE", "", "", None)
    assert standing(OTHER, "ACTIVE", "", "", None) != standing(OURS.owner.uid, "ACTIVE", "", "", None)


def test_a_jobset_that_was_reported_after_the_list_was_asked_for_is_not_asked_about() -> None:
    """The list, however late it comes, may have been read before the JobSet was created."""
    listed = workloads({}, asked_at=OURS.last_seen_at)
    assert questions(listed, [OURS]) == ()
    assert questions(replace(listed, asked_at=OURS.last_seen_at + timedelta(microseconds=1)), [OURS]) != ()


def test_a_jobset_that_ended_meanwhile_is_not_asked_about() -> None:
    assert questions(workloads({}), [replace(OURS, state=WorkloadState.COMPLETED)]) == ()


def test_of_very_many_that_the_list_lacks_those_with_slices_are_asked_about_first() -> None:
    idle = [replace(OURS, demand={}) for _ in range(2 * QUESTIONS_PER_LIST)]
    asked = questions(workloads({}), [*idle, replace(OURS, owner=an_owner("gemma"))])
    assert len(asked) == QUESTIONS_PER_LIST
    assert asked[0].owner == an_owner("gemma")


def test_all_parts_of_a_list_together_lead_to_a_limited_number_of_questions() -> None:
    absent = [OURS] * QUESTIONS_PER_LIST
    assert len(questions(workloads({}, parts=40), absent)) * 40 <= QUESTIONS_PER_LIST
    assert len(questions(workloads({}, parts=1_000), absent)) == 1


def test_of_very_many_that_the_list_lacks_others_are_asked_about_each_time() -> None:
    recorded = [WorkloadUid(f"uid-{number:05}") for number in range(2_700)]
    seen: set[WorkloadUid] = set()
    for minute in range(6):
        some = lacking(workloads({}, asked_at=NOW + minute * MINUTE), recorded)
        assert len(some) == 2 * QUESTIONS_PER_LIST
        seen.update(some)
    assert len(seen) > 2_000
