"""Lists and watches of an API server, parsed from bytes. Pure; raises ValueError for undocumented shapes.

Protocol: "Efficient detection of changes" and "Retrieving large results sets in chunks" in Kubernetes' API concepts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

Json = Mapping[str, Any]

FIRST_PAGE, LONGEST_PAGE = 50, 500
PAGE_BYTES = 8_000_000
"""What a page should not exceed by much: an object may take 1.5 MB, and a whole page is in memory at one time."""
LINE_BYTES = 16_000_000
"""More than any event takes: a longer line is not an event."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some objects of a list, the version of the whole list, and the token of the next page."""

    items: Sequence[Json]
    version: str
    rest: str | None


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a watch. The object of an ERROR is a metav1.Status, which has no version."""

    type: str
    object: Json
    version: str


class Lines:
    """Splits a stream into lines; the last one may be incomplete."""

    def __init__(self) -> None:
        self._begun = b""

    def of(self, chunk: bytes) -> list[bytes]:
        """Return the lines that a chunk completes."""
        *lines, self._begun = (self._begun + chunk).split(b"\n")
        if len(self._begun) > LINE_BYTES:
            raise ValueError(f"a line of more than {LINE_BYTES} bytes is not an event of a watch")
        return lines


def page_of(data: bytes) -> Page:
    """Return the page that a List holds; null for its items means none."""
    try:
        listed = orjson.loads(data)
        metadata = listed["metadata"]
        items = listed["items"] or ()
        return Page(items, _text(metadata["resourceVersion"]), metadata.get("continue") or None)
    except (KeyError, TypeError, AttributeError) as wrong:
        raise ValueError(f"the answer is not a List: {wrong!r}") from wrong


def event_of(line: bytes) -> Event:
    try:
        event = orjson.loads(line)
        obj: dict[str, Any] = {**event["object"]}
        version = "" if event["type"] == "ERROR" else _text(obj["metadata"]["resourceVersion"])
        return Event(_text(event["type"]), obj, version)
    except (KeyError, TypeError) as wrong:
        raise ValueError(f"the line is not an event of a watch: {wrong!r}") from wrong


def identity_of(obj: Json, field: str) -> str:
    """Return the field of an object's metadata that identifies it; the API server itself writes it."""
    try:
        return _text(obj["metadata"][field])
    except (KeyError, TypeError) as wrong:
        raise ValueError(f"an object without metadata.{field}") from wrong


def is_back(version: str, before: str) -> bool:
    """Return whether a resourceVersion is older than another: versions rise in the order of changes."""
    return version.isdigit() and before.isdigit() and int(version) < int(before)


def next_limit(limit: int, took: int) -> int:
    """Return how many objects to request after a page of so many bytes: so few that the next page fits."""
    if took > PAGE_BYTES:
        return max(1, limit * PAGE_BYTES // took)
    return min(LONGEST_PAGE, limit * 2) if 2 * took <= PAGE_BYTES else limit


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value
