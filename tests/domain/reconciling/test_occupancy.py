"""Who uses a slice's hosts: what reports of them change, and which Jobs count."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import (
    MINUTE,
    NOW,
    a_jobset,
    a_list,
    a_record,
    an_occupant,
    asked_to_close,
    asked_to_open,
    hosts_changed,
    self_managed,
    some_hosts,
    unclaimed,
    with_fields,
)
from tests.domain.cases import GUEST, OWN, SIBLING, was_seen
from tpu_slices.domain.model.facts import Family, HostsChanged, WorkloadState
from tpu_slices.domain.model.observations import Creating, Running
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.reconciling.occupancy import (
    MOST_DEPARTURES,
    NewCount,
    Users,
    counted,
    lowered,
    users,
    with_hosts,
)
from tpu_slices.domain.records.hosts import MOST_BELIEVED, NO_HOSTS, Departure, Hosts, digest_of, key_of

LATER = NOW + 5 * MINUTE
GRACE = 10 * MINUTE


def after(*facts: HostsChanged, hosts: Hosts = NO_HOSTS) -> Hosts:
    """Return the hosts after these reports, one a minute."""
    for minute, fact in enumerate(facts):
        hosts = counted(hosts, fact, NOW + minute * MINUTE) or hosts
    return hosts


# reports


def test_a_first_report_is_kept_whatever_it_says() -> None:
    empty = hosts_changed(usable=0, joined=0, sequence=7)
    assert after(empty) == Hosts(vacant_since=NOW, sequence=7)
    assert after(hosts_changed(usable=3, closed=1, occupants=(OWN,), highest=2)) == Hosts(
        usable=3, joined=4, closed=1, occupants=(OWN,), sequence=1, highest=2
    )


def test_until_when_pods_have_to_end_is_known_until_the_relay_answers() -> None:
    ends = hosts_changed(ends_by=LATER)
    assert after(ends, hosts_changed(usable=3, sequence=2)).ends_by == LATER
    assert after(ends, hosts_changed(usable=3, sequence=2), hosts_changed(answers=1, sequence=3)).ends_by is None


@pytest.mark.parametrize(
    ("fact", "counts"),
    [
        pytest.param(hosts_changed(usable=3, sequence=6), True, id="later"),
        pytest.param(hosts_changed(usable=3, sequence=5), True, id="at the same position"),
        pytest.param(hosts_changed(usable=3, sequence=4), False, id="earlier than what is known"),
        pytest.param(hosts_changed(sequence=9), False, id="nothing new"),
        pytest.param(hosts_changed(sequence=9, closed=1), True, id="a host was closed"),
        pytest.param(hosts_changed(sequence=9, joined=5), True, id="a host joined"),
        pytest.param(hosts_changed(sequence=9, occupants=(OWN,)), True, id="a Job came"),
        pytest.param(hosts_changed(sequence=9, answers=1), True, id="an answer"),
        pytest.param(hosts_changed(sequence=4, answers=1), True, id="an earlier answer, and the record agrees"),
        pytest.param(hosts_changed(usable=3, sequence=4, answers=1), False, id="an earlier answer, and it does not"),
        pytest.param(hosts_changed(sequence=9, highest=2), True, id="a question that was not known"),
        pytest.param(hosts_changed(sequence=4, highest=2), True, id="such a one earlier, and the record agrees"),
    ],
)
def test_a_report_counts_if_it_is_not_outdated_and_says_something_new(fact: HostsChanged, counts: bool) -> None:
    before = some_hosts(sequence=5, asked=asked_to_close())
    known = counted(before, fact, NOW)
    assert (known is not None and NewCount(a_record(hosts=before), known, NOW).is_news) is counts


CREATED: dict[str, Any] = {
    "reason": Reason.CREATING,
    "create_requested_at": NOW,
    "operation": "operation-1",
    "seen": was_seen(Creating()),
}
DELETED: dict[str, Any] = {"create_requested_at": NOW, "let_go": "nobody used it", "delete_requested_at": NOW}


@pytest.mark.parametrize(
    ("record", "usable", "joined", "waits"),
    [
        pytest.param(CREATED, 0, 4, True, id="being created, and hosts join"),
        pytest.param(CREATED, 3, 4, True, id="and one is not ready yet"),
        pytest.param(CREATED, 4, 4, False, id="and all are usable"),
        pytest.param({**CREATED, "operation": None}, 0, 4, False, id="by an operation that is not known"),
        pytest.param({**CREATED, "seen": was_seen(Running())}, 0, 4, False, id="created"),
        pytest.param({**CREATED, "pinned_settings": self_managed().pools}, 0, 4, False, id="created in steps"),
        pytest.param({**CREATED, "spec": None}, 0, 4, False, id="nobody knows how many hosts there will be"),
        pytest.param(DELETED, 0, 1, True, id="being deleted, and a host is there"),
        pytest.param(DELETED, 0, 0, False, id="and none is"),
        pytest.param({**DELETED, "delete_requested_at": None}, 0, 1, False, id="to be deleted"),
    ],
)
def test_a_slice_is_not_looked_at_for_hosts_that_come_or_go_while_an_operation_on_its_pool_runs(
    record: dict[str, Any], usable: int, joined: int, waits: bool
) -> None:
    due = NOW + 15 * MINUTE
    before = a_record(hosts=some_hosts(usable=1, joined=1), next_reconcile_at=due, **record)
    now = counted(NO_HOSTS, hosts_changed(usable=usable, joined=joined), LATER)
    assert now is not None
    for slice_ in (before, unclaimed(before)) if before.goes else (before,):
        count = NewCount(slice_, now, LATER)
        assert count.can_wait is waits
        assert with_hosts(count).next_reconcile_at == (due if waits else LATER)


@pytest.mark.parametrize("record", [CREATED, DELETED], ids=["created", "deleted"])
@pytest.mark.parametrize("came", [True, False], ids=["came", "left"])
def test_a_slice_is_looked_at_when_somebody_came_to_its_hosts_or_left_them(record: dict[str, Any], came: bool) -> None:
    """What was ordered may not have happened: who left let the deletion go on."""
    there, empty = some_hosts(usable=1, occupants=(GUEST,)), some_hosts(usable=1)
    before, after = (empty, there) if came else (there, empty)
    assert not NewCount(a_record(**record, hosts=before), after, LATER).can_wait


def test_a_slice_is_looked_at_when_the_question_about_its_hosts_is_answered() -> None:
    """A deletion that failed is ordered again once the hosts are known to be closed still."""
    before, after = (
        some_hosts(usable=1, asked=asked_to_close()),
        some_hosts(usable=1, asked=asked_to_close(), answered=1),
    )
    record = a_record(**DELETED, hosts=before)
    assert NewCount(record, before, LATER).can_wait
    assert not NewCount(record, after, LATER).can_wait


def test_a_slice_is_looked_at_when_the_question_about_its_hosts_is_overtaken_and_asked_anew() -> None:
    before, after = (
        some_hosts(usable=1, asked=asked_to_close()),
        some_hosts(usable=1, asked=asked_to_close(), highest=2),
    )
    record = a_record(**DELETED, hosts=before)
    assert not NewCount(record, after, LATER).can_wait
    assert NewCount(with_fields(record, hosts=after), replace(after, highest=3), LATER).can_wait, "it is already"


stories = st.lists(
    st.builds(
        hosts_changed,
        usable=st.integers(0, 4),
        occupants=st.sampled_from([(), (OWN,), (GUEST,), (GUEST, OWN)]),
        answers=st.sampled_from([None, 1, 2]),
        highest=st.just(2),
    ),
    min_size=1,
    max_size=6,
)


@given(stories, st.randoms(use_true_random=False))
def test_reports_in_any_order_converge_to_the_latest_which_is_repeated(
    story: list[HostsChanged], chance: Random
) -> None:
    story = [replace(fact, sequence=at) for at, fact in enumerate(story, start=1)]
    facts, last = [*story, *story], story[-1]
    chance.shuffle(facts)
    hosts = after(*facts, last)
    assert (hosts.usable, hosts.joined, hosts.occupants) == (last.usable, last.joined, last.occupants)


@given(stories)
def test_who_was_on_the_hosts_is_there_or_has_left_and_vacancy_is_known(story: list[HostsChanged]) -> None:
    hosts = after(*(replace(fact, sequence=at) for at, fact in enumerate(story, start=1)))
    there = {each.owner.uid for each in hosts.occupants}
    left = {each.user.owner.uid for each in hosts.departures}
    assert there | left == {each.owner.uid for fact in story for each in fact.occupants}
    assert not there & left
    assert (hosts.vacant_since is None) == bool(hosts.occupants)


def test_a_job_that_left_is_kept_with_the_time_until_it_is_back() -> None:
    left = after(hosts_changed(occupants=(GUEST, OWN)), hosts_changed(occupants=(GUEST,), sequence=2))
    assert left.departures == (Departure(user=OWN, at=NOW + MINUTE, sequence=1),)
    restarted = replace(OWN, pod_uid="pod-after-restart")
    back = after(hosts_changed(occupants=(GUEST, restarted), sequence=3), hosts=left)
    assert back.departures == ()


def test_a_job_whose_pod_was_replaced_did_not_leave() -> None:
    replaced = replace(OWN, pod_uid="pod-after-restart")
    assert after(hosts_changed(occupants=(OWN,)), hosts_changed(occupants=(replaced,), sequence=2)).departures == ()


def test_the_last_job_that_left_is_at_the_end_and_the_first_are_forgotten() -> None:
    guests = [an_occupant(f"guest-{number}") for number in range(MOST_DEPARTURES + 2)]
    story = [hosts_changed(occupants=(guest,), sequence=at) for at, guest in enumerate(guests, start=1)]
    departures = after(*story, hosts_changed(sequence=99)).departures
    assert [each.user for each in departures] == guests[2:]


def test_hosts_are_vacant_since_the_last_job_left_however_often_that_is_reported() -> None:
    story = [hosts_changed(occupants=(OWN,)), hosts_changed(sequence=2), hosts_changed(usable=3, sequence=3)]
    assert after(*story).vacant_since == NOW + MINUTE
    assert after(*story, hosts_changed(occupants=(OWN,), sequence=4)).vacant_since is None


# questions


def test_the_latest_question_that_was_answered_is_known() -> None:
    first = after(hosts_changed(answers=2, highest=2), hosts=some_hosts(asked=asked_to_close(number=2)))
    assert first.answered == 2
    assert after(hosts_changed(usable=3, sequence=2), hosts=first).answered == 2
    anew = first.asked_to(close=True, now=NOW - MINUTE)
    assert after(hosts_changed(answers=3, highest=3, sequence=2), hosts=anew).answered == 3


@pytest.mark.parametrize(
    "answer",
    [
        {"answers": 1},
        {"answers": 3},
        {"answers": 2**62},
        {"answers": 2, "asked_at": NOW - 2 * MINUTE},
        {"answers": 2, "asked_at": None},
    ],
    ids=["earlier", "later", "beyond belief", "before the database was set back", "without its time"],
)
def test_an_answer_to_another_question_than_the_latest_is_none(answer: dict[str, Any]) -> None:
    asked = some_hosts(asked=asked_to_close(number=2), answered=1)
    assert after(hosts_changed(**answer, highest=2, sequence=2), hosts=asked).answered == 1


def test_the_latest_question_that_the_relay_has_seen_is_known_and_overtakes_one_with_a_lower_number() -> None:
    asked = some_hosts(asked=asked_to_close(number=3))
    for reported, known, overtaken in ((0, 3, False), (2, 3, False), (3, 3, False), (4, 4, True), (9, 9, True)):
        hosts = after(hosts_changed(highest=reported, sequence=2), hosts=asked)
        assert (hosts.asked, hosts.highest, hosts.overtaken) == (asked.asked, known, overtaken)
        assert after(hosts_changed(usable=3, sequence=3), hosts=hosts).overtaken is overtaken, "it stays so"


def test_a_new_question_has_a_number_above_all_that_are_known() -> None:
    assert NO_HOSTS.asked_to(close=True, now=NOW) == Hosts(asked=asked_to_close(NOW), highest=1)
    overtaken = some_hosts(asked=asked_to_close(number=3), highest=7, answered=6)
    asked = overtaken.asked_to(close=False, now=NOW)
    assert asked == replace(overtaken, asked=asked_to_open(NOW, number=8), highest=8)
    assert not asked.overtaken


@pytest.mark.parametrize("highest", [MOST_BELIEVED, MOST_BELIEVED + 1, 2**62], ids=["at it", "above", "far above"])
def test_no_number_above_the_most_that_is_believed_is_and_the_answer_to_the_next_question_counts(highest: int) -> None:
    known = after(hosts_changed(highest=highest, sequence=2), hosts=some_hosts(asked=asked_to_close()))
    assert (known.highest, known.overtaken) == (MOST_BELIEVED, True)
    asked = known.asked_to(close=True, now=NOW - MINUTE)
    number = asked.highest
    assert number == MOST_BELIEVED + 1
    answered = after(hosts_changed(answers=number, highest=number, sequence=3), hosts=asked)
    assert (answered.answered, answered.highest, answered.overtaken) == (number, number, False)


# digests


def test_digests_tell_hosts_apart_and_are_zero_without_any() -> None:
    id_ = a_record().maker
    assert digest_of(id_, 1, Hosts(sequence=9)) == 0
    several = [
        some_hosts(),
        some_hosts(usable=3),
        some_hosts(joined=5),
        some_hosts(closed=4),
        some_hosts(occupants=(OWN,)),
    ]
    digests = {digest_of(id_, attempt, hosts) for attempt in (1, 2) for hosts in several}
    assert len(digests) == 2 * len(several)


def test_a_digest_does_not_depend_on_what_only_the_functions_know_or_on_the_order_of_jobs() -> None:
    known = some_hosts(departures=(Departure(user=SIBLING, at=NOW),), sequence=9, answered=1, vacant_since=None)
    assert digest_of(a_record().maker, 1, known) == digest_of(a_record().maker, 1, some_hosts())
    both, reordered = some_hosts(occupants=(GUEST, OWN)), some_hosts(occupants=(OWN, GUEST))
    assert digest_of(a_record().maker, 1, both) == digest_of(a_record().maker, 1, reordered)


# users


@pytest.mark.parametrize(
    ("state", "generation", "live"),
    [
        pytest.param(None, 1, True, id="a workload without a record counts as live"),
        pytest.param(WorkloadState.ACTIVE, 1, True, id="active"),
        pytest.param(WorkloadState.SUSPENDED, 2, False, id="suspended at the same generation"),
        pytest.param(WorkloadState.SUSPENDED, 3, False, id="suspended at a later generation"),
        pytest.param(WorkloadState.SUSPENDED, 1, True, id="suspended, and resumed since"),
        *(pytest.param(state, 1, False, id=f"{state}: final") for state in WorkloadState if state.ended),
    ],
)
def test_a_job_counts_while_its_workload_is_live(state: WorkloadState | None, generation: int, live: bool) -> None:
    job = replace(GUEST, generation=2)
    known = {} if state is None else {GUEST.owner.uid: a_jobset(state=state, generation=generation)}
    present = some_hosts(occupants=(job,))
    left = some_hosts(departures=(Departure(user=job, at=NOW - MINUTE),))
    assert bool(users(present, known, NOW, GRACE)) is live
    assert bool(users(left, known, NOW, GRACE)) is live


@pytest.mark.parametrize(("age", "restarting"), [(timedelta(), True), (GRACE - MINUTE, True), (GRACE, False)])
def test_a_job_that_left_may_restart_for_a_while(age: timedelta, restarting: bool) -> None:
    departure = Departure(user=GUEST, at=NOW - age)
    found = users(some_hosts(departures=(departure,)), {}, NOW, GRACE)
    assert found == Users((), (departure,) if restarting else ())


def test_users_without_those_of_a_workload_are_the_others() -> None:
    found = Users((OWN, GUEST), (Departure(user=SIBLING, at=NOW),))
    assert found.without(OWN.owner.uid) == Users((GUEST,), ())


# positions that went back


@pytest.mark.parametrize(("digest", "position"), [(0, 5), (None, 9)], ids=["it disagrees", "it agrees"])
def test_a_list_lowers_a_position_that_disagrees_with_it_and_those_of_jobs_that_left(
    digest: int | None, position: int
) -> None:
    left = (Departure(user=SIBLING, at=NOW, sequence=8), Departure(user=GUEST, at=NOW, sequence=4))
    record = a_record(hosts=some_hosts(sequence=9, departures=left), create_requested_at=NOW)
    key = key_of(record.maker, record.attempt)
    after = lowered(record, a_list(Family.HOSTS, {key: record.hosts_digest if digest is None else digest}, sequence=5))
    assert after.current.hosts.sequence == position
    assert [each.sequence for each in after.current.hosts.departures] == [5, 4]


def test_a_list_that_is_newer_lowers_nothing() -> None:
    record = a_record(hosts=some_hosts(sequence=9), create_requested_at=NOW)
    assert lowered(record, a_list(Family.HOSTS, {}, sequence=9)) is record
