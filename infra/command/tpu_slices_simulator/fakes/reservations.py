"""The port `ReservationReader` over reservations in memory: what slices use of them is what the backend has."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from tpu_slices.domain.capacity.reservations import nearest, place_of
from tpu_slices.domain.model.observations import Absent, Broken, Failure, FailureKind
from tpu_slices.domain.records.reservations import BlockSeen, ReservationPlace, ReservationSeen, ReservationState
from tpu_slices.ports.backend import PoolOrder
from tpu_slices.ports.clock import Clock
from tpu_slices.ports.errors import Temporary
from tpu_slices_simulator.fakes.backend import FakeBackend, FakePool

NOT_ALLOWED = "needs compute.reservations.get"


@dataclass(slots=True, kw_only=True)
class FakeReservation:
    """A reservation, or one that is booked: `starts_at` is when it is there, `ends_at` when it is deleted."""

    name: str
    hosts: int
    others: int = 0
    """Hosts that others use."""
    degraded: int = 0
    starts_at: datetime | None = None
    ends_at: datetime | None = None


@dataclass(slots=True)
class FakeReservations:
    """A test presses `has`, and looks at `reads`. Until then nothing may be read, and everything is as without."""

    backend: FakeBackend
    clock: Clock
    there: dict[str, FakeReservation] = field(default_factory=dict)
    readable: bool = False
    unavailable: bool = False
    reads: list[datetime] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.backend.why_short = self._why_short

    def has(self, *reservations: FakeReservation) -> None:
        """Let there be these reservations, which may be read, and no others."""
        self.readable = True
        self.there = {each.name: each for each in reservations}

    def read(self, place: ReservationPlace) -> ReservationSeen:
        self.reads.append(self.clock.now())
        if self.unavailable:
            raise Temporary("Compute Engine does not answer")
        if not self.readable:
            return ReservationSeen(state=ReservationState.UNREADABLE, detail=NOT_ALLOWED)
        known, now = self.there.get(place.name), self.clock.now()
        if known is None or (known.ends_at is not None and known.ends_at <= now):
            others = [name for name, each in self.there.items() if each is not known]
            return ReservationSeen(state=ReservationState.MISSING, nearest=nearest(place.name, others))
        seen = ReservationSeen(
            state=ReservationState.PENDING, starts_at=known.starts_at, ends_at=known.ends_at, count=known.hosts
        )
        if known.starts_at is not None and now < known.starts_at:
            return seen
        used = known.others + self.ours(known.name)
        block = BlockSeen(name="b1", count=known.hosts, in_use=used, degraded=known.degraded)
        return replace(seen, state=ReservationState.READY, in_use=used, degraded=known.degraded, blocks=(block,))

    def ours(self, name: str) -> int:
        """Return how many hosts the backend's pools use of a reservation."""
        return sum(
            pool.order.spec.hosts
            for pool in self.backend.pools.values()
            if pool.order is not None
            and pool.order.spec is not None
            and not isinstance(pool.seen, Absent | Broken)
            and _name_of(pool.order) == name
        )

    def has_ended(self, pool: FakePool) -> bool:
        """Return whether Google took the hosts of a pool back at the end of its reservation."""
        known = self.there.get(_name_of(pool.order) or "") if pool.order is not None else None
        return known is not None and known.ends_at is not None and known.ends_at <= self.clock.now()

    def _why_short(self, order: PoolOrder) -> Failure | None:
        """Return why a creation is refused that its reservation does not have hosts for; None: it is not."""
        name, now = _name_of(order), self.clock.now()
        if name is None or order.spec is None or not self.readable:
            return None
        known = self.there.get(name)
        is_there = known is not None and (known.starts_at is None or known.starts_at <= now)
        if known is None or not is_there or (known.ends_at is not None and known.ends_at <= now):
            return Failure(FailureKind.RESERVATION_AWAITED, f"Specified reservations [{name}] do not exist.")
        if known.hosts - known.others - known.degraded - self.ours(name) < order.spec.hosts:
            why = f"Specified reservation '{name}' does not have available resources for the request."
            return Failure(FailureKind.RESERVATION, why)
        return None


def _name_of(order: PoolOrder) -> str | None:
    place = place_of(order.spec.capacity, order.spec.zone, "project") if order.spec is not None else None
    return place.name if place is not None else None
