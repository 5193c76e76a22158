"""A ladder without a rung in the zone of what its workload has: nothing is bought in another zone, and that is told."""

from __future__ import annotations

from typing import Any

from tests.journeys.ladders.stories import LIST, B, C, appears, asked, had, laddered, messages, rung
from tests.world import World
from tpu_slices.domain.model.capacity import ZonesOf
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices_simulator.live import LiveWorkload

LIST_IN_B, LIST_IN_C = f"on-demand in {B}", f"on-demand in {C}"


def of_two_one_stands(**edited: Any) -> tuple[World, LiveWorkload]:
    """Return a cluster with a workload that has one slice in B and lacks another, as its ladder is in C by now."""
    world = World(of_cluster=laddered(rung("list", 120)))
    jobset = appears(world, "llama", 2)
    world.backend.runs_out(B, LIST, after=1)
    world.settle(minutes=15)
    assert had(world) == {LIST_IN_B: 1}
    world.store.put_settings(laddered(rung("list-elsewhere"), version="settings-2", **edited))
    return world, jobset


def waiting(world: World, jobset: LiveWorkload) -> int:
    return next(index for index in range(2) if world.record(jobset, index).current.create_requested_at is None)


def test_nothing_is_asked_for_in_another_zone_and_the_claim_says_why() -> None:
    world, jobset = of_two_one_stands()
    world.settle(minutes=90)
    assert LIST_IN_C not in asked(world)
    record = world.record(jobset, waiting(world, jobset))
    assert (record.phase, record.reason) == (Phase.BLOCKED, Reason.NO_RUNG_IN_ZONE)
    assert "patient has no rung in us-central2-b" in record.message
    assert "zones: any" in record.message
    assert "no rung in us-central2-b" in messages(world, jobset)


def test_it_is_served_once_the_ladder_has_a_rung_there() -> None:
    world, jobset = of_two_one_stands()
    world.settle(minutes=60)
    world.backend.has_stock(B, LIST)
    world.store.put_settings(laddered(rung("list-elsewhere"), rung("list"), version="settings-3"))
    world.settle(minutes=90, until=lambda: jobset.served)
    assert (jobset.served, had(world)) == (True, {LIST_IN_B: 2})


def test_it_is_served_elsewhere_once_the_ladder_says_that_it_may() -> None:
    world, jobset = of_two_one_stands(zones=ZonesOf.ANY)
    world.settle(minutes=90, until=lambda: jobset.served)
    assert (jobset.served, had(world)) == (True, {LIST_IN_B: 1, LIST_IN_C: 1})
