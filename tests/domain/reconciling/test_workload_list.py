"""When the relay is asked for its list of JobSets, and which questions a part of the list leads to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.builders import CLUSTER, MINUTE, NOW, a_heartbeat, a_jobset, an_owner
from tpu_slices.domain.model.facts import WorkloadsListed, WorkloadState
from tpu_slices.domain.model.questions import Question, RepeatQuestion
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.domain.reconciling.inventory import (
    CHECK_AGAIN_AFTER,
    INVENTORY_CHECK_EVERY,
    QUESTIONS_PER_LIST,
    lacking,
    list_is_called_for,
    next_check,
    questions,
    to_be_repeated,
)
from tpu_slices.domain.records.heartbeats import RelayHeartbeat
from tpu_slices.domain.records.standings import digest_of, standing

OURS = a_jobset(last_seen_at=NOW - 60 * MINUTE)
OTHER = WorkloadUid("uid-other")


RECORDED = {OURS.owner.uid: "as recorded"}


def a_list(standings: Mapping[WorkloadUid, str], **changes: Any) -> WorkloadsListed:
    fields = {"asked_at": NOW, "after": None, "up_to": None, "standings": standings, "parts": 1}
    return WorkloadsListed(**{**fields, **changes})


@pytest.mark.parametrize(
    ("heartbeat", "called_for"),
    [
        pytest.param(RelayHeartbeat(cluster=CLUSTER), False, id="never received"),
        pytest.param(a_heartbeat(received_at=NOW - 4 * MINUTE), False, id="silent"),
        pytest.param(a_heartbeat(digest=digest_of(RECORDED)), False, id="the same JobSets"),
        pytest.param(a_heartbeat(), True, id="other JobSets"),
        pytest.param(a_heartbeat(digest=digest_of({})), True, id="no JobSets"),
    ],
)
def test_the_list_is_called_for_if_a_relay_that_is_heard_sees_other_jobsets(
    heartbeat: RelayHeartbeat, called_for: bool
) -> None:
    assert list_is_called_for(RECORDED, heartbeat, NOW) is called_for


def test_a_jobset_that_the_list_lacks_is_asked_about() -> None:
    listed = a_list({OTHER: "as seen"})
    assert lacking(listed, [OURS.owner.uid, OTHER]) == (OURS.owner.uid,)
    assert questions(listed, [OURS]) == (Question(owner=OURS.owner),)


@pytest.mark.parametrize(
    ("listed", "repeated"),
    [
        pytest.param({}, False, id="lacking"),
        pytest.param({OURS.owner.uid: "as recorded"}, False, id="as recorded"),
        pytest.param({OURS.owner.uid: "otherwise"}, True, id="otherwise than recorded"),
        pytest.param({OURS.owner.uid: ""}, False, id="not readable for the relay"),
    ],
)
def test_what_the_list_has_otherwise_than_the_record_is_to_be_repeated(
    listed: Mapping[WorkloadUid, str], repeated: bool
) -> None:
    asked = (RepeatQuestion(uids=(OURS.owner.uid,)),) if repeated else ()
    assert to_be_repeated(a_list(listed), RECORDED) == asked


def test_what_is_listed_and_not_on_record_is_to_be_repeated() -> None:
    assert to_be_repeated(a_list({OTHER: "as seen"}), {}) == (RepeatQuestion(uids=(OTHER,)),)


@pytest.mark.slow
def test_all_parts_of_a_list_together_lead_to_a_limited_number_of_repetitions() -> None:
    seen = {WorkloadUid(f"uid-{number:05}"): "as seen" for number in range(27_000)}
    for parts in (1, 40, 100_000):
        (question,) = to_be_repeated(a_list(seen, parts=parts), {})
        assert len(question.uids) == max(1, QUESTIONS_PER_LIST // parts)
    (later,) = to_be_repeated(a_list(seen, asked_at=NOW + MINUTE), {})
    assert set(later.uids) != set(to_be_repeated(a_list(seen), {})[0].uids)


def test_a_standing_tells_states_queues_template_errors_and_groups_apart() -> None:
    told = [("ACTIVE", "", "", None), ("SUSPENDED", "", "", None), ("ACTIVE", "a", "", None), ("ACTIVE", "", "a", None)]
    assert len({standing(*each) for each in [*told, ("ACTIVE", "", "", 0), ("ACTIVE", "", "", 1)]}) == 6
    assert standing("ACTIVE", None, None, None) == standing("ACTIVE", "", "", None)


def test_a_jobset_that_was_reported_after_the_list_was_asked_for_is_not_asked_about() -> None:
    """The list, however late it comes, may have been read before the JobSet was created."""
    listed = a_list({}, asked_at=OURS.last_seen_at)
    assert questions(listed, [OURS]) == ()
    assert questions(replace(listed, asked_at=OURS.last_seen_at + timedelta(microseconds=1)), [OURS]) != ()


def test_a_jobset_that_ended_meanwhile_is_not_asked_about() -> None:
    assert questions(a_list({}), [replace(OURS, state=WorkloadState.COMPLETED)]) == ()


def test_of_very_many_that_the_list_lacks_those_with_slices_are_asked_about_first() -> None:
    idle = [replace(OURS, demand={}) for _ in range(2 * QUESTIONS_PER_LIST)]
    asked = questions(a_list({}), [*idle, replace(OURS, owner=an_owner("gemma"))])
    assert len(asked) == QUESTIONS_PER_LIST
    assert asked[0].owner == an_owner("gemma")


def test_all_parts_of_a_list_together_lead_to_a_limited_number_of_questions() -> None:
    absent = [OURS] * QUESTIONS_PER_LIST
    assert len(questions(a_list({}, parts=40), absent)) * 40 <= QUESTIONS_PER_LIST
    assert len(questions(a_list({}, parts=100_000), absent)) == 1


def test_of_very_many_that_the_list_lacks_others_are_asked_about_each_time() -> None:
    recorded = [WorkloadUid(f"uid-{number:05}") for number in range(2_700)]
    seen: set[WorkloadUid] = set()
    for minute in range(6):
        some = lacking(a_list({}, asked_at=NOW + minute * MINUTE), recorded)
        assert len(some) == 2 * QUESTIONS_PER_LIST
        seen.update(some)
    assert len(seen) > 2_000


@pytest.mark.parametrize(
    ("recorded", "heartbeat", "after"),
    [
        (1, a_heartbeat(), INVENTORY_CHECK_EVERY),
        (QUESTIONS_PER_LIST + 1, a_heartbeat(), INVENTORY_CHECK_EVERY),
        (QUESTIONS_PER_LIST + 2, a_heartbeat(), CHECK_AGAIN_AFTER),
        (27_000, RelayHeartbeat(cluster=CLUSTER), INVENTORY_CHECK_EVERY),
        (1, a_heartbeat(count=27_000), INVENTORY_CHECK_EVERY),
    ],
)
def test_the_next_check_is_soon_if_one_list_cannot_lead_to_all_questions(
    recorded: int, heartbeat: RelayHeartbeat, after: timedelta
) -> None:
    assert next_check(recorded, heartbeat, NOW) == NOW + after
