"""A hundred short Jobs of one shape go through ten slices that are made once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from tests.builders import settings
from tests.journeys.seconds import Seconds
from tests.journeys.warm.test_kept_warm import QUARTER, orders
from tests.world import World
from tpu_slices.domain.model.clusters import Limits, Policy
from tpu_slices.domain.model.reasons import Phase
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload

SLICES, CHIPS = 10, 16
PROMPT = timedelta(seconds=10)
RUNS = timedelta(seconds=40)


class Queue:
    """JobSets that run for a while each; `pauses`: how long it took from each end until the next Job ran."""

    def __init__(self) -> None:
        policy = Policy(chips_per_cluster=SLICES * CHIPS)
        self.world = World(of_cluster=settings(warm=QUARTER, policy=policy, limits=Limits(operations=5)))
        self.seconds = Seconds(self.world, relay=1)
        self.pauses: list[timedelta] = []
        self.slots: set[datetime] = set()
        self._waits: list[LiveWorkload] = []
        self._runs: dict[str, tuple[LiveWorkload, datetime]] = {}
        self.free: list[datetime] = []

    def asks(self, names: Iterator[str], many: int) -> None:
        self._waits += [self.world.jobset_appears(next(names)) for _ in range(many)]

    def run(self, minutes: int) -> None:
        self.seconds.run(minutes * 60, until=self._second)

    def _second(self) -> bool:
        now = self.world.clock.now()
        for jobset in [each for each in self._waits if each.bound == {0}]:
            self._waits.remove(jobset)
            self._runs[jobset.ref.owner.name] = (jobset, now)
            if self.free:
                self.pauses.append(now - self.free.pop(0))
        for name, (jobset, since) in list(self._runs.items()):
            if now - since >= RUNS:
                del self._runs[name]
                self.world.ends(jobset)
                if self._waits:
                    self.free.append(now)
        if self.world.store.slots(self.world.settings.cluster):
            self.slots.add(now)
        return not (self._waits or self._runs)


def test_a_hundred_jobs_go_through_ten_slices_that_are_made_once() -> None:
    queue, names = Queue(), iter(f"job-{number}" for number in range(100))
    queue.asks(names, 60)
    queue.run(minutes=30)
    assert len(queue.pauses) == 50
    made = max(queue.slots)
    assert orders(queue.world) == [Verb.CREATE] * SLICES
    queue.run(minutes=5)
    began = queue.world.clock.now()
    queue.free = [began] * SLICES
    queue.asks(names, 40)
    queue.run(minutes=30)
    assert len(queue.pauses) == 90
    assert max(queue.pauses) <= PROMPT
    assert orders(queue.world) == [Verb.CREATE] * SLICES
    assert max(queue.slots) == made, "no hand-over takes a slot"
    queue.seconds.run(25 * 60)
    assert sorted(orders(queue.world)) == [*[Verb.CREATE] * SLICES, *[Verb.DELETE] * SLICES]
    assert queue.world.pools == []
    assert {each.phase for each in queue.world.records.values()} == {Phase.GONE}
