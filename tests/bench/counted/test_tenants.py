"""What one tenant can cost is bounded, whatever number of slices it asks for."""

from __future__ import annotations

import pytest

from tests.bench.counted import counters
from tests.bench.counted.counters import Counts
from tests.bench.counted.tenants import Tenants

AN_HOUR = 60
TEN_MINUTES = 600


def messages(used: Counts) -> int:
    return sum(used[counted] for counted in (counters.RECEIVE, counters.RECONCILE, counters.UPDATES))


@pytest.mark.slow
@pytest.mark.parametrize("slices", [100, pytest.param(1_000, marks=pytest.mark.real)])
def test_flipping_the_suspension_of_many_slices_costs_two_messages_four_reads_and_two_commits_a_second(
    slices: int,
) -> None:
    """Each second; in all: with what the cluster costs that minute, and the inventory check of all slices."""
    tenants = Tenants()
    used = tenants.flips(tenants.has("flips", slices), TEN_MINUTES)
    assert messages(used) <= 2 * TEN_MINUTES
    assert used[counters.READS] <= 4 * TEN_MINUTES
    assert used[counters.WRITES] <= 2 * TEN_MINUTES


@pytest.mark.slow
def test_slices_that_a_limit_of_chips_refuses_cost_nothing_while_nothing_changes_but_four_reads_an_hour() -> None:
    """Beside what reports read of them, which does not grow with their number."""
    few, many = Tenants(), Tenants()
    for namespace in ("research", "vision"):
        few.has("train", 2, namespace)
        many.has("train", 100, namespace)
    assert (few.refused(), many.refused()) == (2, 198)
    one, all_of_them = few.idle(AN_HOUR), many.idle(AN_HOUR)
    checked, reported = 4 * (198 - 2), 2 * AN_HOUR // 10 * 41
    assert all_of_them[counters.READS] - one[counters.READS] <= checked + reported
    for counted in (counters.RECEIVE, counters.RECONCILE, counters.WRITES, counters.UPDATES, counters.GKE_READS):
        assert all_of_them[counted] == one[counted], counted
