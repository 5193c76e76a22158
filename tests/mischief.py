"""What goes wrong by itself in GKE, in the cluster, in the relay and between them, by a seeded chance."""

from __future__ import annotations

import random
from datetime import timedelta

from tests.builders import MINUTE, a_request
from tests.domain.asking import FLEX
from tests.fake_cluster import LiveWorkload
from tests.fakes.backend import Verb
from tests.fakes.gke import FakePool, is_flex_start
from tests.fakes.troubles import Trouble
from tests.fuse import Crash, Fuse
from tests.world import World
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.observations import (
    Broken,
    Busy,
    Creating,
    Deleting,
    Failure,
    FailureKind,
    Running,
)

FAILURES = (
    Failure(FailureKind.STOCKOUT, "[GCE_STOCKOUT] none left"),
    Failure(FailureKind.QUOTA, "Quota exceeded"),
    Failure(FailureKind.UNKNOWN, "Internal error"),
)
MOST_JOBSETS = 5
CRASHES = 0.01
"""The share of side effects after which the process crashes."""


class WornFuse(Fuse):
    """Blows after any side effect, by chance."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._chance = chance
        self.whole = False

    def burn(self) -> None:
        self.burnt += 1
        if not self.whole and self._chance.random() < CRASHES:
            raise Crash


class Mischief:
    """A world in which GKE moves by itself, leaders leave, relays restart, functions crash after any
    side effect, and messages are lost, doubled and late.

    Whoever deletes a pool on which a live Job's leader is fails the test at once.
    """

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.fuse = WornFuse(self.chance)
        self.world = World(self.fuse)
        self.world.cluster.crosses = True
        self.world.mean_post = self.chance
        self.calm = False
        self._number = 0

    def lives(self, minutes: int) -> None:
        for _ in range(minutes):
            if not self.calm:
                self._people()
                self._cluster()
                self._gke_troubles()
                self._relay()
                self._messages()
            self.world.steps()
            self._operations()
            self.world.clock.advance(MINUTE - timedelta(seconds=12))
            self.world.sweeps()

    def calms(self) -> None:
        """Let nothing go wrong any more."""
        self.calm = self.fuse.whole = True
        self.world.mean_post = None
        self.world.backend.show()
        self.world.relay_is_dead = False
        for pool in self.world.backend.pools.values():
            if isinstance(pool.seen, Broken) and pool.hosts_joined:
                pool.seen = Running(pool.order.spec.fingerprint if pool.order and pool.order.spec else None)

    @property
    def active(self) -> list[LiveWorkload]:
        return [each for each in self.world.workloads.values() if each.state is WorkloadState.ACTIVE]

    def _happens(self, share: float) -> bool:
        return self.chance.random() < share

    def _people(self) -> None:
        if self._happens(0.2) and len(self.active) < MOST_JOBSETS:
            self._number += 1
            request = FLEX if self._number % 3 == 0 else a_request()
            self.world.jobset_appears(f"job-{self._number}", slices=self.chance.choice((1, 1, 2)), request=request)
        for jobset in list(self.world.workloads.values()):
            if jobset.state is WorkloadState.ACTIVE and self._happens(0.01):
                self.world.ends(jobset, self.chance.choice((WorkloadState.COMPLETED, WorkloadState.DELETED)))
            elif jobset.state is WorkloadState.ACTIVE and self._happens(0.01):
                self.world.suspends(jobset)
            elif jobset.state is WorkloadState.SUSPENDED and self._happens(0.3):
                self.world.resumes(jobset)

    def _cluster(self) -> None:
        for jobset in self.active:
            for index in sorted(jobset.bound):
                if self._happens(0.03):
                    self.world.leaves(jobset, index)

    def _relay(self) -> None:
        if self.world.relay_is_dead:
            self.world.relay_is_dead = not self._happens(0.1)
        elif self._happens(0.01):
            self.world.relay_is_dead = True
        elif self._happens(0.05):
            self.world.relay_restarts()

    def _messages(self) -> None:
        if self._happens(0.2):
            self.world.shuffle_messages(self.chance)

    def _gke_troubles(self) -> None:
        backend = self.world.backend
        if self._happens(0.03):
            trouble = self.chance.choice(tuple(Trouble))
            backend.trouble(trouble, *Verb, lasts=self.chance.randint(1, 5) * MINUTE)
        if self._happens(0.05):
            backend.forget_ended_operations()
        for pool in backend.pools.values():
            if pool.operation is None and isinstance(pool.seen, Running) and self._happens(0.01):
                backend.repair(pool.name)
            elif isinstance(pool.seen, Running) and self._happens(0.02):
                backend.wreck(pool.name, FAILURES[2])
            elif isinstance(pool.seen, Broken) and pool.hosts_joined and self._happens(0.2):
                pool.seen = Running(pool.order.spec.fingerprint if pool.order and pool.order.spec else None)

    def _operations(self) -> None:
        backend = self.world.backend
        for pool in [pool for pool in backend.pools.values() if isinstance(pool.seen, Running) and is_flex_start(pool)]:
            if not pool.hosts_joined and (self.calm or self._happens(0.1)):
                backend.fill(pool.name)
            elif pool.hosts_joined and not self.calm and self._happens(0.02):
                backend.take_back(pool.name)
        for pool in [pool for pool in backend.pools.values() if pool.operation is not None]:
            match pool.seen:
                case Creating():
                    self._creation(pool)
                case Deleting() if not self.calm and self._happens(0.1):
                    backend.fail_deletion(pool.name, FAILURES[2])
                case Deleting() | Busy() if self.calm or self._happens(0.6):
                    backend.finish(pool.name)
                case _:
                    continue

    def _creation(self, pool: FakePool) -> None:
        backend = self.world.backend
        if self.calm:
            backend.finish(pool.name)
        elif self._happens(0.15):
            backend.fail(pool.name, self.chance.choice(FAILURES))
        elif self._happens(0.03):
            backend.forget_operation(pool.name)
        elif self._happens(0.3):
            backend.join_hosts(pool.name)
        elif self._happens(0.4):
            backend.finish(pool.name)
