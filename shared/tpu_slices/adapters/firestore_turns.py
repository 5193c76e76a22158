"""Queries of Firestore for what waits its turn: to be looked at, to be reported on, and for a slot."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tpu_slices.adapters.firestore_queries import (
    AWAITING_SLOT,
    CREATIONS_AWAITING_SLOT,
    CREATIONS_IN_POOL,
    CREATIONS_IN_QUEUE,
    DELETIONS_AWAITING_SLOT,
    DUE_IN_NAMESPACE,
    DUE_QUEUES,
    DUE_REPORTS,
    DUE_SLICES,
    QUEUED_SLICES,
    REPORT_QUEUES,
    REPORTS_DUE,
    RESERVED,
)
from tpu_slices.adapters.firestore_reads import FirestoreReads
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.records.awaited import PoolOperation
from tpu_slices.domain.records.limiters import CapacityPool
from tpu_slices.domain.records.queues import queue_name, queue_named, queues_of
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import ReportQueue, WorkloadRecord
from tpu_slices.ports.store import Stored
from tpu_slices.wire.documents import DUE_QUEUE, REPORT_QUEUE


class FirestoreTurns(FirestoreReads):
    """What the port `SliceStore` promises of queues."""

    def due_slices(
        self, cluster: ClusterId, now: datetime, most: int, namespace: str | None = None
    ) -> tuple[Stored[SliceRecord], ...]:
        if namespace is None:
            return self._leading(SliceRecord, most, self._asked(DUE_SLICES, cluster, now))
        return self._leading(SliceRecord, most, self._asked(DUE_IN_NAMESPACE, cluster, namespace, now))

    def due_namespaces(self, cluster: ClusterId, now: datetime, most: int) -> tuple[str, ...]:
        heads: list[dict[str, Any]] = []
        while len(heads) < most and (head := self._head(DUE_QUEUES, cluster, heads[-1][DUE_QUEUE] if heads else "")):
            heads.append(head)
        return tuple(head[DUE_QUEUE] for head in heads if head["next_reconcile_at"] <= now)

    def report_queues(self, cluster: ClusterId, now: datetime) -> tuple[ReportQueue, ...]:
        if self._head(REPORTS_DUE, cluster, now) is None:
            return ()
        after, end = queues_of(cluster)
        due: list[tuple[bool, datetime, ReportQueue]] = []
        while head := self._head(REPORT_QUEUES, after, end):
            after, at = head[REPORT_QUEUE], head["next_report_at"]
            queue = queue_named(after)
            if at <= now:
                due.append((not queue.first, at, queue))
        return tuple(queue for *_, queue in sorted(due, key=lambda it: it[:2]))

    def due_reports(self, queue: ReportQueue, now: datetime, most: int) -> tuple[Stored[WorkloadRecord], ...]:
        return self._leading(WorkloadRecord, most, self._asked(DUE_REPORTS, queue_name(queue), now))

    def queued_slices(self, cluster: ClusterId, most: int) -> tuple[SliceRecord, ...]:
        found = self._leading(SliceRecord, most, self._asked(QUEUED_SLICES, cluster, Phase.QUEUED.value))
        return tuple(each.value for each in found)

    def awaits_slot(self, cluster: ClusterId) -> bool:
        return self._head(AWAITING_SLOT, cluster, None) is not None

    def deletions_awaiting_slot(self, cluster: ClusterId, most: int) -> tuple[Stored[SliceRecord], ...]:
        return self._leading(
            SliceRecord, most, self._asked(DELETIONS_AWAITING_SLOT, cluster, PoolOperation.DELETE.value, None)
        )

    def creations_awaiting_slot(
        self, cluster: ClusterId, after: str, before: str, most: int
    ) -> tuple[Stored[SliceRecord], ...]:
        return self._leading(SliceRecord, most, self._asked(CREATIONS_AWAITING_SLOT, cluster, after, before))

    def creations_in_queue(
        self, cluster: ClusterId, queue: str, after: str, most: int
    ) -> tuple[Stored[SliceRecord], ...]:
        return self._leading(SliceRecord, most, self._asked(CREATIONS_IN_QUEUE, cluster, queue, after))

    def creations_in_pool(self, cluster: ClusterId, pool: CapacityPool, most: int) -> tuple[Stored[SliceRecord], ...]:
        return self._leading(SliceRecord, most, self._asked(CREATIONS_IN_POOL, cluster, pool))

    def hosts_reserved(self, cluster: ClusterId, pool: CapacityPool) -> int:
        return self._sum(RESERVED, cluster, pool)

    def users_of_reservation(self, cluster: ClusterId, pool: CapacityPool, most: int) -> tuple[SliceRecord, ...]:
        return tuple(each.value for each in self._leading(SliceRecord, most, self._asked(RESERVED, cluster, pool)))
