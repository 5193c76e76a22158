"""How a slice's workload ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class UnconfirmedEnd:
    """That the workload is missing, of which nobody confirmed that it was deleted: see `reconciling.brake`."""

    found_at: datetime
    """When that was found of a slice that has a pool."""
    counted: bool
    """Whether it counts for the cluster."""
