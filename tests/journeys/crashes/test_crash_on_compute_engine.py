"""A process may crash after any side effect: the relay of a self-managed cluster is told of all pools that are gone."""

from __future__ import annotations

import pytest

from tests.builders import self_managed
from tests.journeys.crashes.moments import moments
from tests.journeys.serving import STOCKOUT
from tests.world import World
from tpu_slices.domain.model.node_groups import NodesGone
from tpu_slices.domain.model.observations import Creating
from tpu_slices.domain.model.slices import SliceId, slice_id
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.fuse import Fuse


def live_through_a_jobset(fuse: Fuse) -> World:
    """A slice meets a stockout, so that its claim lets it go; the next one serves until the JobSet has ended."""
    world = World(fuse, of_cluster=self_managed())
    jobset = world.jobset_appears()
    world.steps()
    if isinstance(getattr(world.backend.pools.get(world.record(jobset).pool), "seen", None), Creating):
        world.backend.fail(world.record(jobset).pool, STOCKOUT)
    world.settle(minutes=40, until=lambda: jobset.bound == {0})
    assert jobset.bound == {0}
    world.ends(jobset)
    world.settle(minutes=40)
    assert world.pools == []
    return world


def gone(world: World) -> set[SliceId]:
    """Return the slices that the relay was told to be gone."""
    told = (question for _, question in world.publisher.questions if isinstance(question, NodesGone))
    return {slice_id(each.slice_id, each.attempt) for each in told}


def side_effects() -> int:
    fuse = Fuse()
    world = live_through_a_jobset(fuse)
    assert len(gone(world)) == 2
    return fuse.burnt


@pytest.mark.parametrize("last", moments(side_effects()))
def test_the_nodes_of_each_pool_that_was_made_are_forgotten(last: int) -> None:
    world = live_through_a_jobset(Fuse(blows_after=last))
    assert gone(world) >= {*world.backend.ordered(Verb.CREATE)}
