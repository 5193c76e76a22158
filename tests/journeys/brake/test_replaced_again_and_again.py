"""JobSets that are made anew again and again, and those that never had a slice, cost nobody else anything."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.builders import a_request, settings
from tests.world import World
from tpu_slices.domain.model.clusters import Allowed, Policy
from tpu_slices.domain.model.facts import Pinning, WorkloadChanged, WorkloadState
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.flows import brakes
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload
from tpu_slices_simulator.system import STEP

CLUSTER = ClusterId("demo")
CYCLE = timedelta(seconds=45)
CREATION = 8
"""After so many cycles what GKE was asked for is done: six minutes."""


def replaced(world: World, jobset: LiveWorkload, cycles: int) -> LiveWorkload:
    """Let a person replace a JobSet every 45 seconds; return the last one of its name."""
    for cycle in range(cycles):
        world.ends(jobset, WorkloadState.DELETED)
        jobset = world.jobset_appears(jobset.ref.owner.name, namespace=jobset.ref.owner.namespace)
        world.steps()
        world.clock.advance(CYCLE - 2 * STEP)
        world.sweeps()
        if cycle % CREATION == 0:
            world.operations_end()
    return jobset


def standing(world: World) -> int:
    return len(world.backend.pools)


def test_a_jobset_that_is_replaced_every_45_seconds_leaves_one_slice() -> None:
    world = World()
    world.backend.operation_limit = 100
    jobset = replaced(world, world.jobset_appears("loop", namespace="loops"), cycles=60)
    assert standing(world) < 2 * CREATION, "what GKE is creating, and what it is deleting"
    world.settle(minutes=30)
    assert (standing(world), jobset.bound) == (1, {0})
    assert {record.reason for record in world.records.values()} <= {Reason.READY, Reason.RELEASED, Reason.NEVER_CREATED}


def test_one_that_is_replaced_and_of_which_no_deletion_is_told_leaves_one_slice_too() -> None:
    world = World()
    world.backend.operation_limit = 100
    with world.loses(WorkloadChanged):
        jobset = replaced(world, world.jobset_appears("loop", namespace="loops"), cycles=60)
        assert standing(world) < 2 * CREATION
        world.settle(minutes=30)
    assert (standing(world), jobset.bound) == (1, {0})
    assert len(world.backend.ordered(Verb.CREATE)) <= 25


def stopped_namespace() -> tuple[World, list[LiveWorkload]]:
    """Return a world in which the releases of `loops` are stopped, and `research` runs a JobSet."""
    world = World()
    world.backend.operation_limit = 100
    missing = [world.jobset_appears(f"job-{number}", namespace="loops") for number in range(12)]
    honest = world.jobset_appears("honest")
    world.settle(minutes=60, until=lambda: all(each.bound for each in (*missing, honest)))
    world.settle(minutes=2)
    world.api_server_loses(missing)
    world.settle(minutes=5)
    assert {world.record(each).reason for each in missing} == {Reason.RELEASES_STOPPED}
    return world, [honest]


def test_who_waits_while_releases_are_stopped_is_told_so_by_an_event_with_what_to_do() -> None:
    world, _ = stopped_namespace()
    waiting = world.jobset_appears("waiting", namespace="loops")
    world.settle(minutes=5)
    record = world.record(waiting)
    assert (record.phase, record.reason) == (Phase.REFUSED, Reason.PURCHASES_STOPPED)
    assert "192 chips that stood" in record.message
    assert "`slices confirm-deletions --cluster demo --namespace loops`" in record.message
    told = [each for each in world.publisher.updates if each.job.owner.uid == waiting.ref.owner.uid]
    assert (told[-1].transition.reason, told[-1].transition.message) == (Reason.PURCHASES_STOPPED, record.message)
    reports = [each.report for _, each in world.publisher.reports if each.owner.uid == waiting.ref.owner.uid]
    assert "Ask the operator of the cluster to look whether the workloads are really gone" in reports[-1].message


def test_who_waits_gets_its_slice_once_an_operator_confirmed_the_namespace() -> None:
    world, _ = stopped_namespace()
    waiting = world.jobset_appears("waiting", namespace="loops")
    world.settle(minutes=5)
    assert len(brakes.confirm(CLUSTER, world.deps, "loops")) == 1
    world.settle(minutes=20)
    assert waiting.bound == {0}
    assert standing(world) == 2


def test_another_namespace_buys_and_releases_while_the_releases_of_one_are_stopped() -> None:
    world, (honest,) = stopped_namespace()
    another = world.jobset_appears("another")
    world.ends(honest, WorkloadState.DELETED)
    world.settle(minutes=20)
    assert another.bound == {0}
    assert world.record(honest).phase is Phase.GONE


def test_what_is_kept_serves_the_next_job_of_its_shape_that_may_run_there() -> None:
    world, _ = stopped_namespace()
    world.cluster.scheduler.crosses, world.cluster.pinning = True, Pinning.NOTHING
    waiting, created = world.jobset_appears("waiting", namespace="loops"), len(world.backend.ordered(Verb.CREATE))
    world.settle(minutes=10)
    assert (waiting.bound, world.record(waiting).reason) == ({0}, Reason.READY)
    assert len(world.backend.ordered(Verb.CREATE)) == created


def test_the_hosts_of_what_is_kept_are_open_even_if_they_were_being_closed_before() -> None:
    world, _ = stopped_namespace()
    world.settle(minutes=5)
    kept = [record for record in world.records.values() if record.reason is Reason.RELEASES_STOPPED]
    assert len(kept) == 12
    assert {record.current.hosts.closed for record in kept} == {0}


def test_one_of_those_who_wait_gets_the_chips_that_a_person_released() -> None:
    world, _ = stopped_namespace()
    waiting = [world.jobset_appears(f"waiting-{number}", namespace="loops") for number in range(3)]
    world.settle(minutes=5)
    kept = next(record for record in world.records.values() if record.reason is Reason.RELEASES_STOPPED)
    world.store.edit_slice(CLUSTER, kept.id, release_requested=True, next_reconcile_at=world.clock.now())
    world.settle(minutes=20)
    assert sum(each.bound == {0} for each in waiting) == 1
    assert standing(world) == 13, "as many as stood"


@pytest.mark.parametrize("born", ["refused", "suspended"])
@pytest.mark.parametrize("told", [True, False], ids=["told", "found missing"])
def test_jobsets_that_never_had_a_slice_stop_no_release(born: str, *, told: bool) -> None:
    world = World(of_cluster=settings(policy=Policy(everyone=Allowed(chips_per_slice=16), chips_per_cluster=16)))
    honest = world.jobset_appears("honest")
    world.settle(minutes=10, until=lambda: honest.bound == {0})
    state = WorkloadState.SUSPENDED if born == "suspended" else WorkloadState.ACTIVE
    request = a_request(topology="4x4x4") if born == "refused" else None
    junk = [
        world.jobset_appears(f"junk-{number}", namespace="junk", request=request, state=state) for number in range(11)
    ]
    world.settle(minutes=3)
    if told:
        for jobset in junk:
            world.ends(jobset, WorkloadState.DELETED)
    else:
        world.api_server_loses(junk)
    world.ends(honest, WorkloadState.DELETED)
    waiting = world.jobset_appears("waiting")
    world.settle(minutes=20)
    assert (world.record(honest).reason, waiting.bound) == (Reason.RELEASED, {0})
