"""The brake: if too many JobSets of a cluster are deleted at once, their slices are kept until an operator confirms.

A fault of the relay, or somebody's slip with kubectl, must not delete a cluster's slices within minutes. JobSets that
complete, fail or are suspended do not count, nor does a release by an operator. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self

from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.model.workloads import WorkloadRecord

SUDDEN_ENDS = (WorkloadState.DELETED, WorkloadState.MISSING)
WINDOW = timedelta(minutes=10)
MOST = 10
"""Within WINDOW this many JobSets may be deleted, or a fifth of the live ones if that is more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brake:
    """The document `brakes/{cluster}`: the last time that releases were stopped."""

    cluster: ClusterId
    since: datetime
    """JobSets that were deleted since then keep their slices."""
    stopped_at: datetime
    deleted: int
    """The number of JobSets that had been deleted within WINDOW."""
    live: int
    """The number of JobSets that were live then."""
    confirmed_at: datetime | None = None
    """When an operator confirmed the deletions up to then; None: they did not."""

    @classmethod
    def pulled(cls, cluster: ClusterId, since: datetime, now: datetime, *, deleted: int, live: int) -> Self | None:
        """Return the brake that so many deletions since then pull; None if they are not too many."""
        if not too_many(deleted, live):
            return None
        return cls(cluster=cluster, since=since, stopped_at=now, deleted=deleted, live=live)

    @property
    def message(self) -> str:
        return (
            f"{self.deleted} of {self.deleted + self.live} JobSets of the cluster were deleted by "
            f"{self.stopped_at:%H:%M} UTC within {WINDOW.total_seconds() / 60:.0f} minutes: their slices are kept "
            f"until an operator runs `slices confirm-deletions --cluster {self.cluster}`"
        )


def counted_since(brake: Brake | None, now: datetime) -> datetime:
    """Return since when deletions count: those that an operator confirmed do not."""
    window = now - WINDOW
    return window if brake is None or brake.confirmed_at is None else max(window, brake.confirmed_at)


def too_many(deleted: int, live: int) -> bool:
    """Return whether so many deletions within WINDOW stop releases; `live`: the JobSets that are left."""
    return deleted > max(MOST, (live + deleted) // 5)


def stops(brake: Brake | None, workload: WorkloadRecord) -> bool:
    """Return whether the brake keeps a deleted JobSet's slices."""
    return brake is not None and brake.confirmed_at is None and workload.state_since >= brake.since
