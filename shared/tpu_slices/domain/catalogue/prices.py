"""List prices of TPU chips: the rows of `prices.tsv`, and those of a cluster's settings (`catalogue.prices`)."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from tpu_slices.domain.catalogue.rows import Cells, Row, file_of, rows_of, rows_of_settings

COLUMNS = ("accelerator", "region", "kind", "usd_per_chip_hour", "read", "source")


class PriceKind(StrEnum):
    """What a price is for."""

    ON_DEMAND = "on_demand"
    SPOT = "spot"
    FLEX_START = "flex_start"
    CALENDAR = "calendar"
    COMMITMENT_1Y = "commitment_1y"
    COMMITMENT_3Y = "commitment_3y"


@dataclass(frozen=True, slots=True)
class ChipPrice:
    """What a chip costs."""

    usd_per_hour: float
    read: date
    source: str


Prices = Mapping[tuple[str, str, PriceKind], ChipPrice]
"""By accelerator, region and kind. What is not in it is not known."""


def price_row(row: Row) -> tuple[tuple[str, str, PriceKind], ChipPrice | None]:
    """Return what a row says, None for a price that is not known; raise WrongRow."""
    row.only(COLUMNS)
    kind = row.maybe("kind", PriceKind, f"one of {', '.join(PriceKind)}")
    usd = row.maybe("usd_per_chip_hour", _dollars, "dollars above zero, such as 2.70, or left out if it is not known")
    key = (row.text("accelerator"), row.text("region"), kind or row.fail("kind", "it is missing: write it"))
    read, source = row.day("read"), row.text("source")
    return key, None if usd is None else ChipPrice(usd, read, source)


@functools.lru_cache(maxsize=8)
def prices_with(rows: tuple[Cells, ...] = ()) -> Prices:
    """Return the prices of the catalogue with those of settings, which replace them; raise WrongRow."""
    known = _once(rows_of(file_of("prices.tsv"), "prices.tsv"))
    own = _once(rows_of_settings("prices", rows))
    return {key: price for key, price in {**known, **own}.items() if price is not None}


def _once(rows: Iterable[Row]) -> dict[tuple[str, str, PriceKind], ChipPrice | None]:
    found: dict[tuple[str, str, PriceKind], ChipPrice | None] = {}
    for row in rows:
        key, price = price_row(row)
        if key in found:
            row.fail("kind", f"there is a row for {' '.join(key)} already: remove one of them")
        found[key] = price
    return found


def _dollars(text: str) -> float:
    dollars = float(text)
    if not 0 < dollars < float("inf"):
        raise ValueError(text)
    return dollars
