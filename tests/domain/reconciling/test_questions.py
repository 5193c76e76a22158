"""Questions about hosts: how they are numbered, which counts, and when one is asked anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import (
    MINUTE,
    NOW,
    asked_to_close,
    asked_to_open,
    heard,
    hosts_changed,
    settings,
    some_hosts,
    with_fields,
)
from tests.domain.cases import GUEST, OURS, going, in_use, ready, requested, seen, unneeded, was_seen, with_hosts
from tests.domain.deleting import UNASKED, Deletion, followed
from tpu_slices.domain.model.observations import Absent, Creating, Observation
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.decisions import CloseHosts, CreatePool, DeletePool, OpenHosts
from tpu_slices.domain.reconciling.occupancy import counted
from tpu_slices.domain.records.hosts import MOST_BELIEVED
from tpu_slices.domain.records.slices import Desire, SliceRecord

SECOND = timedelta(seconds=1)
FREE, KEY = going(), ready().key
CORDONED = some_hosts(
    usable=3, closed=1, asked=asked_to_open(NOW - 20 * MINUTE, key=KEY), answered=1, vacant_since=NOW - 40 * MINUTE
)


def reported(record: SliceRecord, sequence: int = 2, **changes: object) -> SliceRecord:
    """Return the slice after a report of its hosts, which are closed; one that answers has the latest one's time."""
    hosts = record.current.hosts
    asked_at = hosts.asked.at if hosts.asked else None
    fact = hosts_changed(**{"usable": 0, "closed": 4, "sequence": sequence, "asked_at": asked_at, **changes})
    return record.with_current(hosts=counted(hosts, fact, NOW) or hosts)


def asked_on(record: SliceRecord, found: Observation = OURS, at: datetime = NOW) -> SliceRecord:
    """Return the slice after a look by which the relay is asked about its hosts, or is not."""
    return replace(record, current=followed(record, found, at=at).attempt)


# asked by a whole decision


def test_hosts_of_a_slice_that_is_let_go_are_closed_and_not_opened_before() -> None:
    lost = replace(
        ready(hosts=CORDONED, hosts_awaited_since=NOW - 40 * MINUTE, demand_confirmed_at=NOW),
        phase=Phase.PROVISIONING,
        reason=Reason.HOSTS_LOST,
    )
    decision = decide(lost, seen(OURS), NOW, settings(), heard(slots={1: 0, 2: 1}))
    assert decision.record.attempt == 2
    assert [each for each in decision.actions if isinstance(each, CloseHosts | OpenHosts)] == []
    assert decision.let_go is not None
    assert decide(decision.let_go, seen(OURS), NOW, settings(), heard()).actions == (CloseHosts(1, 2),)


def test_a_slice_whose_hosts_are_closed_is_looked_at_until_they_are_open() -> None:
    asked = replace(CORDONED, asked=asked_to_open(NOW - MINUTE / 2, key=KEY))
    decision = decide(ready(hosts=asked), seen(OURS), NOW, settings(), heard())
    assert not [each for each in decision.actions if isinstance(each, OpenHosts)]
    assert decision.record.next_reconcile_at == NOW + MINUTE


def test_a_slice_whose_hosts_were_asked_to_be_opened_is_looked_at_as_the_question_may_be_lost() -> None:
    decision = decide(ready(hosts=CORDONED), seen(OURS), NOW, settings(), heard())
    assert decision.actions == (OpenHosts(1, 2, KEY),)
    assert decision.record.current.hosts.asked == asked_to_open(NOW, number=2, key=KEY)
    assert decision.record.next_reconcile_at == NOW + MINUTE


def test_numbers_go_on_when_a_slice_goes_is_needed_again_and_goes_again() -> None:
    opened = some_hosts(asked=asked_to_open(NOW - 20 * MINUTE, number=6), highest=9)
    ended = decide(unneeded(ready(hosts=opened)), seen(OURS), NOW, settings(), heard())
    assert ended.actions == (CloseHosts(1, 10),)
    needed = with_fields(ended.record, desire=Desire.PRESENT, demand_confirmed_at=NOW)
    back = decide(needed, seen(OURS), NOW, settings(), heard())
    assert (back.record.attempt, back.actions) == (1, (OpenHosts(1, 11, KEY),))
    again = decide(unneeded(back.record), seen(OURS), NOW, settings(), heard())
    assert again.actions == (CloseHosts(1, 12),)


def test_numbers_go_on_when_a_pool_is_created_anew_under_its_name_and_earlier_answers_count_no_more() -> None:
    gone = requested(
        create_requested_at=None, hosts=some_hosts(asked=asked_to_open(NOW, number=5), highest=9, answered=5)
    )
    created = decide(gone, seen(Absent()), NOW, settings(), heard(slots={1: 0}))
    assert created.actions == (CreatePool(1),)
    hosts = created.record.current.hosts
    assert (hosts.asked, hosts.highest, hosts.answered) == (None, 9, 0)
    asked = decide(unneeded(created.record), seen(OURS), NOW + MINUTE, settings(), heard())
    assert asked.actions == (CloseHosts(1, 10),)


def test_nobody_is_asked_to_open_the_hosts_of_a_pool_that_is_made_anew() -> None:
    vanished = requested(hosts=some_hosts(usable=0, closed=4), slot=0)
    decision = decide(vanished, seen(Absent()), NOW, settings(), heard(slots={1: 0}))
    assert decision.actions == (CreatePool(1),)


# asked about a slice that goes


def test_an_unanswered_question_is_repeated_each_minute_and_an_old_answer_is_asked_for_again() -> None:
    record, asked = UNASKED, []
    for half_minute in range(8):
        after = followed(record, at=NOW + half_minute * MINUTE / 2)
        record = replace(record, current=after.attempt)
        asked += [(half_minute, action) for action in after.actions]
    question = CloseHosts(1, 1)
    assert asked == [(0, question), *((half_minute, question) for half_minute in range(2, 8))]
    assert record.current.hosts.asked == asked_to_close(NOW), "an answer is as old as the first time"
    answered = reported(record, answers=1, highest=1)
    assert followed(answered, at=NOW + 10 * MINUTE).actions == (DeletePool(1),)
    assert followed(answered, at=NOW + 10 * MINUTE + SECOND).actions == (CloseHosts(1, 2),)


def test_a_question_that_a_later_one_overtook_is_asked_anew_at_once_and_above_that() -> None:
    """The database was set back: the relay was asked by numbers since that nobody knows of any more."""
    asked = with_hosts(FREE, asked=asked_to_close(NOW - SECOND), answered=0)
    assert followed(asked).actions == ()
    overtaken = reported(asked, highest=7)
    assert followed(overtaken).actions == (CloseHosts(1, 8),)
    anew = asked_on(overtaken)
    assert anew.current.hosts.asked == asked_to_close(NOW, number=8)
    assert followed(reported(anew, answers=7, highest=7)).actions == (), "that is the answer to an earlier one"
    assert followed(reported(anew, answers=8, highest=8)).actions == (DeletePool(1),)


def test_an_answer_to_an_earlier_question_or_to_one_that_was_overtaken_is_none() -> None:
    asked = with_hosts(FREE, asked=asked_to_close(NOW, number=3), highest=3, answered=0)
    assert followed(reported(asked, answers=2, highest=2)).actions == ()
    assert followed(reported(asked, answers=4, highest=4)).actions == (CloseHosts(1, 5),)
    answered = reported(asked, answers=3, highest=3)
    assert followed(answered).actions == (DeletePool(1),)
    assert followed(reported(answered, sequence=3, highest=4)).actions == (CloseHosts(1, 5),)


def test_the_first_question_goes_above_all_that_were_answered_before_the_hosts_were_opened() -> None:
    opened = with_hosts(FREE, asked=None, answered=4, highest=6)
    assert followed(opened).actions == (CloseHosts(1, 7),)


@pytest.mark.parametrize("known", [{}, {"answered": 3}, {"highest": 9}], ids=["unanswered", "answered", "overtaken"])
def test_hosts_are_opened_by_a_question_above_all_by_which_they_may_have_been_closed(known: dict[str, int]) -> None:
    closed = in_use(GUEST, hosts=some_hosts(occupants=(GUEST,), closed=4, asked=asked_to_close(number=3)))
    after = followed(with_hosts(closed, **known))
    number = known.get("highest", 3) + 1
    assert after.actions == (OpenHosts(1, number, closed.key),)
    assert after.attempt.hosts.asked == asked_to_open(NOW, number, closed.key)


def test_hosts_are_opened_after_a_question_that_may_close_them_yet() -> None:
    asked = in_use(GUEST, hosts=some_hosts(occupants=(GUEST,), closed=0, asked=asked_to_close(NOW)))
    assert followed(asked).actions == (OpenHosts(1, 2, asked.key),)
    assert followed(asked_on(asked), at=NOW + 2 * MINUTE).actions == (), "they are open"


def test_a_question_that_opens_hosts_is_not_answered_in_the_place_of_those_that_close_them_before_and_after_it() -> (
    None
):
    closed = in_use(GUEST, hosts=some_hosts(occupants=(GUEST,), asked=asked_to_close(number=3)))
    free = with_hosts(asked_on(closed), occupants=(), closed=4, vacant_since=NOW)
    for answers in (3, 4):
        assert followed(reported(free, answers=answers, highest=4)).actions == (CloseHosts(1, 5),)
    closing = asked_on(free)
    for answers in (3, 4):
        assert followed(reported(closing, answers=answers, highest=5)).actions == ()
    assert followed(reported(closing, answers=5, highest=5)).actions == (DeletePool(1),)


@pytest.mark.parametrize(("ago", "again"), [(MINUTE, True), (MINUTE - SECOND, False)])
def test_hosts_that_somebody_else_may_have_closed_are_asked_to_be_opened_once_a_minute(
    ago: timedelta, *, again: bool
) -> None:
    asked = asked_to_open(NOW - ago, key=in_use().key)
    used = in_use(GUEST, hosts=some_hosts(occupants=(GUEST,), closed=1, asked=asked, answered=1))
    assert followed(used).actions == ((OpenHosts(1, 2, used.key),) if again else ())
    assert followed(asked_on(used), at=NOW + SECOND / 2).actions == ()


def test_what_was_answered_during_the_creation_is_asked_anew_once_that_has_ended() -> None:
    made = with_fields(UNASKED, seen=was_seen(Creating()), hosts=some_hosts(joined=0, usable=0))
    assert followed(made, Creating()).actions == (CloseHosts(1, 1),)
    asked = asked_on(made, Creating())
    assert asked.current.hosts.asked == asked_to_close(NOW)
    answered = reported(asked, joined=0, closed=0, answers=1, highest=1)
    assert followed(answered).actions == (CloseHosts(1, 2),)
    anew = with_fields(asked_on(answered), seen=was_seen(OURS))
    assert followed(reported(anew, answers=1, highest=1)).actions == ()


@pytest.mark.parametrize("highest", [MOST_BELIEVED, MOST_BELIEVED + 1, 2**62], ids=["at it", "above", "far above"])
def test_a_pool_is_deleted_whose_relay_told_of_the_most_that_is_believed_or_of_more(highest: int) -> None:
    overtaken = reported(with_hosts(FREE, asked=asked_to_close(NOW), answered=0), highest=highest)
    assert followed(overtaken).actions == (CloseHosts(1, MOST_BELIEVED + 1),)
    for number in (MOST_BELIEVED + 1, highest):
        answered = reported(asked_on(overtaken), answers=MOST_BELIEVED + 1, highest=number)
        assert followed(answered).actions == (DeletePool(1),)


# laws

EVENTS: dict[str, Callable[[Deletion, int], None]] = {
    "all do what they can": lambda course, _: course.round(),
    "it is looked at": lambda course, _: course.look(),
    "a question arrives": Deletion.question_arrives,
    "a report arrives": Deletion.report_arrives,
    "a Job comes": lambda course, _: course.come(),
    "the Job leaves": lambda course, _: course.leave(),
    "the database is set back": Deletion.is_set_back,
    "time passes": Deletion.passes,
}
courses = st.lists(st.tuples(st.sampled_from(sorted(EVENTS)), st.integers(0, 11)), max_size=40)


def after(events: list[tuple[str, int]]) -> Deletion:
    course = Deletion()
    for event, number in events:
        EVENTS[event](course, number)
    return course


@given(courses)
def test_whatever_arrives_in_any_order_a_pool_is_only_deleted_on_the_answer_to_the_latest_question_that_closes_it(
    events: list[tuple[str, int]],
) -> None:
    """And no new question has a number that is known to have been used: see `Deletion.look`."""
    after(events).look()


@given(courses)
def test_whatever_arrived_an_honest_relay_lets_the_deletion_go_on_within_a_few_rounds(
    events: list[tuple[str, int]],
) -> None:
    course = after(events)
    course.leave()
    course.report_arrives()
    course.passes(11)
    course.deleted = False
    for _ in range(4):
        if not course.deleted:
            course.round()
    assert course.deleted
