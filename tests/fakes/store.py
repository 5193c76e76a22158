"""The store in memory, with the contract of the real one; commits are kept for tests to look at.

Values are kept as documents: what the wire format cannot hold is lost.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.records import Phase, SliceRecord
from tpu_slices.domain.model.slices import ClusterId, SliceId, WorkloadUid
from tpu_slices.domain.model.workloads import WorkloadRecord
from tpu_slices.domain.reconciling.inventory import RelayHeartbeat
from tpu_slices.domain.reconciling.limiter import Budget, ConcurrencyLimiter, Slot
from tpu_slices.ports.errors import Permanent, StaleRecord, Temporary
from tpu_slices.ports.store import Change, Record, Rejection, Revision, Stored
from tpu_slices.wire.cluster_settings import accepted_key, decode_settings, encode_settings, pause_key, settings_key
from tpu_slices.wire.documents import (
    COLLECTIONS,
    Fields,
    Key,
    decode,
    encode,
    encode_rejection,
    key,
    key_of,
    place_of,
    rejection_key,
)

R = TypeVar("R", bound=Record)
Due = TypeVar("Due", SliceRecord, WorkloadRecord)


@dataclass(frozen=True, slots=True)
class _Document:
    fields: Fields
    revision: Revision


@dataclass(slots=True)
class FakeStore:
    """The port `SliceStore`. Buttons: `unavailable`, `fail_next`, `lose_next_answer`, `meanwhile`."""

    commits: list[tuple[Change, ...]] = field(default_factory=list)
    """Every commit that was written, oldest first."""
    rejections: dict[str, Rejection] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    """Documents that were left out of a list, and why."""
    unavailable: bool = False
    """While set, every call is Temporary."""
    _documents: dict[Key, _Document] = field(default_factory=dict)
    _failures: deque[Exception] = field(default_factory=deque)
    _meanwhile: deque[Callable[[], object]] = field(default_factory=deque)
    _lost_answers: int = 0
    _revisions: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _lock: threading.RLock = field(default_factory=threading.RLock)

    # What the port promises

    def settings(self, cluster: ClusterId) -> ClusterSettings | None:
        self._answer()
        written, accepted = (self._documents.get(place) for place in (settings_key(cluster), accepted_key(cluster)))
        if written is None:
            return None
        try:
            settings = decode_settings(cluster, written.fields, written.revision)
        except Permanent as problem:
            if accepted is None:
                raise
            self.unreadable[str(settings_key(cluster))] = str(problem)
            settings = decode_settings(cluster, accepted.fields, accepted.revision)
        pause = self._documents.get(pause_key(cluster))
        return replace(settings, paused=pause.fields["message"]) if pause else settings

    def clusters(self) -> tuple[ClusterId, ...]:
        self._answer()
        return tuple(sorted(ClusterId(known.id) for known in self._documents if known.collection == "clusters"))

    def workloads(
        self, cluster: ClusterId, uids: Collection[WorkloadUid]
    ) -> Mapping[WorkloadUid, Stored[WorkloadRecord]]:
        self._answer()
        found = ((uid, self._read(WorkloadRecord, key(WorkloadRecord, cluster, uid))) for uid in uids)
        return {uid: stored for uid, stored in found if stored}

    def slices(self, cluster: ClusterId, ids: Collection[SliceId]) -> Mapping[SliceId, Stored[SliceRecord]]:
        self._answer()
        found = ((id_, self._read(SliceRecord, key(SliceRecord, cluster, id_))) for id_ in ids)
        return {id_: stored for id_, stored in found if stored}

    def due_slices(self, now: datetime, most: int) -> tuple[SliceRecord, ...]:
        self._answer()
        return _longest_due((stored.value for stored in self._all(SliceRecord)), now, most)

    def due_workloads(self, now: datetime, most: int) -> tuple[WorkloadRecord, ...]:
        self._answer()
        return _longest_due((stored.value for stored in self._all(WorkloadRecord)), now, most)

    def due_reports(self, now: datetime, most: int) -> tuple[WorkloadRecord, ...]:
        self._answer()
        every = (stored.value for stored in self._all(WorkloadRecord))
        due = [(at, record.owner.uid, record) for record in every if (at := record.next_report_at) and at <= now]
        return tuple(record for *_, record in sorted(due, key=lambda it: it[:2]))[:most]

    def queued_slices(self, cluster: ClusterId, most: int) -> tuple[SliceRecord, ...]:
        self._answer()
        queued = [record for record in self.slice_records(cluster) if record.phase is Phase.QUEUED]
        return tuple(sorted(queued, key=lambda record: (record.since, record.id)))[:most]

    def live_workloads(self, cluster: ClusterId) -> Iterator[Stored[WorkloadRecord]]:
        self._answer()
        every = tuple(self._all(WorkloadRecord))
        return (stored for stored in every if stored.value.cluster == cluster and stored.value.live)

    def kept_slices(self, cluster: ClusterId) -> Iterator[Stored[SliceRecord]]:
        self._answer()
        every = tuple(self._all(SliceRecord))
        return (stored for stored in every if stored.value.cluster == cluster and stored.value.phase is not Phase.GONE)

    def every_slice(self, cluster: ClusterId) -> Iterator[Stored[SliceRecord]]:
        self._answer()
        every = tuple(self._all(SliceRecord))
        return (stored for stored in every if stored.value.cluster == cluster)

    def slots(self, cluster: ClusterId) -> tuple[Stored[Slot], ...]:
        self._answer()
        taken = [stored for stored in self._all(Slot) if stored.value.cluster == cluster]
        return tuple(sorted(taken, key=lambda stored: stored.value.number))

    def limiter(self, cluster: ClusterId) -> Stored[ConcurrencyLimiter] | None:
        self._answer()
        return self._read(ConcurrencyLimiter, key(ConcurrencyLimiter, cluster))

    def budget(self, cluster: ClusterId) -> Stored[Budget] | None:
        self._answer()
        return self._read(Budget, key(Budget, cluster))

    def chips_held(self, cluster: ClusterId, namespace: str | None = None) -> int:
        self._answer()
        records = self.slice_records(cluster)
        return sum(record.chips_held for record in records if namespace in {None, record.owner.namespace})

    def heartbeat(self, cluster: ClusterId) -> Stored[RelayHeartbeat] | None:
        self._answer()
        return self._read(RelayHeartbeat, key(RelayHeartbeat, cluster))

    def commit(self, *changes: Change) -> tuple[Revision, ...]:
        if self._meanwhile:
            self._meanwhile.popleft()()
        self._answer()
        with self._lock:
            documents = dict(self._documents)
            revisions = tuple(self._apply(change, documents) for change in changes)
            self._documents = documents
            self.commits.append(changes)
        if self._lost_answers:
            self._lost_answers -= 1
            raise Temporary("the answer to a commit was lost")
        return revisions

    def reject(self, rejection: Rejection) -> None:
        self._answer()
        self.rejections[rejection.message_id] = rejection
        self.put_document(rejection_key(rejection), encode_rejection(rejection))

    # Buttons

    def fail_next(self, *errors: Exception) -> None:
        """Let the next calls raise these, one each, without any effect."""
        self._failures.extend(errors)

    def lose_next_answer(self) -> None:
        """Let the next commit be written, and its answer be lost."""
        self._lost_answers += 1

    def meanwhile(self, *acts: Callable[[], object]) -> None:
        """Let somebody else do this right before the next commits, one each."""
        self._meanwhile.extend(acts)

    # What operators and other processes do

    def put(self, *records: Record) -> None:
        """Write these records over whatever is there; `commits` does not show it."""
        for record in records:
            self.put_document(key_of(record), encode(record))

    def put_settings(self, settings: ClusterSettings) -> None:
        """Write a cluster's settings as an operator would: they get a new version, whatever theirs says."""
        self.put_document(settings_key(settings.cluster), encode_settings(settings))

    def edit_slice(self, cluster: ClusterId, id_: SliceId, **fields: Any) -> None:
        """Change fields of a slice's document in the console: `hold`, `release_requested`, `note`."""
        place = key(SliceRecord, cluster, id_)
        with self._lock:
            self.put_document(place, {**self._documents[place].fields, **fields})

    def put_document(self, place: Key, fields: Fields) -> None:
        with self._lock:
            self._documents = {**self._documents, place: _Document(fields, self._next_revision())}

    def remove_document(self, place: Key) -> None:
        with self._lock:
            self._documents = {known: it for known, it in self._documents.items() if known != place}

    # What a test looks at

    def document(self, place: Key) -> Fields | None:
        found = self._documents.get(place)
        return found.fields if found else None

    def revision(self, place: Key) -> Revision | None:
        found = self._documents.get(place)
        return found.revision if found else None

    def slice_records(self, cluster: ClusterId) -> tuple[SliceRecord, ...]:
        """Return every slice of a cluster, GONE ones too, by id."""
        return tuple(stored.value for stored in self._all(SliceRecord) if stored.value.cluster == cluster)

    def jobset_records(self, cluster: ClusterId) -> tuple[WorkloadRecord, ...]:
        """Return the workload records of a cluster, tombstones too, by UID."""
        return tuple(stored.value for stored in self._all(WorkloadRecord) if stored.value.cluster == cluster)

    def _answer(self) -> None:
        if self.unavailable:
            raise Temporary("the store is unavailable")
        if self._failures:
            raise self._failures.popleft()

    def _read(self, kind: type[R], place: Key) -> Stored[R] | None:
        document = self._documents.get(place)
        return Stored(decode(kind, document.fields), document.revision) if document else None

    def _all(self, kind: type[R]) -> Iterator[Stored[R]]:
        for place, document in sorted(self._documents.items(), key=lambda item: item[0].id):
            if place.collection == COLLECTIONS[kind]:
                try:
                    yield Stored(decode(kind, document.fields), document.revision)
                except Permanent as problem:
                    self.unreadable[str(place)] = str(problem)

    def _apply(self, change: Change, documents: dict[Key, _Document]) -> Revision:
        place = place_of(change)
        there = documents.get(place)
        if (there and there.revision) != (change.before and change.before.revision):
            raise StaleRecord(f"{place} was written since it was read")
        if change.after is None:
            del documents[place]
            return Revision("")
        unknown = there.fields if there else {}
        fields = {**unknown, **encode(change.after)}
        if there is None or fields != there.fields:  # as in Firestore: a write that changes nothing is no new revision
            documents[place] = _Document(fields, self._next_revision())
        return documents[place].revision

    def _next_revision(self) -> Revision:
        return Revision(f"edition-{next(self._revisions)}")


def _longest_due(records: Iterable[Due], now: datetime, most: int) -> tuple[Due, ...]:
    due = [
        (record.next_reconcile_at, str(key_of(record)), record)
        for record in records
        if record.next_reconcile_at and record.next_reconcile_at <= now
    ]
    return tuple(record for *_, record in sorted(due, key=lambda item: item[:2])[:most])
