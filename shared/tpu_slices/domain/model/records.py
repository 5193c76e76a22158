"""Our memory of a slice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Self

from tpu_slices.domain.model.clusters import PoolSettings
from tpu_slices.domain.model.decisions import Reason
from tpu_slices.domain.model.facts import Occupant
from tpu_slices.domain.model.slices import JobRef, PoolName, SliceId, SliceSpec, pool_name

HISTORY = 20
"""How many transitions a record keeps."""


class Phase(StrEnum):
    QUEUED = "QUEUED"
    PROVISIONING = "PROVISIONING"
    READY = "READY"
    RELEASING = "RELEASING"
    GONE = "GONE"
    WAITING = "WAITING"  # tries again by itself at `retry_at`
    REFUSED = "REFUSED"  # policy or impossible; costs nothing
    BLOCKED = "BLOCKED"  # needs a person


class Desire(StrEnum):
    PRESENT = "PRESENT"
    ABSENT = "ABSENT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    at: datetime
    phase: Phase
    reason: Reason
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """An earlier attempt whose pool is not known to be gone; its name is never used again."""

    attempt: int
    ordered_at: datetime | None = None
    """When GKE was last told to delete it, and did not say "not now"."""
    occupant: Occupant | None = None
    """Another live Job on its hosts: it stays until that one ends."""
    spare_until: datetime | None = None
    """Found by the audit: until then the relay has said who is on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Why a request can never be served: found before anything was bought."""

    reason: Reason
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRecord:
    """The document `slices/{cluster}.{slice}`. Unsettled records have `due_at`: they are looked at again by then."""

    id: SliceId
    job: JobRef
    spec: SliceSpec | None
    """None: nothing can be made from the request (see `verdict`), or the pool was found without a record."""
    verdict: Verdict | None = None
    respecified: bool = False
    """The request changed while the JobSet was suspended: a pool of the earlier one may be rebuilt."""
    pinned: PoolSettings | None = None
    """The cluster's settings as they were at the first create."""

    desire: Desire = Desire.PRESENT
    desire_because: str = ""
    wanted_at: datetime | None = None
    """When the want was last confirmed."""

    phase: Phase = Phase.QUEUED
    reason: Reason = Reason.WANTED
    sentence: str = ""
    since: datetime
    """When it came into this phase."""

    attempt: int = 1
    """The attempt that the next or the current pool is. It rises when a pool's deletion is ordered, not before."""
    inherited: str | None = None
    """The name of the pool that TPU Provisioner made for the Job, where it was adopted: attempt 0."""
    ordered_at: datetime | None = None
    """When the creation of this attempt was last decided. None: no pool of this attempt can exist."""
    creating: bool = False
    """A creation is decided and not known to have ended: a slot is held for it."""
    slot: int | None = None
    operation: str | None = None
    """GKE's operation for the current attempt, once noted."""
    leaving: tuple[Leaving, ...] = ()
    failures: int = 0
    """Failed attempts in a row."""
    retry_at: datetime | None = None
    blocked_under: str | None = None
    """The version of the settings under which it was blocked: another one is another chance."""

    hosts_usable: int = 0
    hosts_joined: int = 0
    hosts_sequence: int = 0
    occupant: Occupant | None = None
    """The Job whose leader is bound to the current pool."""
    vacant_since: datetime | None = None
    """When the last occupant left."""

    created_at: datetime
    due_at: datetime | None
    expire_at: datetime | None = None
    transitions: tuple[Transition, ...] = ()
    turns: int = 0
    """How many transitions there were."""
    told: int = 0
    """How many of them were told to the user."""

    hold: bool = False
    """Set by a person: nothing is created or deleted."""
    release_requested: bool = False
    """Set by a person: wanted ABSENT whatever the JobSet says."""
    note: str = ""
    """For people."""

    @property
    def pool(self) -> PoolName:
        return self.pool_of(self.attempt)

    def pool_of(self, attempt: int) -> PoolName:
        """Name the pool of an attempt; a ValueError past the last one."""
        if attempt == 0 and self.inherited is not None:
            return PoolName(self.inherited)
        return pool_name(self.id, attempt)

    @property
    def wanted(self) -> bool:
        return self.desire is Desire.PRESENT

    @property
    def chips_held(self) -> int:
        """Chips of the current attempt, from the order to create it until it is given up."""
        ordered = self.ordered_at is not None and self.phase is not Phase.GONE
        return self.spec.chips if ordered and self.spec else 0

    @property
    def untold(self) -> tuple[Transition, ...]:
        return self.transitions[self.told - self.turns :] if self.told < self.turns else ()

    @property
    def foreign_occupant(self) -> Occupant | None:
        """The occupant, where it is a Job of another JobSet."""
        if self.occupant is None or self.occupant.jobset_uid == self.job.uid:
            return None
        return self.occupant

    def turned(self, at: datetime, phase: Phase, reason: Reason, sentence: str) -> Self:
        """Give the record in this phase; a new phase or reason is a transition, a new sentence alone is not."""
        if (phase, reason) == (self.phase, self.reason) and self.transitions:
            return replace(self, sentence=sentence)
        transition = Transition(at=at, phase=phase, reason=reason, sentence=sentence)
        return replace(
            self,
            phase=phase,
            reason=reason,
            sentence=sentence,
            since=self.since if phase is self.phase else at,
            transitions=(*self.transitions, transition)[-HISTORY:],
            turns=self.turns + 1,
        )
