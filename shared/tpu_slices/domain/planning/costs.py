"""What a slice costs an hour by list prices: those of the catalogue, and of the settings of its cluster. Pure.

The rows of `domain/catalogue/prices.tsv` have sources and dates. What has no row is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from tpu_slices.domain.catalogue.prices import ChipPrice, PriceKind, prices_with
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.slices import CapacityKind, SliceSpec
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.spending import chips_held

_KINDS: Mapping[CapacityKind, PriceKind] = MappingProxyType(
    {
        CapacityKind.ON_DEMAND: PriceKind.ON_DEMAND,
        CapacityKind.SPOT: PriceKind.SPOT,
        CapacityKind.FLEX_START: PriceKind.FLEX_START,
    }
)
"""What capacity is paid by; hosts of a reservation are paid with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a slice costs: US dollars per hour, to the cent."""

    by_kind: Mapping[PriceKind, float]
    """What is known in its region, to compare."""
    kind: PriceKind | None
    """What the capacity that it requests is paid by; None: it is reserved, and paid with its reservation."""
    chip: ChipPrice | None
    """The price of a chip by that; None: unknown, or reserved."""

    @property
    def reserved(self) -> bool:
        return self.kind is None

    @property
    def usd_per_hour(self) -> float | None:
        """What it costs with the capacity that it requests; None: unknown, or reserved."""
        return None if self.kind is None else self.by_kind.get(self.kind)

    def __str__(self) -> str:
        if self.reserved:
            return "reserved"
        return "unknown" if self.usd_per_hour is None else f"{self.usd_per_hour:,.2f}"

    def as_json(self) -> dict[str, Any]:
        return {
            "usd_per_hour": self.usd_per_hour,
            **{f"{kind}_usd_per_hour": self.by_kind.get(kind) for kind in PriceKind},
            "reserved": self.reserved,
            "read": self.chip and self.chip.read.isoformat(),
            "source": self.chip and self.chip.source,
        }


def price_of(spec: SliceSpec, settings: ClusterSettings | None = None) -> Price:
    """Return the list price of a slice in its region, as its cluster's settings have it, else the catalogue."""
    prices = prices_with(settings.catalogue.prices if settings else ())
    region = spec.zone.rpartition("-")[0]
    found = {kind: prices.get((spec.accelerator, region, kind)) for kind in PriceKind}
    kind = _KINDS.get(spec.capacity.kind)
    return Price(
        by_kind={each: round(chip.usd_per_hour * spec.chips, 2) for each, chip in found.items() if chip},
        kind=kind,
        chip=found[kind] if kind else None,
    )


def billed(slices: Iterable[SliceRecord], settings: ClusterSettings | None) -> str:
    """Return what the hosts of slices cost, as a clause; nothing if there are none.

    `settings`: those of their cluster, which may have prices of their own; None: they are not known.

    | chips                      | told                                                       |
    |----------------------------|------------------------------------------------------------|
    | whose price is known       | `64 chips are billed, 110.40 USD per hour by list price`   |
    | whose price is not known   | `64 chips are billed` beside those, `at an unknown price`  |
    | of reservations            | `64 chips of reservations stand`                           |
    """
    known, unknown, reserved, dollars = 0, 0, 0, 0.0
    for record in slices:
        held = chips_held(record)
        if not held or record.made_as is None:
            continue
        price = price_of(record.made_as, settings)
        if price.reserved:
            reserved += held
        elif price.usd_per_hour is None:
            unknown += held
        else:
            known += held
            dollars += price.usd_per_hour * held / record.made_as.chips
    return " and ".join(_clauses(known, unknown, reserved, dollars))


def spent(slices: Iterable[SliceRecord], settings: ClusterSettings, now: datetime) -> str:
    """Return what slices have cost since they are READY, as a clause; empty: it is not known of any, or reserved."""
    dollars = 0.0
    for record in slices:
        price = price_of(record.made_as, settings).usd_per_hour if record.made_as is not None else None
        dollars += (price or 0.0) * ((now - record.since) / timedelta(hours=1))
    return f"{dollars:,.2f} USD by list price" if dollars else ""


def _clauses(known: int, unknown: int, reserved: int, dollars: float) -> Iterator[str]:
    if known:
        yield f"{known} chips are billed, {dollars:,.2f} USD per hour by list price"
    if unknown:
        yield f"{unknown} {'more ' if known else ''}chips are billed at an unknown price"
    if reserved:
        yield f"{reserved} chips of {'reservations' if known or unknown else 'its reservation'} stand"
