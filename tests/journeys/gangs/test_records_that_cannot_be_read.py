"""A gang one of whose records cannot be read: what stands is held no longer for that, and nothing is bought for it."""

from __future__ import annotations

import pytest

from tests.flows.swept import make_unreadable, repair
from tests.journeys.gangs.test_gangs import a_gang, gang_of, has_capacity_for, held
from tests.world import World
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.records.gangs import GangState
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload


@pytest.fixture
def world() -> World:
    return World()


def creations(world: World) -> int:
    return sum(call.verb is Verb.CREATE for call in world.backend.calls)


def unread(world: World, gang: LiveWorkload, phase: Phase) -> SliceRecord:
    """Let the record of one of its slices in a phase be unreadable."""
    record = next(each for index in range(4) if (each := world.record(gang, index)).phase is phase)
    make_unreadable(world, record)
    return record


@pytest.mark.parametrize("phase", [Phase.READY, Phase.WAITING])
def test_what_stands_goes_when_its_time_is_over_though_a_record_cannot_be_read(world: World, phase: Phase) -> None:
    gang = held(world)
    lost = unread(world, gang, phase)
    world.settle(minutes=300, until=lambda: gang_of(world, gang).waits)
    assert gang_of(world, gang).reason is Reason.LET_GO_WITH_GANG
    world.settle(minutes=30)
    assert set(world.pools) <= {lost.pool}


def test_nothing_is_bought_again_until_the_record_can_be_read_and_that_is_told(world: World) -> None:
    gang = held(world)
    lost = unread(world, gang, Phase.WAITING)
    world.settle(minutes=300, until=lambda: gang_of(world, gang).waits)
    before = creations(world)
    world.settle(minutes=120)
    assert creations(world) == before
    assert f"the record of {lost.last_claim} cannot be read" in gang_of(world, gang).message
    has_capacity_for(world, 4)
    repair(world, lost.id)
    world.settle(minutes=120, until=lambda: gang_of(world, gang).state is GangState.STANDS)
    assert gang_of(world, gang).state is GangState.STANDS


def test_a_gang_that_runs_keeps_all_of_its_slices(world: World) -> None:
    gang = a_gang(world, slices=2)
    world.settle(minutes=20, until=lambda: len(gang.bound) == 2)
    make_unreadable(world, world.record(gang, 0))
    before = sorted(world.pools)
    world.settle(minutes=300)
    assert sorted(world.pools) == before
