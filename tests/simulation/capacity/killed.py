"""Stories whose processes are killed: of a gang that moves on its ladder, a reservation that begins, and spares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.simulation.capacity.booked import PLACES as RESERVED
from tests.simulation.capacity.booked import WING
from tests.simulation.capacity.drawn import PLACES, SPOT, B
from tests.simulation.drawn import a_plot, a_story
from tests.simulation.stocked import with_spares
from tpu_slices.domain.model.capacity import Ladder, Rung
from tpu_slices_simulator.story import Fault, Kind, Reserved, Story


def _laddered(*places: str, **story: Any) -> Story:
    """Return a story in a cluster whose workloads have a ladder of these places."""
    made = a_story(**story)
    ladders = {"first": Ladder(rungs=tuple(Rung(place=each) for each in places))}
    return replace(
        made, settings=replace(made.settings, places={**PLACES, **RESERVED}, ladders=ladders, ladder="first")
    )


def of_capacity(minutes: int) -> Mapping[str, Story]:
    """Return the stories, each so long."""
    gang = a_plot("gang", 1, slices=2, gang=True, tolerates=True, ends=40)
    out = Fault(kind=Kind.STOCKOUT, at=5, lasts=60, zones=(B,), capacity=SPOT)
    moves = _laddered("spot-b", "list-b", seed=13, minutes=minutes, operations=1, jobsets=(gang,), faults=(out,))
    waits = tuple(a_plot(name, 1, ends=40) for name in ("first", "second"))
    begins = _laddered(WING, seed=14, minutes=minutes, jobsets=waits)
    wing = Reserved(name=WING, hosts=8, begins=12)
    needs = (a_plot("one", 12, ends=30), a_plot("two", 20, shape="2x4", ends=40))
    return {
        "a gang that moves on its ladder": moves,
        "a reservation that begins": replace(begins, reservations=(wing,)),
        "spares": with_spares(a_story(seed=15, minutes=minutes, jobsets=needs)),
    }
