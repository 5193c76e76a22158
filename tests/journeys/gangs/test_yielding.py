"""Of two gangs that each hold what the other lacks, the younger gives its slices up, says so, and runs after it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.builders import settings
from tests.journeys.gangs.test_gangs import STOCKOUT, a_gang, gang_of, has_capacity_for, report
from tests.world import World
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.reasons import Phase, ReportReason
from tpu_slices_simulator.live import LiveWorkload

SLICES = 3


class Contended:
    """A place for four slices, of which an older gang and a younger one have two each."""

    def __init__(self) -> None:
        self.world = World(of_cluster=settings(limits=Limits(operations=2 * SLICES)))
        self.elder = a_gang(self.world, "llama", SLICES)
        self.world.cluster_lives()
        self.world.clock.advance(timedelta(seconds=1))
        self.younger = a_gang(self.world, "gemma", SLICES)
        self.world.settle(minutes=3, until=lambda: len(self.world.pools) == 2 * SLICES)
        has_capacity_for(self.world, 4)
        for gang in (self.elder, self.younger):
            self.world.backend.fail(self.world.record(gang, SLICES - 1).pool, STOCKOUT)
        self.world.settle(minutes=5, until=lambda: self.standing(self.elder) == self.standing(self.younger) == 2)
        assert (self.standing(self.elder), self.standing(self.younger)) == (2, 2)
        self.world.settle(minutes=20, until=lambda: gang_of(self.world, self.younger).yielded)

    def standing(self, gang: LiveWorkload) -> int:
        return sum(self.world.record(gang, index).phase is Phase.READY for index in range(SLICES))


@pytest.fixture
def contended() -> Contended:
    return Contended()


def test_the_younger_says_that_it_yielded_and_to_whom(contended: Contended) -> None:
    world, younger = contended.world, contended.younger
    world.settle(minutes=2)
    told = [update.report for _, update in world.publisher.reports if update.owner == younger.ref.owner]
    (yielded,) = [each for each in told if each.reason is ReportReason.GANG_YIELDED]
    assert "llama, which is before it in line" in yielded.message
    assert "its slices that stood went back" in yielded.message


def test_the_elder_runs_on_what_the_younger_gave_up(contended: Contended) -> None:
    world, elder = contended.world, contended.elder
    given_up = {*world.pools}
    world.settle(minutes=15, until=lambda: elder.served)
    assert elder.served
    assert {world.record(elder, index).pool for index in range(SLICES)} <= given_up, "nothing was created for it"


def test_both_run_in_the_end(contended: Contended) -> None:
    world, elder, younger = contended.world, contended.elder, contended.younger
    since = gang_of(world, younger).since
    world.settle(minutes=15, until=lambda: elder.served)
    assert gang_of(world, younger).since == since, "it keeps its place in line"
    world.ends(elder)
    world.settle(minutes=40, until=lambda: younger.served)
    assert younger.served
    assert report(world, younger)[0] is ReportReason.GANG_STARTED
