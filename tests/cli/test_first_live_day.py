"""docs/first-live-day.md: what is bought costs what `slices plan` says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Slices

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "first-live-day.md").read_text()
ROW = re.compile(r"^\| ([\d, ]+) \| `(examples/[\w.-]+)`[^|]*\| (\d+) \| (\S+) \| (\d+) \| (\S+) \|$", re.MULTILINE)
BOUGHT = ROW.findall(PAGE)


@pytest.mark.parametrize("row", BOUGHT, ids=lambda row: f"{row[0]} {row[1]}")
def test_what_is_bought_costs_what_the_plan_says(slices: Slices, row: tuple[str, ...]) -> None:
    _probes, example, chips, per_hour, minutes, cost = row
    plan = json.loads(slices("plan", "-f", ROOT / example, "-o", "json").stdout)
    assert sum(each["chips"] for each in plan["slices"]) == int(chips)
    price = plan["price"]["usd_per_hour"]
    if price is None:
        kind = "reserved" if plan["price"]["reserved"] else "unknown"
        assert (per_hour, cost) == (kind, kind)
    else:
        assert (per_hour, cost) == (f"{price:.2f}", f"{price * int(minutes) / 60:.2f}")


def test_probes_are_numbered_and_those_that_buy_are_among_them() -> None:
    probes = [int(number) for number in re.findall(r"^\| (\d+) (?:\| [^|]*){4}\|$", PAGE, re.MULTILINE)]
    assert probes == [*range(1, len(probes) + 1)]
    buying = {int(number) for row in BOUGHT for number in row[0].split(",")}
    assert buying <= set(probes)


def test_the_sum_is_that_of_the_known_prices() -> None:
    known = [float(cost) for *_, cost in BOUGHT if cost[0].isdigit()]
    assert f"that is {sum(known):.2f} USD" in PAGE
    assert len(known) < len(BOUGHT)
