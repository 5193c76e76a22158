"""Documents in memory, with buttons for what goes wrong and for what others write."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.slices import ClaimId, ClusterId, SliceId
from tpu_slices.domain.records.rejected import RejectedMessage
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.ports.errors import Permanent, StaleRecord, Temporary
from tpu_slices.ports.store import Change, Found, Record, Revision, Stored
from tpu_slices.wire import documents
from tpu_slices.wire.cluster_settings import encode_settings, settings_key
from tpu_slices.wire.documents import Fields, Key, decode_at, encode, encode_change, is_whole, key, key_of
from tpu_slices_simulator.fakes import firestore_rules
from tpu_slices_simulator.fakes.firestore_rules import Written

R = TypeVar("R", bound=Record)
N = TypeVar("N", bound=str)
T = TypeVar("T")
_LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


class Misread(BaseException):
    """A document does not say what was written. No flow may take it for its own error."""


@dataclass(frozen=True, slots=True)
class KeptDocument:
    written: Written
    revision: Revision
    record: Record | None = None
    """What was written, if it was by a commit."""
    is_sample: bool = False
    """Whether that is encoded whole, and decoded."""

    @property
    def fields(self) -> Fields:
        return self.written.fields


@dataclass(slots=True)
class FakeDocuments:
    """Buttons: `unavailable`, `fail_next`, `lose_next_answer`, `meanwhile`."""

    commits: list[tuple[Change, ...]] = field(default_factory=list)
    """Every commit that was written, oldest first."""
    rejections: dict[str, RejectedMessage] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    """Documents that could not be read, and why."""
    unavailable: bool = False
    """While set, every call is Temporary."""
    read_every: int = 1
    """One of so many revisions that are committed is encoded whole, and decoded when it is read, and compared.

    Of the others only what changed is encoded, and they are read as they were written. What was not committed, as an
    edit, is always decoded. 1: everything is, and nothing compared.
    """
    _documents: dict[Key, KeptDocument] = field(default_factory=dict)
    _places: dict[str, tuple[Key, ...]] = field(default_factory=dict)
    """By collection, the keys of its documents, until one comes or goes."""
    _decoded: dict[Revision, Stored[Any]] = field(default_factory=dict)
    _listed: dict[tuple[str, ClusterId], dict[Key, Stored[Any]]] = field(default_factory=dict)
    """By collection and cluster, until a document comes or goes."""
    _rewritten: dict[str, set[Key]] = field(default_factory=dict)
    """By collection, documents that were written since they were listed."""
    _answers: dict[str, dict[Hashable, Any]] = field(default_factory=dict)
    """By collection and question, what was computed of its documents, until one is written."""
    _claims: dict[ClaimId, set[Key]] | None = None
    """The slices of each claim; None: to be found anew."""
    _settings: dict[Revision, ClusterSettings | Permanent] = field(default_factory=dict)
    """What settings are, or why they are none."""
    _failures: deque[Exception] = field(default_factory=deque)
    _meanwhile: deque[Callable[[], object]] = field(default_factory=deque)
    _lost_answers: int = 0
    _revisions: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _lock: threading.RLock = field(default_factory=threading.RLock)

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
        written = firestore_rules.stored(place, fields)
        with self._lock:
            self._documents = {**self._documents, place: KeptDocument(written, self._next_revision())}
            self._claims = None
            self._unlist(place.collection)

    def remove_document(self, place: Key) -> None:
        with self._lock:
            self._documents = {known: it for known, it in self._documents.items() if known != place}
            self._claims = None
            self._unlist(place.collection)

    def backup(self) -> Mapping[Key, Fields]:
        """Return all documents as they are now, as a point in time to which Firestore can set a database back."""
        return {place: kept.fields for place, kept in self._documents.items()}

    def set_back(self, backup: Mapping[Key, Fields]) -> None:
        """Let all documents be as they were then, and those be gone that came since."""
        for place in self.places() - backup.keys():
            self.remove_document(place)
        for place, fields in backup.items():
            if self.document(place) != fields:
                self.put_document(place, fields)

    # What a test looks at

    def document(self, place: Key) -> Fields | None:
        found = self._documents.get(place)
        return found.fields if found else None

    def revision(self, place: Key) -> Revision | None:
        found = self._documents.get(place)
        return found.revision if found else None

    def size(self, place: Key) -> int:
        """Return the bytes of a document, as Firestore counts them."""
        return self._documents[place].written.size

    def places(self) -> frozenset[Key]:
        """Return the keys of all documents."""
        return frozenset(self._documents)

    def slice_records(self, cluster: ClusterId) -> tuple[SliceRecord, ...]:
        """Return every slice of a cluster, GONE ones too, by id."""
        return self._computed(SliceRecord, ("records", cluster), lambda: values(self._of(cluster, SliceRecord)))

    def jobset_records(self, cluster: ClusterId) -> tuple[WorkloadRecord, ...]:
        """Return the workload records of a cluster, tombstones too, by UID."""
        return self._computed(WorkloadRecord, ("records", cluster), lambda: values(self._of(cluster, WorkloadRecord)))

    def _answer(self) -> None:
        if self.unavailable:
            raise Temporary("the store is unavailable")
        if self._failures:
            raise self._failures.popleft()

    def _read(self, kind: type[R], place: Key) -> Stored[R] | None:
        document = self._documents.get(place)
        if document is None or document.revision in self._decoded:
            return self._decoded[document.revision] if document else None
        whole = is_whole(kind, document.fields)
        return self._decoded.setdefault(
            document.revision, Stored(self._record(kind, place, document), document.revision, whole)
        )

    def _record(self, kind: type[R], place: Key, document: KeptDocument) -> R:
        if document.record is not None and self.read_every > 1:
            return self._as_written(kind, place, document, cast("R", document.record))
        try:
            return decode_at(kind, place, document.fields)
        except Permanent as problem:
            self.unreadable[str(place)] = str(problem)
            raise

    def _as_written(self, kind: type[R], place: Key, document: KeptDocument, record: R) -> R:
        """Return the record that was written; if this is a sample, its document has to say the same."""
        if not document.is_sample:
            return record
        try:
            read = decode_at(kind, place, document.fields)
        except Permanent as problem:
            raise Misread(f"{place} cannot be read: {problem}; it was written as {record}") from problem
        if read != record:
            raise Misread(f"{place} is read as {read}, and was written as {record}")
        return record

    def _one(self, kind: type[R], cluster: ClusterId, new: Callable[[ClusterId], R]) -> Stored[R] | None:
        """Return the record of which a cluster has one; a new one in the place of one that cannot be read."""
        with suppress(Permanent):
            return self._read(kind, key(kind, cluster))
        return Stored(new(cluster), self._documents[key(kind, cluster)].revision)

    def _named(self, kind: type[R], cluster: ClusterId, names: Collection[N]) -> Found[N, R]:
        records: dict[N, Stored[R]] = {}
        unreadable: dict[N, str] = {}
        in_order = names if isinstance(names, Sequence) else sorted(names)  # so that a story goes alike each time
        for name, place in {name: key(kind, cluster, name) for name in in_order}.items():
            try:
                if stored := self._read(kind, place):
                    records[name] = stored
            except Permanent as problem:
                unreadable[name] = str(problem)
        return Found(records, unreadable)

    def _having(self, cluster: ClusterId, claims: Collection[ClaimId]) -> Found[ClaimId, SliceRecord]:
        records: dict[ClaimId, Stored[SliceRecord]] = {}
        unreadable: dict[ClaimId, str] = {}
        of_claim = self._slices_of_claims()
        for claim in sorted(claims):
            places = sorted((it for it in of_claim.get(claim, ()) if it.id.startswith(f"{cluster}.")), key=str)
            if len(places) > 1:
                unreadable[claim] = f"{places[1]}: claimed_by: {places[0]} has the same: correct one of them"
                continue
            try:
                records.update((claim, stored) for place in places if (stored := self._read(SliceRecord, place)))
            except Permanent as problem:
                unreadable[claim] = str(problem)
        return Found(records, unreadable)

    def _slices_of_claims(self) -> dict[ClaimId, set[Key]]:
        if self._claims is None:
            self._claims = {}
            for place in self._in(documents.COLLECTIONS[SliceRecord]):
                if claim := self._documents[place].fields.get("claimed_by"):
                    self._claims.setdefault(claim, set()).add(place)
        return self._claims

    def _claim(self, change: Change, place: Key) -> None:
        """Note which claim has a slice after a change of it."""
        before, after = change.before and change.before.value, change.after
        had = before.claimed_by if isinstance(before, SliceRecord) else None
        has = after.claimed_by if isinstance(after, SliceRecord) else None
        if self._claims is not None and had != has:
            if had is not None:
                self._claims[had].discard(place)
            if has is not None:
                self._claims.setdefault(has, set()).add(place)

    def _matching(self, kind: type[R], where: Callable[[Fields], bool]) -> list[Key]:
        return [place for place in self._in(documents.COLLECTIONS[kind]) if where(self._documents[place].fields)]

    def _in(self, collection: str) -> tuple[Key, ...]:
        """Return the keys of a collection, in order."""
        if collection not in self._places:
            places = (place for place in self._documents if place.collection == collection)
            self._places[collection] = tuple(sorted(places, key=str))
        return self._places[collection]

    def _all(self, kind: type[R], where: Callable[[Fields], bool] | None = None) -> Iterator[Stored[R]]:
        for place in self._matching(kind, where) if where else self._in(documents.COLLECTIONS[kind]):
            with suppress(Permanent):
                if stored := self._read(kind, place):
                    yield stored

    def _of(self, cluster: ClusterId, kind: type[R]) -> list[Stored[R]]:
        collection = documents.COLLECTIONS[kind]
        for place in self._rewritten.pop(collection, ()):
            stored = self._read(kind, place)
            for (where, _), listed in self._listed.items():
                if where == collection and place in listed and stored:
                    listed[place] = stored
        if (collection, cluster) not in self._listed:
            found = (stored for stored in self._all(kind) if stored.value.cluster == cluster)
            self._listed[collection, cluster] = {key_of(stored.value): stored for stored in found}
        return list(self._listed[collection, cluster].values())

    def _computed(self, kind: type[R], question: Hashable, compute: Callable[[], T]) -> T:
        """Return what a question about a collection computes, once for all who ask it until a document is written."""
        answers = self._answers.setdefault(documents.COLLECTIONS[kind], {})
        if question not in answers:
            answers[question] = compute()
        return cast("T", answers[question])

    def _unlist(self, collection: str) -> None:
        """Forget what was listed of a collection."""
        self._answers.pop(collection, None)
        self._places.pop(collection, None)
        self._rewritten.pop(collection, None)
        self._listed = {where: listed for where, listed in self._listed.items() if where[0] != collection}

    def _apply(self, change: Change, place: Key, written: dict[Key, KeptDocument]) -> Revision:
        there = written.get(place)
        if (there and there.revision) != (change.before and change.before.revision):
            raise StaleRecord(f"{place} was written since it was read")
        if change.after is None:
            del written[place]
            return Revision("")
        revision = self._next_revision()
        is_sample = int(revision.rpartition("-")[2]) % self.read_every == 0
        fields = self._encoded(change, there, whole=is_sample)
        now = firestore_rules.stored(place, fields, there.written if there else None)
        if there is None or now is not there.written:  # a write that changes nothing is no new revision, as there
            written[place] = KeptDocument(now, revision, change.after, is_sample=is_sample)
        return written[place].revision

    def _encoded(self, change: Change, there: KeptDocument | None, *, whole: bool) -> Fields:
        """Return the fields that are written: those that differ, if what is there was written from what was read."""
        before, after = change.before and change.before.value, change.after
        assert after is not None
        if before is None or there is None or there.record is not before:
            return encode(after)
        changed = encode_change(before, after)
        if not whole:
            return changed
        fields = encode(after)
        if {**there.fields, **changed} != {**there.fields, **fields}:
            raise Misread(f"{before} is changed to {after} by {changed}")
        return fields

    def _next_revision(self) -> Revision:
        return Revision(f"edition-{next(self._revisions)}")


def values(found: Iterable[Stored[R]]) -> tuple[R, ...]:
    return tuple(stored.value for stored in found)
