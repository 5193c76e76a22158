"""What the system promises whatever goes wrong, each a check on a simulated world.

| promise         | is broken by                                                                      | looked at     |
|-----------------|-----------------------------------------------------------------------------------|---------------|
| no theft        | a deletion of a pool that is not ours, or under a pod of a live Job, or that ends | at a deletion |
| no double       | a creation beside a pool that could serve its Job, or under a name deleted before | at a creation |
| no stale buying | a creation for a slice that no leader was reported to wait for since `demand_ttl` | at a creation |
| no overrun      | a creation of more chips than the cluster may hold, with all that are bought; an  | at a creation |
|                 | operation beyond those at a time; more slices of missing workloads deleted than   | or deletion   |
|                 | the brake allows, before an operator confirms it                                  |               |
| no defiance     | a creation or deletion in a cluster that is paused, or for a slice that is held,  | the same      |
|                 | for longer than an instance may stand still                                       |               |
| no stray        | a pool of ours that no record knows                                               | at each step  |
| one claim       | a pool that two records have                                                      | at each step  |
| books balance   | a claim that says that nothing is left of it, while a pool that was made for it   | at each step  |
|                 | stands                                                                            |               |
| no silence      | a slice that is not READY, and does not say why, or waits and is not looked at    | at each step  |
| true reports    | in calm, a JobSet's report that says other than what it has                       | in the end    |
| converges       | in calm, a live Job without its slice, or a pool that nobody uses                 | in the end    |
| no leak         | a pool that nobody wants, and whose deletion was not requested within two sweeps  | in the end    |
|                 | though there was a slot; anything that is left after that                         |               |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from relay.objects import Pool, PoolKey
from tests.builders import a_spec
from tpu_slices.domain.catalogue.topology import Topology
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.observations import Begun, Busy, Creating, Deleting, Failure, Outcome, Running, Started
from tpu_slices.domain.model.reasons import IN_LINE, Phase, Reason, ReportReason
from tpu_slices.domain.model.slices import ClaimId, PoolName, SliceId, WorkloadUid, pool_name, slice_id
from tpu_slices.domain.reconciling.brake import too_many
from tpu_slices.domain.records.brakes import Brake
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.ports.backend import PoolOrder
from tpu_slices.ports.publisher import WorkloadUpdate
from tpu_slices_simulator.fakes.gke import FakePool
from tpu_slices_simulator.live import LiveWorkload
from tpu_slices_simulator.simulation import Simulation
from tpu_slices_simulator.story import Kind

STALLED = 10
"""Minutes after a pause or a hold in which what was decided before it may still be done."""
SWEEPS = 3
"""In which a deletion is requested: two, and the one that found the pool unwanted."""


WAITS = {ReportReason.PROVISIONING, ReportReason.WAITING, ReportReason.BLOCKED}


class Promise(StrEnum):
    NO_THEFT = "no theft"
    NO_DOUBLE = "no double"
    NO_STALE_BUYING = "no stale buying"
    NO_OVERRUN = "no overrun"
    NO_DEFIANCE = "no defiance"
    NO_STRAY = "no stray"
    ONE_CLAIM = "one claim"
    BOOKS_BALANCE = "books balance"
    NO_SILENCE = "no silence"
    TRUE_REPORTS = "true reports"
    CONVERGES = "converges"
    NO_LEAK = "no leak"


LOST_WITH_THE_DATABASE = frozenset(
    {Promise.NO_DOUBLE, Promise.NO_STRAY, Promise.NO_OVERRUN, Promise.ONE_CLAIM, Promise.BOOKS_BALANCE}
)
"""What may come of a pool that was made in the minutes that the database lost, until the inventory check finds it."""
RECOVERED_WITHIN = 30
"""Minutes after the database was set back."""


class Broken(BaseException):
    """A promise that did not hold. No flow may take it for an error of its own, such as a sweep that others overlap."""

    def __init__(self, promise: Promise, seen: str) -> None:
        super().__init__(f"{promise}: {seen}")
        self.promise = promise


class Watch:
    """Raises Broken as soon as a promise is broken in this world."""

    def __init__(self, world: Simulation) -> None:
        self._world = world
        self._deleted: set[PoolName] = set()
        """The pools whose deletion began, and did not fail."""
        self._ordered: dict[PoolName, datetime] = {}
        """When the pools were last ordered."""
        self._released: set[ClaimId] = set()
        """The slices of which a pool was deleted."""
        self._lingering: Counter[PoolName] = Counter()
        """By pool that nobody wants, after how many sweeps its deletion was not requested though there was a slot."""
        self._looked_after = (0, 0, 0)
        """How many commits, orders and pools there were when the records were last looked at."""
        self._on_record: dict[PoolName, SliceRecord] = {}
        """The pools that were looked at, with the records that knew them."""
        self._not_silent: dict[SliceId, SliceRecord] = {}
        """The records that were looked at, as they were then."""
        self._listen()

    def _listen(self) -> None:
        """Look at each order that reaches the backend, and at each step of the functions."""
        world = self._world
        order_, create = world.backend.create, world.backend._create
        delete, fails, survive = world.backend._delete, world.backend.fail_deletion, world._survive

        def ordered(order: PoolOrder) -> Outcome:
            try:
                return order_(order)
            finally:
                self._ordered[order.name] = world.clock.now()

        def created(order: PoolOrder) -> Outcome:
            outcome = create(order)
            if isinstance(outcome, Started):
                self._on_creation(order)
            return outcome

        def deleted(order: PoolOrder) -> Outcome:
            before = world.backend.pools.get(order.name)
            outcome = delete(order)
            if outcome != Started(None) and isinstance(outcome, Started) and before is not None:
                self._on_deletion(order, before)
            return outcome

        def stays(pool: PoolName, failure: Failure) -> None:
            fails(pool, failure)
            self._deleted.discard(pool)

        def survived(step: object) -> bool:
            done = survive(step)  # type: ignore[arg-type]  # as the world calls it
            self._after_a_step()
            return done

        world.backend.create = ordered  # type: ignore[method-assign]  # the watch's own eye on every call
        world.backend._create = created  # type: ignore[method-assign]
        world.backend._delete = deleted  # type: ignore[method-assign]
        world.backend.fail_deletion = stays  # type: ignore[method-assign]
        world._survive = survived  # type: ignore[method-assign]

    def in_calm(self) -> None:
        """Check what must hold when nothing has gone wrong for a while."""
        world = self._world
        active = [each for each in world.workloads.values() if each.state is WorkloadState.ACTIVE]
        limit = self._world.settings.policy.chips_per_cluster
        room = limit is None or sum(map(self._most_chips, active)) <= limit
        unserved = [each.ref.owner.name for each in active if room and not each.served]
        used = {name.rpartition("-")[0] for name in world.cluster.used_nodes()}
        idle = sorted({*world.backend.pools} - used)
        if unserved or idle:
            self._break(Promise.CONVERGES, f"without slices: {unserved}; used by nobody: {idle}")

    def _most_chips(self, workload: LiveWorkload) -> int:
        """Return the most chips that a workload holds: each Job those that it asks for, or those of the pool it is on.

        A group runs on the shape that it had before it was edited; it holds that as long as one of its pods runs,
        whether its leader does or not.
        """
        shapes = (Topology.parse(request.topology or "").chips for request in workload.requests if workload.asks)
        chips = dict.fromkeys(range(workload.slices), max((a_spec().chips, *shapes)))
        for pod in (*self._world.cluster.pods.values(), *self._world.cluster.followers.values()):
            if pod.jobset is workload and pod.node in self._world.cluster.nodes:
                on = self._world.cluster.nodes[pod.node].pool
                chips[pod.index] = max(chips.get(pod.index, 0), self._chips_of(on))
        return sum(chips.values())

    def _chips_of(self, on: Pool) -> int:
        """Return the chips of a pool on whose nodes a pod is; those of a slice of these stories, if it is gone."""
        pool = self._world.backend.pools.get(pool_name(*on)) if isinstance(on, PoolKey) else None
        return pool.order.spec.chips if pool and pool.order and pool.order.spec else a_spec().chips

    def reports(self) -> None:
        """Check, in calm, that each JobSet's report, as the relay shows it, says what it has.

        What was announced in minutes that the database lost stays shown until the workload changes: nobody knows of it.
        """
        if self._world.was_set_back_at is not None:
            return
        shown: dict[WorkloadUid, WorkloadUpdate] = {}
        for _, update in self._world.publisher.reports:
            last = shown.get(update.owner.uid)
            if last is None or not update.came_late(last.count, last.at):
                shown[update.owner.uid] = update
        for uid, workload in self._world.workloads.items():
            report = shown[uid].report if uid in shown else None
            waits = report is not None and report.reason in WAITS
            if workload.state is WorkloadState.ACTIVE and waits is workload.served:
                self._break(
                    Promise.TRUE_REPORTS, f"{workload.ref.owner.name} is served: {workload.served}, and {report}"
                )

    def after_a_sweep(self) -> None:
        """Check, when nothing is wanted any more, that what stands is being deleted as soon as there are slots.

        The slot of an operation that has ended is free once a sweep has seen that; in the end none may be left.
        """
        if Kind.NEWS_LOST in self._world.on:
            return  # that nothing is wanted any more is found by repetition, or the inventory check
        taken = max(self._operations(), len(self._world.store.slots(self._world.settings.cluster)))
        for pool in self._ours():
            waits = pool.operation is None and taken < self._world.settings.limits.operations
            self._lingering[pool.name] = self._lingering[pool.name] + 1 if waits else 0
            if self._lingering[pool.name] > SWEEPS:
                self._break(Promise.NO_LEAK, f"{pool.name} stands, and nobody has requested its deletion")

    def when_all_ended(self) -> None:
        """Check what must hold a while after the last workload has ended."""
        kept = [record.id for record in self._world.records.values() if record.phase is not Phase.GONE]
        slots = self._world.store.slots(self._world.settings.cluster)
        if self._world.pools or kept or slots:
            self._break(Promise.NO_LEAK, f"pools {self._world.pools}, slices {kept}, {len(slots)} slots")

    def _most_allowed(self) -> int | None:
        """Return the most chips that were allowed lately: what was decided before an edit may still be done."""
        operators, lately = self._world.operators, self._world.minute - STALLED
        changes = zip(operators.limits, [*(at for at, _ in operators.limits[1:]), self._world.minute], strict=True)
        limits = [most for (_, most), until in changes if until >= lately]
        return None if None in limits else max(each for each in limits if each is not None)

    def _record(self, order: PoolOrder) -> SliceRecord | None:
        """Return the record of the slice that an order is for, whichever claim has it."""
        records = _by_id(self._world.store.slice_records(self._world.settings.cluster))
        return records.get(slice_id(order.slice_id, order.attempt))

    def _obeys(self, order: PoolOrder, *, creates: bool) -> None:
        operators, minute = self._world.operators, self._world.minute
        record = self._record(order)
        held = operators.held.get(record.name) if record is not None else None
        barred = operators.barred if operators.barred and operators.barred[0] == order.job.owner.namespace else None
        told = {"the cluster is paused": operators.paused, "it is held": held}
        if creates:
            told["its namespace may request nothing"] = barred and (barred[1], 0)
        for what, span in told.items():
            if span is not None and minute - span[0] > STALLED:
                self._break(Promise.NO_DEFIANCE, f"{order.name} is created or deleted, and {what}")

    def _on_creation(self, order: PoolOrder) -> None:
        self._obeys(order, creates=True)
        record = self._record(order)
        assert record is not None, f"{order.name} is created, and has no record"
        limits, most = self._world.settings.limits, self._most_allowed()
        if order.name in self._deleted:
            self._break(Promise.NO_DOUBLE, f"{order.name} is created once more after its deletion")
        last = self._ordered.get(order.name)
        repeated = last is not None and self._world.clock.now() - last <= limits.orders_arrive_within
        for pool in () if repeated else self._serving(record):
            self._break(Promise.NO_DOUBLE, f"{order.name} is created, and {pool.name} could serve")
        confirmed, ttl = record.claim.demand_confirmed_at, limits.demand_ttl
        if confirmed is None or self._world.clock.now() - confirmed > ttl + limits.act_window:
            self._break(Promise.NO_STALE_BUYING, f"{order.name}: demand confirmed at {confirmed}")
        self._counts_operations(order)
        chips = sum(order.spec.chips for order in self._bought() if order.spec)
        if most is not None and chips > most and self._world.was_set_back_at is None:  # else some are known to nobody
            self._break(Promise.NO_OVERRUN, f"{chips} chips in pools, and {most} are allowed")

    def _on_deletion(self, order: PoolOrder, pool: FakePool) -> None:
        self._deleted.add(order.name)
        self._obeys(order, creates=False)
        self._counts_operations(order)
        record = self._record(order)
        if record is not None and record.claimed_by is not None:
            self._brakes(record.claimed_by)
        made = pool.order
        if made is None or (made.slice_id, made.attempt) != (order.slice_id, order.attempt):
            self._break(Promise.NO_THEFT, f"{pool.name} is not the slice's")
        cluster = self._world.cluster
        pods = cluster.users_of(order.slice_id, order.attempt)
        held = (pod for pod in pods if pod.jobset.state is WorkloadState.ACTIVE or pod.ends_by is not None)
        users = [pod for pod in held if not cluster.never_ends(pod)]
        if users and pool.hosts_change:
            names = sorted({pod.raw["metadata"]["name"] for pod in users})
            self._break(Promise.NO_THEFT, f"{pool.name} is deleted under {names}")

    def _operations(self) -> int:
        """Return how many operations of ours run."""
        pools = self._world.backend.pools.values()
        return sum(pool.operation is not None and isinstance(pool.seen, Creating | Deleting) for pool in pools)

    def _counts_operations(self, order: PoolOrder) -> None:
        most = self._world.settings.limits.operations
        if self._operations() > most:
            self._break(Promise.NO_OVERRUN, f"{order.name} is one of {self._operations()} operations, of {most}")

    def _brakes(self, slice_: ClaimId) -> None:
        """Check that of slices whose workloads were missing at about one time no more go than the brake allows."""
        self._released.add(slice_)
        store, records, cluster = self._world.store, self._world.records, self._world.settings.cluster
        missing = {it.owner.uid: it for it in store.jobset_records(cluster) if it.state is WorkloadState.MISSING}
        owners = {id_: missing[it.owner.uid] for id_, it in records.items() if it.owner.uid in missing}
        if slice_ not in owners or records[slice_].release_requested:
            return
        ends = {
            id_: end.found_at if (end := records[id_].unconfirmed_end) else it.state_since for id_, it in owners.items()
        }
        brake, namespace = store.brake(cluster), records[slice_].owner.namespace
        since = (brake.value if brake else Brake.released(cluster)).counted_since(namespace, ends[slice_])
        gone = [id_ for id_ in self._released & ends.keys() if since <= ends[id_] <= ends[slice_]]
        ready = [it for it in records.values() if it.phase is Phase.READY and it.owner.namespace == namespace]
        if too_many(sum(records[id_].owner.namespace == namespace for id_ in gone), len(ready)):
            self._break(Promise.NO_OVERRUN, f"{len(gone)} slices of missing workloads are deleted at once")

    def _after_a_step(self) -> None:
        done = (len(self._world.store.commits), len(self._world.backend.calls), len(self._world.pools))
        if done == self._looked_after:
            return
        self._looked_after, records = done, self._world.store.slice_records(self._world.settings.cluster)
        by_id = _by_id(records)
        for pool in self._ours():
            assert pool.order is not None
            id_ = slice_id(pool.order.slice_id, pool.order.attempt)
            record = by_id.get(id_)
            if record is not None and self._on_record.get(pool.name) is record:
                continue
            if id_ in self._world.intruders.edited:
                continue
            if record is None:
                self._break(Promise.NO_STRAY, f"{pool.name} is on no record")
            else:
                self._on_record[pool.name] = record
        self._balance(records)
        self._are_not_silent(records)

    def _balance(self, records: Sequence[SliceRecord]) -> None:
        by_id = _by_id(records)
        ids = [slice_id(pool.order.slice_id, pool.order.attempt) for pool in self._ours() if pool.order is not None]
        standing = {by_id[id_].last_claim for id_ in ids if id_ in by_id}
        has: dict[ClaimId, SliceRecord] = {}
        for record in records:
            if record.claimed_by is None:
                continue
            before = has.setdefault(record.claimed_by, record)
            if before is not record:
                self._break(Promise.ONE_CLAIM, f"{record.claimed_by} has {before.id} and {record.id}")
            if record.phase is Phase.GONE and record.claimed_by in standing:
                self._break(Promise.BOOKS_BALANCE, f"{record.name} is GONE, and a pool that it had stands")

    def _are_not_silent(self, records: Iterable[SliceRecord]) -> None:
        for record in records:
            if record.phase in {Phase.READY, Phase.GONE} or self._not_silent.get(record.id) is record:
                continue
            self._not_silent[record.id] = record
            if not record.message and record.transitions:
                self._break(Promise.NO_SILENCE, f"{record.id} is {record.phase} for no reason")
            in_line = record.reason in {*IN_LINE, Reason.DELETION_QUEUED} and record.slot_awaited is not None
            if record.next_reconcile_at is None and record.phase is not Phase.REFUSED and not in_line:
                self._break(Promise.NO_SILENCE, f"{record.id} is {record.phase}, and nobody will look at it")

    def _serving(self, record: SliceRecord) -> Iterator[FakePool]:
        """Yield the claim's earlier pools that serve or will, were let go though they fit, and nobody uses any more.

        That nobody does any more is seen within minutes.
        """
        now, limits = self._world.clock.now(), self._world.settings.limits
        lately = now - limits.restart_grace - timedelta(minutes=STALLED)
        for id_ in record.claim.earlier:
            each = self._world.records.get(id_)
            pool = self._world.backend.pools.get(each.pool) if each is not None else None
            if each is None or pool is None or not each.fits or each.current.delete_requested_at:
                continue
            runs, hosts = isinstance(pool.seen, Busy) or _has_hosts(pool), each.current.hosts
            users = hosts.occupants or [left for left in hosts.departures if left.at >= lately]
            if runs and not users and each.created_at < lately:
                yield pool

    def _bought(self) -> Iterator[PoolOrder]:
        """Yield the orders of our pools, but for those whose creation failed and of which no host was reported.

        Nor does what stands beside an instance group, before it is made and after it is gone, have hosts. A record that
        cannot be read now is taken as it was read last.
        """
        records = _by_id(self._world.store.slice_records(self._world.settings.cluster))
        for pool in self._ours():
            assert pool.order is not None
            if isinstance(pool.seen, Begun):
                continue
            record = records.get(slice_id(pool.order.slice_id, pool.order.attempt)) or self._on_record.get(pool.name)
            if record is None or record.chips_bought:
                yield pool.order

    def _ours(self) -> list[FakePool]:
        pools = self._world.backend.pools.values()
        return [pool for pool in pools if pool.order is not None and not isinstance(pool.seen, Deleting)]

    def _break(self, promise: Promise, seen: str) -> None:
        """Raise Broken, unless the database was set back lately, and what it lost explains it."""
        at = self._world.was_set_back_at
        if promise in LOST_WITH_THE_DATABASE and at is not None and self._world.minute <= at + RECOVERED_WITHIN:
            return
        raise Broken(promise, f"at {self._world.clock.now():%d %H:%M:%S}, {seen}")


def _has_hosts(pool: FakePool) -> bool:
    return isinstance(pool.seen, Running) and pool.hosts_joined


def _by_id(records: Iterable[SliceRecord]) -> dict[SliceId, SliceRecord]:
    return {record.id: record for record in records}
