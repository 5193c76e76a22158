"""Gangs on ladders: one that has not started moves whole, and no half of it runs."""

from __future__ import annotations

from tests.journeys.ladders.stories import LIST, SPOT, B, appears, asked, had, laddered, rung
from tests.world import World
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices_simulator.live import LiveWorkload

IN_B, LIST_IN_B, FLEX_IN_B = f"spot in {B}", f"on-demand in {B}", f"flex-start in {B}"
SLICE = 16
"""Chips."""


def chips(world: World) -> int:
    return sum(record.chips_bought for record in {each.id: each for each in world.records.values()}.values())


def claims(world: World, gang: LiveWorkload) -> list[SliceRecord]:
    return [world.record(gang, index) for index in range(gang.slices)]


def test_a_gang_of_which_one_slice_is_short_moves_whole_and_lets_the_others_go_only_then() -> None:
    world = World(of_cluster=laddered(rung("spot", 40), rung("list")))
    world.backend.runs_out(B, SPOT, after=3)
    gang = appears(world, "llama", 4, gang="all")
    world.settle(minutes=35)
    assert had(world)[IN_B] >= 3
    assert asked(world)[LIST_IN_B] == 0
    assert gang.bound == set()
    most = 0
    for _ in range(20):
        world.settle(minutes=1)
        most = max(most, chips(world))
        assert gang.bound in (set(), {0, 1, 2, 3})
    assert gang.bound == {0, 1, 2, 3}
    assert {each.made_as.how for each in claims(world, gang) if each.made_as} == {LIST_IN_B}
    assert most <= 2 * 4 * SLICE
    world.settle(minutes=20)
    assert had(world) == {LIST_IN_B: 4}
    assert asked(world)[LIST_IN_B] == 4


def test_a_gang_that_waits_behind_another_at_one_place_is_asked_for_at_the_next() -> None:
    world = World(of_cluster=laddered(rung("spot", 600), rung("list")))
    world.backend.runs_out(B, SPOT, after=2)
    first = appears(world, "first", 3, gang="all")
    world.settle(minutes=10)
    second = appears(world, "second", 2, gang="all")
    world.settle(minutes=15)
    assert second.bound == {0, 1}
    assert first.bound == set()
    assert {each.made_as.how for each in claims(world, second) if each.made_as} == {LIST_IN_B}


def test_a_gang_asks_at_no_rung_of_flex_start() -> None:
    world = World(of_cluster=laddered(rung("spot"), rung("flex", 60), rung("list")))
    world.backend.runs_out(B, SPOT)
    gang = appears(world, "llama", 2, gang="all")
    world.settle(minutes=30)
    assert gang.bound == {0, 1}
    assert asked(world)[FLEX_IN_B] == 0
    spec = world.record(gang).spec
    assert spec is not None
    assert "the pods of a gang are held until all of its slices stand" in spec.rungs[1].against


def test_a_gang_that_ran_and_lost_a_slice_keeps_the_others_where_they_are() -> None:
    world = World(of_cluster=laddered(rung("spot"), rung("list")))
    gang = appears(world, "llama", 3, gang="all")
    world.settle(minutes=10)
    assert had(world) == {IN_B: 3}
    assert gang.bound == {0, 1, 2}
    world.backend.runs_out(B, SPOT)
    lost = world.record(gang, 1)
    world.backend.vanish(lost.pool)
    world.settle(minutes=30)
    assert had(world) == {IN_B: 2, LIST_IN_B: 1}
    assert gang.bound == {0, 1, 2}
    assert LIST
