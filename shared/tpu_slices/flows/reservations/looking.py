"""Looks at reservations when it is time, once for all who wait, and tells who waits and who uses them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from tpu_slices.domain.capacity.reservations import (
    KEPT_FOR,
    MOST_KNOWN,
    Demand,
    end_told,
    ends_soon,
    is_to_be_looked_at,
    looked,
    next_look,
    place_of,
    state_at,
    unseen,
)
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.reconciling.decisions import Decision
from tpu_slices.domain.records.limiters import CapacityPool, ConcurrencyLimiter
from tpu_slices.domain.records.queues import capacity_pool_of
from tpu_slices.domain.records.reservations import Reservation, ReservationPlace, ReservationSeen, ReservationState
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.transitions import Transition
from tpu_slices.flows import slots
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.errors import StaleRecord, Temporary
from tpu_slices.ports.publisher import SliceUpdate

MOST_LOOKED_AT = 10
"""The most reservations that one sweep of a cluster looks at; the others come a minute later."""
MOST_TOLD = 500
"""The most slices whose users are told that a reservation ends."""
_UNKNOWN = ReservationSeen(state=ReservationState.PENDING, detail="it is being looked at")


def look_before(
    record: SliceRecord, limiter: ConcurrencyLimiter, settings: ClusterSettings, deps: ReconcileDeps
) -> ConcurrencyLimiter | None:
    """Look at the reservation that a slice is about to be created in, unless that was done lately.

    Return the limiter with what is known from then on; None: there is nothing to look at. It is noted first that the
    look is made: of several who would look at the same time one does, and the others raise StaleRecord.
    """
    spec, now = record.spec, deps.clock.now()
    place = place_of(spec.capacity, spec.zone, _project(settings)) if spec is not None else None
    if spec is None or place is None:
        return None
    pool = capacity_pool_of(spec)
    before = limiter.reservations.get(pool)
    if not is_to_be_looked_at(before, now) or (before is None and len(limiter.reservations) >= MOST_KNOWN):
        return None
    claimed = Reservation(place=place, seen=_UNKNOWN, seen_at=now, needed_at=now, next_look_at=now)
    _note(settings, {pool: claimed if before is None else replace(before, seen_at=now)}, deps)
    ours = deps.store.hosts_reserved(settings.cluster, pool)
    after = _look(before, place, Demand(waits=True, ours=ours), deps)
    return _note(settings, {pool: after}, deps)


def _project(settings: ClusterSettings) -> str:
    return settings.path.split("/")[1]


def look_when_due(limiter: ConcurrencyLimiter, settings: ClusterSettings, deps: ReconcileDeps) -> None:
    """Look at the reservations that are due, and tell users of those that end soon; forget what nobody needs."""
    due: dict[CapacityPool, Reservation | None] = {}
    for pool, known in sorted(limiter.reservations.items(), key=lambda it: it[1].next_look_at)[:MOST_LOOKED_AT]:
        demand = _demand(pool, known, settings.cluster, deps)
        if demand is None:
            continue
        needed = demand.waits or demand.ours
        after = None
        if needed or deps.clock.now() - known.needed_at < KEPT_FOR:
            after = _look(known, known.place, demand, deps)
            after = _with_end_told(pool, after, settings.cluster, deps)
        due[pool] = after
    if due:
        _note(settings, due, deps)


def _demand(pool: CapacityPool, known: Reservation, cluster: ClusterId, deps: ReconcileDeps) -> Demand | None:
    """Return who needs a reservation that is due to be looked at; None: it is not.

    It is due sooner if somebody waits for it who did not when it was seen last.
    """
    now = deps.clock.now()
    due = known.next_look_at <= now
    sooner = next_look(known, Demand(waits=True, ours=known.ours), known.seen_at) <= now
    if not (due or sooner):
        return None
    waits = bool(deps.store.creations_in_pool(cluster, pool, 1))
    if not due and not waits:
        return None
    return Demand(waits=waits, ours=deps.store.hosts_reserved(cluster, pool))


def _look(before: Reservation | None, place: ReservationPlace, demand: Demand, deps: ReconcileDeps) -> Reservation:
    try:
        seen = deps.reservations.read(place)
    except Temporary as error:
        return unseen(before, place, str(error), deps.clock.now())
    return looked(before, place, seen, demand, deps.clock.now())


def _note(
    settings: ClusterSettings, found: Mapping[CapacityPool, Reservation | None], deps: ReconcileDeps
) -> ConcurrencyLimiter:
    """Save what is known of reservations, and tell those who wait if that is something else; None: it is forgotten.

    Raise StaleRecord if another process changed the limiter at the same time.
    """

    def note(limiter: ConcurrencyLimiter, now: datetime) -> ConcurrencyLimiter:
        kept = {**limiter.reservations, **found}
        short = {pool: each for pool, each in limiter.shortages.items() if not _opens(pool, limiter, found, now)}
        known = {pool: each for pool, each in kept.items() if each is not None}
        return replace(limiter, reservations=known, shortages=short)

    after = slots.change_limiter(note, settings, deps)
    if after is None:
        raise StaleRecord(f"the limiter of {settings.cluster} was changed at the same time")
    return after


def _opens(
    pool: CapacityPool, limiter: ConcurrencyLimiter, found: Mapping[CapacityPool, Reservation | None], now: datetime
) -> bool:
    """Return whether a reservation that ran out has room again, more than when it was seen before."""
    before, after = limiter.reservations.get(pool), found.get(pool)
    if before is None or after is None or state_at(after, now) is not ReservationState.READY:
        return False
    was_ready = state_at(before, now) is ReservationState.READY
    return (after.seen.free or 0) > ((before.seen.free or 0) if was_ready else 0)


def _with_end_told(pool: CapacityPool, known: Reservation, cluster: ClusterId, deps: ReconcileDeps) -> Reservation:
    """Return what is known of a reservation once its users were told that it ends soon, if it is time for that.

    They are told before that is saved: whoever dies in between tells it again, under the same name.
    """
    now = deps.clock.now()
    minutes, end = ends_soon(known, now), known.seen.ends_at
    if not minutes or end is None:
        return known
    users = deps.store.users_of_reservation(cluster, pool, MOST_TOLD)
    message = f"{end_told(known, now)}."
    said = Transition(at=now, phase=Phase.READY, reason=Reason.RESERVATION_ENDS, message=message)
    number = int(end.timestamp()) // 60 * 10_000 + minutes
    updates = [
        SliceUpdate(job=each.job, slice_id=each.last_claim, pool=each.pool, transition_number=number, transition=said)
        for each in users
        if not each.unclaimed
    ]
    if updates:
        deps.publisher.announce(cluster, updates)
    return replace(known, announced=minutes)


def is_handed_on(record: SliceRecord, decision: Decision) -> bool:
    """Return whether a decision creates a slice in a reservation in a slot that was handed on to it.

    The reservation may have been looked at since, or never: then it may not be open.
    """
    spec, awaited = decision.record.spec, record.slot_awaited
    reserved = spec is not None and spec.capacity.reservation is not None
    return decision.creates and reserved and awaited is not None and awaited.number is not None


def without_slot(record: SliceRecord) -> SliceRecord:
    """Return a slice that takes the slot anew that was handed on to it, or another; if none may be taken it waits.

    Whoever saves that it waits hands on the slot, since the slice had it before and has it no more.
    """
    awaited = record.slot_awaited
    return record if awaited is None else replace(record, slot_awaited=replace(awaited, number=None))
