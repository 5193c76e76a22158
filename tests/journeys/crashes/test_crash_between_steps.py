"""A process may crash between the steps in which a slice is made and deleted on Compute Engine: nothing is left."""

from __future__ import annotations

import pytest

from tests.builders import self_managed
from tests.journeys.crashes.moments import moments
from tests.journeys.crashes.test_crash_anywhere import assert_nothing_is_left
from tests.world import World
from tpu_slices.domain.model.observations import Failure, FailureKind, Started
from tpu_slices.domain.model.reasons import Reason
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.fakes.gke import FakePool
from tpu_slices_simulator.fuse import Fuse

QUOTA = Failure(FailureKind.QUOTA, "QUOTA_EXCEEDED: Quota 'TPUS_PER_TPU_FAMILY' exceeded.")
STOCKOUT = "ZONE_RESOURCE_POOL_EXHAUSTED: the zone does not have enough resources available."


def live_through_a_jobset(fuse: Fuse) -> World:
    """Of two slices the last step of one fails; both serve; the JobSet completes; nothing is left."""
    world = World(fuse, self_managed())
    jobset = world.jobset_appears(slices=2)
    for _ in range(30):
        world.settle(minutes=1)
        _fails_once(world)
        if len(jobset.bound) == 2:
            break
    assert len(jobset.bound) == 2, "both leaders are bound"
    world.settle(minutes=3)
    world.ends(jobset)
    world.settle(minutes=40)
    return world


def _fails_once(world: World) -> None:
    failed = any(operation.failure for operation in world.backend.operations.values())
    groups = [pool for pool in world.backend.pools.values() if pool.operation is not None and pool.hosts_change]
    if groups and not failed:
        world.backend.fail(groups[0].name, QUOTA)


def side_effects() -> int:
    fuse = Fuse()
    live_through_a_jobset(fuse)
    return fuse.burnt


def test_a_slice_is_made_and_deleted_step_by_step() -> None:
    world = World(of_cluster=self_managed())
    jobset = world.jobset_appears()
    world.settle(until=lambda: bool(jobset.bound))
    world.ends(jobset)
    world.settle()
    assert_nothing_is_left(world)
    done = [call.verb for call in world.backend.calls if isinstance(call.outcome, Started) and call.outcome.operation]
    assert done == [Verb.CREATE] * 3 + [Verb.DELETE] * 3


def test_a_slice_keeps_its_slot_from_one_step_to_the_next() -> None:
    world = World(of_cluster=self_managed())
    world.backend.operation_limit = 5
    jobset = world.jobset_appears(slices=8)
    world.settle(minutes=2)
    begun = {call.pool for call in world.backend.calls if call.verb is Verb.CREATE}
    assert len(begun) == 5
    world.settle(minutes=40, until=lambda: len(jobset.bound) == 8)
    assert len(jobset.bound) == 8


@pytest.mark.parametrize("last", moments(side_effects()))
def test_a_crash_after_any_side_effect_leaves_no_part_behind(last: int) -> None:
    world = live_through_a_jobset(Fuse(blows_after=last))
    assert world.crashes == 1
    assert_nothing_is_left(world)


def awaits_hosts(world: World) -> FakePool:
    """Return the pool of a JobSet whose group is made, and whose hosts Compute Engine has not."""
    for _ in range(10):
        world.steps()
        group = next((pool for pool in world.backend.pools.values() if pool.operation and pool.hosts_change), None)
        if group is not None:
            world.backend.await_hosts(group.name, STOCKOUT)
            world.settle(minutes=90)
            return group
        world.settle(minutes=1)
    raise AssertionError("no group is being made")


def test_hosts_that_are_out_of_stock_are_awaited_and_told_until_they_come() -> None:
    world = World(of_cluster=self_managed())
    jobset = world.jobset_appears()
    group = awaits_hosts(world)
    record = world.record(jobset)
    assert (record.reason, record.attempt, record.slots) == (Reason.AWAITING_CAPACITY, 1, frozenset())
    world.backend.fill(group.name)
    world.settle(until=lambda: bool(jobset.bound))
    assert jobset.bound


def test_a_jobset_that_ends_while_hosts_are_awaited_gives_everything_back() -> None:
    world = World(of_cluster=self_managed())
    jobset = world.jobset_appears()
    awaits_hosts(world)
    assert world.record(jobset).reason is Reason.AWAITING_CAPACITY
    world.ends(jobset)
    world.settle()
    assert_nothing_is_left(world)
