"""What a gang writes beyond as many slices by themselves: counted, and bounded. docs/cost.md has the numbers."""

from __future__ import annotations

import pytest

from tests.bench.counted import counters, gangs

SLICES = 4
BEYOND = {counters.WRITES: 2, counters.READS: 50, counters.RECONCILE: 0, counters.UPDATES: 0, counters.RECEIVE: 0}
"""Of four slices. The writes are those of the line, in which a gang is entered and struck out."""


@pytest.mark.slow
@pytest.mark.parametrize("name", BEYOND)
def test_the_start_of_a_gang_uses_no_more_than_so_much_beyond_that_of_single_slices(name: str) -> None:
    assert gangs.start(SLICES, "all")[name] - gangs.start(SLICES)[name] <= BEYOND[name]


@pytest.mark.slow
def test_what_a_gang_writes_beyond_that_does_not_grow_with_its_slices() -> None:
    one, four = (
        gangs.start(slices, "all")[counters.WRITES] - gangs.start(slices)[counters.WRITES] for slices in (1, SLICES)
    )
    assert four <= one
