"""Where a slice on a ladder is made is read in the same words wherever it is shown."""

from __future__ import annotations

from tests.cli.stage import Stage
from tests.journeys.ladders.stories import SPOT, B, appears, laddered, rung
from tests.world import World
from tpu_slices.domain.records.mirror import mirrored

STANDING = "list (rung 2 of 2)"


def stepped() -> World:
    world = World(of_cluster=laddered(rung("spot"), rung("list")))
    world.backend.runs_out(B, SPOT)
    jobset = appears(world, "llama")
    world.settle(minutes=20, until=lambda: jobset.bound == {0})
    return world


def test_lists_explanations_and_the_mirror_name_the_place_and_the_rung() -> None:
    world = stepped()
    (record,) = (each for each in world.records.values() if each.made_as is not None)
    shown = mirrored(record).slice
    assert shown is not None
    assert shown.place == STANDING
    stage = Stage(world)
    explained = stage.output_of("explain", "research/llama-slice-0")
    listed = " ".join(stage.output_of("list", "-o", "wide").split())
    assert f"{STANDING} of ladder patient" in explained
    assert "(rung 2" in listed


def test_a_slice_without_a_ladder_has_no_place_to_show() -> None:
    world = World()
    jobset = world.jobset_appears("llama")
    world.settle(minutes=20, until=lambda: jobset.bound == {0})
    (record,) = world.records.values()
    shown = mirrored(record).slice
    assert shown is not None
    assert shown.place == ""
