"""When a reservation is looked at, whether a creation may start in it, and what is told of it. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import Capacity
from tpu_slices.domain.model.texts import clock, duration
from tpu_slices.domain.records.awaited import PoolOperation, Shortage
from tpu_slices.domain.records.limiters import CapacityPool, Slot
from tpu_slices.domain.records.reservations import Reservation, ReservationPlace, ReservationSeen, ReservationState

EACH_MINUTE = timedelta(minutes=1)
PATIENT = timedelta(minutes=5)
"""How often it is looked at after LOOKS_IN_VAIN, and one that is missing."""
LOOKS_IN_VAIN = 10
IN_USE = timedelta(minutes=15)
"""How often it is looked at while nobody waits."""
SELDOM = timedelta(hours=1)
"""How often what has no time of its own is looked at: one that begins later, ended, or cannot be read."""
KEPT_FOR = timedelta(days=1)
"""How long it is known after nobody waited for it, or had hosts of it, any more."""
BELIEVED_FOR = timedelta(minutes=20)
"""How long it keeps creations from starting if no look at it succeeds any more."""
TOLD_BEFORE = (24 * 60, 60, 15)
"""Minutes before its end at which its users are told."""
MOST_BLOCKS = 16
MOST_KNOWN = 50
"""So many reservations of a cluster are looked at, and stand in one document; creations in others are just tried."""
MOST_NEAREST = 3


@dataclass(frozen=True, slots=True)
class Demand:
    """Who needs a reservation."""

    waits: bool
    """Whether a creation waits for it."""
    ours: int
    """The hosts of slices that stand in it, or are being made."""


def place_of(capacity: Capacity, zone: str, project: str) -> ReservationPlace | None:
    """Return where a slice's reservation is read; None: it is of none, or its name is none of the known forms.

    A name alone is one of the cluster's project.
    """
    parts = capacity.reservation.split("/") if capacity.reservation else []
    if parts[:1] == ["projects"] and parts[2:3] == ["reservations"]:
        project, parts = parts[1], parts[3:]
    if parts[1:2] not in ([], ["reservationBlocks"]) or parts[3:4] not in ([], ["reservationSubBlocks"]):
        return None
    if not parts or not all((project, zone, *parts)):
        return None
    return ReservationPlace(project, zone, parts[0], *parts[2:3], *parts[4:5])


def next_look(known: Reservation, demand: Demand, now: datetime) -> datetime:
    """Return when a reservation is looked at next, which was looked at now.

    | it is                        | somebody waits                                    | slices have hosts of it      |
    |------------------------------|---------------------------------------------------|------------------------------|
    | PENDING                      | at its start, and each SELDOM until then; once it |                              |
    |                              | should be there, or if its start is not known:    |                              |
    |                              | EACH_MINUTE, after LOOKS_IN_VAIN as PATIENT       |                              |
    | READY                        | EACH_MINUTE, after LOOKS_IN_VAIN as PATIENT       | IN_USE                       |
    | MISSING                      | PATIENT                                           | IN_USE                       |
    | ENDED, UNREADABLE            | SELDOM                                            | SELDOM                       |

    If nobody needs it: SELDOM. At the latest when its users are to be told of its end, and at its end.
    """
    seen, patience = known.seen, PATIENT if known.looks >= LOOKS_IN_VAIN else EACH_MINUTE
    due = now + SELDOM
    match seen.state:
        case ReservationState.PENDING if demand.waits:
            due = min(seen.starts_at, due) if seen.starts_at is not None and now < seen.starts_at else now + patience
        case ReservationState.READY if demand.waits:
            due = now + patience
        case ReservationState.MISSING if demand.waits:
            due = now + PATIENT
        case ReservationState.READY | ReservationState.MISSING if demand.ours:
            due = now + IN_USE
        case _:
            pass
    return min((due, *(at for at in _times(known, demand) if now < at)))


def _times(known: Reservation, demand: Demand) -> Iterable[datetime]:
    end = known.seen.ends_at
    if end is None or known.seen.state is not ReservationState.READY:
        return
    yield end
    if demand.ours:
        yield from (end - timedelta(minutes=before) for before in TOLD_BEFORE)


def looked(
    before: Reservation | None, place: ReservationPlace, seen: ReservationSeen, demand: Demand, now: datetime
) -> Reservation:
    """Return what is known of a reservation after a look at it."""
    known = Reservation(
        place=place,
        seen=_as_of(seen, before, now),
        seen_at=now,
        ours=demand.ours,
        needed_at=now if before is None or demand.waits or demand.ours else before.needed_at,
        next_look_at=now,
        looks=0 if before is None or _has_more(before.seen, seen) else before.looks + 1,
        announced=before.announced if before is not None and before.seen.ends_at == seen.ends_at else 0,
    )
    return replace(known, next_look_at=next_look(known, demand, now))


def _as_of(seen: ReservationSeen, before: Reservation | None, now: datetime) -> ReservationSeen:
    """Return what was seen; one that is gone at the end that was known has ended, and is not missing."""
    end = before.seen.ends_at if before is not None else None
    if before is not None and seen.state is ReservationState.MISSING and end is not None and end <= now:
        return replace(before.seen, state=ReservationState.ENDED)
    if seen.ends_at is not None and seen.ends_at <= now:
        return replace(seen, state=ReservationState.ENDED)
    return seen


def _has_more(before: ReservationSeen, seen: ReservationSeen) -> bool:
    return before.state is not seen.state or (seen.free or 0) > (before.free or 0)


def unseen(before: Reservation | None, place: ReservationPlace, error: str, now: datetime) -> Reservation:
    """Return what is known after a look that found out nothing: it is tried again after a minute, then seldom."""
    pause = PATIENT if before is not None and before.error else EACH_MINUTE
    if before is None:
        nothing = ReservationSeen(state=ReservationState.UNREADABLE, detail=error)
        before = Reservation(place=place, seen=nothing, seen_at=now, needed_at=now, next_look_at=now)
    return replace(before, error=error, next_look_at=now + pause)


def state_at(known: Reservation, now: datetime) -> ReservationState:
    """Return how a reservation is now, by what is known of it: one ends at its end, whether or not anybody looked."""
    if known.error and now - known.seen_at > BELIEVED_FOR:
        return ReservationState.UNREADABLE
    end = known.seen.ends_at
    return ReservationState.ENDED if end is not None and end <= now else known.seen.state


def is_to_be_looked_at(known: Reservation | None, now: datetime) -> bool:
    """Return whether a creation that could start is to look first: nothing is known, or only what was long ago."""
    return known is None or (state_at(known, now) is ReservationState.READY and now - known.seen_at > IN_USE)


def fewest_held(pool: CapacityPool, running: Sequence[Slot], known: Reservation | None, now: datetime) -> int | None:
    """Return the fewest hosts for which no creation may start in a reservation now; None: any may, as far as is known.

    | the reservation                                                  | a creation                                   |
    |------------------------------------------------------------------|----------------------------------------------|
    | is not known, cannot be read, or has hosts that are not counted  | may start                                    |
    | begins later, is missing, has ended                              | may not                                      |
    | is READY                                                         | may if its hosts and those of creations that |
    |                                                                  | run fit into its free hosts. One more may if |
    |                                                                  | its hosts do, while creations run that began |
    |                                                                  | before it was seen: they may count twice     |
    """
    if known is None:
        return None
    state, free = state_at(known, now), known.seen.free
    if state is ReservationState.UNREADABLE or (state is ReservationState.READY and free is None):
        return None
    if state is not ReservationState.READY or free is None:
        return 1
    under_way = [slot for slot in running if slot.capacity_pool == pool and slot.operation is PoolOperation.CREATE]
    left = free - sum(slot.hosts for slot in under_way)
    in_doubt = any(slot.taken_at < known.seen_at for slot in under_way)
    return 1 + (free if in_doubt and left >= 0 else max(left, 0))


def lack(
    pool: CapacityPool, hosts: int, running: Sequence[Slot], known: Reservation | None, now: datetime
) -> Shortage | None:
    """Return why a creation of so many hosts may not start in a reservation now; None: it may, by `fewest_held`."""
    fewest = fewest_held(pool, running, known, now)
    if known is None or fewest is None or hosts < fewest:
        return None
    full = state_at(known, now) is ReservationState.READY
    reason = Reason.RESERVATION_UNAVAILABLE if full else Reason.RESERVATION_AWAITED
    return Shortage(at=known.seen_at, reason=reason, message=told(known, hosts, now), hosts=fewest)


def told_otherwise(
    before: Mapping[CapacityPool, Reservation], after: Mapping[CapacityPool, Reservation], now: datetime
) -> frozenset[CapacityPool]:
    """Return where those who wait for a reservation are told something else, or may go on.

    Not for each host that is used or free: who may start is handed a slot anyway.
    """
    pools = {**before, **after} if before != after else {}
    return frozenset(pool for pool in pools if _says(before.get(pool), now) != _says(after.get(pool), now))


def _says(known: Reservation | None, now: datetime) -> tuple[object, ...] | None:
    if known is None:
        return None
    state, seen = state_at(known, now), known.seen
    has_room = bool(seen.free) if state is ReservationState.READY else None
    return state, has_room, seen.starts_at, seen.ends_at, seen.nearest, seen.detail


def told(known: Reservation, hosts: int, now: datetime) -> str:
    """Return what a creation of so many hosts waits for in a reservation, as a sentence without its full stop."""
    seen, name, where = known.seen, known.place.shown, f"{known.place.zone} of project {known.place.project}"
    match state_at(known, now):
        case ReservationState.PENDING if seen.starts_at is not None:
            return (
                f"Waits for {name}, which begins at {moment(seen.starts_at)}{f': {seen.detail}' if seen.detail else ''}"
            )
        case ReservationState.PENDING:
            return f"Waits for {name}, which is not there yet{f': {seen.detail}' if seen.detail else ''}"
        case ReservationState.ENDED:
            ended = f" at {moment(seen.ends_at)}" if seen.ends_at is not None else ""
            return f"The {name} ended{ended}: nothing is asked for in it"
        case ReservationState.MISSING:
            like = f"; there is {' and '.join(seen.nearest)}" if seen.nearest else ""
            return f"There is no {name} in {where}, and none of this name is booked{like}"
        case ReservationState.READY:
            return _full(known, hosts)
        case ReservationState.UNREADABLE:
            return not_readable(known)


def _full(known: Reservation, hosts: int) -> str:
    seen, name = known.seen, known.place.shown
    others = max(0, seen.in_use - known.ours)
    used = f"{seen.in_use} of {seen.count} used"
    if others:
        used += f", {others} of them outside this cluster"
    broken = f", {seen.degraded} not healthy" if seen.degraded else ""
    if not seen.free:
        return f"The {name} has no free hosts: {used}{broken}"
    return f"The {name} has {seen.free} free hosts for what is being created and {hosts} more: {used}{broken}"


def beyond_reservation(known: Reservation | None, hosts: int, now: datetime) -> str | None:
    """Return that slices that come together need more hosts than a reservation has, whoever uses them; None: not so."""
    there = {ReservationState.READY, ReservationState.PENDING}
    if known is None or known.seen.healthy is None or state_at(known, now) not in there or hosts <= known.seen.healthy:
        return None
    has = f"{known.seen.healthy} healthy hosts" if known.seen.degraded else f"{known.seen.healthy} hosts"
    return f"The {known.place.shown} has {has} in all, and the slices of the gang need {hosts} of them at once"


def room_for(known: Reservation, hosts: int, slices: int, now: datetime) -> str:
    """Return whether so many slices, of so many hosts each, could be made in a reservation now, as a sentence."""
    seen = known.seen
    if state_at(known, now) is not ReservationState.READY or (seen.free is not None and seen.free < hosts):
        return f"{told(known, hosts, now)}."
    needs = f"{slices} slices need {slices * hosts}" if slices > 1 else f"the slice needs {hosts}"
    free = f"has {seen.free} free hosts of {seen.count}" if seen.free is not None else "is there, its hosts not counted"
    ends = f". It ends at {moment(seen.ends_at)}" if seen.ends_at is not None else ""
    return f"The {known.place.shown} {free}; {needs}{ends}."


def described(known: Reservation, now: datetime) -> str:
    """Return what is known of a reservation, and when it is looked at next."""
    seen = known.seen
    counted = f", {seen.in_use} of {seen.count} hosts used, {known.ours} of them by slices of this cluster"
    broken = f", {seen.degraded} not healthy" if seen.degraded else ""
    start = f", begins at {moment(seen.starts_at)} (in {_span(seen.starts_at - now)})" if seen.starts_at else ""
    times = start if seen.starts_at is not None and now < seen.starts_at else ""
    if seen.ends_at is not None:
        times += f", {'ends' if now < seen.ends_at else 'ended'} at {moment(seen.ends_at)}"
    says = f"; {seen.detail}" if seen.detail else ""
    error = f"; the last look failed: {known.error}" if known.error else ""
    numbers = f"{counted}{broken}" if seen.count is not None and state_at(known, now) is ReservationState.READY else ""
    looks = f"; seen at {clock(known.seen_at, now)}, {asked_again(known, now)}"
    return f"{state_at(known, now)}{numbers}{times}{says}{error}{looks}"


def _span(length: timedelta) -> str:
    minutes = round(length.total_seconds() / 60)
    return f"{minutes} min" if minutes <= 120 else f"{round(minutes / 60)} h"


def not_readable(known: Reservation) -> str:
    """Return that nothing is known of a reservation, and which right that needs."""
    return (
        f"The {known.place.shown} of project {known.place.project} cannot be read: {known.seen.detail or known.error}"
    )


def asked_again(known: Reservation, now: datetime) -> str:
    """Return when it is looked at next, and how long that is from now."""
    return f"it is looked at again at {clock(known.next_look_at, now)}"


def moment(at: datetime) -> str:
    """Return a time as in `06:00 UTC on 1 December`."""
    return f"{at:%H:%M} UTC on {at.day} {at:%B}"


def ends_soon(known: Reservation, now: datetime) -> int:
    """Return how many minutes before its end its users are to be told now; 0: nothing is to be told.

    Of several times that have passed only the last counts.
    """
    end = known.seen.ends_at
    if end is None or not known.ours or state_at(known, now) is not ReservationState.READY:
        return 0
    passed = [minutes for minutes in TOLD_BEFORE if end - timedelta(minutes=minutes) <= now]
    last = min(passed, default=0)
    return last if last and (not known.announced or last < known.announced) else 0


def end_told(known: Reservation, now: datetime) -> str:
    """Return what users of a reservation are told of its end."""
    end = known.seen.ends_at
    assert end is not None
    return (
        f"The {known.place.shown} ends at {moment(end)} (in {_span(end - now)}). Google deletes its hosts then: write "
        "a checkpoint before, and ask for other capacity if the run is to go on"
    )


def outlasts(known: Reservation, expected: timedelta | None, now: datetime) -> str:
    """Return that a Job that starts now, or once a booking begins, is not done before the end; empty: not so."""
    begins, end = max(now, known.seen.starts_at or now), known.seen.ends_at
    if expected is None or end is None or begins + expected <= end:
        return ""
    return (
        f"The {known.place.shown} ends at {moment(end)} (in {_span(end - now)}), and the Job is to run for "
        f"{duration(expected)}: Google deletes its hosts before it is done"
    )


def used(known: Reservation, hosts: int, asked_at: datetime | None) -> Reservation:
    """Return what is known once a creation in it succeeded that it was not seen with."""
    if asked_at is None or asked_at <= known.seen_at or known.seen.count is None:
        return known
    return replace(known, seen=replace(known.seen, in_use=known.seen.in_use + hosts), ours=known.ours + hosts)


def nearest(name: str, others: Iterable[str]) -> tuple[str, ...]:
    """Return the names that are most like one that there is not; if none is, the first ones."""
    found = sorted(others)
    return tuple(difflib.get_close_matches(name, found, n=MOST_NEAREST, cutoff=0.5) or found[:MOST_NEAREST])
