"""A reservation without room: who waits asks for nothing, one look serves all, and room is used in turn."""

from __future__ import annotations

from tests.builders import MINUTE
from tests.journeys.reservations.waiting import (
    HALL,
    HOSTS,
    a_world,
    appear,
    creations,
    most_reads_in_an_hour,
    reasons,
)
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.reasons import Reason
from tpu_slices_simulator.fakes.reservations import FakeReservation


def test_twenty_jobsets_ask_a_full_one_for_nothing_in_four_hours() -> None:
    world = a_world(FakeReservation(name=HALL, hosts=64, others=64))
    appear(world, 20)
    world.settle(minutes=240)
    assert creations(world) == []
    assert most_reads_in_an_hour(world) <= 40
    assert reasons(world) == {Reason.RESERVATION_NOT_OPEN}


def test_who_waits_reads_who_has_the_hosts() -> None:
    world = a_world(FakeReservation(name=HALL, hosts=16, others=8))
    jobs = appear(world, 4)
    world.settle(minutes=20)
    waiting = [record for record in map(world.record, jobs) if record.reason is Reason.RESERVATION_NOT_OPEN]
    assert {record.message for record in waiting} == {
        "The reservation hall-7 has no free hosts: 16 of 16 used, 8 of them outside this cluster."
    }
    assert len(waiting) == 2


def test_room_that_comes_goes_round_the_namespaces() -> None:
    hall = FakeReservation(name=HALL, hosts=64, others=64)
    world = a_world(hall)
    jobs = appear(world, 12, namespaces=("research", "research", "research", "vision"))
    world.settle(minutes=30)
    hall.others = 64 - 2 * HOSTS
    world.settle(minutes=10)
    served = [job.ref.owner.namespace for job in jobs if job.bound == {0}]
    assert sorted(served) == ["research", "vision"]
    assert len(creations(world)) == 2


def test_creations_in_one_that_others_use_never_exceed_what_is_free() -> None:
    hall = FakeReservation(name=HALL, hosts=64, others=32)
    world = a_world(hall, operations=20)
    appear(world, 20)
    for _ in range(60):
        world.settle(minutes=1)
        assert world.reservations.ours(HALL) <= 32
    assert len(creations(world)) <= 32 // HOSTS + 1


def test_one_that_was_looked_at_while_nobody_waited_is_looked_at_as_soon_as_somebody_does() -> None:
    hall = FakeReservation(name=HALL, hosts=HOSTS)
    world = a_world(hall)
    (first,) = appear(world, 1)
    world.settle(minutes=10, until=lambda: first.bound == {0})
    world.settle(minutes=4)
    hall.hosts = 2 * HOSTS
    (second,) = appear(world, 1, prefix="later")
    world.settle(minutes=2)
    assert len(creations(world)) == 2
    world.settle(minutes=5, until=lambda: second.bound == {0})
    assert second.bound == {0}


def test_hosts_that_are_broken_are_not_asked_for() -> None:
    world = a_world(FakeReservation(name=HALL, hosts=8, degraded=1))
    jobs = appear(world, 2)
    world.settle(minutes=30)
    assert len(creations(world)) == 1
    assert "7 healthy" not in world.record(jobs[1]).message
    assert any("1 not healthy" in world.record(job).message for job in jobs)


def test_a_slice_that_goes_leaves_its_hosts_to_who_waits() -> None:
    world = a_world(FakeReservation(name=HALL, hosts=HOSTS))
    first, second = appear(world, 2)
    world.settle(minutes=10)
    (served,) = [job for job in (first, second) if job.bound == {0}]
    (waiting,) = [job for job in (first, second) if job is not served]
    world.ends(served, WorkloadState.COMPLETED)
    world.settle(minutes=20, until=lambda: waiting.bound == {0})
    assert waiting.bound == {0}


def test_a_look_that_fails_changes_nothing_for_a_while_and_then_creations_go_on() -> None:
    world = a_world(FakeReservation(name=HALL, hosts=64, others=64))
    appear(world, 3)
    world.settle(minutes=5)
    world.reservations.unavailable = True
    world.settle(minutes=15)
    assert creations(world) == []
    world.settle(minutes=20)
    assert creations(world)


def test_who_is_the_first_of_many_to_come_looks_for_all() -> None:
    world = a_world(FakeReservation(name=HALL, hosts=64, others=64))
    appear(world, 20)
    world.steps()
    assert len(world.reservations.reads) == 1
    assert world.clock.now() - world.reservations.reads[0] <= MINUTE
