"""The port `SliceStore` on Firestore.

Every write of a record is guarded by the update time of what was read. There are no read-write transactions: their
locks make other clients wait for 2 seconds, and for 60 if a client dies (measured on the emulator).
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

import structlog
from google.api_core.exceptions import (
    AlreadyExists,
    FailedPrecondition,
    GoogleAPIError,
    InvalidArgument,
    NotFound,
    ServiceUnavailable,
)
from google.api_core.retry import Retry, if_exception_type
from google.cloud.firestore import Client, DocumentReference, DocumentSnapshot, FieldFilter
from google.cloud.firestore_v1.query import Query as Asked
from google.cloud.firestore_v1.types import WriteResult

from tpu_slices.adapters.firestore_queries import (
    CLUSTERS,
    DUE_REPORTS,
    DUE_SLICES,
    DUE_WORKLOADS,
    EVERY_SLICE,
    HELD_IN_CLUSTER,
    HELD_IN_NAMESPACE,
    KEPT_SLICES,
    LIVE_WORKLOADS,
    QUEUED_SLICES,
    SLOTS,
    Query,
)
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.records import Phase, SliceRecord
from tpu_slices.domain.model.slices import ClusterId, SliceId, WorkloadUid
from tpu_slices.domain.model.workloads import WorkloadRecord
from tpu_slices.domain.reconciling.inventory import RelayHeartbeat
from tpu_slices.domain.reconciling.limiter import Budget, ConcurrencyLimiter, Slot
from tpu_slices.ports.errors import Permanent, StaleRecord, Temporary
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.ports.store import Change, Record, Rejection, Revision, Stored
from tpu_slices.wire.cluster_settings import accepted_key, decode_settings, pause_key, settings_key
from tpu_slices.wire.documents import Key, decode, encode, encode_rejection, key, place_of, rejection_key

R = TypeVar("R", bound=Record)
Name = TypeVar("Name", bound=str)
Snapshot = DocumentSnapshot[DocumentReference]

_LIVE = tuple(state.value for state in WorkloadState if not state.ended)
_KEPT = tuple(phase.value for phase in Phase if phase is not Phase.GONE)

_ONCE = Retry(if_exception_type(), timeout=None)
"""Disables the client's own retries."""

log = structlog.get_logger()


def connect(project: str) -> Client:
    """Return a client; with FIRESTORE_EMULATOR_HOST it uses the emulator."""
    return Client(project=project)


class FirestoreStore:
    """Firestore in native mode; each try of a call takes at most `timeout` seconds, and no retry starts after them."""

    def __init__(self, client: Client, *, timeout: float = 10.0, page: int = 300) -> None:
        self._client = client
        self._page = page
        self._timeout = timeout
        self._retry = Retry(if_exception_type(ServiceUnavailable), initial=0.1, maximum=1.0, timeout=timeout)

    def settings(self, cluster: ClusterId) -> ClusterSettings | None:
        places = (settings_key(cluster), accepted_key(cluster), pause_key(cluster))
        found = self._get(places)
        written, accepted, pause = (found.get(place) for place in places)
        if written is None:
            return None
        settings = _settings(cluster, written, accepted)
        return replace(settings, paused=str(_fields(pause).get("message"))) if pause else settings

    def clusters(self) -> tuple[ClusterId, ...]:
        return tuple(ClusterId(it.id) for it in self._read(self._asked(CLUSTERS).select([]).stream))

    def workloads(
        self, cluster: ClusterId, uids: Collection[WorkloadUid]
    ) -> Mapping[WorkloadUid, Stored[WorkloadRecord]]:
        return self._named(WorkloadRecord, cluster, uids)

    def slices(self, cluster: ClusterId, ids: Collection[SliceId]) -> Mapping[SliceId, Stored[SliceRecord]]:
        return self._named(SliceRecord, cluster, ids)

    def due_slices(self, now: datetime, most: int) -> tuple[SliceRecord, ...]:
        return self._first(SliceRecord, most, DUE_SLICES, now)

    def due_workloads(self, now: datetime, most: int) -> tuple[WorkloadRecord, ...]:
        return self._first(WorkloadRecord, most, DUE_WORKLOADS, now)

    def due_reports(self, now: datetime, most: int) -> tuple[WorkloadRecord, ...]:
        return self._first(WorkloadRecord, most, DUE_REPORTS, now)

    def queued_slices(self, cluster: ClusterId, most: int) -> tuple[SliceRecord, ...]:
        return self._first(SliceRecord, most, QUEUED_SLICES, cluster, Phase.QUEUED.value)

    def live_workloads(self, cluster: ClusterId) -> Iterator[Stored[WorkloadRecord]]:
        return self._every(WorkloadRecord, LIVE_WORKLOADS, cluster, _LIVE)

    def kept_slices(self, cluster: ClusterId) -> Iterator[Stored[SliceRecord]]:
        return self._every(SliceRecord, KEPT_SLICES, cluster, _KEPT)

    def every_slice(self, cluster: ClusterId) -> Iterator[Stored[SliceRecord]]:
        return self._every(SliceRecord, EVERY_SLICE, cluster)

    def slots(self, cluster: ClusterId) -> tuple[Stored[Slot], ...]:
        return tuple(self._every(Slot, SLOTS, cluster))

    def limiter(self, cluster: ClusterId) -> Stored[ConcurrencyLimiter] | None:
        return self._one(ConcurrencyLimiter, cluster)

    def budget(self, cluster: ClusterId) -> Stored[Budget] | None:
        return self._one(Budget, cluster)

    def chips_held(self, cluster: ClusterId, namespace: str | None = None) -> int:
        if namespace is None:
            return self._sum(HELD_IN_CLUSTER, cluster)
        return self._sum(HELD_IN_NAMESPACE, cluster, namespace)

    def heartbeat(self, cluster: ClusterId) -> Stored[RelayHeartbeat] | None:
        return self._one(RelayHeartbeat, cluster)

    def commit(self, *changes: Change) -> tuple[Revision, ...]:
        batch = self._client.batch()
        for change in changes:
            reference = self._reference(place_of(change))
            match change:
                case Change(None, after) if after:
                    batch.create(reference, encode(after))
                case Change(before, None) if before:
                    batch.delete(reference, option=self._unchanged(before))
                case Change(before, after) if before and after:
                    # Each field is replaced as a whole, so that removed map entries are gone; unknown fields stay.
                    batch.update(reference, encode(after), option=self._unchanged(before))
        with classified_errors():
            try:
                results = batch.commit(retry=self._retry, timeout=self._timeout)
            except (AlreadyExists, FailedPrecondition, NotFound) as stale:
                raise StaleRecord(stale.message) from stale
        return tuple(
            _revision(result) if change.after else Revision("") for change, result in zip(changes, results, strict=True)
        )

    def reject(self, rejection: Rejection) -> None:
        with classified_errors():
            place, document = rejection_key(rejection), encode_rejection(rejection)
            self._reference(place).set(document, retry=self._retry, timeout=self._timeout)

    def _reference(self, place: Key) -> DocumentReference:
        return self._client.document(place.collection, place.id)

    def _unchanged(self, before: Stored[Record]) -> Any:
        return self._client.write_option(last_update_time=datetime.fromisoformat(before.revision))

    def _get(self, places: Collection[Key]) -> dict[Key, Snapshot]:
        """Return these documents, read in one call, without those that do not exist."""
        if not places:
            return {}
        asked = {self._reference(place).path: place for place in places}
        found = self._read(functools.partial(self._client.get_all, [self._reference(place) for place in places]))
        return {asked[snapshot.reference.path]: snapshot for snapshot in found if snapshot.exists}

    def _one(self, kind: type[R], cluster: ClusterId) -> Stored[R] | None:
        found = self._get([key(kind, cluster)])
        return next((_stored(kind, it) for it in found.values()), None)

    def _named(self, kind: type[R], cluster: ClusterId, names: Collection[Name]) -> dict[Name, Stored[R]]:
        places = {name: key(kind, cluster, name) for name in names}
        found = self._get(places.values())
        return {name: _stored(kind, found[place]) for name, place in places.items() if place in found}

    def _first(self, kind: type[R], most: int, query: Query, *values: object) -> tuple[R, ...]:
        found = self._read(self._asked(query, *values).limit(most).stream)
        return tuple(stored.value for stored in _readable(kind, found))

    def _every(self, kind: type[R], query: Query, *values: object) -> Iterator[Stored[R]]:
        """Yield every result, read page by page: the timeout would cut off a stream that is consumed slowly."""
        page = asked = self._asked(query, *values).limit(self._page)
        while found := self._read(page.stream):
            yield from _readable(kind, found)
            page = asked.start_after(found[-1])

    def _sum(self, query: Query, *values: object) -> int:
        """Return the sum, computed by the server, of the field that the query sorts by."""
        summed: Any = self._asked(query, *values).sum(query.order)  # the client's type hints do not match its result
        with classified_errors():
            ((answer,),) = self._retry(lambda: summed.get(retry=_ONCE, timeout=self._timeout))()
        return int(answer.value)

    def _asked(self, query: Query, *values: object) -> Asked:
        asked = self._client.collection(query.collection).order_by(query.order)
        for (field, operator), value in zip(query.where, values, strict=True):
            asked = asked.where(filter=FieldFilter(field, operator, value))
        return asked

    def _read(self, answers: Callable[..., Iterable[Snapshot]]) -> list[Snapshot]:
        """Return all results; if the stream breaks off, read it again from the start.

        The client's own retry of a query that broke off before its first document raises TypeError (version 2.34).
        """
        with classified_errors():
            return self._retry(lambda: list(answers(retry=_ONCE, timeout=self._timeout)))()


@contextlib.contextmanager
def classified_errors() -> Iterator[None]:
    """Raise Permanent for what can never be stored, and Temporary for every other error of Firestore.

    A missing permission, and a database or an index that does not exist yet, are Temporary: nothing is wrong with the
    message, and operators can correct them.
    """
    try:
        yield
    except InvalidArgument as refused:
        raise Permanent(f"Firestore: {refused.message}") from refused
    except GoogleAPIError as error:
        raise Temporary(f"Firestore: {error}") from error


def _settings(cluster: ClusterId, written: Snapshot, accepted: Snapshot | None) -> ClusterSettings:
    """Return the written settings or, if invalid, the last accepted ones; raise Permanent if there are none."""
    try:
        return decode_settings(cluster, _fields(written), _revision(written))
    except Permanent as problem:
        if accepted is None:
            raise
        log.error(LogEvent.SETTINGS_UNREADABLE, cluster=cluster, error=str(problem))  # noqa: TRY400 - not a bug
        return decode_settings(cluster, _fields(accepted), _revision(accepted))


def _readable(kind: type[R], found: Iterable[Snapshot]) -> Iterator[Stored[R]]:
    for snapshot in found:
        try:
            yield _stored(kind, snapshot)
        except Permanent as problem:
            path = snapshot.reference.path
            log.error(LogEvent.DOCUMENT_UNREADABLE, document=path, error=str(problem))  # noqa: TRY400 - not a bug


def _stored(kind: type[R], snapshot: Snapshot) -> Stored[R]:
    return Stored(decode(kind, _fields(snapshot)), _revision(snapshot))


def _revision(written: Snapshot | WriteResult) -> Revision:
    """Return the update time, which Firestore keeps in microseconds (google.firestore.v1 Precondition.update_time)."""
    return Revision(written.update_time.isoformat())


def _fields(snapshot: Snapshot) -> dict[str, Any]:
    return {name: _plain(value) for name, value in (snapshot.to_dict() or {}).items()}


def _plain(value: Any) -> Any:
    """Return the value with the standard library's datetimes: the client's have nanoseconds, which are never stored."""
    match value:
        case dict():
            return {name: _plain(member) for name, member in value.items()}
        case list():
            return [_plain(member) for member in value]
        case datetime():
            return datetime.combine(value.date(), value.timetz())
        case _:
            return value
