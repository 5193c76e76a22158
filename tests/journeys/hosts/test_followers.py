"""Whoever holds chips keeps the hosts: pods beside the leader, earlier revisions, pods that are being deleted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.builders import a_request, settings
from tests.journeys.serving import deletions, reason, serving
from tests.manifests import a_manifest
from tests.world import World
from tpu_slices.domain.model.clusters import Policy
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.reasons import Phase, Reason, ReportReason
from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.wire.workloads import Json
from tpu_slices_simulator import objects
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload

HOUR = 60


def serving_alone() -> tuple[World, LiveWorkload]:
    """Return a JobSet whose leader has ended with success, and whose other pods go on."""
    world, llama = serving()
    world.cluster.leader_succeeds(llama, 0)
    world.relay_publishes()
    return world, llama


def test_a_job_whose_leader_has_succeeded_keeps_its_slice_as_long_as_its_other_pods_run() -> None:
    world, llama = serving_alone()
    world.settle(minutes=3 * HOUR)
    assert (reason(world, llama), deletions(world)) == (Reason.READY, [])
    assert world.record(llama).current.hosts.occupants != ()


def test_a_job_whose_leader_has_succeeded_costs_no_messages_and_no_decisions_while_it_runs() -> None:
    world, _ = serving_alone()
    world.settle(minutes=5)
    facts, requests = list(world.publisher.questions), len(world.publisher.requests)
    commits = len(world.store.commits)
    world.settle(minutes=3)
    assert (list(world.publisher.questions), len(world.publisher.requests)) == (facts, requests)
    assert len(world.store.commits) - commits <= 3 * 2, "heartbeats alone"


def test_its_slice_goes_when_the_jobset_completes() -> None:
    world, llama = serving_alone()
    world.settle(minutes=HOUR)
    world.cluster.followers_succeed(llama, 0)
    world.ends(llama)
    world.settle(minutes=5)
    assert (world.pools, world.record(llama).phase) == ([], Phase.GONE)


def test_hosts_that_the_last_pod_of_a_live_job_has_left_are_released_when_they_were_idle_for_long() -> None:
    world, llama = serving_alone()
    world.settle(minutes=HOUR)
    world.cluster.followers_succeed(llama, 0)
    world.settle(minutes=HOUR)
    assert deletions(world) == [world.record(llama).pool_of(1)]


def test_a_relay_that_restarts_meanwhile_finds_the_job_by_its_other_pods() -> None:
    world, llama = serving_alone()
    world.settle(minutes=5)
    world.relay_restarts()
    world.settle(minutes=2 * HOUR)
    assert (reason(world, llama), deletions(world)) == (Reason.READY, [])


def test_a_release_that_was_decided_while_the_relay_was_away_is_stopped_by_the_pods_on_the_hosts() -> None:
    world, llama = serving()
    world.relay_is_dead = True
    world.cluster.leader_succeeds(llama, 0)
    world.settle(minutes=HOUR)
    world.relay_is_dead = False
    world.settle(minutes=2 * HOUR)
    assert (reason(world, llama), deletions(world)) == (Reason.READY, [])


@pytest.mark.parametrize("how", ["is deleted", "is suspended", "fails", "completes"])
def test_pods_that_are_being_deleted_keep_their_hosts_for_their_own_grace(how: str) -> None:
    world, llama = serving()
    world.cluster.grace = timedelta(minutes=20)
    if how == "is suspended":
        world.suspends(llama)
    else:
        states = {"is deleted": WorkloadState.DELETED, "fails": WorkloadState.FAILED}
        world.ends(llama, states.get(how, WorkloadState.COMPLETED))
    world.settle(minutes=18)
    assert (deletions(world), len(world.pools)) == ([], 1)
    assert reason(world, llama) is Reason.CLOSING_HOSTS
    assert "pods that are being deleted on its hosts have until" in world.record(llama).message
    world.settle(minutes=10)
    assert world.pools == []


def test_a_pod_that_its_kubelet_does_not_end_in_time_is_told() -> None:
    world, llama = serving()
    world.cluster.grace = timedelta(minutes=3)
    world.cluster.ends_pods = False
    world.ends(llama, WorkloadState.DELETED)
    world.settle(minutes=20)
    assert (deletions(world), len(world.pools)) == ([], 1)
    assert "should have ended by" in world.record(llama).message
    world.cluster.ends_pods = True
    world.settle(minutes=5)
    assert world.pools == []


def test_a_pod_that_can_never_end_on_a_host_that_is_not_ready_keeps_no_slice() -> None:
    world, llama = serving()
    world.cluster.grace = timedelta(minutes=1)
    world.all_hosts_break()
    world.ends(llama, WorkloadState.DELETED)
    world.settle(minutes=10)
    assert world.pools == []


# templates that are edited


def groups_serving(groups: int = 2) -> tuple[World, LiveWorkload]:
    world = World()
    serve = world.other_appears(OwnerKind.LEADER_WORKER_SET, slices=groups)
    world.settle(minutes=20, until=lambda: serve.served)
    world.settle(minutes=3)
    return world, serve


def edited(serve: LiveWorkload) -> Json:
    """Return a LeaderWorkerSet as it is after its pods were given another topology."""
    return a_manifest(OwnerKind.LEADER_WORKER_SET, serve.slices, a_request(topology="4x8"))


def test_groups_that_run_an_earlier_template_keep_their_slices() -> None:
    world, serve = groups_serving()
    world.edits(serve, edited(serve))
    world.settle(minutes=3 * HOUR)
    assert (deletions(world), len(world.pools), len(serve.bound)) == ([], 2, 2)


def test_a_group_that_waits_for_another_shape_gets_it_at_once_when_nobody_is_on_its_old_slice() -> None:
    world, serve = groups_serving()
    world.edits(serve, edited(serve))
    world.settle(minutes=3)
    world.leaves(serve, 1)
    world.settle(minutes=20, until=lambda: serve.served)
    created = world.backend.ordered(Verb.CREATE)
    assert (serve.served, len(created)) == (True, 3)
    world.settle(minutes=3)
    assert len(world.pools) == 2, "the old slice of the group is gone, that of the other stays"


def test_each_group_gets_another_shape_however_long_after_the_first_one_it_waits_for_it() -> None:
    world, serve = groups_serving()
    world.edits(serve, edited(serve))
    for index in (1, 0):
        world.leaves(serve, index)
        world.settle(minutes=20, until=lambda: serve.served)
        assert serve.served
    assert len(world.backend.ordered(Verb.CREATE)) == 4


def test_groups_on_each_others_slices_each_get_another_shape() -> None:
    world = World()
    world.cluster.schedules = False
    serve = world.other_appears(OwnerKind.LEADER_WORKER_SET, slices=2)
    world.settle(minutes=20, until=lambda: len(world.cluster.nodes) == 8)
    for index in (0, 1):
        world.binds(serve, world.record(serve, index=1 - index).maker, 1, index)
    world.cluster.schedules = True
    world.settle(minutes=3)
    world.edits(serve, edited(serve))
    for index in (1, 0):
        world.leaves(serve, index)
        world.settle(minutes=HOUR, until=lambda: serve.served)
        assert serve.served
    assert len(world.backend.ordered(Verb.CREATE)) == 4


def a_leader_waits_for_the_new_shape(world: World, serve: LiveWorkload) -> None:
    """Let the first group's leader be one of the present template, while its other pods run on."""
    world.cluster.evicts_leader(serve, 0)
    pod = world.cluster.creates_pod(serve, 0)
    pod.template = objects.template_of(serve.manifest, "")
    world.cluster.saw(pod)


def test_hosts_that_others_of_a_group_run_on_while_its_leader_waits_for_another_shape_are_told_as_they_are() -> None:
    world, serve = groups_serving()
    world.edits(serve, edited(serve))
    a_leader_waits_for_the_new_shape(world, serve)
    world.settle(minutes=3 * HOUR)
    record = world.record(serve)
    assert (record.reason, deletions(world)) == (Reason.SPEC_DRIFTED, [])
    assert (record.chips_bought, record.current.returning) == (16, None), (
        "those of the hosts that stand, which are all there"
    )


def test_a_host_of_an_earlier_shape_that_is_away_is_counted_as_one_of_that_shape() -> None:
    world, serve = groups_serving()
    world.edits(serve, edited(serve))
    a_leader_waits_for_the_new_shape(world, serve)
    world.settle(minutes=10)
    world.a_host_breaks()
    world.settle(minutes=10)
    assert "3 of 4 hosts" in world.record(serve).message


def test_a_group_gets_another_shape_only_within_the_limit_of_chips_beside_its_old_slice() -> None:
    world = World(of_cluster=settings(policy=Policy(chips_per_cluster=40)))
    serve = world.other_appears(OwnerKind.LEADER_WORKER_SET, slices=1)
    world.settle(minutes=20, until=lambda: serve.served)
    world.edits(serve, edited(serve))
    world.leaves(serve)
    most = 0
    for _ in range(30):
        world.settle(minutes=1)
        orders = [pool.order for pool in world.backend.pools.values()]
        most = max(most, sum(order.spec.chips for order in orders if order is not None and order.spec is not None))
    assert (serve.served, most) == (True, 32)


def without_tpu(serve: LiveWorkload) -> Json:
    """Return a LeaderWorkerSet as it is after its pods were given no chips."""
    made = a_manifest(OwnerKind.LEADER_WORKER_SET, serve.slices)
    made["spec"]["leaderWorkerTemplate"]["workerTemplate"] = {"spec": {"containers": [{"name": "cpu"}]}}
    return made


@pytest.mark.parametrize("now", [edited, without_tpu], ids=["another shape", "no TPU"])
def test_a_group_that_a_rollout_has_not_come_to_gets_its_shape_again(now: Callable[[LiveWorkload], Json]) -> None:
    """As with a partition: its pods are made of the revision that the group is of, whatever the set requests now."""
    world, serve = groups_serving()
    before = objects.template_of(serve.manifest, "")
    world.edits(serve, now(serve))
    del world.backend.pools[world.record(serve).pool]
    world.cluster.removes_pod(serve, 0)
    pod = world.cluster.creates_pod(serve, 0)
    pod.template = before
    world.cluster.saw(pod)
    world.settle(minutes=20, until=lambda: pod.node is not None)
    assert (reason(world, serve), len(world.pools)) == (Reason.READY, 2)
    of_both = [world.record(serve, index).made_as for index in (0, 1)]
    assert len({replace(spec, key="") for spec in of_both if spec is not None}) == 1


@pytest.mark.parametrize("relay_restarts", [False, True], ids=["", "the relay restarts"])
def test_groups_of_a_set_that_requests_no_tpu_any_more_keep_their_slices_until_they_end(relay_restarts: bool) -> None:
    world, serve = groups_serving()
    world.edits(serve, without_tpu(serve))
    if relay_restarts:
        world.relay_restarts()
    world.settle(minutes=3 * HOUR)
    assert (deletions(world), len(world.pools)) == ([], 2)
    assert [len(record.current.hosts.occupants) for record in world.records.values()] == [1, 1]
    world.cluster.removes_pod(serve, 1)
    world.settle(minutes=HOUR)
    assert len(world.pools) == 1, "that of the group which still runs"


def test_a_set_that_requests_no_tpu_for_a_while_is_live_all_the_time_and_is_served_again() -> None:
    world, serve = groups_serving()
    asked = serve.manifest
    world.edits(serve, without_tpu(serve))
    world.settle(minutes=HOUR)
    assert world.publisher.reports[-1][1].report.reason is ReportReason.READY
    for index in range(2):
        world.cluster.removes_pod(serve, index)
    world.settle(minutes=2 * HOUR)
    assert world.pools == []
    world.edits(serve, asked)
    for index in range(2):
        world.leaves(serve, index)
    world.settle(minutes=20, until=lambda: serve.served)
    assert serve.served
