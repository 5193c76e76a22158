"""A ladder that is edited begins anew, and what stands by its earlier form keeps its workload in its zone."""

from __future__ import annotations

from tests.journeys.ladders.stories import SPOT, B, C, appears, asked, had, laddered, rung
from tests.world import World

IN_B, LIST_IN_B, LIST_IN_C = f"spot in {B}", f"on-demand in {B}", f"on-demand in {C}"


def test_what_stands_keeps_the_rest_of_its_workload_in_its_zone_when_the_rungs_are_edited() -> None:
    world = World(of_cluster=laddered(rung("spot", 120)))
    jobset = appears(world, "llama", 2)
    world.backend.runs_out(B, SPOT, after=1)
    world.settle(minutes=15)
    assert had(world) == {IN_B: 1}
    world.store.put_settings(laddered(rung("list-elsewhere"), rung("spot", 30), rung("list"), version="settings-2"))
    world.settle(minutes=120, until=lambda: jobset.served)
    assert jobset.served
    assert LIST_IN_C not in asked(world)
    assert had(world) == {IN_B: 1, LIST_IN_B: 1}
