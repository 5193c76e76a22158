"""Our memory of a JobSet: what it wants, and what we know that from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from shared.domain.facts import JobSetState
from shared.domain.slices import ClusterId, JobSetUid, SliceId


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSetRecord:
    """The document `jobsets/{cluster}.{uid}`. Once ended it is a tombstone: no later fact revives it."""

    cluster: ClusterId
    uid: JobSetUid
    namespace: str
    name: str
    state: JobSetState
    generation: int
    """The generation that `state` rests on."""
    resource_version: str
    """The resourceVersion that `state` rests on."""
    wants: Mapping[SliceId, datetime | None]
    """Its slices, and when each was last confirmed to be wanted (None: never, its pool was found)."""
    state_since: datetime
    """When it was first heard to be in this state at a generation; a later generation starts anew."""
    seen_at: datetime
    """When the last fact about it arrived."""
    due_at: datetime | None = None
    """Set while its slices are still to be nudged about its last change: the outbox, made up for by the sweep."""
    expire_at: datetime | None = None
    """When a tombstone may be forgotten: later than anything can be redelivered."""

    @property
    def live(self) -> bool:
        return not self.state.ended
