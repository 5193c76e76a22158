"""Looks at where slices are asked for: at rungs of their workloads, in one zone, and not too often where none are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from tests.simulation.capacity.drawn import PRICES
from tests.simulation.promises import Promise, broken
from tests.simulation.standing import by_id, ours, slice_of
from tpu_slices.domain.model.capacity import LADDER, NO_LADDER, Ladder, Rung, ZonesOf
from tpu_slices.domain.model.observations import Busy, Creating, Outcome, Running, Started
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import SliceSpec
from tpu_slices.domain.records.awaited import Shortage
from tpu_slices.domain.records.limiters import CapacityPool
from tpu_slices.domain.records.queues import capacity_pool_of
from tpu_slices.ports.backend import PoolOrder
from tpu_slices.wire.workloads import Json
from tpu_slices_simulator.fakes.gke import FakePool
from tpu_slices_simulator.live import LiveWorkload
from tpu_slices_simulator.simulation import Simulation
from tpu_slices_simulator.story import Kind

FIRST, LONGEST = timedelta(minutes=2), timedelta(minutes=30)
"""How long nobody comes to a place that ran out: doubled with each refusal, a fifth less at the least."""
LEAST = 0.8
NOT_TIMED = frozenset({Kind.CLOCKS_DIFFER, Kind.FUNCTIONS_STALL, Kind.FUNCTIONS_OVERLAP, Kind.RECORDS_EDITED})
"""Faults after which what is written does not say when it was."""


@dataclass(slots=True)
class Refusals:
    """Of a place, in succession: the last one, and how many were noted."""

    last: Shortage
    count: int = 1


class Ladders:
    """Raises Broken if a slice is asked for where its workload may not ask, or what it has keeps it away."""

    def __init__(self, world: Simulation) -> None:
        self._world = world
        self._refused: dict[CapacityPool, Refusals] = {}
        self._timed = not {fault.kind for fault in world.story.faults} & NOT_TIMED and world.story.set_back is None
        self._started: set[str] = set()
        """The workloads that had a pod on hosts."""
        if world.settings.ladders:
            self._listen()

    def _listen(self) -> None:
        create = self._world.backend._create

        def created(order: PoolOrder) -> Outcome:
            outcome = create(order)
            if isinstance(outcome, Started) and order.spec is not None and order.spec.ladder:
                self._on_creation(order, order.spec)
            return outcome

        self._world.backend._create = created  # type: ignore[method-assign]  # its own eye on every creation

    def each_minute(self) -> None:
        if self._world.settings.ladders:
            self._started.update(uid for uid, each in self._world.workloads.items() if each.bound)
            self._learns()

    def _learns(self) -> None:
        """Note what is remembered of places that ran out."""
        if self._world.store.unavailable:
            return
        limiter = self._world.store.limiter(self._world.settings.cluster)
        shortages = limiter.value.shortages if limiter is not None else {}
        for pool in self._refused.keys() - shortages.keys():
            del self._refused[pool]
        for pool, short in shortages.items():
            known = self._refused.get(pool)
            if known is None:
                self._refused[pool] = Refusals(short)
            elif known.last.at != short.at:
                known.last, known.count = short, known.count + 1

    def _on_creation(self, order: PoolOrder, spec: SliceSpec) -> None:
        workload = self._world.workloads.get(order.job.owner.uid)
        if workload is None:
            return
        ladders = [*self._ladders(workload)]
        self._is_a_rung(order, spec, workload, ladders)
        if any(ladder.zones is ZonesOf.ONE for ladder in ladders):
            self._is_in_its_zone(order, spec, workload)
        self._learns()
        if self._timed:
            self._is_due(order, spec)

    def _ladders(self, workload: LiveWorkload) -> Iterator[Ladder]:
        """Yield the ladders that a workload has, or had before it was edited."""
        settings, owner = self._world.settings, workload.ref.owner
        plots = [each for each in self._world.story.jobsets if each.id == f"{owner.namespace}/{owner.name}"]
        own = settings.namespaces.get(owner.namespace)
        usual = (own.ladder if own is not None else None) or settings.ladder or NO_LADDER
        written = [manifest for plot in plots for manifest in (plot.manifest, *(each for _, each in plot.edits))]
        names = {_named(manifest) or usual for manifest in written}
        yield from (settings.ladders[name] for name in sorted(names - {NO_LADDER}))

    def _is_a_rung(self, order: PoolOrder, spec: SliceSpec, workload: LiveWorkload, ladders: list[Ladder]) -> None:
        rungs = [rung for ladder in ladders for rung in ladder.rungs if self._is_at(rung, spec)]
        chips = spec.chips * workload.slices
        fits = [rung for rung in rungs if rung.most_usd_an_hour is None or self._costs(spec, chips) <= _most(rung)]
        allowed = self._world.story.settings.policy.allowed(order.job.owner.namespace).capacity
        if not fits or spec.capacity.kind not in allowed:
            broken(Promise.OWN_RUNGS, f"{order.name} is asked for as {spec.how}, for {chips} chips", self._world)

    def _is_at(self, rung: Rung, spec: SliceSpec) -> bool:
        place = self._world.settings.places[rung.place]
        there = (place.capacity, place.reservation) == (spec.capacity.kind, spec.capacity.reservation)
        return there and spec.zone in place.zones

    def _costs(self, spec: SliceSpec, chips: int) -> float:
        return PRICES.get(spec.capacity.kind, 0.0) * chips

    def _is_in_its_zone(self, order: PoolOrder, spec: SliceSpec, workload: LiveWorkload) -> None:
        """Check that nothing of its workload stands in another zone; a gang that has not started is not held there."""
        starts = order.job.owner.uid not in self._started and not workload.bound
        if starts and workload.gang_of(0):
            return
        elsewhere = [pool.name for pool in self._had(workload) if pool.name != order.name and _zone(pool) != spec.zone]
        if elsewhere:
            broken(Promise.ONE_ZONE, f"{order.name} is asked for in {spec.zone}, beside {elsewhere}", self._world)

    def _had(self, workload: LiveWorkload) -> Iterator[FakePool]:
        """Yield the pools that claims of a workload have, with hosts, or that are being made for them."""
        known = by_id(self._world.store.slice_records(self._world.settings.cluster))
        for pool in ours(self._world):
            record, makes = known.get(slice_of(pool)), isinstance(pool.seen, Creating)
            if record is None or record.unclaimed or record.owner.uid != workload.ref.owner.uid:
                continue
            has_hosts = makes or (isinstance(pool.seen, Running | Busy) and pool.hosts_joined)
            if has_hosts and record.wanted and not record.goes:
                yield pool

    def _is_due(self, order: PoolOrder, spec: SliceSpec) -> None:
        """Check that a place that is known to be short for such a slice is tried seldom, and by one at a time."""
        place, now = capacity_pool_of(spec), self._world.clock.now()
        known = self._refused.get(place)
        if known is None or spec.hosts < known.last.hosts or known.last.reason is not Reason.STOCKOUT:
            return
        pause = LEAST * min(FIRST * 2 ** (known.count - 1), LONGEST)
        if now - known.last.at < pause:
            seen = f"{order.name} is asked for as {spec.how} {now - known.last.at} after refusal {known.count} there"
            broken(Promise.NO_HAMMERING, seen, self._world)
        others = [pool.name for pool in self._tried(place, known.last) if pool.name != order.name]
        if others:
            broken(Promise.NO_HAMMERING, f"{order.name} is asked for as {spec.how} beside {others}", self._world)

    def _tried(self, place: CapacityPool, short: Shortage) -> Iterator[FakePool]:
        """Yield the pools that are being created in a place since it was found to be short for them."""
        for pool in ours(self._world):
            spec, made_at = pool.order.spec if pool.order else None, pool.made_at
            if spec is None or made_at is None or not isinstance(pool.seen, Creating):
                continue
            if made_at > short.at and capacity_pool_of(spec) == place and spec.hosts >= short.hosts:
                yield pool


def _named(manifest: Json) -> str:
    return str((manifest["metadata"].get("annotations") or {}).get(LADDER, ""))


def _most(rung: Rung) -> float:
    assert rung.most_usd_an_hour is not None
    return rung.most_usd_an_hour


def _zone(pool: FakePool) -> str:
    return pool.order.spec.zone if pool.order is not None and pool.order.spec is not None else ""
