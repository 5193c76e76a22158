"""Pods by themselves get a slice each where the settings say so, which the next pod of their controller is handed."""

from __future__ import annotations

import pytest

from relay.objects import PoolKey
from tests.builders import settings
from tests.world import World
from tpu_slices.domain.model.clusters import PodsOf
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices_simulator.cluster import NOT_READY
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload

IS_READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
SERVING = settings(serve=(PodsOf.POD,))


def a_world() -> World:
    return World(of_cluster=SERVING)


def serving(world: World, *names: str) -> list[LiveWorkload]:
    """Let pods appear that have one key, and run on slices of their own."""
    pods = [world.pod_appears(name) for name in names]
    world.settle(minutes=15, until=lambda: all(pod.bound == {0} for pod in pods))
    world.settle(minutes=2)
    assert all(pod.bound == {0} for pod in pods)
    return pods


def test_it_gets_its_slice_and_leaves_nothing_behind() -> None:
    world = a_world()
    [pod] = serving(world, "web-1")
    assert (world.record(pod).phase, len(world.pools)) == (Phase.READY, 1)
    world.ends(pod, WorkloadState.DELETED)
    world.settle(minutes=10)
    assert (world.pools, world.record(pod).reason) == ([], Reason.RELEASED)
    assert world.record(pod).message == "Released: the Pod was deleted."


@pytest.mark.parametrize("state", [WorkloadState.COMPLETED, WorkloadState.FAILED])
def test_the_end_of_a_pod_releases_its_slice(state: WorkloadState) -> None:
    world = a_world()
    [pod] = serving(world, "web-1")
    world.ends(pod, state)
    world.settle(minutes=10)
    assert world.pools == []


def test_a_pod_of_another_kind_than_is_served_is_refused_and_nothing_is_bought() -> None:
    world = World(of_cluster=settings(serve=(PodsOf.DEPLOYMENT,)))
    pod = world.pod_appears("web-1")
    world.settle(minutes=5)
    record = world.record(pod)
    assert (record.phase, record.reason, world.pools) == (Phase.REFUSED, Reason.NOT_ALLOWED, [])


def test_the_pod_that_replaces_another_is_handed_its_slice() -> None:
    world = a_world()
    [before] = serving(world, "web-1")
    pools = world.pools
    world.ends(before, WorkloadState.DELETED)
    serving(world, "web-2")
    assert (world.pools, world.backend.ordered(Verb.CREATE)) == (pools, pools)


def test_a_pod_that_comes_when_the_one_before_is_gone_is_handed_its_slice_too() -> None:
    world = a_world()
    [before] = serving(world, "web-1")
    pools = world.pools
    world.ends(before, WorkloadState.DELETED)
    world.steps()
    serving(world, "web-2")
    assert (world.pools, world.backend.ordered(Verb.CREATE)) == (pools, pools)


def test_a_pod_of_another_revision_is_handed_the_slice_and_its_key() -> None:
    world = a_world()
    [before] = serving(world, "web-1")
    pools = world.pools
    world.ends(before, WorkloadState.DELETED)
    after = world.pod_appears("web-2", key="uid-of-the-next-replica-set")
    world.settle(minutes=5, until=lambda: after.bound == {0})
    assert (world.pools, world.backend.ordered(Verb.CREATE)) == (pools, pools)
    assert {node.seen.key for node in world.cluster.nodes.values()} == {"uid-of-the-next-replica-set"}


def test_a_surge_is_one_more_slice_until_the_pod_before_is_gone() -> None:
    world = a_world()
    [before] = serving(world, "web-1")
    serving(world, "web-2")
    assert len(world.pools) == 2
    world.ends(before, WorkloadState.DELETED)
    world.settle(minutes=10)
    assert len(world.pools) == 1


def test_scaling_down_gives_back_the_slices_of_the_pods_that_go_and_no_other() -> None:
    world = a_world()
    pods = serving(world, "web-1", "web-2", "web-3")
    for pod in pods[1:]:
        world.ends(pod, WorkloadState.DELETED)
    world.settle(minutes=10)
    assert world.pools == [world.record(pods[0]).pool]
    assert pods[0].bound == {0}


def crossed(world: World) -> tuple[LiveWorkload, LiveWorkload]:
    """Let two pods of one key get their slices, and bind each to the other's hosts."""
    one, other = world.pod_appears("web-1"), world.pod_appears("web-2")
    world.cluster_lives()
    world.deliver()
    world.operations_end()
    slices = {pod.ref.owner.name: world.record(pod).maker for pod in (one, other)}
    for pod, there in ((one, other), (other, one)):
        world.binds(pod, slices[there.ref.owner.name], attempt=1)
    return one, other


def test_pods_of_one_key_that_cross_keep_the_hosts_that_they_are_on() -> None:
    world = a_world()
    one, other = crossed(world)
    world.settle(minutes=40)
    assert len(world.pools) == 2
    assert {(record.phase, record.reason) for record in world.records.values()} == {(Phase.READY, "Ready")}
    world.ends(one, WorkloadState.DELETED)
    world.settle(minutes=20)
    assert world.pools == [world.record(other).pool]
    assert other.bound == {0}


@pytest.mark.parametrize("own", ["is being created", "has no host yet", "has a host that is not ready yet"])
def test_a_pod_that_comes_first_to_hosts_of_another_leaves_its_own_to_that(own: str) -> None:
    world = a_world()
    world.cluster.schedules = False
    one, other = world.pod_appears("web-1"), world.pod_appears("web-2")
    world.cluster_lives()
    world.deliver()
    first, second = world.record(one), world.record(other)
    world.backend.finish(first.pool)
    if own == "has no host yet":
        world.backend.await_hosts(second.pool, "")
    elif own == "has a host that is not ready yet":
        world.backend.finish(second.pool)
        world.cluster_lives()
        [host] = world.cluster.nodes_of(PoolKey(second.maker, 1))
        world.cluster.changes_node(world.cluster.nodes[host], NOT_READY)
    world.binds(other, first.maker, attempt=1)
    world.steps()
    assert (world.record(other).maker, world.record(one).maker) == (first.maker, second.maker)
    for node in world.cluster.nodes.values():
        world.cluster.changes_node(node, IS_READY)
    world.backend.join_hosts(second.pool)
    world.cluster.schedules = True
    world.settle(minutes=40)
    assert (one.bound, other.bound, len(world.backend.ordered(Verb.CREATE))) == ({0}, {0}, 2)


def test_a_setting_that_serves_pods_no_more_deletes_nothing_under_those_that_run() -> None:
    world = a_world()
    [pod] = serving(world, "web-1")
    world.store.put_settings(settings(version="settings-2"))
    world.settle(minutes=60)
    assert (world.record(pod).phase, len(world.pools)) == (Phase.READY, 1)
    late = world.pod_appears("web-2", key="uid-of-another")
    world.settle(minutes=5)
    assert world.record(late).reason is Reason.NOT_ALLOWED
    world.ends(pod, WorkloadState.DELETED)
    world.settle(minutes=20)
    assert world.pools == []
