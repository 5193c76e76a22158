"""GKE and its machines in a simulation: operations take their time and may fail, pools and hosts have troubles."""

from __future__ import annotations

from datetime import timedelta

from relay.hosts.closing import CLOSED
from tpu_slices.domain.model.observations import Broken, Creating, Deleting, Failure, FailureKind, Running
from tpu_slices.domain.model.slices import PoolName, slice_id
from tpu_slices_simulator.cluster import CORDONED, UNCORDONED
from tpu_slices_simulator.fakes.gke import FakePool, is_flex_start, running
from tpu_slices_simulator.live import Node
from tpu_slices_simulator.objects import maintenance
from tpu_slices_simulator.scene import Scene
from tpu_slices_simulator.story import Kind

CREATION_FAILURES = {
    Kind.STOCKOUT: Failure(FailureKind.STOCKOUT, "[GCE_STOCKOUT] none left"),
    Kind.QUOTA: Failure(FailureKind.QUOTA, "Quota exceeded"),
    Kind.RESERVATION_USED_UP: Failure(FailureKind.RESERVATION, "No available resources in the reservation"),
    Kind.CREATIONS_FAIL: Failure(FailureKind.UNKNOWN, "Internal error"),
}
NO_HOSTS_YET = "ZONE_RESOURCE_POOL_EXHAUSTED: the zone does not have enough resources available."
UNKNOWN = Failure(FailureKind.UNKNOWN, "Internal error")
REFUSED = Failure(FailureKind.CONFIGURATION, "Deletion is not allowed")
BUSY = Failure(FailureKind.BUSY, "Cluster is running incompatible operation")
RATE = Failure(FailureKind.RATE, "Too many requests")
HOUR = 60
STEP = (0, 1)
"""Minutes in which what a pool needs beside its hosts is made or deleted, on Compute Engine."""
MINUTE = timedelta(minutes=1)


class Pools:
    """What becomes of a simulation's pools by itself, each drawn by its name and the minute."""

    def __init__(self, simulation: Scene) -> None:
        self._of = simulation
        self._limit = simulation.backend.operation_limit
        self._begun: dict[str, int] = {}
        """By operation, the minute in which it was first seen."""
        self._back: dict[PoolName, int] = {}
        """By pool without hosts, or broken, the minute from which it is as before."""
        self._cordoned: dict[str, int] = {}
        """By node that somebody else cordoned, until when it is."""
        self._maintained: dict[str, int] = {}
        """By node whose machine is maintained, until when it is."""
        self._works: dict[str, int] = {}
        """By operation that works on a pool for hours, how many minutes it takes."""

    def have_troubles(self, minute: int) -> None:
        """Let faults befall the pools that stand."""
        sim, backend = self._of, self._of.backend
        backend.operation_limit = 1 if sim.strikes(Kind.GKE_FULL, minute) else self._limit
        backend.refuses_deletions = REFUSED if sim.strikes(Kind.DELETIONS_REFUSED, minute) else None
        busy = sim.strikes(Kind.GKE_BUSY, minute)
        backend.refuses_creations = sim.chance.pick((BUSY, RATE), "busy", minute) if busy else None
        sim.cluster.unusable_hosts = int(sim.strikes(Kind.HOSTS_UNUSABLE, minute))
        for pool in self._running() if sim.on else ():
            self._has_trouble(pool, minute)
        self._cordons(minute)
        self._maintains(minute)
        if sim.strikes(Kind.OPERATIONS_FORGOTTEN, minute):
            backend.forget_ended_operations()

    def _has_trouble(self, pool: FakePool, minute: int) -> None:
        sim, backend = self._of, self._of.backend
        if (
            Kind.LABELS_REPLACED in sim.on
            and self._known_ours(pool)
            and sim.strikes(Kind.LABELS_REPLACED, minute, pool.name)
        ):
            backend.replace_labels(pool.name)
        back = minute + sim.chance.between(1, 30, "back", pool.name, minute)
        if sim.strikes(Kind.POOLS_DELETED, minute, pool.name):
            backend.vanish(pool.name)
        elif pool.name not in self._back and sim.strikes(Kind.POOLS_WRECKED, minute, pool.name):
            backend.wreck(pool.name, UNKNOWN)
            self._back[pool.name] = back
        elif pool.hosts_joined and sim.strikes(Kind.POOLS_REPAIRED, minute, pool.name):
            backend.repair(pool.name)
        elif self._may_be_upgraded(pool) and sim.strikes(Kind.POOLS_UPGRADED, minute, pool.name):
            backend.upgrade(pool.name)
            assert pool.operation is not None
            self._works[pool.operation.name] = sim.chance.between(60, 180, "upgraded", pool.name, minute)
        elif self._may_be_preempted(pool) and sim.strikes(Kind.HOSTS_PREEMPTED, minute, pool.name):
            backend.preempt(pool.name)
            self._back[pool.name] = minute + sim.chance.between(10, 90, "asked for again", pool.name, minute)
        elif pool.hosts_joined and sim.strikes(Kind.HOSTS_DIE, minute, pool.name):
            pool.hosts_joined = False
            self._back[pool.name] = back
        elif is_flex_start(pool) and pool.hosts_joined and sim.strikes(Kind.HOSTS_TAKEN_BACK, minute, pool.name):
            backend.take_back(pool.name)

    def _may_be_upgraded(self, pool: FakePool) -> bool:
        """Return whether GKE may upgrade a pool: nobody upgrades those of Compute Engine."""
        return pool.hosts_joined and not self._of.settings.self_managed

    def _known_ours(self, pool: FakePool) -> bool:
        """Return whether a record knows that a pool is its slice's: until then its labels alone say so."""
        order, records = pool.order, self._of.store.slice_records(self._of.settings.cluster)
        id_ = slice_id(order.slice_id, order.attempt) if order is not None else None
        record = next((each for each in records if each.id == id_), None)
        return record is not None and record.current.ours_since is not None

    def _cordons(self, minute: int) -> None:
        """Let somebody cordon hosts, and uncordon them again."""
        sim = self._of
        for node in sim.cluster.nodes.values() if sim.on or self._cordoned else ():
            if minute >= self._cordoned.get(node.name, minute + 1):
                del self._cordoned[node.name]
                self._cordon(node, on=False)
            elif not node.seen.cordoned and sim.strikes(Kind.HOSTS_CORDONED, minute, node.name):
                self._cordoned[node.name] = minute + sim.chance.between(1, 30, "uncordoned", node.name, minute)
                self._cordon(node, on=True)

    def _maintains(self, minute: int) -> None:
        """Let Google maintain machines of hosts."""
        sim = self._of
        for node in list(sim.cluster.nodes.values()) if sim.on or self._maintained else ():
            if minute >= self._maintained.get(node.name, minute + 1):
                del self._maintained[node.name]
                sim.cluster.changes_node(node, maintenance(on=False))
            elif node.seen.usable and sim.strikes(Kind.HOSTS_MAINTAINED, minute, node.name):
                self._maintained[node.name] = minute + sim.chance.between(16, 250, "maintained", node.name, minute)
                sim.cluster.changes_node(node, maintenance(on=True))

    def _may_be_preempted(self, pool: FakePool) -> bool:
        return pool.hosts_joined and isinstance(pool.seen, Running) and pool.seen.refills

    def _cordon(self, node: Node, *, on: bool) -> None:
        whose = {"metadata": {"annotations": {CLOSED: None}}}
        self._of.cluster.changes_node(node, {**whose, **(CORDONED if on else UNCORDONED)})

    def forget(self) -> None:
        """Forget everything: another cluster is in the place of this one."""
        self._begun, self._back, self._cordoned, self._maintained, self._works = {}, {}, {}, {}, {}

    def work(self, minute: int) -> None:
        """Let what has begun go on, and end in its time."""
        for pool in list(self._of.backend.pools.values()):
            if pool.operation is not None:
                self._operation(pool, minute)
            elif isinstance(pool.seen, Running | Broken) and minute >= self._back.get(pool.name, minute + 1):
                self._recovers(pool)
        for pool in self._running():
            if pool.hosts_joined and self._of.reservations.has_ended(pool):
                pool.hosts_joined = False
            if _awaits_hosts(pool) and pool.name not in self._back and self._has_hosts(pool, minute):
                self._of.backend.fill(pool.name)

    def calm_down(self) -> None:
        """Let everything that is broken be as before."""
        backend = self._of.backend
        backend.refuses_creations, backend.refuses_deletions = None, None
        backend.operation_limit, self._of.cluster.unusable_hosts = self._limit, 0
        for pool in backend.pools.values():
            if pool.name in self._back:
                self._recovers(pool)
            elif _awaits_hosts(pool) and not is_flex_start(pool):
                backend.fill(pool.name)
            elif isinstance(pool.seen, Creating) and pool.operation is None:  # its operation was forgotten
                pool.seen = running(pool)
                pool.hosts_joined = not is_flex_start(pool)
        for name in sorted(self._cordoned.keys() & self._of.cluster.nodes.keys()):
            self._cordon(self._of.cluster.nodes[name], on=False)
        self._cordoned.clear()
        for name in sorted(self._maintained.keys() & self._of.cluster.nodes.keys()):
            self._of.cluster.changes_node(self._of.cluster.nodes[name], maintenance(on=False))
        self._maintained.clear()
        self._works.clear()

    def _has_hosts(self, pool: FakePool, minute: int) -> bool:
        """Return whether GKE or Compute Engine has the hosts that a pool awaits."""
        if is_flex_start(pool) and not self._of.chance.happens(0.2, "filled", pool.name, minute):
            return False
        return self._without_stock(pool, minute) is not Kind.STOCKOUT

    def _running(self) -> list[FakePool]:
        pools = self._of.backend.pools.values()
        return [pool for pool in pools if isinstance(pool.seen, Running) and pool.operation is None]

    def _recovers(self, pool: FakePool) -> None:
        self._back.pop(pool.name)
        if isinstance(pool.seen, Broken) or not is_flex_start(pool):
            pool.hosts_joined = pool.hosts_joined or not is_flex_start(pool)
            pool.seen = running(pool)

    def _operation(self, pool: FakePool, minute: int) -> None:
        assert pool.operation is not None
        begun = self._begun.setdefault(pool.operation.name, minute)
        key = (type(pool.seen).__name__, pool.name)
        creates = isinstance(pool.seen, Creating)
        story = self._of.story
        span = (story.creation if creates else story.deletion) if pool.hosts_change else STEP
        if creates and story.stockout is not None and self._failure(pool, minute) is Kind.STOCKOUT:
            span = story.stockout
        drawn = self._of.chance.between(*span, "takes", *key)
        takes = self._works.get(pool.operation.name, drawn)
        slow = self._of.on.get(Kind.OPERATIONS_SLOW) and self._of.chance.happens(
            self._of.on[Kind.OPERATIONS_SLOW], "slow", *key
        )
        if slow and minute < begun + takes + HOUR:
            self._of.struck[Kind.OPERATIONS_SLOW] += 1
            return
        early = self._of.chance.happens(0.3, "hosts join early", *key) and not is_flex_start(pool)
        early = early and self._failure(pool, minute) in {None, Kind.CREATIONS_FAIL}
        if creates and minute == begun + takes - 1 and early:
            self._of.backend.join_hosts(pool.name)
        if minute >= begun + takes:
            self._ends(pool, minute)

    def _ends(self, pool: FakePool, minute: int) -> None:
        sim, backend = self._of, self._of.backend
        if isinstance(pool.seen, Creating):
            failure = self._failure(pool, minute)
            if failure is not None:
                sim.struck[failure] += 1
            if failure is Kind.STOCKOUT and len(pool.parts) > 1:
                return backend.await_hosts(pool.name, NO_HOSTS_YET) if pool.hosts_change else backend.finish(pool.name)
            if failure is not None:
                return backend.fail(pool.name, CREATION_FAILURES[failure])
            if sim.strikes(Kind.OPERATIONS_FORGOTTEN, pool.name):
                return backend.forget_operation(pool.name)
        elif isinstance(pool.seen, Deleting) and sim.strikes(Kind.DELETIONS_FAIL, pool.name, sim.minute):
            return backend.fail_deletion(pool.name, UNKNOWN)
        else:
            self._back.pop(pool.name, None)
        return backend.finish(pool.name)

    def _failure(self, pool: FakePool, minute: int) -> Kind | None:
        """Return the fault by which a pool's creation fails in this minute; one of flex-start needs no stock yet."""
        found = self._without_stock(pool, minute)
        return None if found is Kind.STOCKOUT and is_flex_start(pool) else found

    def _without_stock(self, pool: FakePool, minute: int) -> Kind | None:
        """Return the fault that keeps a pool from having its hosts in this minute."""
        on = self._of.story.on(minute, pool.order.spec if pool.order else None)
        failures = (kind for kind in CREATION_FAILURES if kind in on)
        return next((kind for kind in failures if self._of.chance.happens(on[kind], kind, pool.name)), None)


def _awaits_hosts(pool: FakePool) -> bool:
    """Return whether the vendor adds hosts to a pool by itself when it has them."""
    awaited = isinstance(pool.seen, Running) and bool(pool.seen.awaiting)
    return awaited or (is_flex_start(pool) and not pool.hosts_joined)
