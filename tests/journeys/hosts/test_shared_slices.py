"""Jobs of one pod each on the hosts of one slice: served, kept and released as one."""

from __future__ import annotations

import pytest

from tests.journeys.serving import deletions, reason
from tests.manifests import a_manifest
from tests.world import World
from tpu_slices.domain.model.facts import EXCLUSIVE, WorkloadState
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.planning.host_labels import NODE_POOL, TOPOLOGY
from tpu_slices.wire.workloads import Json
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload

HOUR = 60
JOBS = 4


def sharing() -> tuple[World, LiveWorkload]:
    """Return a JobSet of four Jobs that run on one slice."""
    world = World()
    llama = world.sharing_appears()
    world.settle(minutes=20, until=lambda: llama.bound == {0})
    world.settle(minutes=2)
    return world, llama


def test_four_jobs_of_one_pod_get_one_slice_of_four_hosts() -> None:
    world, llama = sharing()
    assert reason(world, llama) is Reason.READY
    assert len(world.pools) == len(world.backend.ordered(Verb.CREATE)) == 1
    pods = (*world.cluster.pods.values(), *world.cluster.followers.values())
    assert sorted(pod.raw["metadata"]["labels"]["jobset.sigs.k8s.io/job-index"] for pod in pods) == ["0", "1", "2", "3"]
    assert {node.seen.key for node in world.cluster.nodes.values()} == {f"{llama.ref.owner.uid}.r0"}


def test_its_life_is_that_of_the_jobset() -> None:
    world, llama = sharing()
    world.ends(llama, WorkloadState.COMPLETED)
    world.settle(minutes=5)
    assert (world.pools, world.record(llama).phase) == ([], Phase.GONE)


def test_it_stays_while_one_of_its_jobs_runs_though_the_first_has_ended() -> None:
    world, llama = sharing()
    world.cluster.leader_succeeds(llama, 0)
    for pod in list(world.cluster.followers.values())[:2]:
        world.cluster.removes_follower(pod)
    world.settle(minutes=3 * HOUR)
    assert (reason(world, llama), deletions(world)) == (Reason.PODS_NOT_RUNNING, [])
    assert world.record(llama).message.startswith("2 pods of 4 do not run: one does not exist since ")


def test_a_jobset_that_restarts_gets_its_slice_again() -> None:
    world, llama = sharing()
    for _ in range(3):
        world.cluster.removes_pod(llama, 0)
        world.settle(minutes=10, until=lambda: llama.bound == {0})
    world.settle(minutes=HOUR)
    assert (reason(world, llama), deletions(world)) == (Reason.READY, [])
    assert len(world.backend.ordered(Verb.CREATE)) == 1


def test_a_relay_that_restarts_sees_one_job_on_the_slice() -> None:
    world, llama = sharing()
    world.relay_restarts()
    world.settle(minutes=HOUR)
    assert (reason(world, llama), deletions(world)) == (Reason.READY, [])
    assert len(world.record(llama).current.hosts.occupants) == 1


def test_a_suspended_jobset_gives_the_slice_back_and_gets_one_when_it_is_resumed() -> None:
    world, llama = sharing()
    world.suspends(llama)
    world.settle(minutes=10)
    assert world.pools == []
    world.resumes(llama)
    world.settle(minutes=20, until=lambda: llama.bound == {0})
    world.settle(minutes=2)
    assert (reason(world, llama), len(world.pools)) == (Reason.READY, 1)


def test_its_slice_is_handed_over_to_the_next_such_jobset() -> None:
    world, llama = sharing()
    [pool] = world.pools
    gemma = world.sharing_appears("gemma")
    world.ends(llama)
    world.settle(minutes=10, until=lambda: gemma.bound == {0})
    world.settle(minutes=2)
    assert reason(world, gemma) is Reason.READY
    assert world.record(gemma).pool in world.pools
    assert {node.seen.key for node in world.cluster.nodes.values()} == {f"{gemma.ref.owner.uid}.r0"}
    assert pool in world.pools


def four_jobs(topology: str = "4x4", **annotations: str) -> Json:
    """Return a JobSet of four Jobs of one pod, which share a slice on 4x4 unless they are annotated."""
    manifest = a_manifest(shared=True)
    (job,) = manifest["spec"]["replicatedJobs"]
    job["template"]["spec"]["template"]["spec"]["nodeSelector"][TOPOLOGY] = topology
    return {**manifest, "metadata": {**manifest.get("metadata", {}), "annotations": annotations}}


def running(manifest: Json) -> tuple[World, LiveWorkload]:
    """Return a JobSet whose Jobs have all come to their hosts."""
    world = World()
    llama = world.sharing_appears()
    world.edits(llama, manifest)
    world.settle(minutes=20, until=lambda: llama.served)
    world.settle(minutes=2)
    return world, llama


def resumed_as(world: World, llama: LiveWorkload, manifest: Json, after: int) -> None:
    """Suspend a JobSet, and resume it as another one so many minutes later."""
    world.suspends(llama)
    world.settle(minutes=after)
    world.edits(llama, manifest)
    llama.bound.clear()
    world.resumes(llama)
    world.settle(minutes=20, until=lambda: llama.served)
    world.settle(minutes=5)


@pytest.mark.parametrize("after", [0, 10], ids=["at once", "later"])
def test_jobs_that_come_to_share_a_slice_give_back_their_own(after: int) -> None:
    world, llama = running(four_jobs("2x2"))
    assert len(world.pools) == JOBS
    resumed_as(world, llama, four_jobs(), after)
    assert world.pools == [world.record(llama).pool]
    assert [world.record(llama, index).phase for index in range(JOBS)] == [Phase.READY, *[Phase.GONE] * (JOBS - 1)]


@pytest.mark.parametrize("after", [0, 10], ids=["at once", "later"])
def test_jobs_that_share_a_slice_no_more_get_one_each(after: int) -> None:
    world, llama = running(four_jobs())
    resumed_as(world, llama, four_jobs("2x2"), after)
    assert {reason(world, llama)} == {world.record(llama, index).reason for index in range(JOBS)} == {Reason.READY}
    assert len(world.pools) == JOBS
    world.ends(llama)
    world.settle(minutes=10)
    assert world.pools == []


def test_what_was_refused_of_jobs_that_share_a_slice_now_is_told_no_more() -> None:
    world, llama = running(four_jobs(**{EXCLUSIVE: NODE_POOL}))
    assert {world.record(llama, index).phase for index in range(JOBS)} == {Phase.REFUSED}
    world.cluster.rolls_out(llama)
    world.edits(llama, four_jobs())
    world.settle(minutes=30)
    assert [world.record(llama, index).phase for index in range(JOBS)] == [Phase.READY, *[Phase.GONE] * (JOBS - 1)]
    assert "its Jobs share the first one's slice" in world.record(llama, 1).message
