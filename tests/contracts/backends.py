"""What a backend under contract is tried with: a cluster and buttons; and the fake with them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol

from tests.builders import NOW, settings
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.observations import Deleting, Failure, FailureKind, LegacyPool
from tpu_slices.domain.model.slices import PoolName
from tpu_slices.ports.backend import Backend
from tpu_slices_simulator.fakes.backend import FakeBackend
from tpu_slices_simulator.fakes.clock import FakeClock
from tpu_slices_simulator.fakes.troubles import Trouble, Verb

WORN = Failure(FailureKind.UNKNOWN, "Worn.")
LIMIT = 5
"""Concurrent operations that either cluster accepts."""


class Place(Protocol):
    """A cluster to make slices in."""

    @property
    def backend(self) -> Backend: ...

    @property
    def cluster(self) -> ClusterSettings: ...

    @property
    def gke_id(self) -> str: ...

    def finish(self, pool: PoolName) -> None:
        """Let the operation that runs on a pool end."""

    def run_out(self, pool: PoolName, *, conditions_only: bool = False) -> None:
        """Let the zone be out of hosts for a pool that will be ordered.

        conditions_only: GKE names it in the conditions of the operation alone, without an error.
        """

    def take_cancellations(self) -> None:
        """Let GKE cancel creations, which it is documented not to do."""

    def repair(self, pool: PoolName) -> None:
        """Let GKE repair a pool."""

    def upgrade(self, pool: PoolName) -> None:
        """Let GKE upgrade a pool."""

    def vanish(self, pool: PoolName) -> None:
        """Remove a pool without an operation."""

    def squat(self, pool: PoolName) -> None:
        """Let somebody else have a pool of that name."""

    def replace_labels(self, pool: PoolName) -> None:
        """Let somebody replace all labels of a pool's nodes by one of their own, and the operation for that end."""

    def replace_billing_labels(self, pool: PoolName) -> None:
        """Let somebody replace all labels of a pool's machines, as they are on bills."""

    def now(self) -> datetime:
        """Return the time at which what is known of a pool is from now on."""

    def hold_legacy_pool(self, pool: LegacyPool) -> None:
        """Let TPU Provisioner have made a pool."""

    def let_deletion_fail(self, pool: PoolName, *, usable: bool) -> None:
        """Let the deletion that is ordered next end with an error; the pool then runs, or is broken."""

    def wreck(self, pool: PoolName) -> None:
        """Break a pool that runs."""

    def let_creation_end_late(self, pool: PoolName) -> None:
        """Let the creation that is ordered next still run when the hosts have joined."""

    def join_hosts(self, pool: PoolName) -> None:
        """Let the hosts of such a pool join."""

    def forget_operation(self, pool: PoolName) -> None:
        """End the operation that runs on a pool without any effect on the pool."""

    def forget_ended_operations(self) -> None:
        """Let GKE drop the operations that have ended."""

    def lose_next_answer(self) -> None:
        """Let the next order be carried out, and its answer be lost."""

    def trouble(self, trouble: Trouble, *verbs: Verb, lasts: timedelta | None = None, calls: int | None = None) -> None:
        """Let calls fail: all, or those of some orders; for a time, that many, or until `calm_down`."""

    def calm_down(self) -> None:
        """End every trouble."""

    def wait(self, time: timedelta) -> None:
        """Let time pass."""

    def break_down(self) -> None:
        """Let every further call fail."""


class InMemory:
    """The fake."""

    gke_id = "c0ffee"

    def __init__(self) -> None:
        self._clock = FakeClock(NOW)
        self.backend = FakeBackend(self._clock, cluster_gke_id=self.gke_id, operation_limit=LIMIT)
        self.cluster = settings(gke_id=self.gke_id)
        self._short: set[PoolName] = set()
        self._undeleted: dict[PoolName, bool] = {}

    def finish(self, pool: PoolName) -> None:
        if isinstance(self.backend.pools[pool].seen, Deleting) and pool in self._undeleted:
            usable = self._undeleted.pop(pool)
            (self.backend.fail_deletion if usable else self.backend.fail)(pool, WORN)
        elif pool in self._short:
            self._short.remove(pool)
            self.backend.fail(pool, Failure(FailureKind.STOCKOUT, "[GCE_STOCKOUT]"))
        else:
            self.backend.finish(pool)

    def run_out(self, pool: PoolName, *, conditions_only: bool = False) -> None:  # noqa: ARG002 - it has no such fields
        self._short.add(pool)

    def take_cancellations(self) -> None:
        self.backend.takes_cancellations = True

    def repair(self, pool: PoolName) -> None:
        self.backend.repair(pool)

    def upgrade(self, pool: PoolName) -> None:
        self.backend.upgrade(pool)

    def vanish(self, pool: PoolName) -> None:
        self.backend.vanish(pool)

    def squat(self, pool: PoolName) -> None:
        self.backend.steal(pool)

    def replace_labels(self, pool: PoolName) -> None:
        self.backend.replace_labels(pool)

    def replace_billing_labels(self, pool: PoolName) -> None:
        """Nothing here depends on them."""

    def now(self) -> datetime:
        return self._clock.now()

    def hold_legacy_pool(self, pool: LegacyPool) -> None:
        self.backend.hold_legacy_pool(pool)

    def let_deletion_fail(self, pool: PoolName, *, usable: bool) -> None:
        self._undeleted[pool] = usable

    def wreck(self, pool: PoolName) -> None:
        self.backend.wreck(pool, WORN)

    def let_creation_end_late(self, pool: PoolName) -> None:
        """Nothing ends here before `finish`."""

    def join_hosts(self, pool: PoolName) -> None:
        self.backend.join_hosts(pool)
        assert self.backend.pools[pool].hosts_joined

    def forget_operation(self, pool: PoolName) -> None:
        self.backend.forget_operation(pool)

    def forget_ended_operations(self) -> None:
        self.backend.forget_ended_operations()

    def lose_next_answer(self) -> None:
        self.backend.lose_next_answer()

    def trouble(self, trouble: Trouble, *verbs: Verb, lasts: timedelta | None = None, calls: int | None = None) -> None:
        self.backend.trouble(trouble, *verbs, lasts=lasts, calls=calls)

    def calm_down(self) -> None:
        self.backend.show()

    def wait(self, time: timedelta) -> None:
        self._clock.advance(time)

    def break_down(self) -> None:
        self.backend.hide()
