"""A world second by second: operations take their time, and the log sink announces the end of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tests.world import World
from tpu_slices.domain.model.observations import Creating, Deleting, Failure, FailureKind, Refused, Running
from tpu_slices.domain.model.slices import PoolName
from tpu_slices.flows.sweep import sweep

SECOND = timedelta(seconds=1)
SWEEP = 60  # seconds


@dataclass(slots=True)
class Seconds:
    """`fails` says of a pool whether its creation ends with an error; the relay reports every `relay` seconds."""

    world: World
    operation: timedelta = 4 * SECOND
    fails: Callable[[PoolName], Failure | None] = lambda _: None
    relay: int = 5
    passed: int = 0
    _begun: dict[str, datetime] = field(default_factory=dict)

    def run(self, seconds: int, until: Callable[[], bool] = lambda: False) -> int:
        """Let seconds pass; return how many it took until something was true, or all of them."""
        for second in range(seconds):
            if until():
                return second
            self._pass()
        return seconds

    @property
    def stand(self) -> int:
        """The number of pools that are created and not being deleted."""
        return sum(isinstance(pool.seen, Running) for pool in self.world.backend.pools.values())

    @property
    def refused(self) -> int:
        """The number of calls that GKE refused because too many operations ran."""
        outcomes = (call.outcome for call in self.world.backend.calls)
        return sum(isinstance(each, Refused) and each.failure.kind is FailureKind.RATE for each in outcomes)

    def _pass(self) -> None:
        world = self.world
        self._operations_end()
        if self.passed % self.relay == 0:
            world.cluster_lives()
        if self.passed % SWEEP == SWEEP - 1:
            sweep(world.settings.cluster, world.deps)
        world.deliver()
        world.clock.advance(SECOND)
        self.passed += 1

    def _operations_end(self) -> None:
        now = self.world.clock.now()
        for pool in list(self.world.backend.pools.values()):
            if pool.operation is None or pool.order is None or not isinstance(pool.seen, Creating | Deleting):
                continue
            if now - self._begun.setdefault(pool.operation.name, now - SECOND) < self.operation:
                continue
            failure = self.fails(pool.name) if isinstance(pool.seen, Creating) else None
            if failure is None:
                self.world.backend.finish(pool.name)
            else:
                self.world.backend.fail(pool.name, failure)
