"""GKE in memory, behind the `Backend` port: pools, operations, and buttons for what happens to them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.observations import (
    Absent,
    Broken,
    Busy,
    Creating,
    Deleting,
    Failure,
    FailureKind,
    LegacyPool,
    Observation,
    Outcome,
    PoolSeen,
    Refused,
    Running,
    Started,
    Unowned,
    Unreadable,
)
from tpu_slices.domain.model.slices import PoolName
from tpu_slices.ports.backend import PoolOrder
from tpu_slices.ports.clock import Clock
from tpu_slices.ports.errors import Temporary


class Verb(StrEnum):
    CREATE = "CREATE"
    DELETE = "DELETE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One order that reached the backend; `outcome` is None where the caller did not learn it."""

    at: datetime
    verb: Verb
    pool: PoolName
    outcome: Outcome | None


@dataclass(slots=True, kw_only=True)
class FakeOperation:
    name: str
    pool: PoolName
    cluster_path: str
    done: bool = False
    failure: Failure | None = None


@dataclass(slots=True, kw_only=True)
class FakePool:
    """`order` created it and proves that it is ours; None: somebody else's pool under one of our names."""

    name: PoolName
    order: PoolOrder | None
    seen: Observation
    operation: FakeOperation | None = None
    """The operation that runs on it."""
    made_for: tuple[str, str, str] | None = None
    """Namespace, JobSet and Job, where TPU Provisioner made it."""


class FakeBackend:
    """Nothing happens by itself: a test ends operations with `finish` or `fail`, and looks at `calls`."""

    def __init__(self, clock: Clock, *, cluster_gke_id: str | None = None, operation_limit: int = 5) -> None:
        self.pools: dict[PoolName, FakePool] = {}
        self.operations: dict[str, FakeOperation] = {}
        self.calls: list[Call] = []
        self.cluster_gke_id = cluster_gke_id
        self.operation_limit = operation_limit
        self._clock = clock
        self._hidden = False
        self._answer_lost = False
        self._refusals: list[Failure] = []

    # the port

    def look(self, order: PoolOrder) -> Observation:
        if self._hidden:
            return Unreadable("The service is currently unavailable.")
        pool = self.pools.get(order.name)
        if pool is None:
            return self._nothing(order)
        if not _is_ours(pool, order):
            return Unowned("its labels do not name this slice.")
        if isinstance(pool.seen, Creating):
            return Creating(operation_runs=pool.operation is not None)
        return pool.seen

    def create(self, order: PoolOrder) -> Outcome:
        return self._answered(Verb.CREATE, order, None if self._hidden else self._create(order))

    def delete(self, order: PoolOrder) -> Outcome:
        return self._answered(Verb.DELETE, order, None if self._hidden else self._delete(order))

    def inventory(self, cluster: ClusterSettings) -> tuple[PoolSeen, ...]:
        self._refuse_hidden()
        orders = [pool.order for pool in self.pools.values() if pool.order is not None]
        return tuple(
            PoolSeen(name=order.name, slice_id=order.slice_id, attempt=order.attempt, job=order.job)
            for order in orders
            if order.cluster_path == cluster.path and order.job.cluster == cluster.cluster
        )

    def legacy_pools(self, cluster: ClusterSettings) -> tuple[LegacyPool, ...]:  # noqa: ARG002 - see `hold_legacy_pool`
        self._refuse_hidden()
        return tuple(
            LegacyPool(name=pool.name, namespace=pool.made_for[0], jobset=pool.made_for[1], job=pool.made_for[2])
            for pool in self.pools.values()
            if pool.made_for is not None
        )

    def ended_operations(self, cluster: ClusterSettings) -> frozenset[str]:
        self._refuse_hidden()
        operations = self.operations.values()
        return frozenset(op.name for op in operations if op.done and op.cluster_path == cluster.path)

    # the buttons

    def finish(self, pool: PoolName) -> None:
        """End the operation that runs on a pool: it is created, deleted or repaired."""
        self._end(pool, None)
        found = self.pools[pool]
        if isinstance(found.seen, Deleting):
            del self.pools[pool]
        else:
            found.seen = Running(_fingerprint(found))

    def fail(self, pool: PoolName, failure: Failure) -> None:
        """End the operation that runs on a pool with an error; as with GKE, the pool stays behind."""
        self._end(pool, failure)
        self.pools[pool].seen = Broken(failure)

    def forget_operation(self, pool: PoolName) -> None:
        """Let the operation end, and the pool stay as if it still ran."""
        self._end(pool, None)

    def repair(self, pool: PoolName) -> None:
        """Start GKE's own work on a pool."""
        found = self.pools[pool]
        found.operation = self._begin(found.name, _path(found))
        found.seen = Busy("auto-repair recreates its nodes.")

    def wreck(self, pool: PoolName, failure: Failure) -> None:
        """Break a pool that ran."""
        self.pools[pool].seen = Broken(failure)

    def vanish(self, pool: PoolName) -> None:
        """Remove a pool as an operator would, past the port; its operations stay as they are."""
        del self.pools[pool]

    def steal(self, pool: PoolName) -> None:
        """Put somebody else's pool under a name of ours, in place of what was there."""
        self.pools[pool] = FakePool(name=pool, order=None, seen=Running())

    def hold_legacy_pool(self, pool: LegacyPool) -> None:
        """Put a pool there as TPU Provisioner leaves it, in whichever cluster is asked about."""
        name = PoolName(pool.name)
        made_for = (pool.namespace, pool.jobset, pool.job)
        self.pools[name] = FakePool(name=name, order=None, seen=Running(), made_for=made_for)

    def hide(self) -> None:
        """Let GKE be out of reach."""
        self._hidden = True

    def show(self) -> None:
        self._hidden = False

    def refuse_next_create(self, failure: Failure) -> None:
        """Refuse one creation more."""
        self._refusals.append(failure)

    def lose_next_answer(self) -> None:
        """Let the next order be carried out, and its answer be lost."""
        self._answer_lost = True

    def ordered(self, verb: Verb) -> list[PoolName]:
        """Return the pools of the orders that were accepted, oldest first."""
        return [call.pool for call in self.calls if call.verb is verb and call.outcome != Started(None)]

    # inside

    def _nothing(self, order: PoolOrder) -> Observation:
        if order.cluster_gke_id is not None and order.cluster_gke_id != self.cluster_gke_id:
            return Unreadable(f"cluster {order.cluster_path} is not the cluster on record.")
        operation = self.operations.get(order.operation or "")
        if operation is None:
            return Absent()
        if not operation.done:
            return Creating()
        return Absent() if operation.failure is None else Broken(operation.failure)

    def _create(self, order: PoolOrder) -> Outcome:
        name = order.name
        if self._refusals:
            return Refused(self._refusals.pop(0))
        if order.spec is None:
            return Refused(Failure(FailureKind.CONFIGURATION, "what to make is not known."))
        if name in self.pools:
            return Refused(Failure(FailureKind.NAME_TAKEN, f"Already exists: {name}."))
        if self._full():
            return Refused(Failure(FailureKind.RATE, "Too many operations."))
        operation = self._begin(name, order.cluster_path)
        self.pools[name] = FakePool(name=name, order=order, seen=Creating(), operation=operation)
        return Started(operation.name)

    def _delete(self, order: PoolOrder) -> Outcome:
        pool = self.pools.get(order.name)
        if pool is None or not _is_ours(pool, order) or isinstance(pool.seen, Deleting):
            return Started(None)
        if pool.operation is not None:
            return Refused(
                Failure(FailureKind.BUSY, f"Cluster is running incompatible operation {pool.operation.name}.")
            )
        if self._full():
            return Refused(Failure(FailureKind.RATE, "Too many operations."))
        pool.operation = self._begin(pool.name, order.cluster_path)
        pool.seen = Deleting()
        return Started(pool.operation.name)

    def _answered(self, verb: Verb, order: PoolOrder, outcome: Outcome | None) -> Outcome:
        """Record the call; a lost answer is Temporary."""
        if self._answer_lost:
            self._answer_lost, outcome = False, None
        self.calls.append(Call(at=self._clock.now(), verb=verb, pool=order.name, outcome=outcome))
        if outcome is None:
            raise Temporary("The service is currently unavailable.")
        return outcome

    def _refuse_hidden(self) -> None:
        if self._hidden:
            raise Temporary("The service is currently unavailable.")

    def _full(self) -> bool:
        return sum(not operation.done for operation in self.operations.values()) >= self.operation_limit

    def _begin(self, pool: PoolName, cluster_path: str) -> FakeOperation:
        operation = FakeOperation(name=f"operation-{len(self.operations) + 1}", pool=pool, cluster_path=cluster_path)
        self.operations[operation.name] = operation
        return operation

    def _end(self, pool: PoolName, failure: Failure | None) -> None:
        operation = self.pools[pool].operation
        if operation is None:
            raise AssertionError(f"no operation runs on {pool}")
        operation.done, operation.failure = True, failure
        self.pools[pool].operation = None


def _is_ours(pool: FakePool, order: PoolOrder) -> bool:
    made = pool.order
    if order.legacy_pool is not None:
        return pool.made_for == (order.job.owner.namespace, order.job.owner.name, order.job.job_name)
    return made is not None and (made.slice_id, made.job.owner.uid) == (order.slice_id, order.job.owner.uid)


def _fingerprint(pool: FakePool) -> str | None:
    return pool.order.spec.fingerprint if pool.order is not None and pool.order.spec is not None else None


def _path(pool: FakePool) -> str:
    return pool.order.cluster_path if pool.order is not None else ""
