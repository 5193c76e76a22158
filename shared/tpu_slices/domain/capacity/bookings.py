"""Which bookings in calendar mode would hold the slices of a workload. Pure.

| the slices of a workload, of one accelerator    | are asked about                                            |
|-------------------------------------------------|------------------------------------------------------------|
| of which Google books none in calendar mode     | not at all                                                 |
| that have more chips than one booking may have  | not at all                                                 |
| any other                                       | as the smallest booking that holds all of them, once for   |
|                                                 | each region of the zones that they may be in               |

What Google books, for how long and how far ahead, is as its documentation has it (tpu/docs/calendar-mode-reservation,
compute/docs/instances/create-future-reservations-calendar-mode; read 2026-11-30).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from tpu_slices.domain.catalogue.zones import zones_with
from tpu_slices.domain.model.bookings import BookingAsked
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.slices import SliceSpec

FAMILIES: Mapping[str, str] = {
    "tpu-v5-lite-podslice": "VM_FAMILY_CLOUD_TPU_LITE_POD_SLICE_CT5LP",
    "tpu-v5p-slice": "VM_FAMILY_CLOUD_TPU_POD_SLICE_CT5P",
    "tpu-v6e-slice": "VM_FAMILY_CLOUD_TPU_LITE_POD_SLICE_CT6E",
    "tpu7x": "VM_FAMILY_CLOUD_TPU_POD_SLICE_TPU7X",
}
"""Compute Engine's names of the families that calendar mode has, by accelerator (`gcloud compute advice`)."""
AMOUNTS = (1, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
"""The numbers of chips that a booking may have."""
SHORTEST, LONGEST = timedelta(days=1), timedelta(days=90)
EARLIEST, LATEST = timedelta(days=1), timedelta(days=120)
"""How far ahead times are known."""
_WITH_TYPES = "tpu-v5-lite-podslice"
_MOST_SERVING = 8
"""Of this accelerator, up to so many chips are booked for serving alone."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """The slices of one workload that have the same accelerator."""

    specs: tuple[SliceSpec, ...]

    @property
    def accelerator(self) -> str:
        return self.specs[0].accelerator

    @property
    def chips(self) -> int:
        return sum(each.chips for each in self.specs)

    @property
    def bookable(self) -> int | None:
        """The chips of the smallest booking that holds all of them; None: there is none so large."""
        return next((amount for amount in AMOUNTS if amount >= self.chips), None)

    @property
    def not_bookable(self) -> str:
        """Why no booking holds them; empty: one may."""
        if self.accelerator not in FAMILIES:
            return f"{self.accelerator} is not known to be booked in calendar mode"
        if self.bookable is None:
            return f"a booking in calendar mode has at most {AMOUNTS[-1]:,} chips, and {self.chips:,} are asked for"
        return ""


def bookings_for(
    grouped: Grouped, settings: ClusterSettings, lasts: timedelta, now: datetime
) -> tuple[BookingAsked, ...]:
    """Return the bookings to ask about, one for each region; none if there are no such ones."""
    if grouped.not_bookable or grouped.bookable is None:
        return ()
    offered = zones_with(settings.catalogue.zones).get(grouped.accelerator, ())
    regions: dict[str, dict[str, None]] = {}
    for zone in (zone for spec in grouped.specs for zone in zones_of(spec)):
        regions.setdefault(_region(zone), {})[zone] = None
    return tuple(
        BookingAsked(
            project=settings.path.split("/")[1],
            zones=tuple(zones),
            denied=tuple(each for each in offered if _region(each) == region and each not in zones),
            vm_family=FAMILIES[grouped.accelerator],
            workload_type=_workload_type(grouped.accelerator, grouped.bookable),
            chips=grouped.bookable,
            lasts=lasts,
            not_before=now + EARLIEST,
            not_after=now + LATEST - lasts,
        )
        for region, zones in regions.items()
    )


def zones_of(spec: SliceSpec) -> Iterable[str]:
    """Return the zones that a slice may be in: those of the rungs that its pods can use, or its own."""
    return dict.fromkeys(rung.zone for rung in spec.rungs if not rung.against) or (spec.zone,)


def _workload_type(accelerator: str, chips: int) -> str:
    if accelerator != _WITH_TYPES:
        return ""
    return "SERVING" if chips <= _MOST_SERVING else "BATCH"


def _region(zone: str) -> str:
    return zone.rpartition("-")[0]
