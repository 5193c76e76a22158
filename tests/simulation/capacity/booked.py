"""Stories with reservations, in which others come and go: no more is created in one than it has room for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from tests.simulation.capacity.drawn import on_ladders
from tests.simulation.drawn import remade
from tests.simulation.promises import Promise, broken
from tests.simulation.standing import ours
from tpu_slices.domain.model.capacity import Ladder, Place, Rung
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.observations import Broken, Outcome
from tpu_slices.domain.model.slices import CapacityKind, SliceSpec
from tpu_slices.domain.records.limiters import CapacityPool
from tpu_slices.domain.records.queues import capacity_pool_of
from tpu_slices.domain.records.reservations import Reservation
from tpu_slices.ports.backend import PoolOrder
from tpu_slices_simulator.chance import Chance
from tpu_slices_simulator.fakes.gke import FakePool
from tpu_slices_simulator.simulation import Simulation
from tpu_slices_simulator.story import Kind, Plot, Reserved, Story

HALL, WING = "hall-7", "wing-1"
"""One that every workload fits into, once nobody else is in it; and one that is small, and may end."""
ALL = 200
ZONE = "us-central2-b"
PLACES: Mapping[str, Place] = {
    name: Place(capacity=CapacityKind.RESERVATION, zones=(ZONE,), reservation=name) for name in (HALL, WING)
}
TIMES = (None, timedelta(minutes=10), timedelta(hours=1))
BLIND_FOR = 70
"""Minutes after which it is known how a reservation is that could not be read: it is looked at each hour."""
SLACK = timedelta(minutes=2)
"""In which what was decided is still done."""
QUIET = 30
"""Minutes of calm in which nobody waits."""


def in_reservations(story: Story) -> Story:
    """Return a story in which a share of the workloads asks in a reservation alone, and others there first."""
    story = on_ladders(story)
    chance = Chance(f"reservations {story.seed}")
    jobsets = tuple(_booked(chance, plot) for plot in story.jobsets)
    ends = chance.between(60, story.minutes, "ends") if chance.happens(0.4, "ends?") else None
    begins = [chance.between(1, 50, name) if chance.happens(0.4, name, "begins?") else None for name in PLACES]
    wing = Reserved(name=WING, hosts=chance.pick((4, 8, 12), "wing"), begins=begins[1], ends=ends)
    hall = Reserved(name=HALL, hosts=ALL, begins=begins[0])
    made = with_reservations(story.settings, story.seed)
    return replace(story, settings=made, jobsets=jobsets, reservations=(hall, wing))


def with_reservations(settings: ClusterSettings, seed: int) -> ClusterSettings:
    """Return the settings of a cluster whose ladders begin with a reservation, beside one that has no other rung."""
    chance = Chance(f"reservations {seed}")
    everyone = settings.policy.everyone
    lasts = {name: chance.pick(TIMES, name, "for") for name in settings.ladders}
    ladders = {
        name: replace(ladder, rungs=(Rung(place=WING, lasts=lasts[name]), *ladder.rungs))
        for name, ladder in settings.ladders.items()
    }
    allowed = replace(everyone, capacity=(*everyone.capacity, CapacityKind.RESERVATION))
    return replace(
        settings,
        places={**settings.places, **PLACES},
        ladders={**ladders, "booked": Ladder(rungs=(Rung(place=HALL),))},
        policy=replace(settings.policy, everyone=allowed),
    )


def _booked(chance: Chance, plot: Plot) -> Plot:
    alone = chance.happens(0.4, plot.name, "booked")
    return remade(plot, ladder="booked", spot=False, flex_start=False) if alone else plot


class Others:
    """What others do with the reservations of a story: they come and go, and at times nobody can look."""

    def __init__(self, world: Simulation) -> None:
        self._world, self._chance = world, Chance(f"others {world.story.seed}")
        self._blind: int | None = None
        """The minute in which nobody could look last."""

    @property
    def seen(self) -> bool:
        """Whether each reservation could be looked at for so long that all is known."""
        return self._blind is None or self._world.minute - self._blind > BLIND_FOR

    def each_minute(self) -> None:
        world, ten = self._world, self._world.minute // 10
        if world.minute >= world.story.minutes:
            return self._calm_down()
        for name, each in world.reservations.there.items():
            free = each.hosts - world.reservations.ours(name)
            comes = self._chance.pick((0.0, 0.5, 0.9, 1.0), name, "others", ten)
            each.others = min(int(each.hosts * comes), max(free, 0))
            each.degraded = min(self._chance.pick((0, 0, 0, 2), name, "degraded", ten), max(free - each.others, 0))
        world.reservations.unavailable = self._chance.happens(0.1, "unavailable", ten)
        world.reservations.readable = not self._chance.happens(0.1, "unreadable", self._world.minute // 30)
        if world.reservations.unavailable or not world.reservations.readable:
            self._blind = world.minute
        return None

    def _calm_down(self) -> None:
        reservations = self._world.reservations
        reservations.unavailable, reservations.readable = False, True
        for each in reservations.there.values():
            each.others = each.degraded = 0


class Reservations:
    """Raises Broken if more is created in a reservation than it has room for, or while it is not there."""

    def __init__(self, world: Simulation) -> None:
        self._world, self._others = world, Others(world)
        self._seen: dict[CapacityPool, tuple[datetime, int | None]] = {}
        """By reservation when it was looked at, and how many hosts were free then."""
        faults = {fault.kind for fault in world.story.faults}
        self._timed = Kind.CLOCKS_DIFFER not in faults and world.story.set_back is None
        self.drawn = any(each.name == HALL for each in world.story.reservations)
        if self.drawn:
            self._listen()

    def _listen(self) -> None:
        create = self._world.backend.create

        def ordered(order: PoolOrder) -> Outcome:
            spec = order.spec
            if spec is not None and spec.capacity.reservation and order.name not in self._world.backend.pools:
                self._on_order(order, spec, spec.capacity.reservation)
            return create(order)

        self._world.backend.create = ordered  # type: ignore[method-assign]  # its own eye on every order

    def each_minute(self) -> None:
        if self.drawn:
            self._others.each_minute()
            self._learns()

    def looked_at_seldom(self, looks: int) -> None:
        """Check how often reservations were looked at while nobody waited."""
        most = len(self._world.reservations.there) * (QUIET // 15 + 2)
        if self.drawn and looks > most:
            broken(Promise.BOUNDED_COST, f"reservations are looked at {looks} times in {QUIET} minutes", self._world)

    def _known(self) -> Mapping[CapacityPool, Reservation]:
        limiter = self._world.store.limiter(self._world.settings.cluster)
        return limiter.value.reservations if limiter is not None else {}

    def _learns(self) -> None:
        for pool, known in () if self._world.store.unavailable else self._known().items():
            if self._seen.get(pool, (None, None))[0] != known.seen_at:
                self._seen[pool] = known.seen_at, known.seen.free

    def _on_order(self, order: PoolOrder, spec: SliceSpec, name: str) -> None:
        world, there = self._world, self._world.reservations.there[name]
        if not (self._others.seen and self._timed):
            return
        now = world.clock.now()
        early = there.starts_at is not None and now < there.starts_at
        if early or (there.ends_at is not None and now > there.ends_at + SLACK):
            broken(Promise.NO_OVERBOOKING, f"{order.name} is asked for in {name}, which is not there", world)
        self._learns()
        seen_at, free = self._seen.get(capacity_pool_of(spec), (None, None))
        if seen_at is None or free is None:
            return
        begun = sum(each.order.spec.hosts for each in self._since(seen_at, name) if each.order and each.order.spec)
        if begun > free:
            seen = f"{order.name} is asked for in {name}, which had {free} free hosts, beside {begun} that are made"
            broken(Promise.NO_OVERBOOKING, seen, world)

    def _since(self, seen_at: datetime, name: str) -> Iterator[FakePool]:
        """Yield the pools in a reservation whose creation began after a look at it."""
        for pool in ours(self._world):
            made_at = pool.made_at
            in_it = pool.order is not None and pool.order.spec and pool.order.spec.capacity.reservation == name
            if in_it and made_at is not None and made_at > seen_at and not isinstance(pool.seen, Broken):
                yield pool
