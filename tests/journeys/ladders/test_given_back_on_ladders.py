"""What one gave back at a better rung serves those who ask further down their ladder: it costs no creation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from tests.builders import MINUTE
from tests.journeys.ladders.stories import LIST, SPOT, B, C, appears, asked, laddered, rung
from tests.journeys.serving import reason
from tests.world import World
from tpu_slices.domain.model.capacity import Rung, Warm, ZonesOf
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import CapacityKind
from tpu_slices_simulator.live import LiveWorkload

FOR_AN_HOUR = Warm(lasts=timedelta(hours=1))
BOTH: Sequence[Rung] = (rung("spot"), rung("list"))
ELSEWHERE: Sequence[Rung] = (rung("spot"), rung("list-elsewhere"))


def without_stock(
    rungs: Sequence[Rung],
    slices: int = 1,
    out: Sequence[tuple[str, CapacityKind]] = ((B, LIST),),
    gang: str = "",
    **changes: Any,
) -> tuple[World, LiveWorkload, LiveWorkload]:
    """Return a world in which one JobSet runs at the first rung, and another waits at the last: there is no stock."""
    world = World(of_cluster=laddered(*rungs, warm=FOR_AN_HOUR, **changes))
    runs = appears(world, "runs")
    world.settle(minutes=10, until=lambda: runs.bound == {0})
    for zone, kind in ((B, SPOT), *out):
        world.backend.runs_out(zone, kind)
    waits = appears(world, "waits", slices, gang=gang)
    world.settle(minutes=180)
    world.settle(minutes=60, until=lambda: at(world, waits) == 0)
    world.settle(minutes=60, until=lambda: at(world, waits) == 1)
    assert (runs.bound, waits.bound, at(world, waits)) == ({0}, set(), 1)
    return world, runs, waits


def at(world: World, jobset: LiveWorkload) -> int:
    """Return at which rung a JobSet asks; it tries the first one again once its shortage is forgotten."""
    uid = jobset.ref.owner.uid
    [at] = world.store.workloads(world.settings.cluster, [uid])[uid].value.ladders.values()
    return at.rung


def test_one_that_asks_further_down_gets_what_is_given_back_at_a_better_rung() -> None:
    world, runs, waits = without_stock(BOTH)
    before = asked(world, "waits")
    world.ends(runs)
    world.settle(minutes=5, until=lambda: waits.bound == {0})
    assert waits.bound == {0}
    record = world.record(waits)
    assert record.made_as is not None
    assert (record.made_as.capacity.kind, record.made_as.zone) == (SPOT, B)
    assert sum((asked(world, "waits") - before).values()) <= 1


def test_it_stays_on_it() -> None:
    world, runs, waits = without_stock(BOTH)
    world.ends(runs)
    world.settle(minutes=5, until=lambda: waits.bound == {0})
    calls = len(world.backend.calls)
    world.backend.has_stock(B, LIST)
    world.settle(minutes=90)
    assert (waits.bound, len(world.backend.calls)) == ({0}, calls)


def test_a_workload_of_one_slice_gets_it_in_another_zone_too() -> None:
    world, runs, waits = without_stock(ELSEWHERE, out=((C, LIST),))
    world.ends(runs)
    world.settle(minutes=5, until=lambda: waits.bound == {0})
    assert waits.bound == {0}


def test_one_of_two_slices_gets_it_in_its_own_zone_only() -> None:
    world, runs, waits = without_stock(ELSEWHERE, slices=2, out=((C, LIST),))
    world.ends(runs)
    world.settle(minutes=5)
    assert (waits.bound, reason(world, runs), at(world, waits)) == (set(), Reason.WARM, 1)


def test_one_of_two_slices_gets_it_in_any_zone_if_its_ladder_says_so() -> None:
    world, runs, waits = without_stock(ELSEWHERE, slices=2, out=((C, LIST),), zones=ZonesOf.ANY)
    world.ends(runs)
    world.settle(minutes=5, until=lambda: len(waits.bound) == 1)
    assert len(waits.bound) == 1


def test_a_gang_that_has_not_started_does_not_get_it_as_it_is_at_one_rung_with_all_slices() -> None:
    world, runs, waits = without_stock(BOTH, slices=2, gang="all")
    world.ends(runs)
    world.settle(minutes=10, until=lambda: reason(world, runs) is Reason.WARM)
    world.settle(minutes=1)
    assert (waits.bound, reason(world, runs), at(world, waits)) == (set(), Reason.WARM, 1)


def test_a_gang_that_ran_and_lost_a_slice_gets_it() -> None:
    world = World(of_cluster=laddered(*BOTH, warm=FOR_AN_HOUR))
    runs = appears(world, "runs")
    world.settle(minutes=10, until=lambda: runs.bound == {0})
    world.backend.runs_out(B, SPOT)
    gang = appears(world, "gang", 2, gang="all")
    world.settle(minutes=30, until=lambda: gang.bound == {0, 1})
    world.backend.runs_out(B, LIST)
    world.backend.vanish(world.record(gang, 1).pool)
    world.ends(runs)
    world.settle(minutes=15, until=lambda: gang.bound == {0, 1})
    made_as = world.record(gang, 1).made_as
    assert made_as is not None
    assert (gang.bound, made_as.capacity.kind) == ({0, 1}, SPOT)


@pytest.mark.parametrize("minutes", [1, 40])
def test_who_asks_at_a_better_rung_does_not_get_what_is_given_back_further_down(minutes: int) -> None:
    """It may cost more, and its ladder says how long it waits."""
    world = World(of_cluster=laddered(rung("spot", 120), rung("list"), warm=FOR_AN_HOUR))
    world.backend.runs_out(B, SPOT, until=world.clock.now() + 180 * MINUTE)
    runs = appears(world, "runs")
    world.settle(minutes=150, until=lambda: runs.bound == {0})
    world.backend.has_stock(B, SPOT)
    world.settle(minutes=40)
    world.backend.runs_out(B, SPOT)
    waits = appears(world, "waits")
    world.settle(minutes=minutes)
    world.ends(runs)
    world.settle(minutes=15)
    assert (waits.bound, reason(world, runs)) == (set(), Reason.WARM)
