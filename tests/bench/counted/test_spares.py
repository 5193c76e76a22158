"""What a spare that waits reads and writes each minute: counted, and bounded. ADR 145 has the numbers."""

from __future__ import annotations

import pytest

from tests.bench.counted import counters, spares

EACH = {counters.READS: 20, counters.WRITES: 1, counters.RECONCILE: 1}
"""Of the second of two spares, in each minute."""


@pytest.mark.slow
@pytest.mark.parametrize("name", EACH)
def test_a_spare_that_waits_uses_no_more_than_so_much_in_a_minute(name: str) -> None:
    assert (spares.waiting(2)[name] - spares.waiting(1)[name]) / spares.MINUTES <= EACH[name]
