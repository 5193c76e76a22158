"""What is known of the way back of hosts that are away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType

from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.observations import Cause

LATE_AFTER: Mapping[Cause, timedelta] = MappingProxyType(
    {
        Cause.UPGRADE: timedelta(hours=4),
        Cause.REPAIR: timedelta(hours=1),
        Cause.WORK: timedelta(hours=4),
        Cause.MAINTENANCE: timedelta(hours=5),
        Cause.PREEMPTED: timedelta(hours=4),
    }
)
"""After which time hosts are away for longer than is normal, by the cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Returning:
    """Who brings hosts back that are away, and since when. It lasts until all hosts are usable."""

    cause: Cause
    since: datetime
    """Since when this cause has been known, or by the vendor's word."""
    counts_from: datetime
    """When the first cause began since which some hosts have been missing: causes in a row share one patience."""
    over_at: datetime | None = None
    """When nobody was seen any more to bring hosts back, though some were still missing; None: somebody does."""
    late: bool = False
    """They have been away for longer than is normal."""

    def ends(self, limits: Limits) -> datetime:
        """Return when the patience is over: once nobody brings hosts back, these have `hosts_timeout` to be usable."""
        if self.over_at is not None:
            return self.over_at + limits.hosts_timeout
        return self.counts_from + limits.patience[self.cause]
