"""How long a queue of slices takes, and what it uses: counted on the world in memory, whose clock only this advances.

GKE ends each operation a fixed time after it began. The floor of a make-span is that of a queue which nothing holds up:
as many operations run at any time as may.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tests.bench.meter import Counts, MeteredWorld
from tests.builders import MINUTE, settings
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.slices import PoolName
from tpu_slices_simulator.fakes.troubles import Verb

LASTS = 10 * MINUTE
"""Each operation of GKE's."""
LOOKS = tuple(timedelta(seconds=after) for after in (0, 1, 7))
"""When, after something happened, the relay is looked at: it gathers demand for a second, and closes hosts in six."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    jobsets: int
    each: int = 1
    """How many slices each has."""
    operations: int = 5
    silent: bool = False
    """The log sink tells of no operation."""

    @property
    def slices(self) -> int:
        return self.jobsets * self.each

    @property
    def floor(self) -> timedelta:
        return -(-self.slices // self.operations) * LASTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What it took until all slices of a case stood, and then until all were gone."""

    makespan: timedelta
    filling: Counts
    created: Sequence[PoolName]
    """In the order in which they were requested."""
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
    stood = world.clock.now()
    created = [call.pool for call in world.backend.calls if call.verb is Verb.CREATE]
    with world.used() as emptying:
        course.end()
        course.run(lambda: not world.backend.pools)
    return Served(
        makespan=stood - began,
        filling=filling,
        created=created,
        emptied_in=world.clock.now() - stood,
        emptying=emptying,
    )


class Course:
    """Time, which passes from one thing that happens to the next: a tick of the sweep, an operation's end, a look."""

    def __init__(self, case: Case) -> None:
        self.world = MeteredWorld(settings(limits=Limits(operations=case.operations)))
        self._case = case
        self._looks: set[datetime] = set()
        self._ends: dict[str, datetime] = {}
        self._bound: dict[str, int] = {}
        self.world.minutes(2)
        self._tick = self.world.clock.now() + MINUTE

    def appear(self) -> None:
        for number in range(self._case.jobsets):
            self.world.jobset_appears(f"train-{number:04}", slices=self._case.each)
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

    def _follow(self) -> None:
        """Know when what runs at GKE ends, and update the status of JobSets whose Jobs began to run."""
        for pool in self.world.backend.pools.values():
            if pool.operation is not None and pool.name not in self._ends:
                self._ends[pool.name] = self.world.clock.now() + LASTS
                self._happened()
        for jobset in self.world.workloads.values():
            if len(jobset.bound) != self._bound.get(jobset.ref.owner.uid, 0):
                self._bound[jobset.ref.owner.uid] = len(jobset.bound)
                self.world.cluster.changes(jobset)
                self._happened()

    def _happened(self) -> None:
        self._looks |= {self.world.clock.now() + after for after in LOOKS[1:]}
