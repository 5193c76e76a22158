"""A gang of which one slice does not come for a while, comes late, never comes, or is lost: what is held, and told."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from tests.builders import MINUTE, settings
from tests.journeys.gangs.test_gangs import a_gang, gang_of, has_capacity_for, report
from tests.journeys.gangs.test_gangs_that_lose import loses_slice
from tests.world import World
from tpu_slices.domain.gangs.deciding import SPREAD
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.reasons import Phase, ReportReason
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload

BILLED = "(48 chips are billed, 142.56 USD per hour by list price)"
SECOND = timedelta(seconds=1)
IN_A_ZONE_WITH_PRICES = {"zone": "europe-west4-a", "path": "projects/demo-project/locations/europe-west4/clusters/demo"}


class Slow(World):
    """A world whose operations take so long each."""

    def __init__(self, takes: timedelta = timedelta(0), limits: Limits | None = None) -> None:
        super().__init__(of_cluster=settings(limits=limits or Limits(), **IN_A_ZONE_WITH_PRICES))
        self.takes = takes
        self._began: dict[tuple[str, str], datetime] = {}
        self.ran_at: dict[int, datetime] = {}
        """When so many Jobs ran at once first."""

    def cluster_lives(self) -> None:
        super().cluster_lives()
        running = sum(len(each.bound) for each in self.cluster.workloads.values())
        self.ran_at.setdefault(running, self.clock.now())

    def operations_end(self) -> None:
        now = self.clock.now()
        for pool in [each for each in self.backend.pools.values() if each.operation is not None]:
            if now - self._began.setdefault((pool.name, str(pool.operation)), now) >= self.takes:
                self.backend.finish(pool.name)


def reasons(world: World, gang: LiveWorkload) -> list[ReportReason]:
    """Return what was told of a gang: each reason once for each time that it came anew, as it is an Event."""
    told: list[ReportReason] = []
    for _, update in world.publisher.reports:
        reason = update.report.reason
        if update.owner == gang.ref.owner and (not told or told[-1] is not reason):
            told.append(reason)
    return told


def said(world: World, reason: ReportReason) -> str:
    """Return what was told first with a reason."""
    return next(it.report.message for _, it in world.publisher.reports if it.report.reason is reason)


def deletions(world: World) -> list[datetime]:
    return [call.at for call in world.backend.calls if call.verb is Verb.DELETE]


def standing(world: World, gang: LiveWorkload) -> int:
    return sum(world.record(gang, index).phase is Phase.READY for index in range(gang.slices))


def minutes_pass(world: World, gang: LiveWorkload, minutes: int) -> None:
    world.settle(minutes=minutes, until=lambda: gang.served)


@pytest.mark.parametrize("takes", [0 * MINUTE, 5 * MINUTE], ids=["at once", "slowly"])
def test_a_gang_starts_as_a_whole_once_stock_comes_that_was_out_for_50_minutes(takes: timedelta) -> None:
    world = Slow(takes)
    has_capacity_for(world, 3)
    gang = a_gang(world)
    minutes_pass(world, gang, 50)
    assert (gang.bound, standing(world, gang)) == (set(), 3)
    has_capacity_for(world, 4)
    minutes_pass(world, gang, 40)
    assert gang.served
    assert set(world.ran_at) == {0, 4}, "no pod ran before all did"
    assert world.ran_at[4] - world.record(gang, 3).since <= 5 * SECOND
    assert deletions(world) == []
    assert BILLED in said(world, ReportReason.GANG_FORMING)
    world.settle(minutes=2)
    assert reasons(world, gang) == [
        ReportReason.WAITING,
        ReportReason.GANG_HELD,
        ReportReason.GANG_FORMING,
        ReportReason.GANG_STARTED,
    ]


def test_slices_whose_gang_does_not_come_go_after_an_hour_and_are_tried_again_after_5_10_and_20_minutes() -> None:
    world = Slow()
    has_capacity_for(world, 3)
    gang = a_gang(world)
    for tries in (1, 2, 3):
        begins = world.clock.now()
        world.settle(minutes=5, until=lambda: gang_of(world, gang).held_since is not None)
        world.settle(minutes=2)
        held_until = gang_of(world, gang).held_until(world.settings.limits)
        assert held_until is not None
        world.settle(minutes=70, until=lambda: not world.pools)
        at = [each for each in deletions(world) if each > begins]
        assert len(at) == 3
        assert max(at) - held_until <= MINUTE + 30 * SECOND, "a minute: that of the sweep that sees it"
        back_at = gang_of(world, gang).back_at
        assert back_at is not None
        pause = (back_at - min(at)) / (5 * MINUTE * 2 ** (tries - 1))
        assert 1 - 2 * SPREAD < pause < 1 + 2 * SPREAD
        world.settle(minutes=30, until=lambda: gang_of(world, gang).forms)
    assert set(world.ran_at) == {0}
    assert BILLED in said(world, ReportReason.GANG_HELD)
    assert "3 of 4 slices stood for 60 min (14" in (let_go := said(world, ReportReason.GANG_LET_GO))
    assert "USD by list price), and llama-slice-3 did not come (Stockout:" in let_go
    assert "if they are let go again, after about 10 min" in let_go


def test_no_slice_of_a_large_gang_is_let_go_while_the_others_are_made_five_at_a_time() -> None:
    world = Slow(10 * MINUTE, Limits(operations=5))
    gang = a_gang(world, slices=32)
    began = world.clock.now()
    minutes_pass(world, gang, 150)
    assert gang.served
    assert set(world.ran_at) == {0, 32}
    assert world.clock.now() - began > world.settings.limits.gang_hold_for
    assert (deletions(world), gang_of(world, gang).tries) == ([], 0)


def loses_one_and_restarts(world: World, gang: LiveWorkload) -> Sequence[str]:
    """Let a gang that runs lose a slice, of which there is no other, and all of its Jobs; return the others' pools."""
    minutes_pass(world, gang, 15)
    assert gang.served
    world.settle(minutes=2)
    has_capacity_for(world, 3)
    survivors = [world.record(gang, index).pool for index in range(1, 4)]
    loses_slice(world, gang)
    for index in range(4):
        world.cluster.removes_pod(gang, index)
    return survivors


def test_a_gang_that_lost_a_slice_restarts_as_a_whole_on_what_was_held_and_a_new_one() -> None:
    world = Slow()
    gang = a_gang(world)
    survivors = loses_one_and_restarts(world, gang)
    minutes_pass(world, gang, 20)
    assert (gang.bound, gang_of(world, gang).stuck_since is not None) == (set(), True)
    has_capacity_for(world, 4)
    minutes_pass(world, gang, 20)
    assert gang.served
    assert set(world.ran_at) == {0, 4}, "those that restarted waited, and started together"
    assert set(survivors) < set(world.pools)
    assert deletions(world) == []
    assert BILLED in said(world, ReportReason.GANG_REPAIRING)
    world.settle(minutes=2)
    assert reasons(world, gang)[-3:] == [
        ReportReason.GANG_STARTED,
        ReportReason.GANG_REPAIRING,
        ReportReason.GANG_STARTED,
    ]


def test_a_gang_that_lost_a_slice_for_which_none_comes_lets_all_go_and_starts_anew_later() -> None:
    world = Slow()
    gang = a_gang(world)
    loses_one_and_restarts(world, gang)
    lost_at = world.clock.now()
    world.settle(minutes=80, until=lambda: not world.pools)
    assert len(deletions(world)) == 3
    assert timedelta(hours=1) <= min(deletions(world)) - lost_at < timedelta(hours=1, minutes=3)
    assert (gang.bound, gang.state) == (set(), WorkloadState.ACTIVE)
    world.settle(minutes=2)
    assert reasons(world, gang)[-1] is ReportReason.GANG_LET_GO
    has_capacity_for(world, 0)
    world.settle(minutes=10)
    assert report(world, gang)[0] is ReportReason.WAITING, "it repairs nothing: none of it is held"
    has_capacity_for(world, 4)
    minutes_pass(world, gang, 30)
    assert gang.served
    world.settle(minutes=2)
    assert reasons(world, gang)[-1] is ReportReason.GANG_STARTED
