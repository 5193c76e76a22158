"""Hosts of two slices with one key, or two workloads with one: each Job is whole on one slice, which its claim has."""

from __future__ import annotations

import pytest

from tests.journeys.hosts.test_keys_of_hosts import closed, key, keys
from tests.journeys.serving import STOCKOUT
from tests.world import World
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import OwnerKind, PoolName
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload
from tpu_slices_simulator.pools import REFUSED


def failed(*, schedules: bool) -> tuple[World, LiveWorkload, PoolName]:
    """Return a world in which a Job's first pool failed, cannot be deleted yet, and is filled by GKE all the same."""
    world = World()
    world.cluster.schedules = schedules
    jobset = world.jobset_appears()
    world.cluster_lives()
    world.deliver()
    pool = world.record(jobset).pool
    world.backend.refuses_deletions = REFUSED
    world.backend.fail(pool, STOCKOUT)
    world.steps()
    assert (world.record(jobset).phase, world.record(jobset).pool != pool) == (Phase.WAITING, True)
    world.backend.join_hosts(pool)
    world.steps()
    return world, jobset, pool


def test_a_job_that_comes_to_a_failed_pool_that_is_filled_after_all_has_that_and_gets_no_other() -> None:
    world, jobset, pool = failed(schedules=True)
    world.settle(minutes=5)
    world.backend.refuses_deletions = None
    world.settle(minutes=30)
    assert (jobset.bound, world.record(jobset).pool, world.record(jobset).phase) == ({0}, pool, Phase.READY)
    assert (world.backend.ordered(Verb.CREATE), keys(world), closed(world)) == ([pool], {key(jobset)}, [])


def test_a_failed_pool_that_is_filled_beside_the_retry_is_closed_to_the_job_and_goes() -> None:
    world, jobset, pool = failed(schedules=False)
    assert len(closed(world)) == 4
    world.cluster.schedules = True
    world.settle(minutes=10, until=lambda: jobset.bound == {0})
    assert (jobset.bound, world.record(jobset).pool) == ({0}, world.pools[-1])
    assert world.pools == [pool, world.record(jobset).pool]
    world.backend.refuses_deletions = None
    world.settle(minutes=10)
    assert (jobset.bound, world.pools) == ({0}, [world.record(jobset).pool])


@pytest.mark.parametrize("kind", [OwnerKind.JOBSET, OwnerKind.LEADER_WORKER_SET])
def test_a_workload_that_is_made_anew_under_its_name_gets_the_slice_of_the_one_before(kind: OwnerKind) -> None:
    """The group of a LeaderWorkerSet has the key of the one before, and the Job of a JobSet another."""
    world = World()

    def appears() -> LiveWorkload:
        return world.jobset_appears() if kind is OwnerKind.JOBSET else world.other_appears(kind)

    before = appears()
    world.settle(minutes=10, until=lambda: before.bound == {0})
    world.settle(minutes=2)
    pool = world.record(before).pool
    world.ends(before, WorkloadState.DELETED)
    after = appears()
    assert (key(after) == key(before)) is (kind is OwnerKind.LEADER_WORKER_SET)
    world.settle(minutes=20)
    assert (after.bound, world.record(after).pool, world.record(after).phase) == ({0}, pool, Phase.READY)
    assert (world.backend.ordered(Verb.CREATE), world.backend.ordered(Verb.DELETE)) == ([pool], [])
    assert (keys(world), closed(world)) == ({key(after)}, [])
