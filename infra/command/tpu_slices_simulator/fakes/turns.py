"""What waits its turn in the store in memory: to be looked at, to be reported on, and for a slot."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import TypeVar

from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.records.awaited import PoolOperation
from tpu_slices.domain.records.limiters import CapacityPool
from tpu_slices.domain.records.queues import due_queue, hosts_reserved, reserved_pool, slot_pool, slot_queue
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import ReportQueue, WorkloadRecord
from tpu_slices.ports.store import Record, Stored
from tpu_slices.wire.documents import key_of
from tpu_slices_simulator.fakes.documents import FakeDocuments, values

R = TypeVar("R", bound=Record)


@dataclass(slots=True)
class FakeTurns(FakeDocuments):
    """What the port `SliceStore` promises of queues."""

    def due_slices(
        self, cluster: ClusterId, now: datetime, most: int, namespace: str | None = None
    ) -> tuple[Stored[SliceRecord], ...]:
        self._answer()
        due = _due(self._in_time(SliceRecord, cluster, lambda record: record.next_reconcile_at), now)
        return tuple(it for it in due if namespace in {None, due_queue(it.value)})[:most]

    def due_namespaces(self, cluster: ClusterId, now: datetime, most: int) -> tuple[str, ...]:
        self._answer()
        timed = reversed(self._in_time(SliceRecord, cluster, lambda record: record.next_reconcile_at))
        first = {stored.value.owner.namespace: at for at, _, stored in timed}
        return tuple(namespace for namespace in sorted(first)[:most] if first[namespace] <= now)

    def _in_time(
        self, kind: type[R], cluster: ClusterId, when: Callable[[R], datetime | None]
    ) -> list[tuple[datetime, str, Stored[R]]]:
        """Return the records that will be due, those first that will be first."""

        def sort() -> list[tuple[datetime, str, Stored[R]]]:
            timed = ((when(stored.value), stored) for stored in self._of(cluster, kind))
            return sorted(((at, str(key_of(it.value)), it) for at, it in timed if at), key=lambda each: each[:2])

        return self._computed(kind, ("in time", cluster), sort)

    def report_queues(self, cluster: ClusterId, now: datetime) -> tuple[ReportQueue, ...]:
        self._answer()
        due = values(_due(self._in_time(WorkloadRecord, cluster, lambda it: it.next_report_at), now))
        queues = dict.fromkeys(queue for record in due if (queue := record.report_queue))
        return tuple(sorted(queues, key=lambda queue: not queue.first))

    def due_reports(self, queue: ReportQueue, now: datetime, most: int) -> tuple[Stored[WorkloadRecord], ...]:
        self._answer()
        due = _due(self._in_time(WorkloadRecord, queue.cluster, lambda record: record.next_report_at), now)
        return tuple(stored for stored in due if stored.value.report_queue == queue)[:most]

    def queued_slices(self, cluster: ClusterId, most: int) -> tuple[SliceRecord, ...]:
        self._answer()
        queued = (record for record in self.slice_records(cluster) if record.phase is Phase.QUEUED)
        return tuple(sorted(queued, key=lambda record: (record.since, record.id)))[:most]

    def deletions_awaiting_slot(self, cluster: ClusterId, most: int) -> tuple[Stored[SliceRecord], ...]:
        return tuple(self._awaiting_slot(cluster, PoolOperation.DELETE))[:most]

    def creations_awaiting_slot(
        self, cluster: ClusterId, after: str, before: str, most: int
    ) -> tuple[Stored[SliceRecord], ...]:
        found = ((slot_queue(it.value) or "", it) for it in self._creations(cluster))
        return _sorted((queue, it) for queue, it in found if after < queue < before)[:most]

    def creations_in_queue(
        self, cluster: ClusterId, queue: str, after: str, most: int
    ) -> tuple[Stored[SliceRecord], ...]:
        found = (it for it in self._creations(cluster) if slot_queue(it.value) == queue)
        return _sorted((pool, it) for it in found if (pool := slot_pool(it.value) or "") > after)[:most]

    def creations_in_pool(self, cluster: ClusterId, pool: CapacityPool, most: int) -> tuple[Stored[SliceRecord], ...]:
        return tuple(it for it in self._creations(cluster) if slot_pool(it.value) == pool)[:most]

    def hosts_reserved(self, cluster: ClusterId, pool: CapacityPool) -> int:
        return sum(map(hosts_reserved, self.users_of_reservation(cluster, pool, 1_000_000)))

    def users_of_reservation(self, cluster: ClusterId, pool: CapacityPool, most: int) -> tuple[SliceRecord, ...]:
        self._answer()
        found = [record for record in self.slice_records(cluster) if reserved_pool(record) == pool]
        return tuple(sorted(found, key=hosts_reserved))[:most]

    def _creations(self, cluster: ClusterId) -> list[Stored[SliceRecord]]:
        return self._awaiting_slot(cluster, PoolOperation.CREATE)

    def _awaiting_slot(self, cluster: ClusterId, operation: PoolOperation) -> list[Stored[SliceRecord]]:
        """Return the slices with such an operation for which a slot is missing, those that wait longest first."""
        self._answer()
        every = self._computed(SliceRecord, operation, lambda: self._all_awaiting_slot(operation))
        return [stored for stored in every if stored.value.cluster == cluster]

    def _all_awaiting_slot(self, operation: PoolOperation) -> list[Stored[SliceRecord]]:
        awaited = {"operation": operation.value, "number": None}
        found = self._all(SliceRecord, lambda it: awaited.items() <= (it.get("slot_awaited") or {}).items())
        timed = ((it.value.slot_awaited, it) for it in found)
        return [it for _, it in sorted(((at.since, it) for at, it in timed if at), key=itemgetter(0))]


def _due(in_time: Sequence[tuple[datetime, str, Stored[R]]], now: datetime) -> tuple[Stored[R], ...]:
    return tuple(stored for at, _, stored in in_time[: bisect_right(in_time, now, key=itemgetter(0))])


def _sorted(found: Iterable[tuple[str, Stored[R]]]) -> tuple[Stored[R], ...]:
    return tuple(stored for _, stored in sorted(found, key=itemgetter(0)))
