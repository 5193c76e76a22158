"""What a month of counted use costs by Google's list prices. Pure; docs/cost.md has the sources of the prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.bench.counted import counters
from tests.bench.counted.counters import Counts

HOURS = 730
DAYS = HOURS / 24
"""Of a month."""
CALL_SECONDS = 0.5
"""Assumed, never measured: how long an instance is billed for a call. Four calls may share one."""
REQUEST_LOG_BYTES = 1_000
"""Assumed: what Cloud Run itself logs of a call."""
INSTANCE_GIB = 0.5
"""infra/terraform/functions.tf"""
JOBS = 2
"""The tick of a cluster and that of the project (infra/messaging.yaml)."""
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars of one unit, and how many units of a month are free."""

    usd: float
    free: float = 0.0

    def of(self, units: float) -> tuple[float, float]:
        """Return what units cost without what is free, and with it."""
        return units * self.usd, max(units - self.free, 0.0) * self.usd


PRICES: Mapping[str, Price] = {
    "Firestore reads": Price(0.06 / 100_000, 50_000 * DAYS),
    "Firestore writes": Price(0.18 / 100_000, 20_000 * DAYS),
    "Firestore deletes": Price(0.02 / 100_000, 20_000 * DAYS),
    "function calls": Price(0.40 / 1_000_000, 2_000_000),
    "function vCPU-seconds": Price(0.000024, 180_000),
    "function GiB-seconds": Price(0.0000025, 360_000),
    "Pub/Sub GiB": Price(40 / 1024, 10),
    "Logging GiB": Price(0.50, 50),
    "Scheduler jobs": Price(0.10, 3),
}
"""Firestore's are those of the multi-region nam5."""


def units(month: Mapping[str, float]) -> dict[str, float]:
    """Return how many units of each price a month of this use has."""
    calls = sum(month.get(function, 0.0) for function in (counters.RECEIVE, counters.RECONCILE, counters.SWEEP))
    return {
        "Firestore reads": month[counters.READS],
        "Firestore writes": month[counters.WRITES],
        "Firestore deletes": month.get(counters.DELETES, 0.0),
        "function calls": calls,
        "function vCPU-seconds": calls * CALL_SECONDS,
        "function GiB-seconds": calls * CALL_SECONDS * INSTANCE_GIB,
        "Pub/Sub GiB": month[counters.BILLED_BYTES] / GIB,
        "Logging GiB": (month[counters.LOG_BYTES] + calls * REQUEST_LOG_BYTES) / GIB,
        "Scheduler jobs": JOBS,
    }


def months(
    idle: Counts, life: Counts, few: tuple[int, Counts], many: tuple[int, Counts]
) -> dict[str, dict[str, float]]:
    """Return a month's use of three installations of one cluster, from the counts of single hours."""
    ready = {each: (many[1][each] - few[1][each]) / (many[0] - few[0]) for each in counters.COUNTED}
    flat = {each: few[1][each] - few[0] * ready[each] for each in counters.COUNTED}
    lives = 10 * DAYS
    return {
        "idle": {each: HOURS * idle[each] for each in counters.COUNTED},
        "10 slices a day, each READY for 8 h": {
            each: HOURS * idle[each] + lives * (life[each] - idle[each] + 7.25 * ready[each])
            for each in counters.COUNTED
        },
        "1,000 READY slices": {each: HOURS * (flat[each] + 1_000 * ready[each]) for each in counters.COUNTED},
    }


def bill(month: Mapping[str, float]) -> dict[str, tuple[float, float, float]]:
    """Return units, dollars without and dollars with what is free, by price; all together under `sum`."""
    rows = {name: (count, *PRICES[name].of(count)) for name, count in units(month).items()}
    return {**rows, "sum": (0.0, sum(row[1] for row in rows.values()), sum(row[2] for row in rows.values()))}
