"""A slice that an operator holds: told as held by whom since when, in reports and Events, and counted for an alert."""

from __future__ import annotations

import pytest

from relay.events import event, summary
from tests.builders import CLUSTER, MINUTE, a_request
from tests.manifests import a_manifest
from tests.world import World
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.flows import edits
from tpu_slices.flows.budget import counted
from tpu_slices_simulator.live import LiveWorkload

DAY = 24 * 60
HELD = "held by ada@example.com since 2026-03-01 12:"


def held(world: World, slices: int = 1) -> LiveWorkload:
    """Let a JobSet run whose slices an operator holds."""
    jobset = world.jobset_appears("llama", slices=slices)
    world.settle(minutes=10, until=lambda: len(jobset.bound) == slices)
    world.settle(minutes=2)
    hold = edits.hold(None, "ada@example.com", world.clock.now())
    for index in range(slices):
        edits.edit(CLUSTER, world.record(jobset, index).name, hold, world.deps)
    world.settle(minutes=3)
    return jobset


def last_report(world: World) -> str:
    message: str = summary(world.publisher.reports[-1][1])["message"]
    return message


@pytest.mark.parametrize("slices", [1, 2])
def test_the_report_of_a_jobset_that_runs_tells_which_slices_are_held(slices: int) -> None:
    world = World()
    jobset = held(world, slices)
    report = last_report(world)
    assert report.startswith(f"{slices} of {slices} slices ready, {4 * slices} of {4 * slices} pods run.")
    names = ", ".join(f"llama-slice-{index}" for index in range(slices))
    assert f" {names}: {HELD}" in report
    assert {world.record(jobset, index).phase for index in range(slices)} == {Phase.READY}
    for index in range(slices):
        edits.edit(CLUSTER, world.record(jobset, index).name, edits.resume, world.deps)
    world.settle(minutes=3)
    assert last_report(world) == f"{slices} of {slices} slices ready, {4 * slices} of {4 * slices} pods run."


def test_the_report_and_the_event_of_a_jobset_that_is_over_tell_that_its_slice_is_held() -> None:
    world = World()
    jobset = held(world)
    world.ends(jobset)
    world.settle(minutes=15)
    assert world.record(jobset).reason is Reason.HELD
    assert f"The JobSet completed; llama-slice-0 is not released: {HELD}" in last_report(world)
    assert "being released" not in last_report(world)
    told = event(world.publisher.updates[-1], None)
    assert (told["reason"], told["type"]) == ("Held", "Warning")
    assert HELD[1:] in told["message"]
    assert "It is not needed: the JobSet completed" in told["message"]


def test_how_long_a_slice_is_held_without_a_workload_is_counted_and_one_in_use_is_not() -> None:
    world = World()
    jobset = held(world)
    world.settle(minutes=DAY)
    assert counted(world.settings, world.deps).held_for == 0 * MINUTE
    world.ends(jobset)
    world.settle(minutes=DAY + 10)
    assert counted(world.settings, world.deps).held_for > DAY * MINUTE
    edits.edit(CLUSTER, world.record(jobset).name, edits.resume, world.deps)
    world.settle(minutes=10)
    assert world.pools == []
    assert counted(world.settings, world.deps).held_for == 0 * MINUTE


def test_a_slice_that_was_held_while_its_jobset_was_suspended_and_edited_is_made_anew_once_it_is_held_no_more() -> None:
    world = World()
    jobset = held(world)
    world.suspends(jobset)
    world.settle(minutes=3)
    world.edits(jobset, a_manifest(OwnerKind.JOBSET, 1, a_request(topology="4x8")))
    world.resumes(jobset)
    world.settle(minutes=10)
    assert (world.record(jobset).hold, jobset.bound) == (True, set())
    edits.edit(CLUSTER, world.record(jobset).name, edits.resume, world.deps)
    world.settle(minutes=20)
    assert (jobset.bound, len(world.pools)) == ({0}, 1)
