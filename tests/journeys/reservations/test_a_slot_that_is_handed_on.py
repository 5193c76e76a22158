"""A slot that was handed on before anybody looked at the reservation: it is used only if that is open."""

from __future__ import annotations

from tests.builders import MINUTE, NOW, a_request
from tests.journeys.reservations.waiting import HALL, HOSTS, HOUR, a_world, appear, creations
from tests.world import World
from tpu_slices.domain.model.reasons import Reason
from tpu_slices_simulator.fakes.reservations import FakeReservation
from tpu_slices_simulator.live import LiveWorkload


def on_demand(world: World, name: str) -> LiveWorkload:
    return world.jobset_appears(name, request=a_request(replicas=1))


def test_one_that_begins_later_is_not_asked_and_the_slot_goes_to_who_waits_next() -> None:
    world = a_world(FakeReservation(name=HALL, hosts=64, starts_at=NOW + 2 * HOUR), operations=1)
    first = on_demand(world, "first")
    world.steps()
    (booked,) = appear(world, 1, prefix="booked")
    world.steps()
    assert world.record(booked).reason is Reason.OPERATION_LIMIT
    assert world.reservations.reads == []
    world.clock.advance(MINUTE / 10)
    last = on_demand(world, "last")
    world.settle(minutes=30, until=lambda: last.bound == {0})
    assert first.bound == last.bound == {0}
    assert world.record(booked).reason is Reason.RESERVATION_NOT_OPEN
    world.settle(minutes=60)
    assert len(creations(world)) == 2
    assert not world.store.slots(world.settings.cluster)
    world.settle(minutes=120, until=lambda: booked.bound == {0})
    assert booked.bound == {0}
    assert min(call.at for call in creations(world) if "booked" in call.pool) >= NOW + 2 * HOUR


def test_one_that_is_open_is_asked_in_that_slot() -> None:
    world = a_world(FakeReservation(name=HALL, hosts=HOSTS), operations=1)
    on_demand(world, "first")
    world.steps()
    (booked,) = appear(world, 1, prefix="booked")
    world.settle(minutes=30, until=lambda: booked.bound == {0})
    assert booked.bound == {0}
    assert len(creations(world)) == 2
    assert not world.store.slots(world.settings.cluster)
