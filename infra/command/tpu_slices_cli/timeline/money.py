"""What the chips that slices held cost, by list prices. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.slices import ClusterId, SliceSpec
from tpu_slices.domain.planning.costs import price_of
from tpu_slices.domain.reporting.timeline import Course

SettingsOf = Callable[[ClusterId], ClusterSettings | None]
_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Money:
    """Dollars for the chip-hours whose price is known, and the chip-hours of the others."""

    dollars: float = 0
    priced: float = 0
    unknown: float = 0
    reserved: float = 0

    def __add__(self, other: Money) -> Money:
        return Money(
            self.dollars + other.dollars,
            self.priced + other.priced,
            self.unknown + other.unknown,
            self.reserved + other.reserved,
        )

    def __str__(self) -> str:
        """Return the sum, and the chip-hours that are not in it.

        | held            | told                                    |
        |-----------------|-----------------------------------------|
        | nothing         | `-`                                     |
        | at known prices | `12.30 USD`                             |
        | at others       | `price unknown`, `reserved`             |
        | at both         | `12.30 USD; 4.0 chip-hours reserved`    |
        """
        others = {"price unknown": self.unknown, "reserved": self.reserved}
        beside = [(name, hours) for name, hours in others.items() if hours]
        if not self.priced and len(beside) == 1:
            return beside[0][0]
        parts = [f"{self.dollars:,.2f} USD"] if self.priced else []
        return "; ".join((*parts, *(f"{hours:,.1f} chip-hours {name}" for name, hours in beside))) or "-"


def spent(courses: Iterable[Course], settings_of: SettingsOf) -> Money:
    """Return what the chips cost that these slices held in the window."""
    return sum((_of(each, settings_of) for each in courses), Money())


def _of(each: Course, settings_of: SettingsOf) -> Money:
    settings = settings_of(each.record.cluster)
    return sum((_at(spec, time / _HOUR, settings) for spec, time in each.held_as.items()), Money())


def _at(spec: SliceSpec, hours: float, settings: ClusterSettings | None) -> Money:
    if not hours or not spec.chips:
        return Money()
    price = price_of(spec, settings)
    if price.reserved:
        return Money(reserved=hours)
    if price.usd_per_hour is None:
        return Money(unknown=hours)
    return Money(dollars=hours * price.usd_per_hour / spec.chips, priced=hours)
