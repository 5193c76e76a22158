"""Reservations that are missing, cannot be read, or end."""

from __future__ import annotations

from tests.builders import CLUSTER, MINUTE, NOW
from tests.journeys.reservations.waiting import (
    HALL,
    HOUR,
    a_world,
    appear,
    creations,
    most_reads_in_an_hour,
    of_everyone,
)
from tests.world import World
from tpu_slices.domain.capacity.reservations import MOST_KNOWN
from tpu_slices.domain.model.reasons import Reason
from tpu_slices_simulator.fakes.reservations import FakeReservation


def test_a_name_with_a_typing_error_is_told_with_the_nearest_ones_and_nothing_is_asked() -> None:
    world = a_world(FakeReservation(name="hall-7", hosts=64), FakeReservation(name="attic", hosts=64))
    (job,) = appear(world, 1, name="hal-7")
    world.settle(minutes=240)
    assert creations(world) == []
    assert most_reads_in_an_hour(world) <= 13
    assert world.record(job).message == (
        "There is no reservation hal-7 in us-central2-b of project demo-project, and none of this name is booked; "
        "there is hall-7."
    )


def test_a_reservation_that_is_made_after_its_jobset_is_used_within_minutes() -> None:
    world = a_world()
    (job,) = appear(world, 1)
    world.settle(minutes=63)
    world.reservations.has(FakeReservation(name=HALL, hosts=64))
    world.settle(minutes=10, until=lambda: job.bound == {0})
    assert job.bound == {0}


def test_without_the_right_to_read_it_creations_go_on_as_if_nobody_looked() -> None:
    world = World(of_cluster=of_everyone())
    jobs = appear(world, 3)
    world.settle(minutes=20)
    assert all(job.bound == {0} for job in jobs)
    assert most_reads_in_an_hour(world) <= 2


def ends(world: World) -> list[tuple[int, str]]:
    """Return when users were told that a reservation ends, in minutes, and of which slices."""
    return [
        (round((update.transition.at - NOW) / MINUTE), update.transition.message)
        for update in world.publisher.updates
        if update.transition.reason is Reason.RESERVATION_ENDS
    ]


def test_users_are_told_three_times_before_its_end() -> None:
    world = a_world(FakeReservation(name=HALL, hosts=64, ends_at=NOW + 30 * HOUR))
    appear(world, 1)
    world.settle(minutes=30 * 60 - 2)
    told = ends(world)
    assert [at for at, _ in told] == [6 * 60, 29 * 60, 29 * 60 + 45]
    assert told[1][1] == (
        "The reservation hall-7 ends at 18:00 UTC on 2 March (in 60 min). Google deletes its hosts then: write a "
        "checkpoint before, and ask for other capacity if the run is to go on."
    )


def test_nothing_is_asked_at_one_that_ended() -> None:
    world = a_world(FakeReservation(name=HALL, hosts=64, ends_at=NOW + HOUR))
    (job,) = appear(world, 1)
    world.settle(minutes=61)
    before = len(creations(world))
    for pool in list(world.backend.pools.values()):
        world.backend.vanish(pool.name)
    world.leaves(job)
    world.settle(minutes=120)
    assert len(creations(world)) == before
    assert world.record(job).reason is Reason.RESERVATION_NOT_OPEN
    assert (
        world.record(job).message == "The reservation hall-7 ended at 13:00 UTC on 1 March: nothing is asked for in it."
    )


def test_no_more_reservations_are_known_than_a_document_holds() -> None:
    world = a_world()
    for number in range(60):
        appear(world, 1, name=f"hall-{number}", namespaces=(f"team-{number}",))
    world.settle(minutes=5)
    limiter = world.store.limiter(CLUSTER)
    assert limiter is not None
    assert len(limiter.value.reservations) == MOST_KNOWN
