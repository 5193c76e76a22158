"""Firestore's documents as records and settings, and Firestore's errors as ours."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, TypeVar

import structlog
from google.api_core.exceptions import GoogleAPIError, InvalidArgument
from google.cloud.firestore import DocumentReference, DocumentSnapshot
from google.cloud.firestore_v1.types import WriteResult

from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.ports.store import Record, Revision, Stored
from tpu_slices.wire.documents import Key, decode_at, is_whole

R = TypeVar("R", bound=Record)
Snapshot = DocumentSnapshot[DocumentReference]

log = structlog.get_logger()


@contextlib.contextmanager
def classified_errors() -> Iterator[None]:
    """Raise Permanent for what can never be stored, and Temporary for every other error of Firestore.

    The client itself refuses numbers of more than 64 bits and text that is not UTF-8, with a ValueError. A missing
    permission, and a database or an index that does not exist yet, are Temporary: nothing is wrong with the message,
    and operators can correct them.
    """
    try:
        yield
    except (InvalidArgument, ValueError) as refused:
        raise Permanent(f"Firestore: {refused}") from refused
    except GoogleAPIError as error:
        raise Temporary(f"Firestore: {error}") from error


def stored(kind: type[R], snapshot: Snapshot) -> Stored[R]:
    """Return the record of a document; if it cannot be parsed, log that and raise Permanent."""
    collection, _, id_ = snapshot.reference.path.partition("/")
    try:
        fields = fields_of(snapshot)
        return Stored(decode_at(kind, Key(collection, id_), fields), revision_of(snapshot), is_whole(kind, fields))
    except Permanent as problem:
        log.error(LogEvent.DOCUMENT_UNREADABLE, document=snapshot.reference.path, error=str(problem))  # noqa: TRY400
        raise


def readable(kind: type[R], found: Iterable[Snapshot]) -> Iterator[Stored[R]]:
    """Yield the records of those documents that can be parsed."""
    for snapshot in found:
        with contextlib.suppress(Permanent):
            yield stored(kind, snapshot)


def revision_of(written: Snapshot | WriteResult) -> Revision:
    """Return the update time, which Firestore keeps in microseconds (google.firestore.v1 Precondition.update_time)."""
    return Revision(written.update_time.isoformat())


def fields_of(snapshot: Snapshot) -> dict[str, Any]:
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
