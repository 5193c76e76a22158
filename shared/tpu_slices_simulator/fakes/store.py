"""The store in memory, with the contract of the real one; commits are kept for tests to look at.

Values are kept as documents: what the wire format cannot hold is lost, and what Firestore refuses is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.records import PoolOperation, SliceRecord
from tpu_slices.domain.model.slices import ClusterId, SliceId, WorkloadUid
from tpu_slices.domain.model.workloads import ReportQueue, WorkloadRecord
from tpu_slices.domain.reconciling.brake import Brake
from tpu_slices.domain.reconciling.inventory import STANDING, RelayHeartbeat, standing
from tpu_slices.domain.reconciling.limiter import Budget, ConcurrencyLimiter, Slot
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.store import Change, Found, Record, RejectedMessage, Revision, Stored
from tpu_slices.wire import documents
from tpu_slices.wire.cluster_settings import accepted_key, decode_settings, pause_key, settings_key, with_pause
from tpu_slices.wire.documents import Fields, key, key_of
from tpu_slices_simulator.fakes import firestore_rules
from tpu_slices_simulator.fakes.documents import FakeDocuments, KeptDocument, values

R = TypeVar("R", bound=Record)
N = TypeVar("N", bound=str)
_LIVE = [state.value for state in WorkloadState if not state.ended]
_LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class FakeStore(FakeDocuments):
    """The port `SliceStore`. Buttons: `unavailable`, `fail_next`, `lose_next_answer`, `meanwhile`."""

    # What the port promises

    def settings(self, cluster: ClusterId) -> ClusterSettings | None:
        self._answer()
        written, accepted = (self._documents.get(place) for place in (settings_key(cluster), accepted_key(cluster)))
        if written is None:
            return None
        try:
            settings = self._settings_in(cluster, written)
        except Permanent as problem:
            if accepted is None:
                raise
            self.unreadable[str(settings_key(cluster))] = str(problem)
            settings = self._settings_in(cluster, accepted)
        pause = self._documents.get(pause_key(cluster))
        return with_pause(settings, pause.fields if pause else None)

    def _settings_in(self, cluster: ClusterId, document: KeptDocument) -> ClusterSettings:
        if (known := self._accepted.get(document.revision)) is not None:
            return known
        settings = decode_settings(cluster, document.fields, document.revision)
        return self._accepted.setdefault(document.revision, settings)

    def clusters(self) -> tuple[ClusterId, ...]:
        self._answer()
        return tuple(sorted(ClusterId(known.id) for known in self._documents if known.collection == "clusters"))

    def workloads(self, cluster: ClusterId, uids: Collection[WorkloadUid]) -> Found[WorkloadUid, WorkloadRecord]:
        self._answer()
        return self._named(WorkloadRecord, cluster, uids)

    def slices(self, cluster: ClusterId, ids: Collection[SliceId]) -> Found[SliceId, SliceRecord]:
        self._answer()
        return self._named(SliceRecord, cluster, ids)

    def clusters_with_slices(self) -> tuple[ClusterId, ...]:
        self._answer()
        return tuple(sorted({it.value.cluster for it in self._all(SliceRecord) if it.value.phase is not Phase.GONE}))

    def slice_count(self, cluster: ClusterId) -> int:
        return len(list(self.kept_slices(cluster)))

    def due_slices(self, cluster: ClusterId, now: datetime, most: int) -> tuple[Stored[SliceRecord], ...]:
        self._answer()
        return _longest_due(self._of(cluster, SliceRecord), now, lambda record: record.next_reconcile_at)[:most]

    def report_queues(self, cluster: ClusterId, now: datetime) -> tuple[ReportQueue, ...]:
        self._answer()
        due = values(_longest_due(self._of(cluster, WorkloadRecord), now, lambda it: it.next_report_at))
        queues = dict.fromkeys(queue for record in due if (queue := record.report_queue))
        return tuple(sorted(queues, key=lambda queue: not queue.first))

    def due_reports(self, queue: ReportQueue, now: datetime, most: int) -> tuple[Stored[WorkloadRecord], ...]:
        self._answer()
        due = _longest_due(self._of(queue.cluster, WorkloadRecord), now, lambda record: record.next_report_at)
        return tuple(stored for stored in due if stored.value.report_queue == queue)[:most]

    def changed_workloads(self, cluster: ClusterId, since: datetime, most: int) -> tuple[WorkloadUid, ...]:
        documents = (fields for fields in self._slice_documents(cluster) if fields.get("changed_at"))
        changed = sorted((each["changed_at"], each["owner"]["uid"]) for each in documents if each["changed_at"] > since)
        return tuple(dict.fromkeys(WorkloadUid(uid) for _, uid in changed[:most]))

    def queued_slices(self, cluster: ClusterId, most: int) -> tuple[SliceRecord, ...]:
        self._answer()
        every = sorted(self.slice_records(cluster), key=lambda record: (record.since, record.id))
        return tuple(record for record in every if record.phase is Phase.QUEUED)[:most]

    def deletions_awaiting_slot(self, cluster: ClusterId, most: int) -> tuple[Stored[SliceRecord], ...]:
        found = self._awaiting_slot(cluster, PoolOperation.DELETE)
        return tuple(sorted(found, key=lambda it: _place_in_queue(it.value)))[:most]

    def creations_awaiting_slot(self, cluster: ClusterId, after: str, most: int) -> tuple[Stored[SliceRecord], ...]:
        found = sorted(self._awaiting_slot(cluster, PoolOperation.CREATE), key=lambda it: _place_in_queue(it.value))
        return tuple(it for it in found if _place_in_queue(it.value)[0] > after)[:most]

    def _awaiting_slot(self, cluster: ClusterId, operation: PoolOperation) -> list[Stored[SliceRecord]]:
        self._answer()
        awaited = {"operation": operation.value, "number": None}
        every = self._all(SliceRecord, lambda fields: awaited.items() <= (fields.get("slot_awaited") or {}).items())
        return [stored for stored in every if stored.value.cluster == cluster]

    def live_workloads(self, cluster: ClusterId) -> Iterator[Stored[WorkloadRecord]]:
        self._answer()
        return (stored for stored in self._of(cluster, WorkloadRecord) if stored.value.live)

    def live_standings(
        self, cluster: ClusterId, after: WorkloadUid | None = None, up_to: WorkloadUid | None = None
    ) -> Iterator[tuple[WorkloadUid, str]]:
        self._answer()
        found = self._matching(WorkloadRecord, lambda it: it.get("cluster") == cluster and it.get("state") in _LIVE)
        told = {WorkloadUid(at.id.removeprefix(f"{cluster}.")): self._documents[at].fields.get for at in found}
        asked = (uid for uid in sorted(told) if (after is None or uid > after) and (up_to is None or uid <= up_to))
        return ((uid, standing(*map(told[uid], STANDING))) for uid in asked)

    def demand_digest(self, cluster: ClusterId) -> int:
        return sum(self.demand_digests(cluster).values())

    def demand_digests(self, cluster: ClusterId) -> Mapping[WorkloadUid, int]:
        self._answer()
        found = self._matching(
            WorkloadRecord, lambda it: it.get("cluster") == cluster and it.get("demand_digest", 0) > 0
        )
        prefix = f"{cluster}."
        return {WorkloadUid(at.id.removeprefix(prefix)): self._documents[at].fields["demand_digest"] for at in found}

    def kept_slices(self, cluster: ClusterId) -> Iterator[Stored[SliceRecord]]:
        self._answer()
        return (stored for stored in self._of(cluster, SliceRecord) if stored.value.phase is not Phase.GONE)

    def every_slice(self, cluster: ClusterId) -> Iterator[Stored[SliceRecord]]:
        self._answer()
        return iter(self._of(cluster, SliceRecord))

    def slots(self, cluster: ClusterId) -> tuple[Stored[Slot], ...]:
        self._answer()
        return tuple(sorted(self._of(cluster, Slot), key=lambda stored: stored.value.number))

    def limiter(self, cluster: ClusterId) -> Stored[ConcurrencyLimiter] | None:
        self._answer()
        return self._one(ConcurrencyLimiter.of(cluster, _LONG_AGO))

    def budget(self, cluster: ClusterId) -> Stored[Budget] | None:
        self._answer()
        return self._one(Budget.of(cluster, _LONG_AGO))

    def chips_bought(self, cluster: ClusterId) -> int:
        return self._sum(cluster, documents.CHIPS_BOUGHT)

    def chips_held(self, cluster: ClusterId, namespace: str) -> int:
        return self._sum(cluster, documents.CHIPS_HELD, lambda fields: fields["owner"]["namespace"] == namespace)

    def chips_idle(self, cluster: ClusterId) -> int:
        return self._sum(cluster, documents.CHIPS_IDLE)

    def phase_count(self, cluster: ClusterId, phase: Phase) -> int:
        return sum(fields["phase"] == phase for fields in self._slice_documents(cluster))

    def reason_count(self, cluster: ClusterId, reasons: Collection[Reason]) -> int:
        return sum(fields["reason"] in reasons for fields in self._slice_documents(cluster))

    def oldest_since(self, cluster: ClusterId, reasons: Collection[Reason]) -> datetime | None:
        found = (fields["since"] for fields in self._slice_documents(cluster) if fields["reason"] in reasons)
        return min(found, default=None)

    def hosts_digest(self, cluster: ClusterId) -> int:
        return self._sum(cluster, documents.HOSTS_DIGEST)

    def _sum(self, cluster: ClusterId, name: str, where: Callable[[Fields], bool] = lambda _: True) -> int:
        return sum(fields[name] for fields in self._slice_documents(cluster) if name in fields and where(fields))

    def _slice_documents(self, cluster: ClusterId) -> Iterator[Fields]:
        """Yield what the database counts and sums up, whether or not it can be read as a record."""
        self._answer()
        for place in self._in(documents.COLLECTIONS[SliceRecord]):
            fields = self._documents[place].fields
            if fields["cluster"] == cluster:
                yield fields

    def brake(self, cluster: ClusterId) -> Stored[Brake] | None:
        self._answer()
        return self._read(Brake, key(Brake, cluster))

    def ended_workloads(self, cluster: ClusterId, states: Collection[WorkloadState], since: datetime) -> int:
        self._answer()
        return sum(record.state in states and record.state_since >= since for record in self.jobset_records(cluster))

    def live_count(self, cluster: ClusterId) -> int:
        self._answer()
        return sum(record.live for record in self.jobset_records(cluster))

    def heartbeat(self, cluster: ClusterId) -> Stored[RelayHeartbeat] | None:
        self._answer()
        return self._one(RelayHeartbeat.of(cluster))

    def commit(self, *changes: Change) -> tuple[Revision, ...]:
        if self._meanwhile:
            self._meanwhile.popleft()()
        self._answer()
        with self._lock:
            written = dict(self._documents)
            revisions = tuple(self._apply(change, written) for change in changes)
            places = [documents.place_of(change) for change in changes if change.after]
            firestore_rules.check_commit(written[place].written.size for place in places)
            self._documents = written
            for change in changes:
                place = documents.place_of(change)
                if change.before is None or change.after is None:
                    self._unlist(place.collection)
                else:
                    self._rewritten.setdefault(place.collection, set()).add(place)
            self.commits.append(changes)
        if self._lost_answers:
            self._lost_answers -= 1
            raise Temporary("the answer to a commit was lost")
        return revisions

    def reject(self, rejection: RejectedMessage) -> None:
        self._answer()
        self.put_document(documents.rejection_key(rejection), documents.encode_rejection(rejection))
        self.rejections[rejection.message_id] = rejection


def _longest_due(
    records: Iterable[Stored[R]], now: datetime, when: Callable[[R], datetime | None]
) -> tuple[Stored[R], ...]:
    due = [(at, str(key_of(each.value)), each) for each in records if (at := when(each.value)) and at <= now]
    return tuple(each for *_, each in sorted(due, key=lambda item: item[:2]))


def _place_in_queue(record: SliceRecord) -> tuple[str, datetime, SliceId]:
    awaited = record.slot_awaited
    assert awaited is not None
    return awaited.queue, awaited.since, record.id
