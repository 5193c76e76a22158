"""What a claim is beside the slice that it has: what is needed, what was tried, and why it waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Self

from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import SliceId


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a request cannot be served."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """Why GKE, or the scheduler, did not take a slice as requested: kept until the request or the settings change."""

    reason: Reason
    message: str
    settings_version: str
    """Empty: no change of the settings ends it."""
    generation: int | None = None
    """The workload's `edition`, if its slice stood and was not used: with another it is tried again. None: not so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The need of a Job, a group or a TPUNodeGroup for a slice."""

    refusal: Refusal | None = None
    """Of the request alone, when it was last read."""
    rejection: Rejection | None = None
    rebuild_allowed: bool = False
    """Its slice may be rebuilt: the request changed while the JobSet was suspended or with a group's revision, or its
    Job came to a slice of another request."""

    demand_confirmed_at: datetime | None = None
    """When the demand was last confirmed."""
    awaited_since: datetime | None = None
    """Since when it has been requested without being READY; None: it was READY, was found, or is not needed."""
    waits_since: datetime | None = None
    """Since when it has been needed without being READY, also after it was; None: it is READY, or not needed."""
    unawaited_since: datetime | None = None
    """Of a slice for which the vendor has no host yet: since when no leader has waited; None: it is not so."""

    tried: int = 1
    """The highest number of the slices that were made for it, or that is made next: no number is used twice."""
    earlier: tuple[SliceId, ...] = ()
    """The slices that it had before, and that are not known to be gone: each has a record."""
    setbacks: Mapping[Reason, int] = field(default_factory=dict, hash=False)
    """How many slices failed since `waits_since`, by reason."""
    failures: int = 0
    """Consecutive failures for the same reason."""
    retry_at: datetime | None = None
    blocked_settings_version: str | None = None
    """The version of the settings under which it was blocked: it is retried under any other."""
    stocked: tuple[str, ...] = ()
    """The zones in which the vendor said that there is stock, when it last refused a slice of it."""

    def rejection_at(self, generation: int) -> Rejection | None:
        """Return why it is not tried again at this generation of its workload; None: it may be."""
        rejection = self.rejection
        return None if rejection is None or rejection.generation not in {None, generation} else rejection

    def with_changes(self, **changes: Any) -> Self:
        """Return the claim with these fields: itself, if it has them already."""
        if all(getattr(self, name) == value for name, value in changes.items()):
            return self
        return replace(self, **changes)

    def in_phase(self, phase: Phase, at: datetime, *, wanted: bool) -> Self:
        """Return the claim once it is in a phase: how long it waits, and how many slices failed meanwhile."""
        waits = wanted and phase is not Phase.READY
        return self.with_changes(
            awaited_since=None if phase is Phase.READY else self.awaited_since,
            waits_since=(self.waits_since or self.awaited_since or at) if waits else None,
            setbacks=self.setbacks if waits else {},
        )


NO_CLAIM = Claim()
"""That of a slice which nobody has: nothing is needed."""
