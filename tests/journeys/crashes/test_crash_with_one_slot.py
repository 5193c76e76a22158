"""A process may crash after any side effect while slots are handed on: none is lost, and everybody is served."""

from __future__ import annotations

import pytest

from tests.builders import CLUSTER, settings
from tests.journeys.crashes.moments import moments
from tests.world import World
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.observations import FailureKind, Refused
from tpu_slices.domain.model.reasons import Phase
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.fuse import Fuse


def live_through_three_jobsets(fuse: Fuse) -> World:
    """Three slices are created and deleted one after the other, since the cluster has one slot."""
    world = World(fuse)
    world.backend.operation_limit = 1
    world.store.put_settings(settings(limits=Limits(operations=1)))
    jobsets = [world.jobset_appears(f"job-{number}") for number in range(3)]
    world.settle(minutes=20, until=lambda: all(jobset.bound for jobset in jobsets))
    assert all(jobset.bound for jobset in jobsets)
    for jobset in jobsets:
        world.ends(jobset)
    world.settle(minutes=30, until=lambda: not world.pools)
    world.settle(minutes=5)
    return world


def side_effects() -> int:
    fuse = Fuse()
    live_through_three_jobsets(fuse)
    return fuse.burnt


@pytest.mark.parametrize("last", moments(side_effects(), first=0))
def test_a_crash_after_any_side_effect_loses_no_slot(last: int) -> None:
    world = live_through_three_jobsets(Fuse(blows_after=last))
    assert world.crashes == (1 if last else 0)
    assert world.pools == []
    assert {record.phase for record in world.records.values()} == {Phase.GONE}
    assert world.store.slots(CLUSTER) == ()
    assert len(world.backend.ordered(Verb.CREATE)) == 3
    refused = [call.outcome.failure.kind for call in world.backend.calls if isinstance(call.outcome, Refused)]
    assert FailureKind.RATE not in refused
