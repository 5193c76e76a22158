"""What Firestore accepts of a document, and what it makes of its values.

Sources: Firestore's guides "Quotas and limits" and "Storage size calculations"; what its client and its emulator do,
which tests/contracts compare with this.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.documents import Fields, Key, is_unicode

DOCUMENT_BYTES = 1 << 20
COMMIT_BYTES = 10 << 20
"""Of a request. The number of writes in a commit has no limit since March 2023."""
NAME_BYTES = 1_500
TEXT_BYTES = DOCUMENT_BYTES - 89
DEPTH = 20
_RESERVED = re.compile(r"__.*__", re.DOTALL)


def stored(place: Key, fields: Mapping[str, Any]) -> Fields:
    """Return a document as it is read after it was written; raise Permanent if Firestore would refuse it."""
    document: Fields = _stored(fields, str(place), DEPTH + 1)
    if (size := size_of(place, document)) > DOCUMENT_BYTES:
        raise Permanent(f"{place}: {size} bytes are more than Firestore stores in a document")
    return document


def check_commit(documents: Iterable[tuple[Key, Fields]]) -> None:
    """Raise Permanent if a commit is larger than a request may be."""
    if (size := sum(size_of(place, fields) for place, fields in documents)) > COMMIT_BYTES:
        raise Permanent(f"a commit of {size} bytes is more than Firestore takes in a request")


def size_of(place: Key, fields: Mapping[str, Any]) -> int:
    """Return the bytes of a document."""
    return _text(place.collection) + _text(place.id) + 16 + _size(fields)


def _stored(value: Any, where: str, depth: int) -> Any:
    """Return a value as it is read again; `depth`: how deep maps may still be nested."""
    match value:
        case Mapping():
            if depth == 0:
                raise Permanent(f"{where}: maps are nested deeper than {DEPTH}")
            return {_name(name, where): _stored(each, f"{where}.{name}", depth - 1) for name, each in value.items()}
        case list() | tuple() | set():
            if any(isinstance(each, list | tuple | set) for each in value):
                raise Permanent(f"{where}: an array in an array")
            return [_stored(each, where, depth) for each in value]
        case datetime():  # without a zone it is taken as UTC
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC)
        case str():
            return _written(value, where)
        case int() if not -(1 << 63) <= value < 1 << 63:
            raise Permanent(f"{where}: {value} has more than 64 bits")
        case None | bool() | int() | float() | bytes():
            return value
        case _:
            raise Permanent(f"{where}: Firestore has no {type(value).__name__}")


def _written(text: str, where: str) -> str:
    if not is_unicode(text) or _text(text) > TEXT_BYTES:
        raise Permanent(f"{where}: the text is too long or not UTF-8")
    return str(text)


def _name(name: object, where: str) -> str:
    if not isinstance(name, str) or not name or not is_unicode(name):
        raise Permanent(f"{where}: {name!r} is no name of a field")
    if len(name.encode()) > NAME_BYTES or _RESERVED.fullmatch(name):
        raise Permanent(f"{where}: {name:.100} is too long or reserved as the name of a field")
    return str(name)


def _size(value: Any) -> int:
    match value:
        case str():
            return _text(value)
        case bytes():
            return len(value)
        case bool() | None:
            return 1
        case Mapping():
            return 32 + sum(_text(name) + _size(member) for name, member in value.items())
        case list():
            return sum(_size(member) for member in value)
        case _:  # numbers and times
            return 8


def _text(value: str) -> int:
    return len(value.encode()) + 1
