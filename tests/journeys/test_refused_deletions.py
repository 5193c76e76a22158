"""GKE refuses to delete a pool, again and again: that is told once."""

from __future__ import annotations

from tests.builders import CLUSTER, MINUTE
from tests.world import World
from tpu_slices.domain.model.observations import Failure, FailureKind
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.records.awaited import PoolOperation
from tpu_slices.flows.sweep import sweep
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload

FORBIDDEN = Failure(FailureKind.CONFIGURATION, 'Required "container.nodePools.delete" permission.')


def a_world_that_deletes_nothing() -> tuple[World, LiveWorkload]:
    world = World()
    jobset = world.jobset_appears()
    world.settle(minutes=10, until=lambda: jobset.bound == {0})
    world.settle(minutes=2)
    world.backend.refuses_deletions = FORBIDDEN
    world.ends(jobset)
    world.settle(minutes=5)
    return world, jobset


def test_a_deletion_that_is_refused_for_an_hour_keeps_one_reason_and_is_announced_once() -> None:
    world, jobset = a_world_that_deletes_nothing()
    told, announced = world.record(jobset), len(world.publisher.updates)
    assert (told.phase, told.reason) == (Phase.RELEASING, Reason.DELETION_REFUSED)
    assert "container.nodePools.delete" in told.message
    world.settle(minutes=60)
    assert world.record(jobset).transition_count == told.transition_count
    assert len(world.publisher.updates) == announced
    assert sum(call.verb is Verb.DELETE for call in world.backend.calls) > 20


def test_a_refused_deletion_that_also_has_to_wait_for_a_slot_keeps_its_reason() -> None:
    world, jobset = a_world_that_deletes_nothing()
    told = world.record(jobset)
    world.jobset_appears("others", slices=5, namespace="vision")
    for _ in range(5):
        world.cluster_lives()
        world.deliver()
        assert len(world.store.slots(CLUSTER)) == 5
        world.clock.advance(MINUTE)
        sweep(CLUSTER, world.deps)
    awaited = world.record(jobset).slot_awaited
    assert awaited is not None
    assert awaited.operation is PoolOperation.DELETE
    assert world.record(jobset).transition_count == told.transition_count


def test_a_refused_deletion_ends_once_gke_accepts_it() -> None:
    world, jobset = a_world_that_deletes_nothing()
    world.backend.refuses_deletions = None
    world.settle(minutes=5)
    assert world.pools == []
    assert world.record(jobset).phase is Phase.GONE
