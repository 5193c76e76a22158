"""What a JobSet uses whose leaders come a few a second, while who reconciles is late: counted on the world in memory.

GKE ends each operation five seconds after it began.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.bench.counters import Counts
from tests.bench.meter import MeteredWorld
from tests.builders import settings
from tpu_slices.domain.model.clusters import Limits

SECOND = timedelta(seconds=1)
A_SECOND, LASTS, OPERATIONS, MOST = 8, 5, 9, 600
"""Leaders that come in each; seconds of an operation; operations at a time; seconds in which all have their slices."""


class Arriving:
    """A JobSet of so many slices; requests to reconcile arrive `late` seconds after they were made."""

    def __init__(self, slices: int, late: int) -> None:
        self.world = MeteredWorld(settings(limits=Limits(operations=OPERATIONS)))
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
                if self._second - began >= LASTS:
                    self.world.operation_ends(pool.name)
        self.world.clock.advance(SECOND)
        self._second += 1
