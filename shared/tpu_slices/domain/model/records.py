"""The record of a slice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Self

from tpu_slices.domain.model.clusters import PoolSettings
from tpu_slices.domain.model.facts import Occupant
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import (
    ClusterId,
    Owner,
    PoolName,
    SliceId,
    SliceSpec,
    WorkloadJob,
    pool_name,
    slice_id,
)

HISTORY = 20
"""The number of transitions that a record keeps."""


class Phase(StrEnum):
    QUEUED = "QUEUED"
    PROVISIONING = "PROVISIONING"
    READY = "READY"
    RELEASING = "RELEASING"
    GONE = "GONE"
    WAITING = "WAITING"  # retried at `retry_at`
    REFUSED = "REFUSED"  # impossible or against the policy; nothing was bought
    BLOCKED = "BLOCKED"  # an operator must act


class Desire(StrEnum):
    PRESENT = "PRESENT"
    ABSENT = "ABSENT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    at: datetime
    phase: Phase
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminatingAttempt:
    """An earlier attempt whose pool is not known to be gone; its name is never used again."""

    attempt: int
    delete_requested_at: datetime | None = None
    """When its deletion was last requested; None: not yet, or GKE was too busy to accept it."""
    occupants: tuple[Occupant, ...] = ()
    """Other live Jobs on its hosts: the pool is kept until they end."""
    delete_after: datetime | None = None
    """Set for a found or newly adopted pool: it is not deleted before, so that the relay can report its occupants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a request cannot be served; nothing was bought for it."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRecord:
    """The document `slices/{cluster}.{slice}`. A record that is not settled has `next_reconcile_at`."""

    id: SliceId
    cluster: ClusterId
    owner: Owner
    """The workload that it was made for."""
    replicated_job: str
    job_index: int
    spec: SliceSpec | None
    """None: the request is refused (see `refusal`), or the pool was found without a record."""
    refusal: Refusal | None = None
    rebuild_allowed: bool = False
    """The request changed while the JobSet was suspended: a pool created for the earlier request may be rebuilt."""
    pinned_settings: PoolSettings | None = None
    """The cluster's settings as they were at the first create."""

    desire: Desire = Desire.PRESENT
    desire_message: str = ""
    demand_confirmed_at: datetime | None = None
    """When the demand was last confirmed."""

    phase: Phase = Phase.QUEUED
    reason: Reason = Reason.REQUESTED
    message: str = ""
    since: datetime
    """When it entered this phase."""

    attempt: int = 1
    """The number of the current or next pool. It increases when a pool's deletion is requested, not before."""
    legacy_pool: str | None = None
    """The name of the adopted pool that TPU Provisioner made for the Job: attempt 0."""
    create_requested_at: datetime | None = None
    """When the creation of this attempt was last decided. None: no pool of this attempt can exist."""
    creating: bool = False
    """A creation was decided and is not known to have ended: it holds a slot."""
    slot: int | None = None
    operation: str | None = None
    """GKE's operation that creates the current attempt, once it is known."""
    terminating: tuple[TerminatingAttempt, ...] = ()
    failures: int = 0
    """Consecutive failures for the same reason."""
    retry_at: datetime | None = None
    blocked_settings_version: str | None = None
    """The version of the settings under which it was blocked: it is retried under any other."""

    hosts_usable: int = 0
    hosts_joined: int = 0
    hosts_sequence: int = 0
    occupants: tuple[Occupant, ...] = ()
    """The Jobs whose leader pods are bound to the current pool: at most one, the latest."""
    vacant_since: datetime | None = None
    """When the last occupant left."""

    created_at: datetime
    next_reconcile_at: datetime | None
    expire_at: datetime | None = None
    transitions: tuple[Transition, ...] = ()
    transition_count: int = 0
    """The number of transitions so far."""
    announced_count: int = 0
    """How many of them were announced to the cluster."""

    hold: bool = False
    """Set by an operator: nothing is created or deleted."""
    release_requested: bool = False
    """Set by an operator: the desire is ABSENT, whatever the JobSet requests."""
    note: str = ""
    """Free text by operators."""

    @classmethod
    def of(cls, job: WorkloadJob, now: datetime, spec: SliceSpec | None = None) -> Self:
        """Return the record of a new slice: nothing is created yet, and it is reconciled at once."""
        return cls(
            id=slice_id(job),
            cluster=job.cluster,
            owner=job.owner,
            replicated_job=job.replicated_job,
            job_index=job.job_index,
            spec=spec,
            since=now,
            created_at=now,
            next_reconcile_at=now,
        )

    @property
    def job(self) -> WorkloadJob:
        """The Job that it was made for."""
        return WorkloadJob(
            cluster=self.cluster, owner=self.owner, replicated_job=self.replicated_job, job_index=self.job_index
        )

    @property
    def pool(self) -> PoolName:
        return self.pool_of(self.attempt)

    def pool_of(self, attempt: int) -> PoolName:
        """Return the pool name of an attempt; raise ValueError past LAST_ATTEMPT."""
        if attempt == 0 and self.legacy_pool is not None:
            return PoolName(self.legacy_pool)
        return pool_name(self.id, attempt)

    @property
    def wanted(self) -> bool:
        return self.desire is Desire.PRESENT

    @property
    def chips_held(self) -> int:
        """The chips of the current attempt, from the decision to create it until it fails or is released."""
        ordered = self.create_requested_at is not None and self.phase is not Phase.GONE
        return self.spec.chips if ordered and self.spec else 0

    @property
    def unannounced(self) -> tuple[Transition, ...]:
        return (
            self.transitions[self.announced_count - self.transition_count :]
            if self.announced_count < self.transition_count
            else ()
        )

    @property
    def other_workload_occupants(self) -> tuple[Occupant, ...]:
        """The occupants that are Jobs of other workloads."""
        return tuple(occupant for occupant in self.occupants if occupant.owner.uid != self.owner.uid)

    def transitioned(self, at: datetime, phase: Phase, reason: Reason, message: str) -> Self:
        """Return the record in this phase; a new phase or reason is a transition, a new message alone is not."""
        if (phase, reason) == (self.phase, self.reason) and self.transitions:
            return replace(self, message=message)
        transition = Transition(at=at, phase=phase, reason=reason, message=message)
        return replace(
            self,
            phase=phase,
            reason=reason,
            message=message,
            since=self.since if phase is self.phase else at,
            transitions=(*self.transitions, transition)[-HISTORY:],
            transition_count=self.transition_count + 1,
        )
