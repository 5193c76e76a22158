"""Chip limits hold although several slices are created at once."""

from __future__ import annotations

from tests.builders import CLUSTER, NOW, a_job, a_jobset, a_record, settings
from tests.world import World
from tpu_slices.domain.model.clusters import Allowed, ClusterSettings, Policy
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.records import Phase
from tpu_slices.flows.reconcile import reconcile

SLICE = 16  # chips of the world's slices


def at_most(chips: int) -> ClusterSettings:
    return settings(policy=Policy(everyone=Allowed(chips_per_namespace=chips)))


def a_world_with(chips: int, slices: int) -> World:
    world = World()
    world.store.put_settings(at_most(chips))
    world.jobset_appears(slices=slices)
    return world


def test_a_namespace_gets_its_chips_and_slices_beyond_are_refused_with_the_count() -> None:
    world = a_world_with(2 * SLICE + 8, slices=3)
    world.settle(minutes=10)
    assert len(world.pools) == 2
    refused = [record for record in world.records.values() if record.phase is Phase.REFUSED]
    assert [record.reason for record in refused] == [Reason.CHIP_LIMIT_REACHED]
    assert "the namespace research holds 32 of 40" in refused[0].message


def test_released_chips_go_to_a_refused_slice() -> None:
    world = World()
    world.store.put_settings(at_most(SLICE))
    first = world.jobset_appears("first")
    world.settle(minutes=10)
    second = world.jobset_appears("second")
    world.settle(minutes=10)
    assert world.record(second).reason is Reason.CHIP_LIMIT_REACHED
    world.ends(first)
    world.settle(minutes=20, until=lambda: second.bound == {0})
    assert second.bound == {0}


def test_two_concurrent_decisions_do_not_both_take_the_last_chips() -> None:
    world = World()
    world.store.put_settings(at_most(SLICE))
    first, second = a_record(), a_record(job=a_job(job_index=1))
    world.store.put(a_jobset(demand=dict.fromkeys((first.id, second.id), NOW)), first, second)
    world.store.meanwhile(lambda: None, lambda: reconcile(CLUSTER, second.id, world.deps))
    reconcile(CLUSTER, first.id, world.deps)
    assert world.pools == [second.pool]
    assert world.records[first.id].reason is Reason.CHIP_LIMIT_REACHED


def test_without_a_chip_limit_no_budget_is_kept() -> None:
    world = World()
    world.jobset_appears()
    world.settle(minutes=10)
    assert world.store.budget(CLUSTER) is None


def test_a_refused_slice_is_created_after_the_limit_is_raised() -> None:
    world = a_world_with(SLICE, slices=2)
    world.settle(minutes=10)
    assert len(world.pools) == 1
    world.store.put_settings(at_most(2 * SLICE))
    world.settle(minutes=5)
    assert len(world.pools) == 2
