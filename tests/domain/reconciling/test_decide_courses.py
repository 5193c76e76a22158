"""What is true of a slice over any course of events: no number is used twice, no pool is lost, nobody loses hosts."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import MINUTE
from tests.domain.cases import GUEST, OWN
from tests.domain.course import Course
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.reasons import Phase

EVENTS: dict[str, Callable[[Course], None]] = {
    "a minute passes": lambda course: course.wait(),
    "5 minutes pass": lambda course: course.wait(5 * MINUTE),
    "40 minutes pass": lambda course: course.wait(40 * MINUTE),
    "the leader restarts": lambda course: course.leave(OWN),
    "a guest arrives": lambda course: course.arrive(GUEST),
    "the guest leaves": lambda course: course.leave(GUEST),
    "the JobSet is suspended": lambda course: course.become(WorkloadState.SUSPENDED),
    "the JobSet is resumed": lambda course: course.become(WorkloadState.ACTIVE),
    "the relay falls silent": Course.fall_silent,
    "the relay is heard": Course.be_heard,
    "pools break": Course.break_pools,
    "a host is lost": lambda course: course.lose_hosts(1),
    "all hosts are ready": lambda course: course.lose_hosts(0),
    "vacant pools are deleted by hand": Course.delete_by_hand,
}
courses = st.lists(st.sampled_from(sorted(EVENTS)), max_size=30)


def after(events: list[str]) -> Course:
    course = Course()
    for event in events:
        EVENTS[event](course)
        course.wait()
    return course


def settle(course: Course, minutes: int = 60) -> None:
    for _ in range(minutes):
        course.wait()


@given(courses)
def test_whatever_happened_a_jobset_that_ended_leaves_nothing_behind(events: list[str]) -> None:
    course = after(events)
    course.be_heard()
    course.leave(GUEST)
    course.become(WorkloadState.COMPLETED)
    settle(course)
    assert (course.pools, course.others) == ({}, {})
    assert course.record.phase is Phase.GONE
    assert course.record.chips_bought == 0


@given(courses)
def test_whatever_happened_a_jobset_that_waits_gets_one_pool_in_the_end(events: list[str]) -> None:
    course = after(events)
    course.be_heard()
    course.leave(GUEST)
    course.lose_hosts(0)
    course.become(WorkloadState.ACTIVE)
    settle(course)
    assert course.runs
    assert course.record.phase is Phase.READY
    assert (set(course.pools), course.others) == ({course.record.attempt}, {})
    assert course.record.chips_bought == 16


@given(courses)
def test_a_guest_keeps_its_hosts_whatever_becomes_of_the_slice(events: list[str]) -> None:
    course = after(["a minute passes", "the leader restarts", "a guest arrives"])
    (pool,) = (pool for pool in course.pools.values() if GUEST in pool.pods)
    for event in events:
        if event not in {"the guest leaves", "a guest arrives"}:
            EVENTS[event](course)
        course.wait()
    assert GUEST in pool.pods
    assert pool in course.pools.values()
