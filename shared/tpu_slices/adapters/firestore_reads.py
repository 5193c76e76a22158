"""Reads of Firestore: documents by name, queries in pages, and what the server adds up."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from google.api_core.exceptions import ServiceUnavailable
from google.api_core.retry import Retry, if_exception_type
from google.cloud.firestore import Client, DocumentReference, FieldFilter
from google.cloud.firestore_v1.query import Query as Asked

from tpu_slices.adapters.firestore_documents import (
    Snapshot,
    classified_errors,
    fields_of,
    readable,
    revision_of,
    stored,
)
from tpu_slices.adapters.firestore_queries import (
    Query,
)
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import ClaimId, ClusterId
from tpu_slices.domain.records.awaited import PoolOperation
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.ports.errors import Permanent
from tpu_slices.ports.store import Found, Record, Stored
from tpu_slices.wire.documents import (
    Key,
    key,
    key_of,
)

R = TypeVar("R", bound=Record)
N = TypeVar("N", bound=str)

_CREATE, _DELETE = PoolOperation.CREATE.value, PoolOperation.DELETE.value
_LIVE = tuple(state.value for state in WorkloadState if not state.ended)
_KEPT = tuple(phase.value for phase in Phase if phase is not Phase.GONE)

_LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)

_ONCE = Retry(if_exception_type(), timeout=None)
"""Disables the client's own retries."""


def one(found: Mapping[Key, Snapshot], new: R) -> Stored[R] | None:
    """Return the record of which each cluster has one; `new` in place of one that cannot be parsed."""
    snapshot = found.get(key_of(new))
    if snapshot is None:
        return None
    with contextlib.suppress(Permanent):
        return stored(type(new), snapshot)
    return Stored(new, revision_of(snapshot), is_whole=False)


def named(found: Mapping[Key, Snapshot], kind: type[R], cluster: ClusterId, names: Collection[N]) -> Found[N, R]:
    """Return the records of these names among documents that were read."""
    records: dict[N, Stored[R]] = {}
    unreadable: dict[N, str] = {}
    for name in names:
        snapshot = found.get(key(kind, cluster, name))
        if snapshot is None:
            continue
        try:
            records[name] = stored(kind, snapshot)
        except Permanent as problem:
            unreadable[name] = str(problem)
    return Found(records, unreadable)


def by_claim(found: Iterable[Snapshot], cluster: ClusterId) -> Found[ClaimId, SliceRecord]:
    """Return the records of slices by the claims that have them; two of one claim count as unreadable."""
    records: dict[ClaimId, Stored[SliceRecord]] = {}
    unreadable: dict[ClaimId, str] = {}
    places: dict[ClaimId, str] = {}
    for snapshot in found:
        claim, place = ClaimId(snapshot.get("claimed_by")), snapshot.reference.path
        if not snapshot.id.startswith(f"{cluster}."):
            continue
        if claim in places:
            records.pop(claim, None)
            unreadable[claim] = f"{place}: claimed_by: {places[claim]} has the same: correct one of them"
            continue
        places[claim] = place
        try:
            records[claim] = stored(SliceRecord, snapshot)
        except Permanent as problem:
            unreadable[claim] = str(problem)
    return Found(records, unreadable)


class FirestoreReads:
    """Each try of a call takes at most `timeout` seconds, and no retry starts after them."""

    def __init__(self, client: Client, *, timeout: float = 10.0, page: int = 300) -> None:
        self._client = client
        self._page = page
        self._timeout = timeout
        self._retry = Retry(if_exception_type(ServiceUnavailable), initial=0.1, maximum=1.0, timeout=timeout)

    def _reference(self, place: Key) -> DocumentReference:
        return self._client.document(place.collection, place.id)

    def _get(self, places: Collection[Key]) -> dict[Key, Snapshot]:
        """Return these documents, read in one call, without those that do not exist."""
        if not places:
            return {}
        asked = {self._reference(place).path: place for place in places}
        found = self._read(functools.partial(self._client.get_all, [self._reference(place) for place in places]))
        return {asked[snapshot.reference.path]: snapshot for snapshot in found if snapshot.exists}

    def _head(self, query: Query, *values: object) -> dict[str, Any] | None:
        """Return the first result's values of the fields that the query sorts by, or None if there is no result."""
        found = self._read(self._asked(query, *values).select([query.order, *query.then]).limit(1).stream)
        return fields_of(found[0]) if found else None

    def _leading(self, kind: type[R], most: int, asked: Asked) -> tuple[Stored[R], ...]:
        """Return the first results that can be parsed; those that cannot do not hide those behind them."""
        return tuple(itertools.islice(self._pages(kind, min(most, self._page), asked), most))

    def _every(self, kind: type[R], query: Query, *values: object) -> Iterator[Stored[R]]:
        return self._pages(kind, self._page, self._asked(query, *values))

    def _pages(self, kind: type[R], size: int, asked: Asked) -> Iterator[Stored[R]]:
        """Yield every result, read page by page: the timeout would cut off a stream that is consumed slowly."""
        for page in self._read_pages(asked, size):
            yield from readable(kind, page)

    def _snapshots(self, asked: Asked, size: int, after: dict[str, Any] | None = None) -> Iterator[Snapshot]:
        return itertools.chain.from_iterable(self._read_pages(asked, size, after))

    def _read_pages(self, asked: Asked, size: int, after: dict[str, Any] | None = None) -> Iterator[list[Snapshot]]:
        asked = asked.limit(size)
        page = asked.start_after(after) if after is not None else asked
        while found := self._read(page.stream):
            yield found
            if len(found) < size:
                return
            page = asked.start_after(found[-1])

    def _sum(self, query: Query, *values: object) -> int:
        """Return the sum of the field that the query sorts by."""
        (total,) = self._sums(query, *values)
        return total

    def _sums(self, query: Query, *values: object) -> list[int]:
        """Return the sum of each field that the query sorts by, in their order."""
        asked: Any = self._asked(query, *values)
        for field in (query.order, *query.then):
            asked = asked.sum(field, alias=field)
        totals = self._aggregated(asked)
        return [totals[field] for field in (query.order, *query.then)]

    def _count(self, query: Query, *values: object, most: int | None = None) -> int:
        """Return how many documents match; with `most`, no more are counted."""
        asked = self._asked(query, *values)
        (number,) = self._aggregated((asked.limit(most) if most is not None else asked).count()).values()
        return number

    def _aggregated(self, asked: Any) -> Mapping[str, int]:  # the client's type hints do not match its result
        """Return numbers that the server computes, by their aliases."""
        with classified_errors():
            (answers,) = self._retry(lambda: asked.get(retry=_ONCE, timeout=self._timeout))()
        return {each.alias: int(each.value) for each in answers}

    def _asked(self, query: Query, *values: object) -> Asked:
        asked = self._client.collection(query.collection).order_by(query.order)
        for field in query.then:
            asked = asked.order_by(field)
        for (field, operator), value in zip(query.where, values, strict=True):
            asked = asked.where(filter=FieldFilter(field, operator, value))
        return asked

    def _read(self, answers: Callable[..., Iterable[Snapshot]]) -> list[Snapshot]:
        """Return all results; if the stream breaks off, read it again from the start.

        The client's own retry of a query that broke off before its first document raises TypeError (version 2.34).
        """
        with classified_errors():
            return self._retry(lambda: list(answers(retry=_ONCE, timeout=self._timeout)))()
