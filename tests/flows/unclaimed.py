"""A world with slices that no claim has."""

from __future__ import annotations

from tests.builders import (
    a_jobset,
    settings,
)
from tests.world import World
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.observations import Running
from tpu_slices.domain.model.slices import SliceId
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows.orders import order_of
from tpu_slices_simulator.fakes.backend import FakePool


def a_world(*records: SliceRecord, state: WorkloadState = WorkloadState.ACTIVE) -> World:
    """Return a world with these slices of a JobSet in this state."""
    world = World()
    world.store.put(*records, a_jobset(state=state))
    return world


def stands(world: World, record: SliceRecord) -> None:
    """Let the pool of a slice run."""
    order = order_of(record, settings())
    world.backend.pools[order.name] = FakePool(name=order.name, order=order, seen=Running(), stands=1, operation=None)


def committed(world: World) -> list[dict[SliceId, SliceRecord | None]]:
    """Return what each commit left of the slices that it changed; None: no record."""
    return [
        {
            slice_.id: each.after if isinstance(each.after, SliceRecord) else None
            for each in changes
            if isinstance(slice_ := each.after or (each.before and each.before.value), SliceRecord)
        }
        for changes in world.store.commits
    ]
