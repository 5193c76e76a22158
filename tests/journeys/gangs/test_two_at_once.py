"""Whatever another instance saves while demand of a gang is recorded: the gang counts no slice of its own twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.builders import CLUSTER, settings
from tests.flows.swept import make_unreadable
from tests.journeys.gangs.test_gangs import SLICE, a_gang, at_most, gang_of, has_capacity_for
from tests.world import World
from tpu_slices.domain.model.facts import SlicesWanted
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.flows.receive import receive
from tpu_slices_simulator.fakes.store import FakeStore
from tpu_slices_simulator.live import LiveWorkload


class Interrupted:
    """A store between two calls of which another instance does something, once."""

    def __init__(self, store: FakeStore, calls: int, meanwhile: Callable[[], object]) -> None:
        self._store, self._left, self._meanwhile = store, calls, meanwhile

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> Any:
            if self._left == 0:
                self._meanwhile()
            self._left -= 1
            return getattr(self._store, name)(*args)

        return call


def forming(world: World, slices: int) -> tuple[LiveWorkload, SlicesWanted]:
    """Return a gang that forms, of which nothing is created yet, and its demand."""
    gang, wanted = a_gang(world, "llama", slices), list[SlicesWanted]()
    while not wanted:
        world.clock.advance(timedelta(seconds=5))
        world.cluster_lives()
        while world._facts:
            fact = world._facts[0][1]
            wanted += [fact] if isinstance(fact, SlicesWanted) else []
            world._delivers_one()
    assert gang_of(world, gang).forms
    return gang, wanted[-1]


@pytest.mark.parametrize("calls", range(9))
def test_a_gang_goes_on_whose_slice_is_created_while_its_demand_is_told_again(calls: int) -> None:
    world = at_most(4 * SLICE)
    world.settle(minutes=1)
    gang, wanted = forming(world, 4)
    claim = world.record(gang, 0).last_claim
    store = Interrupted(world.store, calls, lambda: world._reconcile(CLUSTER, claim))
    receive(wanted, CLUSTER, replace(world.deps, store=store), world.clock.now())
    budget = world.store.budget(CLUSTER)
    assert budget is not None
    assert gang_of(world, gang).forms
    (place,) = budget.value.gangs.values()
    assert place.chips >= 3 * SLICE, "so much lacks at the least"


def test_a_gang_stays_as_it_is_while_a_slice_cannot_be_read_that_is_asked_for_anew() -> None:
    world = World()
    has_capacity_for(world, 1)
    gang, wanted = forming(world, 2)
    world.settle(minutes=20, until=lambda: gang_of(world, gang).held_since is not None)
    before = gang_of(world, gang)
    standing = next(each for index in range(2) if (each := world.record(gang, index)).phase is Phase.READY)
    make_unreadable(world, standing)
    world.store.put_settings(replace(settings(), version="settings-2"))
    receive(wanted, CLUSTER, world.deps, world.clock.now())
    assert gang_of(world, gang) == before
