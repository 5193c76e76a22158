"""A ladder that is new or edited begins anew, and what stands by what was before keeps its workload in its zone."""

from __future__ import annotations

import pytest

from tests.builders import MINUTE, settings
from tests.journeys.ladders.stories import LIST, SPOT, B, C, appears, asked, had, laddered, rung
from tests.world import World
from tpu_slices.domain.model.capacity import Ladder
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.flows.capacity import ladders
from tpu_slices.ports.errors import StaleRecord

IN_B, LIST_IN_B, LIST_IN_C = f"spot in {B}", f"on-demand in {B}", f"on-demand in {C}"


def test_what_stands_keeps_the_rest_of_its_workload_in_its_zone_when_the_rungs_are_edited() -> None:
    world = World(of_cluster=laddered(rung("spot", 120)))
    jobset = appears(world, "llama", 2)
    world.backend.runs_out(B, SPOT, after=1)
    world.settle(minutes=15)
    assert had(world) == {IN_B: 1}
    world.store.put_settings(laddered(rung("list-elsewhere"), rung("spot", 30), rung("list"), version="settings-2"))
    world.settle(minutes=120, until=lambda: jobset.served)
    assert jobset.served
    assert LIST_IN_C not in asked(world)
    assert had(world) == {IN_B: 1, LIST_IN_B: 1}


EDITED = laddered(rung("list-elsewhere"), rung("spot", 30), rung("list"), version="settings-2")
OTHER = Ladder(rungs=(rung("list-elsewhere"), rung("list")))


def of_two_one_stands(before: ClusterSettings) -> World:
    """Return a cluster that has one slice in B, and lacks another, by these settings."""
    world = World(of_cluster=before)
    for kind in (SPOT, LIST):
        world.backend.runs_out(B, kind, after=1, until=world.clock.now() + 60 * MINUTE)
    return world


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (settings(), laddered(rung("list-elsewhere"), rung("spot", 30), version="settings-2")),
        (laddered(rung("list", 120)), laddered(version="settings-2", ladders={"other": OTHER}, ladder="other")),
    ],
    ids=["no ladder", "a ladder of another name"],
)
def test_what_was_made_by_another_ladder_or_none_keeps_the_rest_in_its_zone(
    before: ClusterSettings, after: ClusterSettings
) -> None:
    world = of_two_one_stands(before)
    jobset = appears(world, "llama", 2)
    world.settle(minutes=15)
    assert had(world) == {LIST_IN_B: 1}
    world.store.put_settings(after)
    world.settle(minutes=120, until=lambda: jobset.served)
    assert LIST_IN_C not in asked(world)
    assert jobset.served


def test_where_a_workload_asks_is_decided_though_an_instance_died_once_its_demand_was_saved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = of_two_one_stands(laddered(rung("spot", 120)))
    jobset = appears(world, "llama", 2)
    world.settle(minutes=15)
    steps = list[None]()

    def step(*args: object) -> object:
        steps.append(None)
        if len(steps) == 1:
            raise StaleRecord("limiters/ was written by others")
        return ladders.step(*args)  # type: ignore[arg-type]

    monkeypatch.setattr("tpu_slices.flows.receive.step", step)
    world.store.put_settings(EDITED)
    world.settle(minutes=120, until=lambda: jobset.served)
    assert jobset.served
    assert LIST_IN_C not in asked(world)


@pytest.mark.parametrize("gang", ["", "all"])
@pytest.mark.parametrize("minutes", range(7, 12))
def test_what_is_being_made_as_the_rungs_are_edited_is_asked_for_by_the_new_ones_next(gang: str, minutes: int) -> None:
    world = World(of_cluster=laddered(rung("spot", 600)))
    world.backend.runs_out(B, SPOT, after=1)
    jobset = appears(world, "llama", 2, gang=gang)
    world.settle(minutes=minutes)
    world.store.put_settings(laddered(rung("list"), version="settings-2"))
    world.settle(minutes=90, until=lambda: jobset.served)
    assert jobset.served
