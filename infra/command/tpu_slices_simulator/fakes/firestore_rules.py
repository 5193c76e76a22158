"""What Firestore accepts of a document, and what it makes of its values.

Sources: Firestore's guides "Quotas and limits" and "Storage size calculations"; what its client and its emulator do,
which tests/contracts compare with this.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.documents import Fields, Key, is_unicode

DOCUMENT_BYTES = 1 << 20
COMMIT_BYTES = 10 << 20
"""Of a request. The number of writes in a commit has no limit since March 2023."""
NAME_BYTES = 1_500
TEXT_BYTES = DOCUMENT_BYTES - 89
DEPTH = 20
_AS_THEY_ARE = frozenset({type(None), bool, float, bytes})
_RESERVED = re.compile(r"__.*__", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Written:
    """A document as it is read after it was written."""

    fields: Fields
    sizes: Mapping[str, int]
    """The bytes of each field with its name."""
    size: int


def stored(place: Key, fields: Mapping[str, Any], before: Written | None = None) -> Written:
    """Return the document `before` with these fields as it will be read; raise Permanent if Firestore would refuse it.

    Fields that it has already are not looked at again; if it has all of them, it is returned itself.
    """
    there: Mapping[str, Any] = before.fields if before else {}
    written: Fields = {}
    for name, value in fields.items():
        if name not in there or type(there[name]) is not type(value) or there[name] != value:
            written[_name(name, str(place))] = _stored(value, f"{place}.{name}", DEPTH)
    if before and not written:
        return before
    sizes = {name: _text(name) + _size(member) for name, member in written.items()}
    sizes = {**before.sizes, **sizes} if before else sizes
    size = _text(place.collection) + _text(place.id) + 16 + 32 + sum(sizes.values())
    if size > DOCUMENT_BYTES:
        raise Permanent(f"{place}: {size} bytes are more than Firestore stores in a document")
    return Written({**there, **written}, sizes, size)


def check_commit(sizes: Iterable[int]) -> None:
    """Raise Permanent if the documents of a commit are larger than a request may be."""
    if (size := sum(sizes)) > COMMIT_BYTES:
        raise Permanent(f"a commit of {size} bytes is more than Firestore takes in a request")


def _stored(value: Any, where: str, depth: int) -> Any:
    """Return a value as it is read again; `depth`: how deep maps may still be nested."""
    if type(value) in _AS_THEY_ARE:
        return value
    match value:
        case str():  # most are
            return _written(value, where)
        case dict() | Mapping():  # whether it is any other mapping takes long to find out
            if depth == 0:
                raise Permanent(f"{where}: maps are nested deeper than {DEPTH}")
            return {_name(name, where): _stored(each, f"{where}.{name}", depth - 1) for name, each in value.items()}
        case list() | tuple() | set():
            if any(isinstance(each, list | tuple | set) for each in value):
                raise Permanent(f"{where}: an array in an array")
            return [_stored(each, where, depth) for each in value]
        case datetime():  # without a zone it is taken as UTC
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC)
        case int() if not -(1 << 63) <= value < 1 << 63:
            raise Permanent(f"{where}: {value} has more than 64 bits")
        case int() | float() | bytes():
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
    if not _is_accepted(name):
        raise Permanent(f"{where}: {name:.100} is too long or reserved as the name of a field")
    return str(name)


@lru_cache
def _is_accepted(name: str) -> bool:
    return len(name.encode()) <= NAME_BYTES and not _RESERVED.fullmatch(name)


def _size(value: Any) -> int:
    """Return the bytes of a value that was stored."""
    kind = type(value)
    if kind is str:
        return _text(value)
    if kind is dict:
        return 32 + sum([_text(name) + _size(member) for name, member in value.items()])
    if kind is list:
        return sum([_size(member) for member in value])
    if kind is bytes:
        return len(value)
    return 1 if value is None or kind is bool else 8  # numbers and times


def _text(value: str) -> int:
    return (len(value) if value.isascii() else len(value.encode())) + 1
