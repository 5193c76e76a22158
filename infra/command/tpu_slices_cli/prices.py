"""List prices of TPU chips, and what a slice costs by them. Pure.

US dollars per chip and hour, extracted on 21 November 2026 from the rows tpu-v6e-256 and tpu-v5p-9600 of SkyPilot's
catalogue (catalogs/v8/gcp/vms.csv, github.com/skypilot-org/skypilot-catalog@006059e), which bears no date itself. Spot
prices change monthly. v4, v5e and tpu7x are not in this extract; what is not in it is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from typing import Any

from tpu_slices.domain.model.slices import CapacityKind, SliceSpec

AS_OF = date(2026, 11, 21)
SOURCE = "catalogs/v8/gcp/vms.csv of github.com/skypilot-org/skypilot-catalog@006059e"
NOTE = f"list prices of {AS_OF.day} {AS_OF:%B %Y}, without discounts; spot prices change monthly"

_PER_CHIP: Mapping[tuple[str, str], tuple[float | None, float | None]] = MappingProxyType(
    {
        # accelerator, region: on demand, spot
        ("tpu-v6e-slice", "asia-northeast1"): (3.2400, 0.9435),
        ("tpu-v6e-slice", "asia-south1"): (3.2400, 2.2700),
        ("tpu-v6e-slice", "asia-southeast1"): (2.9700, 0.3629),
        ("tpu-v6e-slice", "europe-west4"): (2.9700, 1.0375),
        ("tpu-v6e-slice", "southamerica-west1"): (2.7000, None),
        ("tpu-v6e-slice", "us-central1"): (2.7000, 0.5442),
        ("tpu-v6e-slice", "us-east1"): (2.7000, 0.5442),
        ("tpu-v6e-slice", "us-east4"): (2.7000, 0.5777),
        ("tpu-v6e-slice", "us-east5"): (2.7000, 1.2150),
        ("tpu-v6e-slice", "us-south1"): (2.7000, 1.3500),
        ("tpu-v6e-slice", "us-west1"): (2.7000, 0.5442),
        ("tpu-v5p-slice", "europe-west1"): (4.4595, 1.7838),
        ("tpu-v5p-slice", "europe-west4"): (4.2525, 1.3485),
        ("tpu-v5p-slice", "us-central1"): (4.2000, 0.8357),
        ("tpu-v5p-slice", "us-east1"): (4.2000, 0.8357),
        ("tpu-v5p-slice", "us-east5"): (4.2000, 1.6800),
        ("tpu-v5p-slice", "us-south1"): (4.7790, 1.3161),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a slice costs: US dollars per hour, to the cent."""

    usd_per_hour: float | None
    """With the capacity that it requests; None: unknown, or reserved."""
    on_demand: float | None
    spot: float | None
    reserved: bool
    """The hosts are paid with their reservation."""

    def __str__(self) -> str:
        if self.reserved:
            return "reserved"
        return "unknown" if self.usd_per_hour is None else f"{self.usd_per_hour:,.2f}"

    def as_json(self) -> dict[str, Any]:
        return {
            "usd_per_hour": self.usd_per_hour,
            "on_demand_usd_per_hour": self.on_demand,
            "spot_usd_per_hour": self.spot,
            "reserved": self.reserved,
        }


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
        parts = [] if total is None else [f"{total:,.2f} USD per hour for {_slices(known)} ({NOTE})"]
        parts += [f"the price of {_slices(self.unknown)} is unknown"] if self.unknown else []
        parts += [f"{_slices(self.reserved)} in reservations, not priced"] if self.reserved else []
        text = "; ".join(parts)
        return f"{text[:1].upper()}{text[1:]}."

    def as_json(self) -> dict[str, Any]:
        return {
            "usd_per_hour": self.usd_per_hour,
            "unknown": self.unknown,
            "reserved": self.reserved,
            "note": NOTE,
            "as_of": AS_OF.isoformat(),
            "source": SOURCE,
        }


def price_of(spec: SliceSpec) -> Price:
    """Return the list price of a slice in its region, None for what the table does not have."""
    per_chip = _PER_CHIP.get((spec.accelerator, spec.zone.rpartition("-")[0]), (None, None))
    on_demand, spot = (None if each is None else round(each * spec.chips, 2) for each in per_chip)
    by_kind = {CapacityKind.ON_DEMAND: on_demand, CapacityKind.SPOT: spot}
    return Price(
        usd_per_hour=by_kind.get(spec.capacity.kind),
        on_demand=on_demand,
        spot=spot,
        reserved=spec.capacity.kind is CapacityKind.RESERVATION,
    )


def _slices(count: int) -> str:
    return f"{count} slice" if count == 1 else f"{count} slices"
