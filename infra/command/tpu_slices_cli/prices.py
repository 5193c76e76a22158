"""What the slices of a plan cost together. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any

from tpu_slices.domain.planning.costs import Price


@dataclass(frozen=True, slots=True)
class Total:
    """What all slices of a plan cost together."""

    prices: tuple[Price, ...]

    @property
    def usd_per_hour(self) -> float | None:
        """The sum of what is known; None: nothing is."""
        known = [price.usd_per_hour for price in self.prices if price.usd_per_hour is not None]
        return round(sum(known), 2) if known else None

    @property
    def reserved(self) -> int:
        return sum(price.reserved for price in self.prices)

    @property
    def unknown(self) -> int:
        return sum(price.usd_per_hour is None for price in self.prices) - self.reserved

    def __str__(self) -> str:
        total, known = self.usd_per_hour, len(self.prices) - self.reserved - self.unknown
        parts = [] if total is None else [f"{total:,.2f} USD per hour for {_slices(known)} ({note(self.prices)})"]
        parts += [f"the price of {_slices(self.unknown)} is unknown"] if self.unknown else []
        parts += [f"{_slices(self.reserved)} in reservations, not priced"] if self.reserved else []
        text = "; ".join(parts)
        return f"{text[:1].upper()}{text[1:]}."

    def as_json(self) -> dict[str, Any]:
        chips = [price.chip for price in self.prices if price.chip]
        return {
            "usd_per_hour": self.usd_per_hour,
            "unknown": self.unknown,
            "reserved": self.reserved,
            "note": note(self.prices) if chips else None,
            "as_of": min(chip.read for chip in chips).isoformat() if chips else None,
            "sources": sorted({chip.source for chip in chips}),
        }


def note(prices: Iterable[Price]) -> str:
    """Return what is to be known of prices beside themselves: from when they are, and what they leave out."""
    days = sorted({price.chip.read for price in prices if price.chip})
    when = " to ".join(dict.fromkeys(map(_day, (days[0], days[-1])))) if days else "unknown dates"
    return f"list prices of {when}, without discounts; spot prices change monthly"


def _day(day: date) -> str:
    return f"{day.day} {day:%B %Y}"


def _slices(count: int) -> str:
    return f"{count} slice" if count == 1 else f"{count} slices"
