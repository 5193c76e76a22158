"""Looks at a slice: what is on record, what is known beside it, and what the vendor shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from tpu_slices.domain.capacity.reservations import state_at
from tpu_slices.domain.capacity.seats import as_wanted
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import HostsChanged
from tpu_slices.domain.model.observations import (
    Absent,
    Broken,
    Busy,
    Observed,
    Running,
    Witness,
)
from tpu_slices.domain.model.reasons import IN_LINE, Phase
from tpu_slices.domain.model.slices import ClaimId, ClusterId, SliceId, WorkloadUid
from tpu_slices.domain.reconciling.case import Known
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.decisions import Decision
from tpu_slices.domain.reconciling.demand import with_current_desire
from tpu_slices.domain.reconciling.evidence import on_record
from tpu_slices.domain.reconciling.occupancy import with_report
from tpu_slices.domain.reconciling.relabelling import known_ours
from tpu_slices.domain.records.awaited import Shortage
from tpu_slices.domain.records.brakes import Brake
from tpu_slices.domain.records.heartbeats import NEVER_HEARD
from tpu_slices.domain.records.limiters import ConcurrencyLimiter, Slot
from tpu_slices.domain.records.matching import users_of
from tpu_slices.domain.records.queues import capacity_pool_of
from tpu_slices.domain.records.reservations import ReservationState
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows import slots
from tpu_slices.flows.brakes import limited, stopped
from tpu_slices.flows.budget import count
from tpu_slices.flows.orders import observed
from tpu_slices.flows.spares.making import first_of
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.errors import Permanent
from tpu_slices.ports.store import Change, Names, Stored, Together


@dataclass(frozen=True, slots=True)
class Told:
    """What whoever requests a reconcile knows already."""

    settings: ClusterSettings | None = None
    """Of the cluster, if they were just read."""
    ended: bool = False
    """Whether an operation on one of the slice's pools ended."""
    created: str | None = None
    """That operation, if it created a pool and did not fail."""
    answer: HostsChanged | None = None
    """What the relay answered about the slice's hosts, and is not on record."""
    waiting: WorkloadUid | None = None
    """Whose pods wait for the slice, or whose slice got a slot: what its creation needs is read with the slice."""
    slots: bool = False
    """Whether the slice is likely to take a slot, or to hand one on: they are read with it."""


NOTHING = Told()


@dataclass(frozen=True, slots=True)
class Looked:
    """The inputs of a decision at one time."""

    settings: ClusterSettings
    stored: Stored[SliceRecord]
    record: SliceRecord
    """With its current desire."""
    seen: Observed
    known: Known
    at: datetime
    guards: tuple[Change, ...] = ()
    """Written with a creation: they order creations under a chip limit."""
    limiter: ConcurrencyLimiter | None = None
    """None: neither it nor the brake was read, since no creation can be due."""
    brake: Stored[Brake] | None = None
    slots: tuple[Stored[Slot], ...] | None = None
    """None: not read yet."""
    listed_at: datetime | None = None
    """When a list last confirmed all demand on record."""

    @property
    def is_ours(self) -> bool:
        """Whether a pool was seen that is ours."""
        return isinstance(self.seen.pool, Running | Busy | Broken)

    def decide(self, slots: Mapping[int, int], shortage: Shortage | None = None) -> Decision:
        known = replace(self.known, slots=slots, shortage=shortage) if slots or shortage else self.known
        return decide(self.record, self.seen, self.at, self.settings, known)


def look(cluster: ClusterId, slice_: ClaimId | SliceId, told: Told, deps: ReconcileDeps) -> Looked | None:
    """Return the slice and what is known beside it, without its pools; None if there is no slice."""
    read = deps.store.together(cluster, _names(slice_, told))
    settings = told.settings or read.settings
    if settings is None:
        raise Permanent(f'no settings for cluster "{cluster}": write clusters/{cluster}')
    stored, heartbeat = read.slice, read.heartbeat
    if stored is None:
        return None
    counted = with_report(stored.value, told.answer, deps.clock.now()) if told.answer else stored.value
    creates = counted.current.create_requested_at is None and not counted.unclaimed
    beside = _beside(counted, read, told, deps, creates=creates or _lacks_reserved_hosts(counted))
    own = beside.workloads.get(counted.owner.uid)  # Permanent if it cannot be read: then nothing is decided
    workloads = {uid: each.value for uid, each in beside.workloads.items()}
    listed_at = heartbeat.value.confirmed_at(counted.owner.kind) if heartbeat else None
    record = with_current_desire(counted, own.value if own else None, listed_at)
    record = as_wanted(record, settings)
    record, why_stopped = stopped(record, workloads.get(record.owner.uid), deps)
    spare = record.owner.kind.is_spare and record.wanted and not record.unclaimed and record.phase is not Phase.READY
    chips, now = count(record, settings, deps, always=spare), deps.clock.now()
    beside_it = Known(
        workloads=workloads,
        relay=heartbeat.value.relay if heartbeat else NEVER_HEARD,
        held=chips.held,
        stopped=why_stopped,
        reservation_ended=_lacks_reserved_hosts(counted) and _has_ended(counted, beside.limiter, now),
        first=first_of(record, chips.gangs, heartbeat, settings, deps) if spare else None,
    )
    nothing = Observed(Absent())
    limits = slots.limiter_of(beside.limiter, settings, now) if creates else None
    looked = Looked(settings, stored, record, nothing, beside_it, now, chips.guards, limits, beside.brake, read.slots)
    return replace(looked, listed_at=listed_at)


def _lacks_reserved_hosts(record: SliceRecord) -> bool:
    """Return whether all hosts are away of a slice in a reservation, which may be over."""
    reserved = record.made_as is not None and record.made_as.capacity.reservation is not None
    away = record.current.hosts_awaited_since is not None and not record.current.hosts.joined
    return reserved and away and not record.unclaimed


def _has_ended(record: SliceRecord, limiter: Stored[ConcurrencyLimiter] | None, now: datetime) -> bool:
    """Return whether the reservation of a slice is over, by what is known of it: one that ended is soon not there."""
    pool = capacity_pool_of(record.made_as) if record.made_as is not None else None
    known = limiter.value.reservations.get(pool) if limiter is not None and pool is not None else None
    return known is not None and state_at(known, now) in {ReservationState.ENDED, ReservationState.MISSING}


def _names(slice_: ClaimId | SliceId, told: Told) -> Names:
    """Return what is read first: with a slice that pods wait for, what its creation needs."""
    first = Names.of(slice_, settings=told.settings is None, heartbeat=True, slots=told.slots)
    return first if told.waiting is None else replace(first, workloads=[told.waiting], limiter=True, brake=True)


def _beside(record: SliceRecord, read: Together, told: Told, deps: ReconcileDeps, *, creates: bool) -> Together:
    """Return the workloads of the slice's users and, for a creation, what limits it: read, unless they were already."""
    users = users_of(record)
    if users == {told.waiting}:
        return read
    return deps.store.together(record.cluster, Names(workloads=users, limiter=creates, brake=creates))


def with_known(looked: Looked, told: Told) -> Looked | None:
    """Return it with what is on record of the slice's pools; None: GKE is to be asked."""
    seen = on_record(looked.record, looked.at, told.created)
    return None if seen is None or (told.ended and seen.by is not Witness.EVENT) else replace(looked, seen=seen)


def with_pools(looked: Looked, deps: ReconcileDeps) -> Looked:
    """Return it with the slice's pool, if it may exist, as GKE shows it."""
    seen, now = observed(looked.record, looked.settings, deps), deps.clock.now()
    return replace(looked, record=known_ours(looked.record, seen, now), seen=seen, at=now)


def with_limit(looked: Looked, decision: Decision, deps: ReconcileDeps) -> Looked | None:
    """Return it with what limits a decision that buys while releases are stopped; None: nothing does."""
    if not (decision.creates or decision.reason in IN_LINE):
        return None
    brake = looked.brake if looked.limiter else deps.store.brake(looked.record.cluster)
    found = limited(looked.record, brake, looked.settings, deps)
    known = found and replace(looked.known, held=found.chips.held, limited=found.why)
    return replace(looked, known=known, guards=found.chips.guards) if found and known else None
