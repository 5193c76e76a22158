"""What is told of a slice that waits for long: in its list, its explanation, its Events and its JobSet's report."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from relay.events import event, summary
from tests.builders import MINUTE, settings
from tests.cli.stage import Stage
from tests.world import World
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.observations import Creating, Deleting, Failure, FailureKind
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices_simulator.live import LiveWorkload

STOCKOUT = Failure(FailureKind.STOCKOUT, "[GCE_STOCKOUT] none left")


def lives(world: World, minutes: int, until: Callable[[], bool] = lambda: False) -> None:
    """Let minutes pass in which no creation ends by itself."""
    for _ in range(minutes):
        world.steps()
        if until():
            return
        for pool in [each for each in world.backend.pools.values() if isinstance(each.seen, Deleting)]:
            world.backend.finish(pool.name)
        world.clock.advance(MINUTE)
        world.sweeps()
    world.steps()


def runs_out(world: World) -> None:
    """Let every creation that runs end with a stockout, after the time that GKE takes for that."""
    lives(world, 35)
    creating = [pool for pool in world.backend.pools.values() if isinstance(pool.seen, Creating)]
    assert creating
    for pool in creating:
        assert pool.order is not None
        world.backend.fail(pool.name, STOCKOUT)
    world.steps()


def fourth_attempt(world: World) -> LiveWorkload:
    jobset = world.jobset_appears("llama")
    for _ in range(3):
        lives(world, 20, until=lambda: world.record(jobset).phase is Phase.PROVISIONING)
        runs_out(world)
    lives(world, 20, until=lambda: world.record(jobset).phase is Phase.PROVISIONING)
    return jobset


def told(stage: Stage, jobset: LiveWorkload) -> dict[str, str]:
    """Return what is told of the only slice that a JobSet has or waits for, by where."""
    stage.world.sweeps()
    uid = jobset.ref.owner.uid
    updates = [update for update in stage.world.publisher.updates if update.job.owner.uid == uid]
    reports = [update for _, update in stage.world.publisher.reports if update.owner.uid == uid]
    slices = json.loads(stage.output_of("list", "--jobset", jobset.ref.owner.name, "-o", "json"))["slices"]
    (listed,) = [each for each in slices if not each["let_go"]]
    return {
        "list": listed["message"],
        "explain": stage.output_of("explain", listed["id"]).split("\n")[1],
        "explain JobSet": stage.output_of("explain", jobset.ref.owner.full_name),
        "Event of the slice": event(updates[-1], None)["message"],
        "Event of the JobSet": summary(reports[-1])["message"],
    }


def test_a_fourth_attempt_tells_that_three_were_out_of_stock_since_when_and_until_when_this_one_may_take() -> None:
    stage = Stage()
    jobset = fourth_attempt(stage.world)
    began = stage.world.record(jobset).current.create_requested_at
    assert began is not None
    for where, text in told(stage, jobset).items():
        assert "attempt 4, out of stock 3 times" in text, where
        assert "since 12:00 UTC" in text, where
        assert f"this one may take until {began + 36 * MINUTE:%H:%M} UTC" in text, where
    report = stage.world.publisher.reports[-1][1].report.message
    assert "No action needed" not in report
    assert "Another zone, a smaller topology, spot or a reservation may be available sooner" in report


def test_an_attempt_is_told_alike_for_as_long_as_it_runs_and_if_it_takes_longer_that_it_does() -> None:
    stage = Stage()
    jobset = fourth_attempt(stage.world)
    began = stage.world.record(jobset).current.create_requested_at
    assert began is not None
    lives(stage.world, 20)
    assert stage.world.record(jobset).reason is Reason.CREATING
    texts = told(stage, jobset)
    for where in ("list", "explain", "explain JobSet", "Event of the JobSet"):
        assert "attempt 4, out of stock 3 times" in texts[where], where
        assert f"this one may take until {began + 36 * MINUTE:%H:%M} UTC" in texts[where], where
    lives(stage.world, 30)
    texts = told(stage, jobset)
    for where in ("list", "explain", "explain JobSet"):
        assert "GKE usually reports a stockout before" in texts[where], where


def test_a_wait_for_the_next_attempt_tells_how_many_failed_since_when() -> None:
    stage = Stage()
    jobset = stage.world.jobset_appears("llama")
    for _ in range(3):
        lives(stage.world, 20, until=lambda: stage.world.record(jobset).phase is Phase.PROVISIONING)
        runs_out(stage.world)
    assert stage.world.record(jobset).reason is Reason.STOCKOUT
    for where, text in told(stage, jobset).items():
        assert "3 attempts so far, out of stock 3 times" in text, where
        assert "since 12:00 UTC" in text, where


@pytest.mark.parametrize("count", [1, 2], ids=["it did not try yet", "it tried once"])
def test_a_slice_that_waits_its_turn_tells_what_ran_out_where_when_and_how_often_it_tried(count: int) -> None:
    stage = Stage()
    world = stage.world
    tried = [world.jobset_appears(f"job-{number}") for number in range(count)]
    lives(world, 1)
    runs_out(world)
    at = world.clock.now()
    jobsets = [*tried, *(world.jobset_appears(f"late-{number}") for number in range(2))]
    lives(world, 3)
    waiting = [each for each in jobsets if world.record(each).phase is Phase.QUEUED]
    late = next(each for each in waiting if (each in tried) == (count == 2))
    assert world.record(late).reason is Reason.AWAITING_TURN
    assert [world.record(each).phase for each in jobsets].count(Phase.PROVISIONING) == 1
    texts = told(stage, late)
    for where, text in texts.items():
        assert f"us-central2-b was out of tpu-v6e-slice 4x4 at {at:%H:%M} UTC" in text, where
        assert "one slice at a time tries" in text, where
        assert ("no attempt so far" if count == 1 else "1 attempt so far, out of stock once") in text, where
        assert "GKE limits the concurrent operations" not in text, where
    assert "AwaitingTurn" in texts["explain JobSet"]
    assert "SlicesWaiting" in texts["explain JobSet"]


def test_a_slice_waits_for_a_slot_alone_once_the_shortage_is_forgotten() -> None:
    stage = Stage()
    world = stage.world
    world.store.put_settings(settings(limits=Limits(operations=1)))
    first = world.jobset_appears("first")
    lives(world, 1)
    runs_out(world)
    jobsets = [first, world.jobset_appears("late")]
    lives(world, 5)
    (late,) = [each for each in jobsets if world.record(each).phase is Phase.QUEUED]
    assert world.record(late).reason is Reason.AWAITING_TURN
    lives(world, 45)
    assert world.record(late).reason is Reason.OPERATION_LIMIT
    assert "GKE limits the concurrent operations" in told(stage, late)["Event of the JobSet"]


def test_slices_that_wait_for_a_slot_are_told_when_their_capacity_runs_out() -> None:
    world = World()
    jobsets = [world.jobset_appears(f"job-{number}") for number in range(9)]
    lives(world, 1)
    waiting = [each for each in jobsets if world.record(each).phase is Phase.QUEUED]
    assert {world.record(each).reason for each in waiting} == {Reason.OPERATION_LIMIT}
    runs_out(world)
    lives(world, 2)
    waiting = [each for each in jobsets if world.record(each).phase is Phase.QUEUED]
    assert waiting
    assert {world.record(each).reason for each in waiting} == {Reason.AWAITING_TURN}


def test_many_slices_that_wait_their_turn_are_one_wait() -> None:
    world = World()
    world.jobset_appears("first")
    lives(world, 1)
    runs_out(world)
    jobset = world.jobset_appears("many", slices=30)
    lives(world, 3)
    report = [update.report for _, update in world.publisher.reports if update.owner == jobset.ref.owner][-1]
    (wait,) = [each for each in report.waits if each.reason is Reason.AWAITING_TURN]
    assert wait.count >= 29
