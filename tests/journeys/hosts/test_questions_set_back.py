"""The database is set back to before questions about hosts that the relay has seen: pools are deleted all the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.journeys.serving import serving
from tests.world import World
from tpu_slices.domain.model.observations import Failure, FailureKind
from tpu_slices.domain.model.questions import HostsQuestion
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices_simulator.live import LiveWorkload


def highest(world: World) -> int:
    """Return the highest number of a question about hosts that was asked."""
    asked = (question for _, question in world.publisher.questions if isinstance(question, HostsQuestion))
    return max((question.number for question in asked), default=0)


def until_asked(world: World, llama: LiveWorkload, number: int) -> SliceRecord:
    """Suspend a JobSet and resume it, while GKE deletes nothing, until there were so many questions in all."""
    while highest(world) < number:
        (world.resumes if highest(world) % 2 else world.suspends)(llama)
        world.settle(minutes=3)
    assert highest(world) == number
    return world.record(llama)


def kept_and_seen(kept: int, seen: int) -> tuple[World, LiveWorkload, SliceRecord]:
    """Return a world in which a JobSet runs, and its slice's record of before the last questions that the relay saw.

    Odd questions closed the hosts, even ones opened them.
    """
    world, llama = serving()
    world.backend.refuses_deletions = Failure(FailureKind.CONFIGURATION, "no permission")
    backup = until_asked(world, llama, kept)
    until_asked(world, llama, seen)
    world.settle(minutes=20)
    world.backend.refuses_deletions = None
    return world, llama, replace(backup, next_reconcile_at=world.clock.now())


@pytest.mark.parametrize(("kept", "seen"), [(0, 2), (0, 6), (1, 4), (2, 4), (2, 6), (3, 6), (1, 2), (3, 4)])
def test_a_pool_is_deleted_although_the_relay_has_seen_questions_that_are_not_on_record(kept: int, seen: int) -> None:
    world, llama, backup = kept_and_seen(kept, seen)
    world.suspends(llama)
    world.store.put(backup)
    world.settle(minutes=5)
    assert world.pools == []
    assert seen < highest(world) <= seen + 2, "it is told that its number was used, and perhaps by another kind"


@pytest.mark.parametrize(("kept", "seen"), [(0, 2), (1, 2), (1, 4)])
def test_a_job_that_runs_keeps_its_pool_although_its_record_was_set_back(kept: int, seen: int) -> None:
    world, llama, backup = kept_and_seen(kept, seen)
    pool = world.record(llama).pool
    world.store.put(backup)
    world.settle(minutes=30)
    assert (world.pools, llama.bound) == ([pool], {0})
