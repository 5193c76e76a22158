"""Our memory of a JobSet: what it wants, and what we know that from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.reasons import Reason, ReportReason
from tpu_slices.domain.model.records import Phase
from tpu_slices.domain.model.slices import ClusterId, Owner, SliceId


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """What some slices of a JobSet wait for."""

    phase: Phase
    reason: Reason
    jobs: tuple[str, ...]
    """The first of the Jobs they were made for."""
    count: int
    message: str
    """What for; names the zone, the quota, the limit, the place in line."""
    since: datetime
    """Since when the one that waits longest has not served."""
    until: datetime | None
    """When the next try is; None: not known."""
    remedy: str
    """What can be done, and by whom."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Why a JobSet waits, or that it does not."""

    reason: ReportReason
    message: str
    wanted: int
    """How many slices were asked for so far."""
    ready: int
    waits: tuple[Wait, ...] = ()
    """What the others wait for, the worst first."""
    since: datetime
    """Since when it has been served, or waited, or neither."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadRecord:
    """The document `workloads/{cluster}.{uid}`. Once ended it is a tombstone: no later fact revives it."""

    cluster: ClusterId
    owner: Owner
    state: WorkloadState
    generation: int
    """The generation that `state` rests on."""
    resource_version: str
    """The resourceVersion that `state` rests on."""
    demand: Mapping[SliceId, datetime | None]
    """Its slices, and when each was last confirmed to be wanted (None: never, its pool was found)."""
    state_since: datetime
    """When it was first heard to be in this state at a generation; a later generation starts anew."""
    last_seen_at: datetime
    """When the last fact about it arrived."""
    queue: str = ""
    """The Kueue queue it is in, as its label says."""
    template_error: str = ""
    """Why its templates cannot be read."""
    report: Report | None = None
    """Where it stands, as last said."""
    next_report_at: datetime | None = None
    """When it is to be reported anew."""
    announced_at: datetime | None = None
    """When the cluster was last told."""
    announced_count: int = 0
    """How many times it was."""
    next_reconcile_at: datetime | None = None
    """Set while its slices are still to be nudged about its last change: the outbox, made up for by the sweep."""
    expire_at: datetime | None = None
    """When a tombstone may be forgotten: later than anything can be redelivered."""

    @property
    def live(self) -> bool:
        return not self.state.ended
