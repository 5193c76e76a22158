"""A reservation that begins later: nothing is asked before, and creations start at its start."""

from __future__ import annotations

import pytest

from tests.builders import MINUTE, NOW
from tests.journeys.reservations.waiting import HALL, HOSTS, HOUR, a_world, appear, creations, most_reads_in_an_hour
from tpu_slices.domain.model.reasons import Reason
from tpu_slices_simulator.fakes.reservations import FakeReservation

BEGINS = NOW + 13 * HOUR


def test_nothing_is_asked_before_its_start_and_the_first_creation_comes_with_it() -> None:
    world = a_world(FakeReservation(name=HALL, hosts=64, starts_at=BEGINS, ends_at=BEGINS + 48 * HOUR))
    appear(world, 20)
    world.settle(minutes=13 * 60 + 5)
    first = min(call.at for call in creations(world))
    assert (first - BEGINS).total_seconds() <= 15
    assert most_reads_in_an_hour(world) <= 40


@pytest.mark.parametrize("seconds", [7, 31, 59])
def test_one_that_begins_between_two_sweeps_is_asked_within_a_minute(seconds: int) -> None:
    begins = BEGINS + MINUTE * seconds / 60
    world = a_world(FakeReservation(name=HALL, hosts=64, starts_at=begins))
    appear(world, 20)
    world.settle(minutes=13 * 60 + 5)
    first = min(call.at for call in creations(world))
    assert 0 <= (first - begins).total_seconds() <= 60


def test_who_waits_reads_when_it_begins() -> None:
    world = a_world(FakeReservation(name=HALL, hosts=64, starts_at=BEGINS))
    (job,) = appear(world, 1)
    world.settle(minutes=5)
    record = world.record(job)
    assert record.reason is Reason.RESERVATION_NOT_OPEN
    assert record.message == "Waits for reservation hall-7, which begins at 01:00 UTC on 2 March."


def test_no_more_is_created_at_once_than_it_has_hosts_for() -> None:
    world = a_world(FakeReservation(name=HALL, hosts=3 * HOSTS, starts_at=BEGINS), operations=20)
    appear(world, 20)
    world.settle(minutes=13 * 60 - 1)
    world.sweeps()
    for _ in range(10):
        world.clock.advance(MINUTE / 4)
        world.sweeps()
        assert len(world.pools) <= 3
    world.settle(minutes=60)
    assert len(world.pools) == 3
    assert len(creations(world)) == 3


def test_a_booking_that_moves_is_noticed() -> None:
    booked = FakeReservation(name=HALL, hosts=64, starts_at=BEGINS)
    world = a_world(booked)
    (job,) = appear(world, 1)
    world.settle(minutes=60)
    booked.starts_at = NOW + 3 * HOUR
    world.settle(minutes=62)
    assert "begins at 15:00 UTC on 1 March" in world.record(job).message
    world.settle(minutes=65, until=lambda: job.bound == {0})
    assert job.bound == {0}


def test_a_reservation_that_comes_later_than_booked_is_waited_for() -> None:
    booked = FakeReservation(name=HALL, hosts=64, starts_at=NOW + HOUR)
    world = a_world(booked)
    (job,) = appear(world, 1)
    world.settle(minutes=59)
    booked.starts_at = NOW + HOUR + 9 * MINUTE
    world.settle(minutes=30, until=lambda: job.bound == {0})
    assert job.bound == {0}
    assert len(creations(world)) == 1
