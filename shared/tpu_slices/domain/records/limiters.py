"""The documents of the operations that may run: `slots/`, `limiters/`, `budgets/`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NewType, Self

from tpu_slices.domain.model.slices import ClaimId, ClusterId, SliceId, WorkloadUid, slice_id
from tpu_slices.domain.records.awaited import PoolOperation, Shortage
from tpu_slices.domain.records.gangs import GangKey, InLine
from tpu_slices.domain.records.reservations import Reservation

CapacityPool = NewType("CapacityPool", str)  # where capacity comes from: zone, accelerator, capacity


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An operation that waits for a slot."""

    slice_id: ClaimId
    namespace: str
    operation: PoolOperation
    attempt: int
    capacity_pool: CapacityPool | None
    since: datetime
    hosts: int = 0
    """Of a creation: that many are needed."""
    laddered: bool = False
    """Whether its workload has other places, or it is a spare: it asks not where capacity ran out before that is due.
    """

    @property
    def id(self) -> SliceId:
        """The slice that it is of."""
        return slice_id(self.slice_id, self.attempt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """The document `slots/{cluster}.{number}`: one operation that runs, or that may start now.

    Created in the commit that saves the operation on its slice's record; deleted or handed on once its end is saved.
    """

    cluster: ClusterId
    number: int
    slice_id: ClaimId
    namespace: str
    operation: PoolOperation
    attempt: int
    capacity_pool: CapacityPool | None
    """None: a deletion, which needs no capacity."""
    taken_at: datetime
    hosts: int = 0
    """Of a creation: that many are being made."""

    @property
    def id(self) -> SliceId:
        """The slice whose operation has it."""
        return slice_id(self.slice_id, self.attempt)

    @classmethod
    def of(cls, candidate: Candidate, number: int, cluster: ClusterId, now: datetime) -> Self:
        """Return the slot of this number, taken now."""
        return cls(
            cluster=cluster,
            number=number,
            slice_id=candidate.slice_id,
            namespace=candidate.namespace,
            operation=candidate.operation,
            attempt=candidate.attempt,
            capacity_pool=candidate.capacity_pool,
            taken_at=now,
            hosts=candidate.hosts,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrencyLimiter:
    """The document `limiters/{cluster}`: the current limit, and which capacity pools have room, as far as is known."""

    cluster: ClusterId
    limit: int
    changed_at: datetime
    shortages: Mapping[CapacityPool, Shortage]
    lowered_at: datetime | None = None
    """When the limit was last halved."""
    refused_at: datetime | None = None
    """When GKE last rejected an operation because of too many (429)."""
    on_ladders: Mapping[WorkloadUid, datetime] = field(default_factory=dict, hash=False)
    """The workloads that wait on ladders, and when each is decided on next if nothing happens before."""
    reservations: Mapping[CapacityPool, Reservation] = field(default_factory=dict, hash=False)
    """What is known of those that slices of the cluster wait for, or have hosts of."""

    @classmethod
    def of(cls, cluster: ClusterId, now: datetime, limit: int = 1) -> Self:
        """Return the limiter that a cluster begins with, whose settings allow so many operations."""
        return cls(cluster=cluster, limit=limit, changed_at=now, shortages={})


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The document `budgets/{cluster}`: rewritten with each creation that was decided under a chip limit.

    Its revision orders such creations, so that two at the same time cannot both take the last chips. It has the line of
    gangs, too, and what is reserved for them.
    """

    cluster: ClusterId
    creations: int = 0
    gangs: Mapping[GangKey, InLine] = field(default_factory=dict, hash=False)
    """Those that do not stand; nothing of others."""
    changed_at: datetime

    @classmethod
    def of(cls, cluster: ClusterId, now: datetime) -> Self:
        """Return the budget that a cluster begins with."""
        return cls(cluster=cluster, changed_at=now)
