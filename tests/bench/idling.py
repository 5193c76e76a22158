"""Chip-seconds for which nothing trains, as a run lacks a slice: simulated, so that they are alike in each run.

Of a gang, beside those of as many single slices, whose pods run and wait at a barrier. Slices take a minute to be made.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from structlog.testing import capture_logs

from tests.bench.measures import Measure, measure
from tests.builders import MINUTE, a_request
from tests.journeys.gangs.test_gangs import has_capacity_for
from tests.world import World
from tpu_slices.domain.model.reasons import Phase

SLICES = 4
LATE = {"30 min": 30, "3 hours": 180}
"""After how many minutes there is capacity for the last slice."""


def rows() -> Iterator[Measure]:
    for when, minutes in LATE.items():
        with capture_logs():
            single, gang = (chip_seconds(mode, minutes * MINUTE) for mode in ("none", "all"))
        yield measure(f"simulated: gang, slice {SLICES} comes {when} late", "chip-seconds", [gang], [single])


def chip_seconds(mode: str, late: timedelta) -> float:
    """Return how many are billed until all slices of a run are used: those of slices that stand, minute by minute."""
    world = World()
    began, found = world.clock.now(), 0
    has_capacity_for(world, SLICES - 1)
    run = world.jobset_appears("llama", SLICES, a_request(gang=mode if mode != "none" else ""))
    while not run.served:
        if world.clock.now() >= began + late:
            has_capacity_for(world, SLICES)
        before = world.clock.now()
        world.settle(minutes=1)
        if not run.served:
            standing = [each for each in world.records.values() if each.phase is Phase.READY]
            chips = sum(each.made_as.chips for each in standing if each.made_as is not None)
            found += chips * round((world.clock.now() - before).total_seconds())
    return found
