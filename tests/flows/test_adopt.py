"""A cluster moves over from TPU Provisioner: its pools are adopted, and deleted when their JobSets end."""

from __future__ import annotations

import pytest

from tests.builders import CLUSTER
from tests.journeys.serving import own_slice
from tests.world import World
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.observations import Failure, FailureKind, LegacyPool
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import ClusterId, PoolName
from tpu_slices.domain.planning.host_labels import ACCELERATOR, COUNT, TOPOLOGY
from tpu_slices.domain.reconciling.adoption import ALREADY_ADOPTED, LiveWorkload
from tpu_slices.flows.adopt import adopt, survey
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload as Running

POOL = PoolName("llama-4f2a1")
SHAPE = {ACCELERATOR: "tpu-v6e-slice", TOPOLOGY: "4x4", COUNT: "4"}
MADE = LegacyPool(name=POOL, namespace="research", jobset="llama", job="llama-slice-0")


def a_cluster_of_tpu_provisioner(slices: int = 1) -> tuple[World, Running]:
    world = World()
    jobset = world.jobset_appears(slices=slices)
    world.backend.hold_legacy_pool(MADE)
    world.cluster.has_legacy_nodes(MADE, SHAPE, hosts=4)
    world.cluster.binds(jobset, MADE, 0)
    return world, jobset


def as_listed(jobset: Running, state: WorkloadState = WorkloadState.ACTIVE) -> LiveWorkload:
    return LiveWorkload(ref=jobset.ref, state=state, requests=jobset.requests)


def test_an_adopted_pool_keeps_serving() -> None:
    world, jobset = a_cluster_of_tpu_provisioner()
    adopt(CLUSTER, [as_listed(jobset)], world.deps)
    world.settle(minutes=40)
    record = world.record(jobset)
    assert (record.phase, record.reason, record.pool) == (Phase.READY, Reason.READY, POOL)
    assert (world.pools, world.backend.calls) == ([POOL], [])


def test_an_adopted_pool_is_kept_before_its_hosts_are_reported() -> None:
    world, jobset = a_cluster_of_tpu_provisioner()
    world.relay_is_dead = True
    adopt(CLUSTER, [as_listed(jobset)], world.deps)
    world.settle(minutes=60)
    record = world.record(jobset)
    assert (record.phase, record.reason, record.pool) == (Phase.READY, Reason.ADOPTED, POOL)
    assert (world.pools, world.backend.calls) == ([POOL], [])


def test_an_adopted_pool_in_trouble_is_kept_while_its_job_runs() -> None:
    world, jobset = a_cluster_of_tpu_provisioner()
    adopt(CLUSTER, [as_listed(jobset)], world.deps)
    world.backend.wreck(POOL, Failure(FailureKind.UNKNOWN, "one node is gone"))
    world.settle(minutes=60)
    assert world.record(jobset).phase is Phase.READY
    assert (world.pools, world.backend.calls) == ([POOL], [])


def test_an_adopted_pool_is_deleted_when_its_jobset_ends() -> None:
    world, jobset = a_cluster_of_tpu_provisioner()
    adopt(CLUSTER, [as_listed(jobset)], world.deps)
    world.settle(minutes=5)
    world.ends(jobset)
    world.settle(minutes=20)
    assert world.backend.ordered(Verb.DELETE) == [POOL]
    assert world.pools == []
    assert (world.record(jobset).phase, world.record(jobset).reason) == (Phase.GONE, Reason.RELEASED)


def test_an_adopted_pool_is_kept_until_its_occupants_are_known_and_gone() -> None:
    world, jobset = a_cluster_of_tpu_provisioner()
    adopt(CLUSTER, [as_listed(jobset)], world.deps)
    other = world.guest_appears("other")
    world.settle(minutes=1)
    world.cluster.binds(other, MADE, 0)
    world.ends(jobset)
    world.settle(minutes=20)
    assert world.pools == [POOL]
    world.ends(other)
    world.settle(minutes=5)
    assert world.pools == []


def test_an_adopted_pool_is_deleted_when_its_jobset_ended_unreported() -> None:
    world, jobset = a_cluster_of_tpu_provisioner()
    adopt(CLUSTER, [as_listed(jobset)], world.deps)
    world.ends_unreported(jobset)
    world.settle(minutes=60)
    assert world.pools == []


def test_slices_of_sibling_jobs_are_created_as_usual() -> None:
    world, jobset = a_cluster_of_tpu_provisioner(slices=2)
    adopt(CLUSTER, [as_listed(jobset)], world.deps)
    world.settle(minutes=20)
    assert world.pools == sorted([POOL, world.record(jobset, 1).pool])


def test_an_adopted_pool_that_vanishes_is_replaced_by_one_of_ours() -> None:
    world, jobset = a_cluster_of_tpu_provisioner()
    adopt(CLUSTER, [as_listed(jobset)], world.deps)
    world.settle(minutes=5)
    world.backend.vanish(POOL)
    world.cluster.loses_nodes(MADE)
    world.settle(minutes=30, until=lambda: jobset.bound == {0})
    record = world.record(jobset)
    assert (record.attempt, world.pools) == (1, [record.pool])
    assert record.pool != POOL


def test_a_legacy_pool_that_is_not_adopted_is_never_touched() -> None:
    world, jobset = a_cluster_of_tpu_provisioner()
    plan = adopt(CLUSTER, [as_listed(jobset, WorkloadState.COMPLETED)], world.deps)
    world.settle(minutes=60)
    assert [adoption.record for adoption in plan.adoptions] == [None]
    assert (world.pools, world.backend.calls) == ([POOL], [])


def test_a_survey_changes_nothing() -> None:
    world, jobset = a_cluster_of_tpu_provisioner()
    plan = survey(CLUSTER, [as_listed(jobset)], world.deps)
    [changes] = plan.changes
    assert len(changes) == 2
    assert world.store.commits == []


def test_adopting_again_changes_nothing_more() -> None:
    world, jobset = a_cluster_of_tpu_provisioner()
    adopt(CLUSTER, [as_listed(jobset)], world.deps)
    commits = len(world.store.commits)
    plan = adopt(CLUSTER, [as_listed(jobset)], world.deps)
    assert (plan.changes, len(world.store.commits)) == ((), commits)


def test_adopting_again_is_harmless_although_another_job_has_the_adopted_slice() -> None:
    world, llama = a_cluster_of_tpu_provisioner()
    adopt(CLUSTER, [as_listed(llama)], world.deps)
    world.settle(minutes=5)
    gemma = world.jobset_appears("gemma")
    world.settle(minutes=6, until=lambda: gemma.bound == {0})
    world.settle(minutes=2)
    world.cluster.schedules = False
    world.leaves(llama)
    world.leaves(gemma)
    world.steps()
    world.cluster.binds(gemma, MADE, 0)
    world.binds(llama, own_slice(gemma), attempt=1)
    world.settle(minutes=5)
    assert world.record(gemma).pool == POOL
    world.suspends(llama)
    world.settle(minutes=30)
    world.resumes(llama)
    plan = adopt(CLUSTER, [as_listed(llama)], world.deps)
    assert [each.why for each in plan.adoptions] == [ALREADY_ADOPTED]
    assert (world.record(gemma).pool, world.record(llama).attempt) == (POOL, 1)


def test_adopting_without_settings_or_without_gke_is_an_error() -> None:
    world, _ = a_cluster_of_tpu_provisioner()
    with pytest.raises(Permanent, match="slices configure"):
        adopt(ClusterId("unknown"), [], world.deps)
    world.backend.hide()
    with pytest.raises(Temporary):
        adopt(CLUSTER, [], world.deps)
