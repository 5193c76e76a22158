"""Spares that may not stay: they cost more than they may by now, or nothing pins pods any more."""

from __future__ import annotations

from dataclasses import replace

from tests.builders import CLUSTER
from tests.journeys.spares.test_spares import ONE, PRICED, TWO, changed, orders, reasons, spares, stocked
from tests.world import World
from tpu_slices.domain.model.facts import Pinning
from tpu_slices.domain.model.reasons import Reason
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.fakes.settings import FakeSettings

THREE = replace(TWO, count=3)


def made(world: World) -> list[str]:
    """Return the spares that stand, the oldest first."""
    found = (each for each in spares(world) if each.reason is Reason.SPARE)
    return [each.id for each in sorted(found, key=lambda it: str(it.current.create_requested_at))]


def test_the_newest_go_once_the_limit_of_dollars_is_lowered_and_none_is_made_again() -> None:
    world = stocked(ONE, catalogue=PRICED)
    changed(world, TWO)
    world.settle(minutes=10)
    changed(world, THREE)
    world.settle(minutes=10)
    before = made(world)
    changed(world, THREE, spares_most_usd_an_hour=100.0)
    world.settle(minutes=10)
    assert made(world) == before[:2]
    assert sorted(reasons(world)) == [Reason.SPARE, Reason.SPARE, Reason.SPARE_WAITS]
    told = {each.message for record in spares(world) for each in record.transitions}
    assert any("with it all spares cost more than spares_most_usd_an_hour" in each for each in told)
    world.settle(minutes=90)
    assert (made(world), orders(world).count(Verb.CREATE), orders(world).count(Verb.DELETE)) == (before[:2], 3, 1)
    changed(world, THREE, spares_most_usd_an_hour=200.0)
    world.settle(minutes=10)
    assert reasons(world) == [Reason.SPARE] * 3


def test_all_go_where_nothing_pins_pods_any_more_and_are_made_again_once_something_does() -> None:
    world = stocked(TWO)
    world.cluster.pinning = Pinning.NOTHING
    world.settle(minutes=25)
    assert (world.pools, reasons(world)) == ([], [Reason.SPARE_WAITS] * 2)
    world.settle(minutes=60)
    assert orders(world).count(Verb.CREATE) == 2
    world.cluster.pinning = Pinning.POLICY
    world.settle(minutes=10)
    assert reasons(world) == [Reason.SPARE] * 2


def test_none_goes_while_the_cluster_is_paused_or_the_relay_is_silent() -> None:
    world = stocked(TWO)
    world.cluster.pinning = Pinning.NOTHING
    FakeSettings(world.store).pause(CLUSTER, "we look")
    world.settle(minutes=40)
    assert reasons(world) == [Reason.SPARE] * 2
    world.relay_is_dead = True
    world.settle(minutes=5)
    FakeSettings(world.store).resume(CLUSTER)
    world.settle(minutes=40)
    assert reasons(world) == [Reason.SPARE] * 2
