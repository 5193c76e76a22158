"""Without doubt a slice is deleted soon after its JobSet's end; the waits are for doubt alone."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.builders import CLUSTER
from tests.world import World
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.flows import edits
from tpu_slices_simulator.fakes.backend import Verb

SECOND = timedelta(seconds=1)


@pytest.mark.parametrize("state", [WorkloadState.COMPLETED, WorkloadState.FAILED, WorkloadState.DELETED])
def test_the_deletion_is_requested_within_30_seconds_of_the_end(state: WorkloadState) -> None:
    """Only what the relay and the functions wait for counts here: messages take no time, and no sweep helps."""
    world = World()
    jobset = world.jobset_appears()
    world.settle(minutes=10, until=lambda: jobset.bound == {0})
    world.settle(minutes=2)
    world.ends(jobset, state)
    end = world.clock.now()
    while not world.backend.ordered(Verb.DELETE) and world.clock.now() < end + 60 * SECOND:
        world.deliver()
        world.clock.advance(SECOND)
        world.cluster_lives()
    assert world.clock.now() - end <= 30 * SECOND


def test_a_release_that_an_operator_requests_is_as_prompt_although_the_job_still_runs() -> None:
    world = World()
    jobset = world.jobset_appears()
    world.settle(minutes=10, until=lambda: jobset.bound == {0})
    edits.edit(CLUSTER, world.record(jobset).id, edits.release, world.deps)
    end = world.clock.now()
    while not world.backend.ordered(Verb.DELETE) and world.clock.now() < end + 60 * SECOND:
        world.deliver()
        world.clock.advance(SECOND)
        world.cluster_lives()
    assert world.clock.now() - end <= 30 * SECOND
