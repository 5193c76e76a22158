"""A process that stalls between a change that it has saved and what follows from it, while others go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from tests.builders import CLUSTER
from tests.flows.queueing import ends_unseen, handed_on_to, queued, running, slots
from tests.world import World
from tpu_slices.domain.records.awaited import PoolOperation
from tpu_slices.flows.reconcile import reconcile
from tpu_slices.ports.store import Change
from tpu_slices_simulator.fakes.store import FakeStore


class Stalling:
    """A store of a process that stalls once its first change is saved: something happens meanwhile."""

    def __init__(self, store: FakeStore, meanwhile: Callable[[], None]) -> None:
        self._store = store
        self._meanwhile: Callable[[], None] | None = meanwhile

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, *changes: Change) -> Any:
        saved = self._store.commit(*changes)
        if self._meanwhile is not None:
            meanwhile, self._meanwhile = self._meanwhile, None
            meanwhile()
        return saved


def test_who_stalls_hands_on_no_slot_that_its_slice_has_taken_again_meanwhile() -> None:
    world = World()
    busy, *_ = running(world)
    first = queued(world, 1)
    number = world.records[busy.name].current.slot
    assert number is not None
    ends_unseen(world, busy)

    def is_taken_again() -> None:
        again = next(stored.value for stored in world.store.slots(CLUSTER) if stored.value.number == number)
        world.store.put(replace(again, operation=PoolOperation.DELETE, capacity_pool=None))

    reconcile(CLUSTER, busy.name, replace(world.deps, store=cast("Any", Stalling(world.store, is_taken_again))))
    assert slots(world)[number] == busy.maker
    assert handed_on_to(world, first) is None
