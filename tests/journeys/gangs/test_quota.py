"""A workload of a Kueue queue: it has quota, then slices, then pods; what loses its quota loses its slices."""

from __future__ import annotations

import pytest

from relay.kueue.reservations import Reservation
from tests.builders import CLUSTER
from tests.world import World
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices_simulator.live import LiveWorkload

QUEUE = {"kueue.x-k8s.io/queue-name": "team-a"}


def queued(world: World, name: str = "llama", slices: int = 2) -> LiveWorkload:
    """Let a JobSet appear that Kueue has suspended."""
    jobset = world.jobset_appears(name, slices, state=WorkloadState.SUSPENDED)
    jobset.manifest = {**jobset.manifest, "metadata": {**jobset.manifest.get("metadata", {}), "labels": QUEUE}}
    world.cluster.changes(jobset)
    world.relay_publishes()
    return jobset


def has_quota(world: World, *jobsets: LiveWorkload) -> None:
    """Let these have quota, and no others."""
    by = {WorkloadUid(each.ref.owner.uid): Reservation(added={}) for each in jobsets}
    for relay in world.cluster.relays:
        relay.queue.reserve(by, world.clock.now())
    world.relay_publishes()


def state(world: World, jobset: LiveWorkload) -> WorkloadState:
    return world.store.workloads(CLUSTER, [jobset.ref.owner.uid])[jobset.ref.owner.uid].value.state


@pytest.fixture
def world() -> World:
    return World()


def test_without_quota_nothing_is_made(world: World) -> None:
    jobset = queued(world)
    world.settle(minutes=10)
    assert (state(world, jobset), len(world.pools)) == (WorkloadState.SUSPENDED, 0)


def test_with_quota_all_slices_are_made_before_there_are_pods_and_used_once_there_are(world: World) -> None:
    jobset = queued(world)
    world.settle(minutes=3)
    has_quota(world, jobset)
    world.settle(minutes=15, until=lambda: all(world.record(jobset, index).phase is Phase.READY for index in (0, 1)))
    assert state(world, jobset) is WorkloadState.ACTIVE
    assert ({world.record(jobset, index).phase for index in (0, 1)}, jobset.bound) == ({Phase.READY}, set())
    pools = set(world.pools)
    world.resumes(jobset)
    world.settle(minutes=5)
    assert (jobset.bound, set(world.pools)) == ({0, 1}, pools)


def test_who_loses_its_quota_loses_its_slices_though_its_generation_stays(world: World) -> None:
    jobset = queued(world)
    has_quota(world, jobset)
    world.settle(minutes=15, until=lambda: len(world.pools) == 2)
    has_quota(world)
    world.settle(minutes=15)
    assert (state(world, jobset), len(world.pools)) == (WorkloadState.SUSPENDED, 0)


def test_the_slices_of_who_loses_its_quota_go_to_who_gets_it(world: World) -> None:
    low = queued(world, "low")
    has_quota(world, low)
    world.settle(minutes=15, until=lambda: all(world.record(low, index).phase is Phase.READY for index in (0, 1)))
    pools = set(world.pools)
    high = queued(world, "high")
    has_quota(world, high)
    world.settle(minutes=5)
    assert set(world.pools) == pools
    assert {world.record(high, index).phase for index in (0, 1)} == {Phase.READY}


def test_it_may_have_quota_again_and_again(world: World) -> None:
    jobset = queued(world)
    for _ in range(3):
        has_quota(world, jobset)
        world.settle(minutes=15)
        assert (state(world, jobset), len(world.pools)) == (WorkloadState.ACTIVE, 2)
        has_quota(world)
        world.settle(minutes=15)
        assert (state(world, jobset), len(world.pools)) == (WorkloadState.SUSPENDED, 0)
