"""Spares of whose hosts Google announces maintenance, or maintains them: given to nobody, and made anew."""

from __future__ import annotations

from datetime import timedelta

from tests.journeys.spares.test_spares import ONE, orders, reasons, spares, stocked
from tpu_slices.domain.model.reasons import Reason
from tpu_slices_simulator.fakes.backend import Verb


def test_whose_machine_is_maintained_is_given_to_nobody() -> None:
    world = stocked(ONE)
    first = spares(world)[0].id
    world.host_is_maintained(next(iter(world.cluster.nodes)))
    world.relay_publishes()
    llama = world.jobset_appears("llama")
    world.settle(minutes=10)
    assert (llama.bound, world.record(llama).id != first) == ({0}, True)


def test_one_goes_an_hour_before_the_maintenance_of_a_host_and_is_made_anew() -> None:
    world = stocked(ONE)
    first = spares(world)[0].id
    begins = world.clock.now() + timedelta(minutes=90)
    world.maintenance_is_announced(next(iter(world.cluster.nodes)), begins)
    world.settle(minutes=28)
    assert (spares(world)[0].id, reasons(world), orders(world)) == (first, [Reason.SPARE], [Verb.CREATE])
    world.settle(minutes=20)
    assert (reasons(world), orders(world)) == ([Reason.SPARE], [Verb.CREATE, Verb.DELETE, Verb.CREATE])
    assert spares(world)[0].id != first
    deleted = next(call.at for call in world.backend.calls if call.verb is Verb.DELETE)
    assert begins - timedelta(minutes=60) <= deleted <= begins - timedelta(minutes=56)


def test_one_whose_maintenance_is_announced_within_the_hour_is_given_to_nobody() -> None:
    world = stocked(ONE)
    first = spares(world)[0].id
    world.maintenance_is_announced(next(iter(world.cluster.nodes)), world.clock.now() + timedelta(minutes=50))
    llama = world.jobset_appears("llama")
    world.settle(minutes=10)
    assert (llama.bound, world.record(llama).id != first) == ({0}, True)


def test_where_maintenance_is_announced_of_every_host_spares_are_made_anew_less_and_less_often() -> None:
    world = stocked(ONE)
    begins = world.clock.now() + timedelta(minutes=30)
    for _ in range(120):
        for name in world.cluster.nodes:
            world.maintenance_is_announced(name, begins)
        world.settle(minutes=1)
    assert orders(world).count(Verb.CREATE) <= 12
