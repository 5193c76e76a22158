"""docs/cost.md has what is counted, and the prices that it is multiplied with."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from tests.bench.counted import cost, counters, usage
from tests.house.sources import ROOT

PAGE = (ROOT / "docs" / "cost.md").read_text()
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("|")]
TOLERANCE = 0.2
"""The page tells an order of magnitude: it need not be edited for every read more or less."""


def table(first: str) -> list[list[str]]:
    """Return the table whose heading has this in its first cell, with its heading."""
    start = next(index for index, row in enumerate(ROWS) if row[0] == first)
    width = len(ROWS[start])
    rest = ROWS[start + 2 :]
    end = next((index for index, row in enumerate(rest) if len(row) != width), len(rest))
    return [ROWS[start], *rest[:end]]


def numbers(cells: Sequence[str]) -> list[float]:
    return [float(cell.replace(",", "")) for cell in cells]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in usage.SCENARIOS if not name.startswith(str(usage.MANY))])
def test_the_page_has_what_is_counted(name: str) -> None:
    heading, *rows = table("in an hour")
    told = {row[0]: numbers(row[1:])[heading.index(name) - 1] for row in rows if row[0] in counters.COUNTED}
    counted = usage.SCENARIOS[name]()
    assert told.keys() == set(counters.COUNTED)
    assert told == {each: pytest.approx(counted[each], rel=TOLERANCE, abs=1) for each in counters.COUNTED}


def test_the_page_has_the_prices_of_the_sums() -> None:
    told = {}
    for name, price, *_ in table("price")[1:]:
        if parts := re.fullmatch(r"([\d.]+) per ([\d,]+)", price):
            told[name] = float(parts[1]) / numbers([parts[2]])[0]
    assert told == {name: pytest.approx(price.usd) for name, price in cost.PRICES.items()}


def test_what_is_free_is_taken_off_once() -> None:
    price = cost.Price(2.0, free=10)
    assert [price.of(units) for units in (4, 10, 13)] == [(8.0, 0.0), (20.0, 0.0), (26.0, 6.0)]
