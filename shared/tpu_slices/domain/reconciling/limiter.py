"""Limits concurrent node pool operations: GKE accepts only so many per cluster at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NewType

from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.slices import ClusterId, SliceId, SliceSpec

CapacityPool = NewType("CapacityPool", str)  # where capacity comes from: zone, accelerator, capacity

FIRST_LIMIT = 5
"""The initial limit of a cluster: the number in GKE's error message (terraform-provider-google#15205)."""
SHORTAGE_MEMORY = timedelta(minutes=15)
"""How long a capacity pool counts as short after a stockout."""
RAISE_AFTER = timedelta(minutes=5)
"""How long after its last change the limit may be raised by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """The document `slots/{cluster}.{number}`: one running creation. Taken by being created, freed by deletion."""

    cluster: ClusterId
    number: int
    slice_id: SliceId
    attempt: int
    capacity_pool: CapacityPool
    taken_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrencyLimiter:
    """The document `limiters/{cluster}`: the current limit, and the capacity pools with recent stockouts."""

    cluster: ClusterId
    limit: int = FIRST_LIMIT
    changed_at: datetime
    shortages: Mapping[CapacityPool, datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The document `budgets/{cluster}`: rewritten with each creation that was decided under a chip limit.

    Its revision orders such creations, so that two at the same time cannot both take the last chips.
    """

    cluster: ClusterId
    creations: int = 0
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class Candidate:
    """A slice that waits for its creation to be admitted."""

    slice_id: SliceId
    capacity_pool: CapacityPool
    since: datetime


def capacity_pool_of(spec: SliceSpec) -> CapacityPool:
    return CapacityPool(f"{spec.zone}/{spec.accelerator}/{spec.capacity.reservation or spec.capacity.kind}")


def admit(
    waiting: Iterable[Candidate], running: Sequence[Slot], limiter: ConcurrencyLimiter, now: datetime, limits: Limits
) -> tuple[Candidate, ...]:
    """Return the candidates that may start: those that wait longest first, up to the number of free slots.

    A capacity pool with a recent stockout gets one probe at a time, and all such pools together at most half of the
    slots.
    """
    limit = min(limiter.limit, limits.operations)
    pools = [slot.capacity_pool for slot in running]
    admitted: list[Candidate] = []
    for candidate in sorted(waiting, key=lambda candidate: (candidate.since, candidate.slice_id)):
        if len(pools) >= limit:
            break
        if is_short(candidate.capacity_pool, limiter, now) and not _may_probe(
            candidate.capacity_pool, pools, limiter, now, limit
        ):
            continue
        admitted.append(candidate)
        pools.append(candidate.capacity_pool)
    return tuple(admitted)


def _may_probe(
    capacity_pool: CapacityPool, pools: Sequence[CapacityPool], limiter: ConcurrencyLimiter, now: datetime, limit: int
) -> bool:
    probes = sum(is_short(taken, limiter, now) for taken in pools)
    return capacity_pool not in pools and probes < max(1, limit // 2)


def is_short(capacity_pool: CapacityPool, limiter: ConcurrencyLimiter, now: datetime) -> bool:
    ran_out = limiter.shortages.get(capacity_pool)
    return ran_out is not None and now - ran_out < SHORTAGE_MEMORY


def lowered(limiter: ConcurrencyLimiter, now: datetime) -> ConcurrencyLimiter:
    """Return the limiter with half the limit, after GKE rejected an operation because of too many (429)."""
    return replace(limiter, limit=max(1, limiter.limit // 2), changed_at=now)


def raised(limiter: ConcurrencyLimiter, now: datetime, limits: Limits) -> ConcurrencyLimiter:
    """Return the limiter with its limit raised by one if it is due, up to the limit in the settings."""
    if now - limiter.changed_at < RAISE_AFTER or limiter.limit >= limits.operations:
        return limiter
    return replace(limiter, limit=limiter.limit + 1, changed_at=now)


def ran_out(limiter: ConcurrencyLimiter, capacity_pool: CapacityPool, now: datetime) -> ConcurrencyLimiter:
    """Return the limiter with a new shortage of a capacity pool, and without old shortages."""
    kept = {known: at for known, at in limiter.shortages.items() if now - at < SHORTAGE_MEMORY}
    return replace(limiter, shortages={**kept, capacity_pool: now})
