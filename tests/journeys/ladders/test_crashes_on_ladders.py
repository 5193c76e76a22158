"""A process may crash after any side effect while workloads step: no claim has two slices, and nothing leaks."""

from __future__ import annotations

import pytest

from tests.journeys.crashes.moments import moments
from tests.journeys.ladders.stories import SPOT, B, appears, asked, had, laddered, rung
from tests.world import World
from tpu_slices.domain.model.reasons import Phase
from tpu_slices_simulator.fuse import Fuse

LIST_IN_B = f"on-demand in {B}"


def live_through_a_gang_that_moves(fuse: Fuse) -> World:
    """Of a gang of two one slice stands at spot and the other is short; a JobSet steps beside it, and all end."""
    world = World(fuse, laddered(rung("spot", 5), rung("list")))
    world.backend.runs_out(B, SPOT, after=1)
    gang, alone = appears(world, "gang", 2, gang="all"), appears(world, "alone", 1)
    world.settle(minutes=60, until=lambda: gang.bound == {0, 1} and alone.bound == {0})
    assert gang.bound == {0, 1}
    assert alone.bound == {0}
    world.settle(minutes=15)
    standing = had(world)
    assert standing[LIST_IN_B] >= 2
    assert standing.total() == 3
    for workload in (gang, alone):
        world.ends(workload)
    world.settle(minutes=30, until=lambda: not world.pools)
    world.settle(minutes=5)
    return world


def side_effects() -> int:
    fuse = Fuse()
    live_through_a_gang_that_moves(fuse)
    return fuse.burnt


@pytest.mark.parametrize("last", moments(side_effects(), first=0))
def test_a_crash_after_any_side_effect_leaves_one_slice_for_each_claim_and_nothing_at_the_end(last: int) -> None:
    world = live_through_a_gang_that_moves(Fuse(blows_after=last))
    assert world.pools == []
    assert {record.phase for record in world.records.values()} == {Phase.GONE}
    limiter = world.store.limiter(world.settings.cluster)
    assert limiter is not None
    assert set(limiter.value.shortages) <= {f"{B}/tpu-v6e-slice/SPOT"}
    assert not limiter.value.on_ladders


SHORT = f"{B}/tpu-v6e-slice/SPOT"
WITHOUT_A_CRASH = 3
"""How often spot is asked for: all that come first, before any of them is refused."""


def live_through_a_shortage(fuse: Fuse) -> World:
    """Three JobSets of one slice find spot short, and step; one that comes later does so in its time. All end."""
    world = World(fuse, laddered(rung("spot", 6), rung("list")))
    world.backend.runs_out(B, SPOT)
    jobsets = [appears(world, f"job-{number}") for number in range(3)]
    world.settle(minutes=60, until=lambda: all(each.bound == {0} for each in jobsets))
    limiter = world.store.limiter(world.settings.cluster)
    assert limiter is not None
    assert set(limiter.value.shortages) == {SHORT}, "what was refused is remembered"
    late = appears(world, "late")
    world.settle(minutes=12, until=lambda: late.bound == {0})
    for each in (*jobsets, late):
        assert each.bound == {0}
        world.ends(each)
    assert had(world) == {LIST_IN_B: 4}
    world.settle(minutes=30, until=lambda: not world.pools)
    world.settle(minutes=5)
    return world


def effects_of_a_shortage() -> int:
    fuse = Fuse()
    live_through_a_shortage(fuse)
    return fuse.burnt


@pytest.mark.parametrize("last", moments(effects_of_a_shortage(), first=0))
def test_a_crash_after_any_side_effect_forgets_no_shortage_and_makes_no_slice_twice(last: int) -> None:
    world = live_through_a_shortage(Fuse(blows_after=last))
    assert world.crashes == (1 if last else 0)
    assert asked(world)[LIST_IN_B] == 4
    assert asked(world)[f"spot in {B}"] <= WITHOUT_A_CRASH + 1, "the shortage may be forgotten when the last one comes"
    assert world.pools == []
    assert world.store.slots(world.settings.cluster) == ()
    assert {record.phase for record in world.records.values()} == {Phase.GONE}
