"""Spares beside warm slices, ladders, gangs, and claims that wait for something else."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.builders import MINUTE, a_request, self_managed, settings
from tests.journeys.serving import STOCKOUT
from tests.journeys.spares.test_spares import (
    LIST,
    ONE,
    TOLERATED,
    TWO,
    changed,
    orders,
    reasons,
    spares,
    stocked,
    with_spares,
)
from tests.world import World
from tpu_slices.domain.model.capacity import Ladder, Place, Rung, Warm
from tpu_slices.domain.model.clusters import Allowed, Policy
from tpu_slices.domain.model.observations import Creating
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import CapacityKind
from tpu_slices_simulator.fakes.backend import Verb


def passes(world: World, minutes: int = 1) -> None:
    """Let time pass, in which nothing can be made in another zone."""
    for _ in range(minutes):
        for pool in [pool for pool in world.backend.pools.values() if isinstance(pool.seen, Creating)]:
            if pool.order is not None and pool.order.spec is not None and pool.order.spec.zone.endswith("c"):
                world.backend.fail(pool.name, STOCKOUT)
        world.operations_end()
        world.steps()
        world.clock.advance(MINUTE)
        world.sweeps()


@pytest.mark.parametrize(
    "policy",
    [Policy(everyone=Allowed(chips_per_namespace=16)), Policy(chips_per_cluster=16)],
    ids=["of its namespace", "of the cluster"],
)
def test_none_is_made_again_whose_chips_a_claim_needs_that_is_tried_in_vain_elsewhere(policy: Policy) -> None:
    world = stocked(ONE, policy=policy)
    zone = ("topology.kubernetes.io/zone", "us-central2-c")
    away = a_request(node_selector=tuple(sorted((*a_request().node_selector, zone))))
    world.jobset_appears("away", request=away)
    passes(world, 4 * 60)
    spare = [call.verb for call in world.backend.calls if "spare" in call.pool]
    assert [spare.count(verb) for verb in (Verb.CREATE, Verb.DELETE)] == [1, 1]


def test_what_waits_elsewhere_for_long_keeps_none_from_being_made() -> None:
    """Claims of another namespace at its own limit, and claims that wait for their turn in another zone."""
    policy = Policy(namespaces={"vision": Allowed(chips_per_namespace=16)})
    world = World(of_cluster=with_spares(policy=policy))
    zone = ("topology.kubernetes.io/zone", "us-central2-c")
    away = a_request(node_selector=tuple(sorted((*a_request().node_selector, zone))))
    for each in range(3):
        world.jobset_appears(f"limited-{each}", namespace="vision")
        world.jobset_appears(f"away-{each}", request=away)
    for minute in range(40):
        if minute == 10:
            changed(world, ONE)
        passes(world)
    assert reasons(world) == [Reason.SPARE]


def test_a_gang_that_waits_for_chips_gets_them_and_no_spare_is_made_meanwhile() -> None:
    world = stocked(TWO, policy=Policy(everyone=Allowed(chips_per_namespace=64)))
    gang = world.jobset_appears("gang", slices=4, request=a_request(topology="2x4", gang="all"))
    world.settle(minutes=30, until=lambda: len(gang.bound) == 4)
    assert len(gang.bound) == 4
    large = world.jobset_appears("large", slices=4, request=a_request(topology="2x4", gang="all"))
    world.settle(minutes=40, until=lambda: len(large.bound) == 4)
    assert len(large.bound) == 4
    world.settle(minutes=30)
    assert reasons(world) == [Reason.SPARE_WAITS] * 2
    world.ends(gang)
    world.settle(minutes=30)
    assert reasons(world) == [Reason.SPARE] * 2


def test_a_warm_slice_is_given_before_a_spare() -> None:
    world = World(of_cluster=settings(places={"list": LIST}, warm=Warm(lasts=timedelta(hours=1))))
    llama = world.jobset_appears("llama")
    world.settle(minutes=10, until=lambda: llama.bound == {0})
    warm = world.record(llama).id
    changed(world, ONE)
    world.settle(minutes=10)
    assert reasons(world) == [Reason.SPARE]
    world.ends(llama)
    world.settle(minutes=3)
    gemma = world.jobset_appears("gemma")
    world.settle(minutes=3, until=lambda: gemma.bound == {0})
    assert world.record(gemma).id == warm
    assert orders(world) == [Verb.CREATE] * 2


def test_a_claim_on_a_ladder_has_the_spare_of_the_rung_where_it_asks() -> None:
    spot = Place(capacity=CapacityKind.SPOT, zones=("us-central2-b",))
    ladder = Ladder(rungs=(Rung(place="spot"), Rung(place="list")))
    places = {"spot": spot, "list": LIST}
    world = World(of_cluster=settings(places=places, ladders={"patient": ladder}, ladder="patient", spares=(ONE,)))
    world.settle(minutes=10)
    first = spares(world)[0].id
    llama = world.jobset_appears("llama", request=a_request(tolerations=(TOLERATED,)))
    for _ in range(20):
        world.steps()
        for pool in [pool for pool in world.backend.pools.values() if isinstance(pool.seen, Creating)]:
            if pool.order is not None and pool.order.spec is not None and pool.order.spec.place == "spot":
                world.backend.fail(pool.name, STOCKOUT)
        world.operations_end()
        world.clock.advance(MINUTE)
        world.sweeps()
    assert (llama.bound, world.record(llama).id) == ({0}, first)


def test_a_gang_that_was_handed_a_spare_stands_in_one_zone_after_it_moved() -> None:
    far = Place(capacity=CapacityKind.ON_DEMAND, zones=("us-central2-c",))
    ladder = Ladder(rungs=(Rung(place="list"), Rung(place="far")))
    world = World(
        of_cluster=settings(places={"list": LIST, "far": far}, ladders={"p": ladder}, ladder="p", spares=(ONE,))
    )
    world.settle(minutes=10)
    gang = world.jobset_appears("gang", slices=2, request=a_request(gang="all"))
    world.steps()
    world.backend.runs_out("us-central2-b", CapacityKind.ON_DEMAND)
    world.settle(minutes=60, until=lambda: gang.served)
    assert gang.served
    assert {world.record(gang, index).made_as.zone for index in range(2)} == {"us-central2-c"}  # type: ignore[union-attr]


def test_a_claim_has_the_spare_for_which_capacity_is_awaited_for_long_instead_of_a_group_behind_it() -> None:
    world = World(of_cluster=self_managed(places={"list": LIST}, spares=(ONE,)))
    for _ in range(12):
        world.steps()
        for pool in [each for each in world.backend.pools.values() if each.operation and each.hosts_change]:
            world.backend.await_hosts(pool.name, "ZONE_RESOURCE_POOL_EXHAUSTED")
        world.settle(minutes=1)
    world.settle(minutes=60)
    (seat,) = spares(world)
    assert seat.reason is Reason.AWAITING_CAPACITY
    llama = world.jobset_appears("llama")
    world.settle(minutes=3)
    assert (world.record(llama).id, world.record(llama).reason) == (seat.id, Reason.AWAITING_CAPACITY)
    world.backend.fill(seat.pool)
    world.settle(minutes=10)
    assert llama.bound == {0}
