"""Who is on the hosts of a TPUNodeGroup that is deleted gets a time to go; nobody's Job loses other hosts by that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from relay.objects import PoolKey
from tests.builders import MINUTE, a_request
from tests.domain.planning.test_node_groups import self_managed
from tests.journeys.node_groups.test_life import ready
from tests.journeys.serving import own_slice
from tests.world import World
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.ports.errors import Temporary
from tpu_slices_simulator.live import LiveWorkload

OF_V7 = a_request("tpu7x", "2x2x2")
"""What a JobSet requests that fits onto the hosts of the group."""


@pytest.fixture
def world() -> World:
    return World(of_cluster=self_managed())


def other_pod(world: World, name: str, **metadata: Any) -> None:
    """Let a pod that no relay watches run on a host, as one of a StatefulSet does."""
    node = min(world.cluster.nodes)
    pod = {"metadata": {"namespace": "default", "name": name, **metadata}, "spec": {"nodeName": node}, "status": {}}
    world.cluster.other_pods[f"default/{name}"] = pod


def of_a(kind: str) -> Mapping[str, Any]:
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": "it", "uid": "u", "controller": True}
    return {"ownerReferences": [reference]}


def on_the_group(world: World, group: LiveWorkload) -> LiveWorkload:
    """Let a JobSet run on the hosts of a group."""
    jobset = world.jobset_appears("guest", request=OF_V7, absent=True)
    world.cluster.binds(jobset, PoolKey(world.record(group).maker, 1), 0)
    world.relay_publishes()
    world.settle(minutes=2)
    return jobset


def test_every_pod_is_evicted_before_the_hosts_go(world: World) -> None:
    group = ready(world)
    jobset = on_the_group(world, group)
    other_pod(world, "worker-0", **of_a("StatefulSet"))
    world.group_is_deleted(group)
    world.settle(minutes=8)
    assert not world.stands(group)
    assert (world.cluster.other_pods, jobset.bound) == ({}, set())


def test_hosts_are_closed_before_a_pod_is_evicted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    group = ready(world)
    other_pod(world, "worker-0")
    open_hosts: list[int] = []
    evict = world.api_server.evict

    def seen(namespace: str, pod: str) -> None:
        open_hosts.append(sum(not node.seen.cordoned for node in world.cluster.nodes.values()))
        evict(namespace, pod)

    monkeypatch.setattr(world.api_server, "evict", seen)
    world.group_is_deleted(group)
    world.settle(minutes=4)
    assert open_hosts == [0]


@pytest.mark.parametrize(
    "metadata",
    [of_a("DaemonSet"), {"annotations": {"kubernetes.io/config.mirror": "digest"}}],
    ids=["of a DaemonSet", "of the kubelet's own"],
)
def test_a_pod_that_would_come_back_is_not_waited_for(world: World, metadata: Mapping[str, Any]) -> None:
    group = ready(world)
    other_pod(world, "agent", **metadata)
    world.group_is_deleted(group)
    world.settle(minutes=8)
    assert not world.stands(group)


def test_a_budget_keeps_a_pod_until_the_time_is_over(world: World) -> None:
    group = ready(world)
    other_pod(world, "worker-0")
    world.cluster.kept_by_budgets.add("default/worker-0")
    world.group_is_deleted(group)
    world.settle(minutes=9)
    assert world.stands(group)
    condition = world.status(group)["conditions"]["Ready"]
    assert condition["reason"] == "ClosingHosts"
    assert "pods on them evicted, until 12:1" in condition["message"]
    assert len(world.pools) == 1
    world.settle(minutes=7)
    assert (world.stands(group), world.pools) == (False, [])


def test_the_time_is_a_setting(world: World) -> None:
    world.store.put_settings(self_managed(limits=Limits(evict_within=60 * MINUTE)))
    group = ready(world)
    other_pod(world, "worker-0")
    world.cluster.kept_by_budgets.add("default/worker-0")
    world.group_is_deleted(group)
    world.settle(minutes=55)
    assert len(world.pools) == 1
    world.settle(minutes=10)
    assert world.pools == []


def test_evictions_that_fail_hold_up_nothing_for_longer(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: str) -> None:
        raise Temporary("the API server refused: 403 Forbidden")

    group = ready(world)
    other_pod(world, "worker-0")
    monkeypatch.setattr(world.api_server, "evict", fail)
    world.group_is_deleted(group)
    world.settle(minutes=15)
    assert (world.stands(group), world.pools) == (False, [])


def test_a_relay_that_restarts_meanwhile_goes_on(world: World) -> None:
    group = ready(world)
    other_pod(world, "worker-0")
    world.cluster.kept_by_budgets.add("default/worker-0")
    world.group_is_deleted(group)
    world.settle(minutes=3)
    world.relay_restarts()
    world.cluster.kept_by_budgets.clear()
    world.settle(minutes=6)
    assert (world.stands(group), world.cluster.other_pods) == (False, {})


def test_nothing_is_evicted_while_the_group_stands(world: World) -> None:
    group = ready(world)
    jobset = on_the_group(world, group)
    other_pod(world, "worker-0")
    world.settle(minutes=120)
    assert (len(jobset.bound), len(world.cluster.other_pods)) == (1, 1)


def test_a_jobset_on_the_hosts_of_a_group_gets_no_slice_of_its_own(world: World) -> None:
    group = ready(world)
    jobset = on_the_group(world, group)
    world.settle(minutes=60)
    assert world.pools == [world.record(group).pool]
    assert own_slice(jobset) not in world.records
    assert world.record(group).reason is Reason.READY


def test_a_jobset_keeps_its_own_hosts_while_a_group_is_deleted(world: World) -> None:
    group = ready(world)
    jobset = world.jobset_appears("llama", request=replace(OF_V7, replicas=1))
    world.settle(minutes=10, until=lambda: len(jobset.bound) == 1)
    world.group_is_deleted(group)
    world.settle(minutes=30)
    assert not world.stands(group)
    assert (len(jobset.bound), world.record(jobset).phase) == (1, Phase.READY)
    assert world.pools == [world.record(jobset).pool]


def test_an_operators_release_of_a_group_spares_the_jobs_of_others(world: World) -> None:
    group = ready(world)
    jobset = on_the_group(world, group)
    world.store.edit_slice(
        world.record(group).cluster,
        world.record(group).id,
        release_requested=True,
        next_reconcile_at=world.clock.now(),
    )
    world.settle(minutes=60)
    assert (len(jobset.bound), len(world.pools)) == (1, 1)


def test_groups_that_persons_delete_are_released_however_many_there_are(world: World) -> None:
    groups = [ready(world, namespace=f"team-{number}") for number in range(12)]
    for group in groups:
        world.group_is_deleted(group)
    world.settle(minutes=30)
    assert world.pools == []


def test_groups_that_are_missing_wait_for_an_operator_if_there_are_many(world: World) -> None:
    world.api_server_loses([ready(world, namespace=f"team-{number}") for number in range(12)])
    world.settle(minutes=30)
    assert len(world.pools) == 12
    assert "slices confirm-deletions" in next(iter(world.records.values())).message
