"""What `slices doctor` says of capacity: why claims wait, and what is kept for the next. None of it is a failure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from tpu_slices.domain.capacity.reservations import not_readable, state_at
from tpu_slices.domain.capacity.spares import seats_of
from tpu_slices.domain.capacity.stepping import RAN_OUT
from tpu_slices.domain.capacity.warmth import is_warm
from tpu_slices.domain.model.capacity import Place
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import Capacity, ClusterId, RungSpec
from tpu_slices.domain.model.texts import clock
from tpu_slices.domain.reconciling.limiter import shortage_of
from tpu_slices.domain.records.limiters import CapacityPool, ConcurrencyLimiter
from tpu_slices.domain.records.reservations import ReservationState
from tpu_slices.ports.store import SliceStore
from tpu_slices_cli.examination import Finding, well

MOST_WARM = 500
"""So many warm slices are counted."""


def capacity(cluster: ClusterId, settings: ClusterSettings | None, store: SliceStore, now: datetime) -> list[Finding]:
    """Return what is known of reservations, places of ladders, warm slices and spares of a cluster."""
    stored = store.limiter(cluster)
    limiter = stored.value if stored is not None else ConcurrencyLimiter.of(cluster, now)
    lines = [*_unreadable(limiter, now)]
    if settings is not None:
        lines += [*_short(settings, limiter, now), *_warm(settings, store), *_spares(settings, store)]
    return [well(line) for line in lines]


def _unreadable(limiter: ConcurrencyLimiter, now: datetime) -> Iterator[str]:
    for known in limiter.reservations.values():
        if state_at(known, now) is ReservationState.UNREADABLE:
            yield f"{not_readable(known)}. Creations in it are tried without knowing its room."


def _short(settings: ClusterSettings, limiter: ConcurrencyLimiter, now: datetime) -> Iterator[str]:
    """Yield which places of ladders are passed by, since what is there has run out."""
    used = {rung.place for ladder in settings.ladders.values() for rung in ladder.rungs}
    for pool in sorted(limiter.shortages):
        short = shortage_of(pool, limiter, now)
        names = sorted(name for name in used if _is_of(pool, settings.places[name]))
        if short is None or short.until is None or short.until <= now or not names:
            continue
        place = settings.places[names[0]]
        capacity = Capacity(place.capacity, place.reservation)
        how = RungSpec(place="", zone=pool.partition("/")[0], capacity=capacity).how
        ran_out = RAN_OUT.get(short.reason, "{how} is short of {what}").format(what=short.what, how=how)
        yield (
            f"Ladders pass by {' and '.join(names)} until {clock(short.until, now)}, for slices of {short.hosts} hosts "
            f"and more: {ran_out}."
        )


def _is_of(pool: CapacityPool, place: Place) -> bool:
    zone, _, kind = pool.split("/", 2)
    return zone in place.zones and kind == (place.reservation or str(place.capacity))


def _warm(settings: ClusterSettings, store: SliceStore) -> Iterator[str]:
    """Yield how many slices are kept for the next claim, and what they cost."""
    found = store.for_reasons(settings.cluster, [Reason.WARM], MOST_WARM)
    kept = [each.value for each in found if is_warm(each.value)]
    if kept:
        cents = sum(each.current.warm.cents_an_hour for each in kept if each.current.warm is not None)
        chips = sum(each.made_as.chips for each in kept if each.made_as is not None)
        one = "1 slice is" if len(kept) == 1 else f"{len(kept)} slices are"
        price = f"{cents / 100:,.2f} dollars an hour" if cents else "at no price that is known"
        yield f"{one} kept warm: {chips} chips, {price}."


def _spares(settings: ClusterSettings, store: SliceStore) -> Iterator[str]:
    """Yield how many spares stand, and why others do not: claims wait longer for that."""
    seats = seats_of(settings)
    if not seats:
        return
    found = [each.value for each in store.having(settings.cluster, seats.keys()).values()]
    lacking = [each for each in found if each.reason is not Reason.SPARE]
    yield f"{len(found) - len(lacking)} of {len(seats)} spares stand."
    yield from dict.fromkeys(f"A spare does not stand, {each.owner.full_name}: {each.message}" for each in lacking)
