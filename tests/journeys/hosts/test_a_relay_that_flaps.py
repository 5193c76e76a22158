"""A relay that starts again and again, and is never up for long: what it has told counts, not how long it lives."""

from __future__ import annotations

import pytest

from tests.builders import MINUTE
from tests.journeys.serving import deletions, own_slice, serving
from tests.world import World
from tpu_slices.domain.model.facts import HostsChanged, WorkloadState
from tpu_slices.domain.model.reasons import Phase, Reason


def flaps(world: World, hours: float, *, up: int, down: int) -> None:
    """Let the relay be up for so many minutes, and then down, again and again."""
    for _ in range(int(hours * 60) // (up + down)):
        world.relay_is_dead = False
        world.settle(minutes=up)
        world.relay_is_dead = True
        world.settle(minutes=down)


@pytest.mark.parametrize("ends", [WorkloadState.COMPLETED, WorkloadState.DELETED])
@pytest.mark.parametrize(("up", "down"), [(4, 5), (2, 5), (2, 20)])
def test_the_slice_of_a_jobset_that_has_ended_is_deleted(up: int, down: int, ends: WorkloadState) -> None:
    world, llama = serving()
    flaps(world, 1, up=up, down=down)
    world.ends(llama, ends)
    flaps(world, 2, up=up, down=down)
    assert (world.pools, world.record(llama).phase) == ([], Phase.GONE)


@pytest.mark.parametrize(("up", "down"), [(4, 5), (2, 5), (2, 20)])
def test_a_job_that_runs_keeps_its_slice(up: int, down: int) -> None:
    world, llama = serving()
    flaps(world, 6, up=up, down=down)
    assert llama.bound == {0}
    assert deletions(world) == []


def test_a_leader_that_left_while_the_relay_was_down_may_restart_there() -> None:
    """That it left is known when it is told: from then on it has the time that a restart takes."""
    world, llama = serving()
    world.relay_is_dead = True
    world.settle(minutes=30)
    llama.absent = True
    world.leaves(llama)
    world.suspends(llama)
    world.relay_is_dead = False
    world.resumes(llama)
    flaps(world, 0.1, up=2, down=1)
    assert deletions(world) == []
    llama.absent = False
    world.relay_is_dead = False
    world.settle(minutes=5)
    assert (world.pools, llama.bound) == ([world.record(llama).pool], {0})


def test_until_the_records_agree_with_what_it_sees_it_is_not_known_who_uses_a_pool() -> None:
    world, llama = serving()
    world.relay_is_dead = True
    world.settle(minutes=10)
    world.ends(llama, WorkloadState.DELETED)
    with world.loses(HostsChanged):
        world.relay_is_dead = False
        world.settle(minutes=6)
        record = world.records[own_slice(llama)]
        assert record.reason is Reason.USERS_UNKNOWN
    assert deletions(world) == []
    world.clock.advance(MINUTE)
    world.settle(minutes=10)
    assert world.pools == []
