"""Looks at each order and each step of a simulated world: which promise do they break?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from relay.objects import PoolKey
from tests.simulation.promises import Promise, broken
from tests.simulation.standing import by_id, operations, ours, slice_of
from tests.simulation.stocked import is_asked_for
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.observations import Begun, Busy, Failure, Outcome, Running, Started
from tpu_slices.domain.model.reasons import IN_LINE, Phase, Reason
from tpu_slices.domain.model.slices import ClaimId, PoolName, SliceId, slice_id
from tpu_slices.domain.reconciling.brake import too_many
from tpu_slices.domain.records.brakes import Brake
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.ports.backend import PoolOrder
from tpu_slices_simulator.fakes.gke import FakePool
from tpu_slices_simulator.simulation import SET_BACK_BY, Simulation

MOST_PASSES = 5
"""Who holds the fewest slots is served: a namespace whose operations end sooner is served more often."""
STALLED = 10
"""Minutes after a pause or a hold in which what was decided before it may still be done."""


class Watch:
    """Raises Broken as soon as a promise is broken in this world."""

    def __init__(self, world: Simulation) -> None:
        self._world = world
        self._deleted: dict[PoolName, int] = {}
        """The pools whose deletion began, and did not fail."""
        self._ordered: dict[PoolName, datetime] = {}
        """When the pools were last ordered."""
        self._released: set[ClaimId] = set()
        """The slices of which a pool was deleted."""
        self._looked_after = (0, 0, 0)
        """How many commits, orders and pools there were when the records were last looked at."""
        self._on_record: dict[PoolName, SliceRecord] = {}
        """The pools that were looked at, with the records that knew them."""
        self._not_silent: dict[SliceId, SliceRecord] = {}
        """The records that were looked at, as they were then."""
        self._in_line: dict[SliceId, datetime] = {}
        """Since when slices have waited for a slot."""
        self._served: set[SliceId] = set()
        """The slices that got a slot."""
        self._passed: Counter[tuple[SliceId, str]] = Counter()
        """How often a namespace was served before a slice that waits, with one that began to wait later."""
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
            self._deleted.pop(pool, None)

        def survived(step: object) -> bool:
            done = survive(step)  # type: ignore[arg-type]  # as the world calls it
            self._after_a_step()
            return done

        world.backend.create = ordered  # type: ignore[method-assign]  # the watch's own eye on every call
        world.backend._create = created  # type: ignore[method-assign]
        world.backend._delete = deleted  # type: ignore[method-assign]
        world.backend.fail_deletion = stays  # type: ignore[method-assign]
        world._survive = survived  # type: ignore[method-assign]

    def _most_allowed(self) -> int | None:
        """Return the most chips that were allowed lately: what was decided before an edit may still be done."""
        operators, lately = self._world.operators, self._world.minute - STALLED
        changes = zip(operators.limits, [*(at for at, _ in operators.limits[1:]), self._world.minute], strict=True)
        limits = [most for (_, most), until in changes if until >= lately]
        return None if None in limits else max(each for each in limits if each is not None)

    def _record(self, order: PoolOrder) -> SliceRecord | None:
        """Return the record of the slice that an order is for, whichever claim has it."""
        records = by_id(self._world.store.slice_records(self._world.settings.cluster))
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
                broken(Promise.NO_DEFIANCE, f"{order.name} is created or deleted, and {what}", self._world)

    def _on_creation(self, order: PoolOrder) -> None:
        self._obeys(order, creates=True)
        record = self._record(order)
        assert record is not None, f"{order.name} is created, and has no record"
        limits, most = self._world.settings.limits, self._most_allowed()
        if order.name in self._deleted and not self._is_lost(self._deleted[order.name]):
            broken(Promise.NO_DOUBLE, f"{order.name} is created once more after its deletion", self._world)
        last = self._ordered.get(order.name)
        repeated = last is not None and self._world.clock.now() - last <= limits.orders_arrive_within
        for pool in () if repeated else self._serving(record):
            broken(Promise.NO_DOUBLE, f"{order.name} is created, and {pool.name} could serve", self._world)
        confirmed, ttl = record.claim.demand_confirmed_at, limits.demand_ttl
        if record.owner.kind.is_spare:
            confirmed = self._world.clock.now() if is_asked_for(record, self._world.settings) else None
        if confirmed is None or self._world.clock.now() - confirmed > ttl + limits.act_window:
            broken(Promise.NO_STALE_BUYING, f"{order.name}: demand confirmed at {confirmed}", self._world)
        self._counts_operations(order)
        self._takes_turns(record)
        chips = sum(order.spec.chips for order in self._bought() if order.spec)
        if most is not None and chips > most and self._world.was_set_back_at is None:  # else some are known to nobody
            broken(Promise.NO_OVERRUN, f"{chips} chips in pools, and {most} are allowed", self._world)

    def _is_lost(self, minute: int) -> bool:
        """Return whether the database has forgotten what happened in a minute."""
        at = self._world.was_set_back_at
        return at is not None and at - SET_BACK_BY <= minute <= at

    def _takes_turns(self, record: SliceRecord) -> None:
        """Check how often the namespace of a slice was served before slices that have waited longer.

        What was served of their own namespace meanwhile is their turn, too. On Compute Engine each step of a creation
        is an order.
        """
        if record.id in self._served:
            return
        self._served.add(record.id)
        since = self._in_line.pop(record.id, None)
        namespace, known = record.owner.namespace, by_id(self._world.records.values())
        for id_, waits_since in self._in_line.items():
            other = known.get(id_)
            if other is None or other.reason is not Reason.OPERATION_LIMIT:
                continue
            own = other.owner.namespace
            if own == namespace or since is None or since > waits_since:
                self._passed[id_, namespace] += 1
                if self._passed[id_, namespace] - self._passed[id_, own] > MOST_PASSES:
                    broken(Promise.FAIR_TURNS, f"{namespace} was served {MOST_PASSES} times before {id_}", self._world)

    def _stand_in_line(self, records: Iterable[SliceRecord]) -> None:
        for record in records:
            awaited = record.slot_awaited
            if record.reason is Reason.OPERATION_LIMIT and awaited is not None and awaited.number is None:
                self._in_line[record.id] = awaited.since

    def _on_deletion(self, order: PoolOrder, pool: FakePool) -> None:
        self._deleted[order.name] = self._world.minute
        self._obeys(order, creates=False)
        self._counts_operations(order)
        record = self._record(order)
        if record is not None and record.claimed_by is not None:
            self._brakes(record.claimed_by)
        made = pool.order
        if made is None or (made.slice_id, made.attempt) != (order.slice_id, order.attempt):
            broken(Promise.NO_THEFT, f"{pool.name} is not the slice's", self._world)
        cluster = self._world.cluster
        pods = cluster.users_of(order.slice_id, order.attempt)
        held = (pod for pod in pods if pod.jobset.state is WorkloadState.ACTIVE or pod.ends_by is not None)
        users = [pod for pod in held if not cluster.never_ends(pod)]
        if users and pool.hosts_change:
            names = sorted({pod.raw["metadata"]["name"] for pod in users})
            broken(Promise.NO_THEFT, f"{pool.name} is deleted under {names}", self._world)

    def _counts_operations(self, order: PoolOrder) -> None:
        most = self._world.settings.limits.operations
        if operations(self._world) > most:
            broken(
                Promise.NO_OVERRUN,
                f"{order.name} is one of {operations(self._world)} operations, of {most}",
                self._world,
            )

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
            broken(Promise.NO_OVERRUN, f"{len(gone)} slices of missing workloads are deleted at once", self._world)

    def _after_a_step(self) -> None:
        done = (len(self._world.store.commits), len(self._world.backend.calls), len(self._world.pools))
        if done == self._looked_after:
            return
        self._looked_after, records = done, self._world.store.slice_records(self._world.settings.cluster)
        known = by_id(records)
        for pool in ours(self._world):
            id_ = slice_of(pool)
            record = known.get(id_)
            if record is not None and self._on_record.get(pool.name) is record:
                continue
            if id_ in self._world.intruders.edited:
                continue
            if record is None:
                broken(Promise.NO_STRAY, f"{pool.name} is on no record", self._world)
            else:
                self._on_record[pool.name] = record
        self._balance(records)
        self._stand_in_line(records)
        self._are_not_silent(records)

    def _balance(self, records: Sequence[SliceRecord]) -> None:
        known = by_id(records)
        ids = [slice_of(pool) for pool in ours(self._world)]
        standing = {known[id_].last_claim for id_ in ids if id_ in known}
        has: dict[ClaimId, SliceRecord] = {}
        for record in records:
            if record.claimed_by is None:
                continue
            before = has.setdefault(record.claimed_by, record)
            if before is not record:
                broken(Promise.ONE_CLAIM, f"{record.claimed_by} has {before.id} and {record.id}", self._world)
            if record.phase is Phase.GONE and record.claimed_by in standing:
                broken(Promise.BOOKS_BALANCE, f"{record.name} is GONE, and a pool that it had stands", self._world)

    def _are_not_silent(self, records: Iterable[SliceRecord]) -> None:
        for record in records:
            if record.phase in {Phase.READY, Phase.GONE} or self._not_silent.get(record.id) is record:
                continue
            self._not_silent[record.id] = record
            if record.expire_at is not None:
                broken(Promise.NO_SILENCE, f"{record.id} is {record.phase}, and Firestore deletes it", self._world)
            if not record.message and record.transitions:
                broken(Promise.NO_SILENCE, f"{record.id} is {record.phase} for no reason", self._world)
            in_line = record.reason in {*IN_LINE, Reason.DELETION_QUEUED} and record.slot_awaited is not None
            if record.next_reconcile_at is None and record.phase is not Phase.REFUSED and not in_line:
                broken(Promise.NO_SILENCE, f"{record.id} is {record.phase}, and nobody will look at it", self._world)

    def _serving(self, record: SliceRecord) -> Iterator[FakePool]:
        """Yield the claim's earlier pools that fit, are whole, and that nobody has used for a while."""
        now, limits = self._world.clock.now(), self._world.settings.limits
        lately = now - limits.restart_grace - timedelta(minutes=STALLED)
        for id_ in record.claim.earlier:
            each = self._world.records.get(id_)
            pool = self._world.backend.pools.get(each.pool) if each is not None else None
            if each is None or pool is None or not each.fits or each.current.delete_requested_at:
                continue
            runs, hosts = isinstance(pool.seen, Running | Busy) and self._is_whole(pool), each.current.hosts
            users = hosts.occupants or [left for left in hosts.departures if left.at >= lately]
            if runs and not users and each.created_at < lately:
                yield pool

    def _is_whole(self, pool: FakePool) -> bool:
        """Return whether all hosts of a pool are there, and ready."""
        cluster, order = self._world.cluster, pool.order
        if order is None or order.spec is None:
            return False
        nodes = [cluster.nodes[name].seen for name in cluster.nodes_of(PoolKey(order.slice_id, order.attempt))]
        return len(nodes) == order.spec.hosts and all(node.ready for node in nodes)

    def _bought(self) -> Iterator[PoolOrder]:
        """Yield the orders of our pools, but for those whose creation failed and of which no host was reported.

        Nor does what stands beside an instance group, before it is made and after it is gone, have hosts. A record that
        cannot be read now is taken as it was read last.
        """
        records = by_id(self._world.store.slice_records(self._world.settings.cluster))
        for pool in ours(self._world):
            assert pool.order is not None
            if isinstance(pool.seen, Begun):
                continue
            record = records.get(slice_of(pool)) or self._on_record.get(pool.name)
            if record is None or record.chips_bought:
                yield pool.order
