"""When hosts could be booked in calendar mode: what Compute Engine is asked for, and what it advises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class BookingAsked:
    """A booking of so many chips that could begin between two times, in one of some zones of a region."""

    project: str
    zones: tuple[str, ...]
    denied: tuple[str, ...]
    """Other zones of the region, in which it must not be: one that is named in neither is allowed."""
    vm_family: str
    """Compute Engine's name of the machines' family."""
    workload_type: str
    """BATCH or SERVING; empty: the family has no such types."""
    chips: int
    lasts: timedelta
    not_before: datetime
    not_after: datetime

    @property
    def region(self) -> str:
        return self.zones[0].rpartition("-")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class BookingAdvice:
    """When and where it could be, or why not."""

    zone: str = ""
    """Empty: nowhere, within these times."""
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    others: Mapping[str, str] = field(default_factory=dict)
    """Of each other zone, why it is not `zone`, in Compute Engine's word."""
    unknown: str = ""
    """Why there is no advice; empty: there is."""
