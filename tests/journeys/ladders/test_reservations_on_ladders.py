"""A reservation as a rung: its time counts while it is full or begins later, it is left once it ended, and it is better
once it has room."""

from __future__ import annotations

from tests.builders import MINUTE, NOW
from tests.journeys.ladders.stories import LIST, PLACES, B, appears, asked, laddered, ordered, rung
from tests.world import World
from tpu_slices.domain.model.capacity import Place
from tpu_slices.domain.model.slices import CapacityKind
from tpu_slices_simulator.fakes.reservations import FakeReservation
from tpu_slices_simulator.live import LiveWorkload

HALL = "hall-7"
BOOKED = Place(capacity=CapacityKind.RESERVATION, reservation=HALL, zones=(B,))


def a_world(hall: FakeReservation | None, minutes: int | None = 30) -> World:
    """Return a world whose ladder begins with a reservation, for so many minutes, and goes on to list prices."""
    of = laddered(rung("booked", minutes), rung("list"), places={**PLACES, "booked": BOOKED})
    world = World(of_cluster=of)
    if hall is not None:
        world.reservations.has(hall)
    return world


def why_it_came(world: World, job: LiveWorkload, where: str = f"on-demand in {B}") -> str:
    """Return why a workload came to its place, as its slice told."""
    told = [each.message for each in world.record(job).transitions if f"now asked as {where}" in each.message]
    return told[0]


def test_who_waits_at_a_full_one_steps_on_once_its_time_is_over() -> None:
    world = a_world(FakeReservation(name=HALL, hosts=16, others=16))
    job = appears(world, "llama")
    world.settle(minutes=28)
    assert asked(world) == {}
    world.settle(minutes=20, until=lambda: job.served)
    assert job.served
    assert list(asked(world)) == [f"on-demand in {B}"]
    told = "The reservation hall-7 has no free hosts: 16 of 16 used, 16 of them outside this cluster; now asked as"
    assert told in why_it_came(world, job)


def test_where_a_rung_has_no_time_a_full_one_is_left_at_once() -> None:
    world = a_world(FakeReservation(name=HALL, hosts=16, others=16), minutes=None)
    job = appears(world, "llama")
    world.settle(minutes=8, until=lambda: job.served)
    assert (job.served, list(asked(world))) == (True, [f"on-demand in {B}"])


def test_one_that_begins_within_the_time_of_its_rung_is_waited_for() -> None:
    world = a_world(FakeReservation(name=HALL, hosts=16, starts_at=NOW + 20 * MINUTE))
    job = appears(world, "llama")
    world.settle(minutes=40, until=lambda: job.served)
    assert (job.served, list(asked(world))) == (True, [f"reservation {HALL} in {B}"])


def test_one_that_has_ended_is_left_at_once() -> None:
    hall = FakeReservation(name=HALL, hosts=16, others=16, ends_at=NOW + 10 * MINUTE)
    world = a_world(hall, minutes=120)
    job = appears(world, "llama")
    world.settle(minutes=25, until=lambda: job.served)
    assert (job.served, list(asked(world))) == (True, [f"on-demand in {B}"])
    assert "The reservation hall-7 ended at 12:10 UTC on 1 March" in why_it_came(world, job)


def test_one_that_is_not_there_is_waited_for_no_longer_than_its_rung_says() -> None:
    world = a_world(FakeReservation(name="hall-8", hosts=16))
    job = appears(world, "llama")
    world.settle(minutes=28)
    assert asked(world) == {}
    world.settle(minutes=20, until=lambda: job.served)
    assert (job.served, list(asked(world))) == (True, [f"on-demand in {B}"])


def test_who_waits_further_down_goes_back_once_it_has_room() -> None:
    hall = FakeReservation(name=HALL, hosts=16, others=16)
    world = a_world(hall, minutes=None)
    world.backend.runs_out(B, LIST)
    job = appears(world, "llama")
    world.settle(minutes=20)
    assert not job.bound
    hall.others = 0
    world.settle(minutes=30, until=lambda: job.served)
    assert job.served
    made_as = world.record(job).made_as
    assert made_as is not None
    assert made_as.how == f"reservation {HALL} in {B}"


def test_a_gang_that_is_larger_than_the_reservation_asks_for_all_of_its_slices_elsewhere() -> None:
    world = a_world(FakeReservation(name=HALL, hosts=8))
    gang = appears(world, "llama", slices=4, gang="all")
    world.settle(minutes=30, until=lambda: gang.served)
    assert (gang.served, dict(asked(world))) == (True, {f"on-demand in {B}": 4})
    assert "has 8 hosts in all, and the slices of the gang need 16 of them at once" in why_it_came(world, gang)


def test_who_lost_its_hosts_with_the_reservation_steps_on_without_waiting_for_them() -> None:
    ends = NOW + 40 * MINUTE
    world = a_world(FakeReservation(name=HALL, hosts=16, ends_at=ends), minutes=120)
    job = appears(world, "llama")
    world.settle(minutes=20, until=lambda: job.served)
    assert list(asked(world)) == [f"reservation {HALL} in {B}"]
    while world.clock.now() < ends:
        world.settle(minutes=1)
    for pool in world.backend.pools.values():
        pool.hosts_joined = False
    lost_at = world.clock.now()
    world.settle(minutes=40, until=lambda: f"on-demand in {B}" in asked(world))
    (_, (asked_at, _)) = ordered(world, "llama")
    assert asked_at - lost_at <= 2 * MINUTE


def test_who_lost_its_hosts_with_a_reservation_that_is_not_there_any_more_steps_on_too() -> None:
    world = a_world(FakeReservation(name=HALL, hosts=16), minutes=5)
    job = appears(world, "llama")
    world.settle(minutes=20, until=lambda: job.served)
    world.reservations.has()
    world.settle(minutes=20)  # it is looked at each 15 minutes while slices have hosts of it
    for pool in world.backend.pools.values():
        pool.hosts_joined = False
    lost_at = world.clock.now()
    world.settle(minutes=60, until=lambda: f"on-demand in {B}" in asked(world))
    (_, (asked_at, _)) = ordered(world, "llama")
    assert asked_at - lost_at <= 10 * MINUTE
