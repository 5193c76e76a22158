"""The `Backend` port over GKE in memory, and buttons for its calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.joining import JoinToken
from tpu_slices.domain.model.observations import (
    Absent,
    Begun,
    Broken,
    Busy,
    Creating,
    Deleting,
    Failure,
    FailureKind,
    LegacyPool,
    Observation,
    OperationSeen,
    Outcome,
    PoolSeen,
    Refused,
    Started,
    Unowned,
    Unreadable,
)
from tpu_slices.domain.model.slices import CapacityKind, ClusterId, PoolName, SliceSpec
from tpu_slices.domain.planning.joining import kubeadm_of
from tpu_slices.ports.backend import PoolOrder
from tpu_slices.ports.clock import Clock
from tpu_slices.ports.errors import Temporary
from tpu_slices_simulator.fakes.gke import FakeGke, FakePool
from tpu_slices_simulator.fakes.troubles import ORDERS, Trouble, Troubles, Verb, Window

__all__ = ["Call", "FakeBackend", "FakePool", "Trouble", "Verb"]

_UNAVAILABLE = "The service is currently unavailable."


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One order that reached the backend; `outcome` is None where the caller did not learn it."""

    at: datetime
    verb: Verb
    pool: PoolName
    outcome: Outcome | None
    spec: SliceSpec | None = None
    """What was to be made."""


class FakeBackend(FakeGke):
    """A test presses the buttons of `FakeGke` for what happens to pools, those here for calls, and looks at `calls`."""

    def __init__(self, clock: Clock, *, cluster_gke_id: str | None = None, operation_limit: int = 5) -> None:
        super().__init__(operation_limit, clock)
        self.calls: list[Call] = []
        self.cluster_gke_id = cluster_gke_id
        self.unreadable: dict[ClusterId, Exception] = {}
        """What reading a whole cluster raises."""
        self.joins: list[tuple[PoolName, JoinToken | None]] = []
        """The tokens that were handed on to hosts, or taken away again, oldest first."""
        self.refuses_joins: Failure | None = None
        """While set, no host gets a token, as one does not exist yet."""
        self._troubles = Troubles()
        self._refusals: list[Failure] = []
        self.refuses_deletions: Failure | None = None
        """While set, every deletion is refused with it."""
        self.refuses_creations: Failure | None = None
        """While set, every creation is refused with it."""
        self._refused_at: dict[tuple[str, CapacityKind], Failure] = {}
        self.why_short: Callable[[PoolOrder], Failure | None] = lambda _: None
        """Why an order to create finds no hosts where it asks for them; None: it finds some."""
        self.refuses_labels: Failure | None = None
        """While set, no labels are put back."""

    # the port

    def look(self, order: PoolOrder) -> Observation:
        trouble = self._trouble(Verb.LOOK)
        if trouble is not None:
            return Unreadable(
                _UNAVAILABLE if trouble is not Trouble.FORBIDDEN else _forbidden("get", order.cluster_path)
            )
        pool = self.pools.get(order.name)
        if pool is None:
            return self._nothing(order)
        if not _is_ours(pool, order):
            return Unowned(pool.lacking or "its labels do not name this slice.")
        if isinstance(pool.seen, Creating):
            return Creating(operation_runs=pool.operation is not None)
        if isinstance(pool.seen, Busy) and not order.asks_work:
            return Busy(pool.seen.message)
        return pool.seen

    def create(self, order: PoolOrder) -> Outcome:
        return self._answered(Verb.CREATE, order, self._create)

    def delete(self, order: PoolOrder) -> Outcome:
        return self._answered(Verb.DELETE, order, self._delete)

    def delete_remains(self, order: PoolOrder) -> Outcome:
        return self._answered(Verb.DELETE, order, self._delete_remains)

    def cancel(self, order: PoolOrder) -> Outcome:
        return self._answered(Verb.CANCEL, order, self._cancel)

    def relabel(self, order: PoolOrder) -> Outcome:
        return self._answered(Verb.RELABEL, order, self._relabel)

    def join(self, order: PoolOrder, token: JoinToken | None) -> Outcome:
        if self._trouble(Verb.JOIN) is not None:
            raise Temporary(_UNAVAILABLE)
        pool = self.pools.get(order.name)
        if pool is None or not _is_ours(pool, order):
            return Started(None)
        if self.refuses_joins is not None:
            return Refused(self.refuses_joins)
        self.joins.append((order.name, token))
        return Started(None)

    def inventory(self, cluster: ClusterSettings) -> tuple[PoolSeen, ...]:
        self._list(cluster)
        seen = (_listed(pool, cluster) for pool in self.pools.values())
        return tuple(pool for pool in seen if pool is not None)

    def legacy_pools(self, cluster: ClusterSettings) -> tuple[LegacyPool, ...]:
        self._list(cluster)
        return tuple(
            LegacyPool(name=pool.name, namespace=pool.made_for[0], jobset=pool.made_for[1], job=pool.made_for[2])
            for pool in self.pools.values()
            if pool.made_for is not None and not pool.lacking
        )

    def pool_operations(self, cluster: ClusterSettings) -> frozenset[OperationSeen]:
        self._list(cluster)
        return frozenset(
            OperationSeen(pool=each.pool, creates=each.creates, ended=each.done)
            for each in self.operations.values()
            if each.creates is not None
            and each.cluster_path == cluster.path
            and not (each.done and cluster.self_managed)  # as with Compute Engine, only those that run
        )

    # the buttons

    def trouble(self, trouble: Trouble, *verbs: Verb, lasts: timedelta | None = None, calls: int | None = None) -> None:
        """Let calls fail in this way: those of these verbs (none: all), for a time, and at most that many."""
        until = None if lasts is None else self._clock.now() + lasts
        self._troubles.open(Window(trouble=trouble, verbs=frozenset(verbs or Verb), until=until, calls=calls))

    def hide(self) -> None:
        """Let GKE be out of reach."""
        self.trouble(Trouble.UNAVAILABLE)

    def show(self) -> None:
        """Let GKE be in reach, and allow what was forbidden."""
        self._troubles.close({Trouble.UNAVAILABLE, Trouble.FORBIDDEN})

    def refuses(self, zone: str, kind: CapacityKind, failure: Failure) -> None:
        """Refuse every creation of such capacity in a zone."""
        self._refused_at[zone, kind] = failure

    def accepts(self, zone: str, kind: CapacityKind) -> None:
        """Refuse it no more."""
        del self._refused_at[zone, kind]

    def refuse_next_create(self, failure: Failure) -> None:
        """Refuse one creation more."""
        self._refusals.append(failure)

    def lose_next_answer(self) -> None:
        """Let the next order be carried out, and its answer be lost."""
        self.trouble(Trouble.ANSWER_LOST, *ORDERS, calls=1)

    def ordered(self, verb: Verb) -> list[PoolName]:
        """Return the pools of the orders that were accepted, oldest first."""
        return [call.pool for call in self.calls if call.verb is verb and call.outcome != Started(None)]

    def hosts_join(self, pool: FakePool) -> bool:
        """Return whether a pool's hosts can join the cluster: on Compute Engine some need a token for that."""
        order = pool.order
        if not pool.hosts_joined or order is None or order.spec is None:
            return False
        by_token = kubeadm_of(order.spec, order.settings) is not None
        return not by_token or any(name == pool.name and token is not None for name, token in self.joins)

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
        name, there = order.name, self.pools.get(order.name)
        begun = there is not None and isinstance(there.seen, Begun) and _is_ours(there, order)
        why = self._why_not(order, taken=there is not None and not begun)
        if why is not None:
            return Refused(why, begun=begun)
        operation = self.begin(name, order.cluster_path, creates=True)
        pool = there or FakePool(name=name, order=order, seen=Creating(), made_at=self._clock.now())
        pool.seen, pool.operation, pool.made_by = Creating(), operation, operation.name
        self.pools[name] = pool
        return Started(operation.name)

    def _why_not(self, order: PoolOrder, *, taken: bool) -> Failure | None:
        """Return why an order to create is refused; None: it is not."""
        if self._refusals:
            return self._refusals.pop(0)
        if self.refuses_creations is not None:
            return self.refuses_creations
        if order.spec and (why := self._refused_at.get((order.spec.zone, order.spec.capacity.kind))) is not None:
            return why
        if order.spec is None:
            return Failure(FailureKind.CONFIGURATION, "what to make is not known.")
        if taken:
            return Failure(FailureKind.NAME_TAKEN, f"Already exists: {order.name}.")
        if (short := self.why_short(order)) is not None:
            return short
        return Failure(FailureKind.RATE, "Too many operations.") if self.full() else None

    def _delete(self, order: PoolOrder) -> Outcome:
        pool = self.pools.get(order.name)
        if pool is None or not _is_ours(pool, order) or isinstance(pool.seen, Deleting):
            return Started(None)
        if pool.operation is not None:
            return Refused(
                Failure(FailureKind.BUSY, f"Cluster is running incompatible operation {pool.operation.name}.")
            )
        if self.refuses_deletions is not None:
            return Refused(self.refuses_deletions)
        if self.full():
            return Refused(Failure(FailureKind.RATE, "Too many operations."))
        pool.operation = self.begin(pool.name, order.cluster_path, creates=False)
        pool.seen = Deleting(f"its {pool.parts[pool.stands - 1]}" if len(pool.parts) > 1 else "")
        return Started(pool.operation.name)

    def _delete_remains(self, order: PoolOrder) -> Outcome:
        pool = self.pools.get(order.name)
        begun = pool is not None and isinstance(pool.seen, Begun)
        return self._delete(order) if begun else Started(None)

    def _relabel(self, order: PoolOrder) -> Outcome:
        pool = self.pools.get(order.name)
        if pool is None or not _is_ours(pool, order) or not pool.lacking:
            return Started(None)
        if pool.operation is not None:
            return Refused(
                Failure(FailureKind.BUSY, f"Cluster is running incompatible operation {pool.operation.name}.")
            )
        if self.refuses_labels is not None:
            return Refused(self.refuses_labels)
        if self.full():
            return Refused(Failure(FailureKind.RATE, "Too many operations."))
        pool.operation, pool.relabels = self.begin(pool.name, order.cluster_path, creates=None), True
        pool.seen = Busy("an update.")
        return Started(pool.operation.name)

    def _cancel(self, order: PoolOrder) -> Outcome:
        pool = self.pools.get(order.name)
        if pool is not None and not (_is_ours(pool, order) and isinstance(pool.seen, Creating)):
            return Started(None)
        operation = self.operations.get(order.operation or "") if pool is None else pool.operation
        if operation is None or operation.done or operation.aborting or operation.pool != order.name:
            return Started(None)
        if not self.takes_cancellations:
            return Refused(Failure(FailureKind.BUSY, "Only node upgrade operations can be cancelled."))
        operation.aborting = True
        return Started(operation.name)

    def _answered(self, verb: Verb, order: PoolOrder, carry_out: Callable[[PoolOrder], Outcome]) -> Outcome:
        """Carry out and record the call, unless a trouble prevents it; a lost answer is Temporary."""
        outcome: Outcome | None
        match self._trouble(verb):
            case None:
                outcome = carry_out(order)
            case Trouble.FORBIDDEN:
                outcome = Refused(Failure(FailureKind.CONFIGURATION, _forbidden("update", order.cluster_path)))
            case Trouble.UNAVAILABLE:
                outcome = None
            case Trouble.ANSWER_LOST:
                carry_out(order)
                outcome = None
        self.calls.append(Call(at=self._clock.now(), verb=verb, pool=order.name, outcome=outcome, spec=order.spec))
        if outcome is None:
            raise Temporary(_UNAVAILABLE)
        return outcome

    def _list(self, cluster: ClusterSettings) -> None:
        """Count a call that lists; raise Temporary if it fails."""
        if cluster.cluster in self.unreadable:
            raise self.unreadable[cluster.cluster]
        trouble = self._trouble(Verb.LIST)
        if trouble is not None:
            raise Temporary(_UNAVAILABLE if trouble is not Trouble.FORBIDDEN else _forbidden("get", cluster.path))

    def _trouble(self, verb: Verb) -> Trouble | None:
        return self._troubles.of(verb, self._clock.now())


def _forbidden(what: str, cluster_path: str) -> str:
    return f'Required "container.clusters.{what}" permission(s) for "{cluster_path}".'


def _listed(pool: FakePool, cluster: ClusterSettings) -> PoolSeen | None:
    order = pool.order
    if order is not None and not pool.lacking:
        here = order.cluster_path == cluster.path and order.job.cluster == cluster.cluster
        return PoolSeen(name=pool.name, slice_id=order.slice_id, attempt=order.attempt, job=order.job) if here else None
    return PoolSeen.named(pool.name)


def _is_ours(pool: FakePool, order: PoolOrder) -> bool:
    made, known = pool.order, order.ours_if_made_by
    is_a_strangers = made is None and pool.made_for is None
    if pool.lacking:
        in_time = pool.made_at is None or (known is not None and pool.made_at <= known)
        by_ours = order.settings.compute is None and pool.made_by is not None and pool.made_by == order.made_by
        return not is_a_strangers and known is not None and (in_time or by_ours)
    if order.legacy_pool is not None:
        return pool.made_for == (order.job.owner.namespace, order.job.owner.name, order.job.job_name)
    return made is not None and (made.slice_id, made.job.owner.uid) == (order.slice_id, order.job.owner.uid)
