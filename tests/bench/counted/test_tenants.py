"""What one tenant can cost is bounded, whatever number of slices it asks for."""

from __future__ import annotations

import pytest

from tests.bench.counted import counters
from tests.bench.counted.tenants import Tenants

AN_HOUR = 60
MANY = 1_000


@pytest.mark.slow
def test_slices_that_a_limit_of_chips_refuses_cost_nothing_while_nothing_changes_but_four_reads_an_hour() -> None:
    one, many = Tenants(), Tenants()
    for namespace in ("research", "vision"):
        one.has("train", 2, namespace)
        many.has("train", 100, namespace)
    assert (one.refused(), many.refused()) == (2, 198)
    few, all_of_them = one.idle(AN_HOUR), many.idle(AN_HOUR)
    inventory_checks = 4
    assert all_of_them[counters.READS] - few[counters.READS] <= 196 * inventory_checks + 2 * 6 * 41
    for counted in (counters.RECEIVE, counters.RECONCILE, counters.WRITES, counters.UPDATES, counters.GKE_READS):
        assert all_of_them[counted] == few[counted], counted
