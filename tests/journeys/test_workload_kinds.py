"""Jobs by themselves and LeaderWorkerSets are served like JobSets; groups come and go while they run."""

from __future__ import annotations

import pytest

from tests.builders import MINUTE
from tests.manifests import a_job_of_one_pod, a_manifest, groups_without_chips_for_leaders
from tests.world import World
from tpu_slices.domain.model.facts import SlicesWanted, WaitingLeader, WorkloadState
from tpu_slices.domain.model.reasons import Phase, Reason, ReportReason
from tpu_slices.domain.model.slices import OwnerKind

JOB, GROUPS = OwnerKind.JOB, OwnerKind.LEADER_WORKER_SET
KINDS = pytest.mark.parametrize("kind", [JOB, GROUPS])


def told(world: World) -> str:
    """Return the message of the last report that was announced."""
    _, update = world.publisher.reports[-1]
    return update.report.message


@KINDS
def test_it_gets_its_slice_and_leaves_nothing_behind(kind: OwnerKind) -> None:
    world = World()
    workload = world.other_appears(kind)
    world.settle(minutes=10, until=lambda: workload.bound == {0})
    world.settle(minutes=2)
    assert world.record(workload).phase is Phase.READY
    assert world.record(workload).owner.kind is kind
    world.ends(workload, WorkloadState.DELETED)
    world.settle(minutes=10)
    assert (world.pools, world.record(workload).reason) == ([], Reason.RELEASED)
    assert world.record(workload).message == f"Released: the {kind} was deleted."


@pytest.mark.parametrize("state", [WorkloadState.COMPLETED, WorkloadState.FAILED])
def test_the_end_of_a_job_releases_its_slice(state: WorkloadState) -> None:
    world = World()
    job = world.other_appears(JOB)
    world.settle(minutes=10, until=lambda: job.bound == {0})
    world.ends(job, state)
    world.settle(minutes=10)
    assert world.pools == []


def test_a_suspended_jobs_slice_is_released_and_a_resumed_one_gets_another() -> None:
    world = World()
    job = world.other_appears(JOB)
    world.settle(minutes=10, until=lambda: job.bound == {0})
    world.suspends(job)
    world.settle(minutes=10)
    assert world.pools == []
    world.resumes(job)
    world.settle(minutes=10, until=lambda: job.bound == {0})
    assert world.record(job).attempt == 2


def test_a_group_that_is_scaled_away_releases_its_slice_and_no_other() -> None:
    world = World()
    workload = world.other_appears(GROUPS, 3)
    world.settle(minutes=15, until=lambda: workload.bound == {0, 1, 2})
    world.settle(minutes=2)
    world.scales(workload, 1)
    world.settle(minutes=1)
    assert "1 of 1 slices ready" in told(world)
    assert "stand with 32 chips that are not needed: being " in told(world)
    world.settle(minutes=10)
    assert "not needed" not in told(world)
    assert world.pools == [world.record(workload, 0).pool]
    assert [world.record(workload, index).phase for index in range(3)] == [Phase.READY, Phase.GONE, Phase.GONE]
    assert world.record(workload, 2).message == "Released: the LeaderWorkerSet is active, scaled to 1."


def test_a_group_that_comes_back_gets_a_slice_again() -> None:
    world = World()
    workload = world.other_appears(GROUPS, 2)
    world.settle(minutes=15, until=lambda: workload.bound == {0, 1})
    world.scales(workload, 1)
    world.settle(minutes=10)
    world.scales(workload, 2)
    world.settle(minutes=15, until=lambda: workload.bound == {0, 1})
    world.settle(minutes=2)
    assert [world.record(workload, index).phase for index in range(2)] == [Phase.READY, Phase.READY]


def test_demand_of_a_group_from_before_it_was_scaled_away_buys_nothing() -> None:
    world = World()
    workload = world.other_appears(GROUPS, 2)
    world.settle(minutes=15, until=lambda: workload.bound == {0, 1})
    earlier = workload.ref
    world.scales(workload, 1)
    world.settle(minutes=10)
    leader = WaitingLeader(replicated_job="", job_index=1)
    world.publish(SlicesWanted(workload=earlier, requests=workload.requests, waiting=(leader,)))
    world.settle(minutes=5)
    assert world.pools == [world.record(workload, 0).pool]


@KINDS
def test_a_restarted_relay_and_lost_records_wake_nothing_up_and_lose_nothing(kind: OwnerKind) -> None:
    world = World()
    workload = world.other_appears(kind)
    world.settle(minutes=10, until=lambda: workload.bound == {0})
    world.settle(minutes=2)
    pools = world.pools
    world.loses_its_records()
    world.relay_restarts()
    world.settle(minutes=60)
    assert (world.pools, world.record(workload).phase) == (pools, Phase.READY)


@KINDS
def test_its_report_names_its_kind(kind: OwnerKind) -> None:
    world = World()
    workload = world.other_appears(kind)
    world.settle(minutes=10, until=lambda: workload.bound == {0})
    world.settle(minutes=2)
    world.ends(workload, WorkloadState.DELETED)
    world.clock.advance(MINUTE)
    world.settle(minutes=10)
    _, last = world.publisher.reports[-1]
    assert (last.owner.kind, last.report.reason) == (kind, ReportReason.RELEASED)
    assert last.report.message.startswith(f"The {kind} was deleted")


def test_a_job_of_one_pod_without_indexes_gets_its_slice_which_its_next_pod_gets_too() -> None:
    world = World()
    job = world.other_appears(JOB, manifest=a_job_of_one_pod())
    world.settle(minutes=10, until=lambda: job.bound == {0})
    world.settle(minutes=2)
    pools = world.pools
    assert (world.record(job).phase, len(pools)) == (Phase.READY, 1)
    world.cluster.evicts_leader(job, 0)
    world.settle(minutes=10, until=lambda: job.bound == {0})
    world.settle(minutes=2)
    assert (world.record(job).phase, world.pools) == (Phase.READY, pools)
    world.ends(job, WorkloadState.COMPLETED)
    world.settle(minutes=10)
    assert (world.pools, world.record(job).reason) == ([], Reason.RELEASED)


def test_a_job_whose_parallelism_rises_gets_no_more_hosts_and_keeps_its_own_while_its_first_pod_runs() -> None:
    world = World()
    job = world.other_appears(JOB, manifest=a_job_of_one_pod())
    world.settle(minutes=10, until=lambda: job.bound == {0})
    world.settle(minutes=2)
    pools, written = world.pools, a_job_of_one_pod()
    world.edits(job, {**written, "spec": {**written["spec"], "parallelism": 2}})
    world.cluster.creates_pod(job, 0)
    world.settle(minutes=60)
    assert (world.pools, world.record(job).phase) == (pools, Phase.READY)
    world.ends(job, WorkloadState.COMPLETED)
    world.settle(minutes=10)
    assert world.pools == []


def test_workers_fill_the_slices_of_groups_whose_leaders_have_no_chips() -> None:
    world = World()
    serve = world.other_appears(GROUPS, manifest=groups_without_chips_for_leaders(2))
    world.settle(minutes=15, until=lambda: serve.bound == {0, 1})
    world.settle(minutes=2)
    specs = [world.record(serve, index).spec for index in range(2)]
    assert [spec.hosts for spec in specs if spec] == [4, 4]
    world.scales(serve, 1)
    world.settle(minutes=10)
    assert [world.record(serve, index).phase for index in range(2)] == [Phase.READY, Phase.GONE]
    world.ends(serve, WorkloadState.DELETED)
    world.settle(minutes=10)
    assert world.pools == []


@pytest.mark.parametrize("back", [False, True], ids=["loses them", "gets them"])
def test_a_group_whose_leader_gets_or_loses_its_chips_keeps_its_slice(back: bool) -> None:
    world = World()
    one, other = a_manifest(GROUPS), groups_without_chips_for_leaders()
    serve = world.other_appears(GROUPS, manifest=other if back else one)
    world.settle(minutes=10, until=lambda: serve.bound == {0})
    world.settle(minutes=2)
    pools = world.pools
    world.edits(serve, one if back else other)
    world.settle(minutes=30)
    assert (world.pools, world.record(serve).phase) == (pools, Phase.READY)
    world.cluster.removes_pod(serve, 0)
    world.settle(minutes=10, until=lambda: serve.bound == {0})
    world.settle(minutes=10)
    assert (world.pools, world.record(serve).phase) == (pools, Phase.READY)
