"""Without doubt a slice is deleted soon after its JobSet's end; the waits are for doubt alone."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.builders import CLUSTER
from tests.journeys.serving import crossed, reason
from tests.world import World
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.flows import edits
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload

SECOND = timedelta(seconds=1)


def _until_deleted(world: World, jobset: LiveWorkload) -> timedelta:
    """Return the time until a slice's deletion is requested, a minute at most: messages take none, no sweep helps."""
    began, pool = world.clock.now(), world.record(jobset).pool_of(1)
    while pool not in world.backend.ordered(Verb.DELETE) and world.clock.now() < began + 60 * SECOND:
        world.deliver()
        world.clock.advance(SECOND)
        world.cluster_lives()
    return world.clock.now() - began


@pytest.mark.parametrize("state", [WorkloadState.COMPLETED, WorkloadState.FAILED, WorkloadState.DELETED])
def test_the_deletion_is_requested_within_30_seconds_of_the_end(state: WorkloadState) -> None:
    world = World()
    jobset = world.jobset_appears()
    world.settle(minutes=10, until=lambda: jobset.bound == {0})
    world.settle(minutes=2)
    world.ends(jobset, state)
    assert _until_deleted(world, jobset) <= 30 * SECOND


def test_a_release_that_an_operator_requests_is_as_prompt_although_the_job_still_runs() -> None:
    world = World()
    jobset = world.jobset_appears()
    world.settle(minutes=10, until=lambda: jobset.bound == {0})
    edits.edit(CLUSTER, world.record(jobset).name, edits.release, world.deps)
    assert _until_deleted(world, jobset) <= 30 * SECOND


@pytest.mark.parametrize("state", [WorkloadState.COMPLETED, WorkloadState.DELETED, WorkloadState.SUSPENDED])
def test_it_is_as_prompt_if_another_job_ran_there_whose_end_is_told_after_its_leader_has_left(
    state: WorkloadState,
) -> None:
    world, llama, gemma = crossed()
    world.ends(llama)
    gemma.absent = True
    world.leaves(gemma)
    world.steps()
    if state is WorkloadState.SUSPENDED:
        world.suspends(gemma)
    else:
        world.ends(gemma, state)
    assert _until_deleted(world, gemma) <= 30 * SECOND


def test_it_goes_with_an_inventory_check_if_nobody_is_told_that_the_other_job_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, llama, gemma = crossed()
    pool = world.record(gemma).pool
    world.ends(llama)
    gemma.absent = True
    world.leaves(gemma)
    world.steps()
    with monkeypatch.context() as lost:
        lost.setattr(world, "loses_request", lambda: True)
        world.ends(gemma)
        world.deliver()
    assert reason(world, gemma) is Reason.READY
    world.settle(minutes=18)
    assert pool not in world.pools
