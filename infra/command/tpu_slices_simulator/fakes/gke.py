"""GKE and Compute Engine in memory: pools, operations, and buttons for what happens to them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from typing import Any

from tpu_slices.domain.model.observations import (
    Begun,
    Broken,
    Busy,
    Cause,
    Creating,
    Deleting,
    Failure,
    FailureKind,
    LegacyPool,
    Observation,
    Running,
)
from tpu_slices.domain.model.slices import CapacityKind, PoolName
from tpu_slices.ports.backend import PoolOrder
from tpu_slices.ports.clock import Clock

LACKING = "it has no label google.com/tpu-slice-id."
CANCELLED = Failure(FailureKind.UNKNOWN, "The operation was cancelled.")


@dataclass(slots=True, kw_only=True)
class FakeOperation:
    name: str
    pool: PoolName
    cluster_path: str
    creates: bool | None
    """Whether it creates or deletes the pool; None: neither."""
    done: bool = False
    aborting: bool = False
    """It was cancelled, and will end with an error."""
    failure: Failure | None = None


@dataclass(slots=True, kw_only=True)
class FakePool:
    """`order` created it and proves that it is ours; None: somebody else's pool under one of our names."""

    name: PoolName
    order: PoolOrder | None
    seen: Observation
    operation: FakeOperation | None = None
    """The operation that runs on it."""
    stands: int = 0
    """How many of its parts are there."""
    hosts_joined: bool = False
    """Whether the Nodes of its hosts are registered; they may be before the creation's operation ends."""
    generation: int = 0
    """How often its hosts got new names."""
    made_for: tuple[str, str, str] | None = None
    """Namespace, JobSet and Job, where TPU Provisioner made it."""
    made_at: datetime | None = None
    """None: before all."""
    made_by: str | None = None
    """The operation that created it, or its last part: GKE knows it for days."""
    lacking: str = ""
    """What is missing of the labels that name its slice: somebody replaced them."""
    relabels: bool = False
    """Whether the operation that runs on it puts them back."""

    @property
    def parts(self) -> tuple[str, ...]:
        """What is made, one after the other, by an operation each, and deleted backwards: the last one has the hosts.

        A node pool of GKE is one; on Compute Engine there are up to three.
        """
        order = self.order
        if order is None or order.settings.compute is None:
            return ("node pool",)
        return ("workload policy", "instance template", "instance group")[order.spec is None or order.spec.hosts == 1 :]

    @property
    def hosts_change(self) -> bool:
        """Whether the operation that runs on it makes its hosts, or removes them: that takes longest."""
        parts = len(self.parts)
        return self.stands == (parts - 1 if isinstance(self.seen, Creating) else parts)

    @property
    def state(self) -> Running | Begun:
        """What is seen of it while no operation runs, and nothing is wrong with it."""
        if self.stands >= len(self.parts):
            return running(self)
        return Begun(f"its {' and its '.join(self.parts[: self.stands])}")


@dataclass(slots=True)
class Short:
    """What a zone does not have."""

    hosts: int = 1
    """The fewest that do not come."""
    after: int = 0
    """So many more creations have theirs."""
    until: datetime | None = None
    """When it has them again; None: once it is told."""
    stocked: tuple[str, ...] = ()
    """The zones where the vendor says that there are some."""


class FakeGke:
    """Nothing happens by itself: a test ends operations with `finish` or `fail`.

    Pools of self-managed clusters are those of Compute Engine.
    """

    def __init__(self, operation_limit: int, clock: Clock) -> None:
        self._clock = clock
        self.pools: dict[PoolName, FakePool] = {}
        self.operations: dict[str, FakeOperation] = {}
        self.ended: list[FakeOperation] = []
        """The operations that ended, of which GKE's audit log is to tell."""
        self.operation_limit = operation_limit
        self._numbers = count(1)
        self._short: dict[tuple[str, CapacityKind], Short] = {}
        """By zone and kind."""
        self.takes_cancellations = False
        """Whether creations are cancelled; GKE is documented to cancel nothing but upgrades of nodes."""

    def finish(self, pool: PoolName) -> None:
        """End the operation that runs on a pool: a part is created or deleted, or it is repaired.

        A cancelled creation fails, and one whose hosts ran out.
        """
        found = self.pools[pool]
        failure = self._end(pool, self._out_of_stock(found))
        if failure is not None:
            found.seen = Broken(failure)
            return
        if isinstance(found.seen, Deleting):
            found.stands, found.hosts_joined = found.stands - 1, False
        elif isinstance(found.seen, Creating):
            found.stands += 1
        if found.stands <= 0:
            del self.pools[pool]
            return
        if found.relabels:
            found.lacking, found.relabels = "", False
        found.seen = found.state
        whole = isinstance(found.seen, Running)
        found.hosts_joined = found.hosts_joined or (whole and not is_flex_start(found))

    def runs_out(self, zone: str, kind: CapacityKind, **changes: Any) -> None:
        """Let a zone have no such capacity; `changes`: fields of Short."""
        self._short[zone, kind] = Short(**changes)

    def has_stock(self, zone: str, kind: CapacityKind) -> None:
        """Let a zone have such capacity again."""
        self._short.pop((zone, kind), None)

    def _out_of_stock(self, pool: FakePool) -> Failure | None:
        """Return why no hosts come for a creation that ends; None: they come, or it is none."""
        spec = pool.order.spec if pool.order is not None else None
        if spec is None or not isinstance(pool.seen, Creating) or spec.is_flex_start:
            return None
        short = self._short.get((spec.zone, spec.capacity.kind))
        if short is None or spec.hosts < short.hosts or (short.until is not None and self._clock.now() >= short.until):
            return None
        if short.after > 0:
            short.after -= 1
            return None
        text = f"The zone {spec.zone} does not have enough resources available."
        return Failure(FailureKind.STOCKOUT, text, short.stocked)

    def fail(self, pool: PoolName, failure: Failure) -> None:
        """End the operation that runs on a pool with an error; as with GKE, the pool stays behind."""
        found = self.pools[pool]
        found.seen = Broken(self._end(pool, failure) or failure)
        found.stands = max(found.stands, 1)

    def fail_deletion(self, pool: PoolName, failure: Failure) -> None:
        """End the deletion of a pool with an error that leaves it as it was before; `fail` leaves it broken."""
        assert isinstance(self.pools[pool].seen, Deleting), f"{pool} is not being deleted"
        self._end(pool, failure)
        self.pools[pool].seen = self.pools[pool].state

    def join_hosts(self, pool: PoolName) -> None:
        """Let the hosts of a pool join while its creation still runs."""
        self.pools[pool].hosts_joined = True

    def await_hosts(self, pool: PoolName, why: str) -> None:
        """End the creation of a group on Compute Engine, which goes on trying to get its hosts."""
        self.finish(pool)
        found = self.pools[pool]
        found.seen, found.hosts_joined = replace(running(found), awaiting=why), False

    def fill(self, pool: PoolName) -> None:
        """Add the hosts of flex-start to a pool, or to a group the hosts that Compute Engine awaited."""
        found = self.pools[pool]
        awaited = isinstance(found.seen, Running) and found.seen.awaiting
        assert is_flex_start(found) or awaited, f"no hosts of {pool} are awaited"
        found.seen, found.hosts_joined = found.state, True

    def take_back(self, pool: PoolName) -> None:
        """Remove the hosts of flex-start from a pool, as at the end of their time."""
        assert is_flex_start(self.pools[pool]), f"{pool} is not filled by flex-start"
        self.pools[pool].hosts_joined = False

    def forget_operation(self, pool: PoolName) -> None:
        """Let the operation end, and the pool stay as if it still ran; parts of a pool show whether they stand."""
        if len(self.pools[pool].parts) > 1:
            self.finish(pool)
        else:
            self._end(pool, None)
            self.ended.pop()

    def forget_ended_operations(self) -> None:
        """Drop the operations that have ended, as GKE does after a while."""
        self.operations = {name: operation for name, operation in self.operations.items() if not operation.done}

    def repair(self, pool: PoolName) -> None:
        """Start a repair of a pool, whose hosts are recreated; `finish` ends it, and the pool runs."""
        self._work(pool, Busy("auto-repair recreates its nodes.", Cause.REPAIR))

    def upgrade(self, pool: PoolName) -> None:
        """Start an upgrade of a pool: as a repair, but the hosts come back under new names."""
        self._work(pool, Busy("its nodes are upgraded.", Cause.UPGRADE))
        self.pools[pool].generation += 1

    def _work(self, pool: PoolName, seen: Busy) -> None:
        found = self.pools[pool]
        found.hosts_joined = False
        found.operation = self.begin(found.name, _path(found), creates=None)
        found.seen = seen

    def end_without_hosts(self, pool: PoolName) -> None:
        """End GKE's work on a pool, which runs, and whose hosts do not join."""
        self.finish(pool)
        self.pools[pool].hosts_joined = False

    def preempt(self, pool: PoolName) -> None:
        """Stop all hosts of a pool that runs, and asks for them again."""
        assert isinstance(self.pools[pool].seen, Running), f"{pool} does not run"
        self.pools[pool].hosts_joined = False

    def refill(self, pool: PoolName) -> None:
        """Let the hosts of a pool join that were preempted."""
        self.pools[pool].hosts_joined = True

    def wreck(self, pool: PoolName, failure: Failure) -> None:
        """Break a pool that ran: RUNNING_WITH_ERROR, or ERROR; its hosts stay."""
        self.pools[pool].seen = Broken(failure)

    def vanish(self, pool: PoolName) -> None:
        """Remove a pool as an operator would, past the port; its operations stay as they are, and its other parts."""
        found = self.pools[pool]
        if len(found.parts) == 1:
            del self.pools[pool]
        else:
            found.stands, found.hosts_joined = len(found.parts) - 1, False
            found.seen = found.state

    def steal(self, pool: PoolName) -> None:
        """Put somebody else's pool under a name of ours, in place of what was there."""
        self.pools[pool] = FakePool(
            name=pool, order=None, seen=Running(), stands=1, hosts_joined=True, made_at=self._clock.now()
        )

    def replace_labels(self, pool: PoolName, lacking: str = LACKING) -> None:
        """Replace the labels of a pool as an operator would, past the port; on Compute Engine its description."""
        found = self.pools[pool]
        found.lacking = lacking
        if isinstance(found.seen, Running):
            found.seen = replace(running(found), awaiting=found.seen.awaiting)

    def restore_labels(self, pool: PoolName) -> None:
        """Let the operator put them back."""
        self.replace_labels(pool, "")

    def lose_everything(self) -> None:
        """Let the cluster be deleted, with its pools and operations."""
        self.pools, self.operations = {}, {}

    def hold_legacy_pool(self, pool: LegacyPool) -> None:
        """Put a pool there as TPU Provisioner leaves it, in whichever cluster is asked about."""
        name = PoolName(pool.name)
        made_for = (pool.namespace, pool.jobset, pool.job)
        self.pools[name] = FakePool(
            name=name, order=None, seen=Running(), stands=1, hosts_joined=True, made_for=made_for
        )

    # for the port

    def full(self) -> bool:
        return sum(not operation.done for operation in self.operations.values()) >= self.operation_limit

    def begin(self, pool: PoolName, cluster_path: str, *, creates: bool | None) -> FakeOperation:
        name = f"operation-{next(self._numbers)}"
        operation = FakeOperation(name=name, pool=pool, cluster_path=cluster_path, creates=creates)
        self.operations[operation.name] = operation
        return operation

    def _end(self, pool: PoolName, failure: Failure | None) -> Failure | None:
        """End the operation that runs on a pool; return its error, which is CANCELLED if it was cancelled."""
        operation = self.pools[pool].operation
        if operation is None:
            raise AssertionError(f"no operation runs on {pool}")
        operation.done, operation.failure = True, CANCELLED if operation.aborting else failure
        self.ended.append(operation)
        self.pools[pool].operation = None
        return operation.failure


def running(pool: FakePool) -> Running:
    """Return what is seen of a pool that runs."""
    spec = pool.order.spec if pool.order is not None else None
    if spec is None:
        return Running(None, lacking=pool.lacking)
    fingerprint = None if pool.lacking else spec.fingerprint
    return Running(fingerprint, lacking=pool.lacking, refills=spec.capacity.kind is CapacityKind.SPOT)


def is_flex_start(pool: FakePool) -> bool:
    return pool.order is not None and pool.order.spec is not None and pool.order.spec.is_flex_start


def _path(pool: FakePool) -> str:
    return pool.order.cluster_path if pool.order is not None else ""
