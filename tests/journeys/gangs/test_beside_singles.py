"""Single slices and gangs where capacity is short, and slots of gangs."""

from __future__ import annotations

from tests.builders import settings
from tests.journeys.gangs.test_gangs import a_gang, gang_of, has_capacity_for, held
from tests.world import World
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.reasons import Reason
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload


def beside(world: World) -> tuple[LiveWorkload, LiveWorkload]:
    """Return a gang that holds three of its four slices, and a single claim that came later."""
    gang = held(world)
    single = world.jobset_appears("single", 1)
    world.settle(minutes=5)
    return gang, single


def test_a_single_that_came_later_waits_behind_a_gang_that_holds_slices_and_is_told() -> None:
    world = World()
    gang, single = beside(world)
    assert world.record(single).reason is Reason.AWAITING_TURN
    message = world.record(single).message
    assert "waits behind the gang of llama, which came before it and holds slices" in message
    has_capacity_for(world, 4)
    world.settle(minutes=15, until=lambda: gang.served)
    assert gang.served
    assert not single.served


def test_once_the_gang_has_its_slices_the_single_is_served() -> None:
    world = World()
    gang, single = beside(world)
    has_capacity_for(world, 5)
    world.settle(minutes=40, until=lambda: gang.served and single.served)
    assert gang.served
    assert single.served


def test_it_waits_no_longer_than_the_gang_may_hold_its_slices() -> None:
    world = World()
    gang, single = beside(world)
    world.settle(minutes=75, until=lambda: gang_of(world, gang).reason is Reason.LET_GO_WITH_GANG)
    world.settle(minutes=20, until=lambda: single.served)
    assert single.served


def test_where_the_setting_lets_singles_by_it_is_tried_at_once() -> None:
    world = World(of_cluster=settings(limits=Limits(gang_backfill=True)))
    _, single = beside(world)
    assert "waits behind" not in world.record(single).message
    assert world.record(single).reason in {Reason.STOCKOUT, Reason.AWAITING_TURN}


def test_one_gang_is_finished_before_the_next_is_begun_whichever_namespace_it_is_of() -> None:
    world = World(of_cluster=settings(limits=Limits(operations=2)))
    a_gang(world, "llama", 6)
    world.settle(minutes=1)
    a_gang(world, "gemma", 6, namespace="others")
    world.settle(minutes=60, until=lambda: len(world.backend.ordered(Verb.CREATE)) == 12)
    assert ["llama" in pool for pool in world.backend.ordered(Verb.CREATE)] == [True] * 6 + [False] * 6
