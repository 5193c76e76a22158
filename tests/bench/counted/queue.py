"""How long a queue of slices takes, and what it uses: counted on the world in memory, whose clock only this advances.

GKE ends each operation a fixed time after it began. The floor of a make-span is that of a queue which nothing holds up:
as many operations run at any time as may.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from tests.bench.counted.counters import Counts
from tests.bench.counted.meter import MeteredWorld
from tests.builders import MINUTE, NOW, a_job, a_jobset, a_record, settings
from tpu_slices.domain.model.clusters import ClusterSettings, Limits
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import PoolName, WorkloadUid
from tpu_slices.domain.reconciling.limiter import slot_awaited
from tpu_slices.domain.records.awaited import PoolOperation
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices_simulator.fakes.troubles import Verb

LASTS = 10 * MINUTE
"""Each operation of GKE's."""
GATHERED = timedelta(seconds=1)
LOOKS = tuple(timedelta(seconds=after) for after in (0, 1, 7))
"""When, after something happened, the relay is looked at: it gathers demand for a second, and closes hosts in six."""
SECOND, A_SECOND, ENDS_AFTER, AT_A_TIME, MOST = timedelta(seconds=1), 8, 5, 9, 600
"""Of `Arriving`: a second; leaders that come in each; seconds that an operation lasts; operations at a time; seconds in
which all have their slices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    jobsets: int
    each: int = 1
    """How many slices each has."""
    namespaces: int = 1
    """Over which the JobSets are spread."""
    operations: int = 5
    lasts: timedelta = LASTS
    silent: bool = False
    """The log sink tells of no operation."""

    @property
    def slices(self) -> int:
        return self.jobsets * self.each

    @property
    def floor(self) -> timedelta:
        return -(-self.slices // self.operations) * self.lasts


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What it took until all slices of a case stood, and then until all were gone."""

    makespan: timedelta
    filling: Counts
    created: Sequence[tuple[str, str]]
    """Namespace and JobSet of each creation, in the order in which they were requested."""
    idle: timedelta
    """How long slots were without an operation while slices waited for one, all slots together."""
    emptied_in: timedelta
    emptying: Counts


def serve(case: Case) -> Served:
    """Let JobSets appear at once, get their slices, and end at once."""
    course = Course(case)
    world = course.world
    began = world.clock.now()
    with world.used() as filling:
        course.appear()
        course.run(lambda: all(jobset.served for jobset in world.workloads.values()))
    stood, idle = world.clock.now(), course.idle
    orders = (world.backend.pools[call.pool].order for call in world.backend.calls if call.verb is Verb.CREATE)
    created = [(order.job.owner.namespace, order.job.owner.name) for order in orders if order is not None]
    with world.used() as emptying:
        course.end()
        course.run(lambda: not world.backend.pools)
    return Served(
        makespan=stood - began,
        filling=filling,
        created=created,
        idle=idle,
        emptied_in=world.clock.now() - stood,
        emptying=emptying,
    )


def release_behind(queued: int) -> timedelta:
    """Return how long after a slot is free a slice is deleted whose JobSet ended while so many wait to be created."""
    world = MeteredWorld(settings(limits=Limits(operations=5)))
    jobset = world.jobset_appears("done")
    world.minutes(1)
    world.operations_end()
    world.minutes(2)
    assert jobset.served
    running = world.jobset_appears("running", slices=5)
    world.minutes(1)
    for number in range(queued):
        world.store.put(*_waiting(number))
    world.ends(jobset)
    world.minutes(2)
    assert not world.backend.ordered(Verb.DELETE)
    world.operation_ends(world.record(running).pool)
    freed_at = world.clock.now()
    while not world.backend.ordered(Verb.DELETE):
        world.look(tick=world.clock.now().second == 0)
        world.clock.advance(timedelta(seconds=1))
    return world.clock.now() - freed_at


def _waiting(number: int) -> tuple[WorkloadRecord, SliceRecord]:
    """Return a JobSet of another namespace, which the slice cannot serve, and its slice that waits for a slot."""
    job = a_job(name=f"train-{number:04}", namespace="others", uid=WorkloadUid(f"uid-{number}"))
    record = a_record(job=job, awaited_since=NOW).transitioned(NOW, Reason.OPERATION_LIMIT, "")
    record = replace(record, slot_awaited=slot_awaited(record, PoolOperation.CREATE, 1, NOW), next_reconcile_at=None)
    return a_jobset(owner=job.owner, demand={record.maker: NOW}), record


class Course:
    """Time, which passes from one thing that happens to the next: a tick of the sweep, an operation's end, a look."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self.world = MeteredWorld(self._settings())
        self._looks: set[datetime] = set()
        self._ends: dict[str, datetime] = {}
        self._bound: dict[str, int] = {}
        self.idle = timedelta(0)
        self.world.minutes(2)
        self._tick = self.world.clock.now() + MINUTE

    def appear(self) -> None:
        each = self._case.jobsets // self._case.namespaces
        for number in range(self._case.jobsets):
            namespace = f"team-{number // each}"
            self.world.jobset_appears(f"train-{number:04}", slices=self._case.each, namespace=namespace)
        self.world.cluster.creates_pods()
        self.world.clock.advance(GATHERED)
        self.world.publishes_one_by_one()
        self.world.look(tick=False)
        self._follow()
        self._happened()

    def end(self) -> None:
        for jobset in self.world.workloads.values():
            self.world.ends(jobset)
        self._happened()

    def run(self, until: Callable[[], bool]) -> None:
        """Let time pass until something is so."""
        world = self.world
        while not until():
            now = min({self._tick, *self._looks, *self._ends.values()})
            self._idles(now)
            world.clock.advance(now - world.clock.now())
            self._looks.discard(now)
            ended = [name for name, at in self._ends.items() if at <= now]
            if ended:
                self._happened()
            for name in ended:
                del self._ends[name]
                world.operation_ends(PoolName(name), silent=self._case.silent)
            world.look(tick=now >= self._tick)
            if now >= self._tick:
                self._tick = now + MINUTE
                self._happened()
            self._follow()

    def _settings(self) -> ClusterSettings:
        return settings(limits=Limits(operations=self._case.operations))

    def _lasts(self, pool: str) -> timedelta:  # noqa: ARG002 - others tell by it
        return self._case.lasts

    def _idles(self, until: datetime) -> None:
        """Count the slots without an operation, as long as more slices wait for one."""
        world = self.world
        running = sum(pool.operation is not None for pool in world.backend.pools.values())
        waiting = self._case.slices - len(world.backend.ordered(Verb.CREATE))
        self.idle += min(self._case.operations - running, max(waiting, 0)) * (until - world.clock.now())

    def _follow(self) -> None:
        """Know when what runs at GKE ends, and update the status of JobSets whose Jobs began to run."""
        for pool in self.world.backend.pools.values():
            if pool.operation is not None and pool.name not in self._ends:
                self._ends[pool.name] = self.world.clock.now() + self._lasts(pool.name)
                self._happened()
        for jobset in self.world.workloads.values():
            if len(jobset.bound) != self._bound.get(jobset.ref.owner.uid, 0):
                self._bound[jobset.ref.owner.uid] = len(jobset.bound)
                self.world.cluster.changes(jobset)
                self._happened()

    def _happened(self) -> None:
        self._looks |= {self.world.clock.now() + after for after in LOOKS[1:]}


class Arriving:
    """A JobSet of so many slices; requests to reconcile arrive `late` seconds after they were made."""

    def __init__(self, slices: int, late: int) -> None:
        self.world = MeteredWorld(settings(limits=Limits(operations=AT_A_TIME)))
        self.world.minutes(2)
        self.jobset = self.world.jobset_appears("train", slices=slices)
        self.jobset.absent = True  # its pods come here
        self._late, self._second = late, 0
        self._made: list[tuple[int, tuple[Any, ...], dict[str, Any]]] = []
        self._begun: dict[str, int] = {}
        self._request = self.world.publisher.request_reconcile
        self.world.publisher.request_reconcile = self._made_late  # type: ignore[method-assign]

    def serve(self) -> Counts:
        """Let the leaders come, and time pass until all have their slices; return what was used."""
        come = 0
        with self.world.used() as used:
            while len(self.jobset.bound) < self.jobset.slices:
                assert self._second < MOST, "not all have their slices"
                for index in range(come, min(come + A_SECOND, self.jobset.slices)):
                    self.world.cluster.creates_pod(self.jobset, index)
                    come = index + 1
                self._pass()
        return used

    def _made_late(self, *args: Any, **said: Any) -> None:
        self._made.append((self._second + self._late, args, said))

    def _pass(self) -> None:
        arrive = [each for each in self._made if each[0] <= self._second]
        self._made = [each for each in self._made if each[0] > self._second]
        for _, args, said in arrive:
            self._request(*args, **said)
        self.world.look(tick=self._second % 60 == 59)
        for pool in list(self.world.backend.pools.values()):
            if pool.operation is not None:
                began = self._begun.setdefault(pool.operation.name, self._second)
                if self._second - began >= ENDS_AFTER:
                    self.world.operation_ends(pool.name)
        self.world.clock.advance(SECOND)
        self._second += 1
