"""What lists and watches of an API server say, from bytes. Pure; a ValueError for what is not of the documented shape.

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
"""What a page should not much exceed: an object may take 1.5 MB, and all of a page is in memory at one time."""
LINE_BYTES = 16_000_000
"""More than any event takes: what is longer is no event."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some objects of a list, the version of the whole list, and the token of the next page."""

    items: Sequence[Json]
    version: str
    rest: str | None


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a watch. Of an ERROR the object is a metav1.Status, which has no version."""

    type: str
    object: Json
    version: str


class Lines:
    """Cuts a stream into lines; the last one may still be on its way."""

    def __init__(self) -> None:
        self._begun = b""

    def of(self, chunk: bytes) -> list[bytes]:
        """Give the lines that a chunk ends."""
        *lines, self._begun = (self._begun + chunk).split(b"\n")
        if len(self._begun) > LINE_BYTES:
            raise ValueError(f"a line of more than {LINE_BYTES} bytes is no event of a watch")
        return lines


def page_of(data: bytes) -> Page:
    """Read a List; nil for its items is no item."""
    try:
        listed = orjson.loads(data)
        metadata = listed["metadata"]
        items = listed["items"] or ()
        return Page(items, _text(metadata["resourceVersion"]), metadata.get("continue") or None)
    except (KeyError, TypeError, AttributeError) as wrong:
        raise ValueError(f"the answer is no List: {wrong!r}") from wrong


def event_of(line: bytes) -> Event:
    try:
        event = orjson.loads(line)
        obj: dict[str, Any] = {**event["object"]}
        version = "" if event["type"] == "ERROR" else _text(obj["metadata"]["resourceVersion"])
        return Event(_text(event["type"]), obj, version)
    except (KeyError, TypeError) as wrong:
        raise ValueError(f"the line is no event of a watch: {wrong!r}") from wrong


def identity_of(obj: Json, field: str) -> str:
    """Tell an object from others by a field of its metadata, which the API server itself writes."""
    try:
        return _text(obj["metadata"][field])
    except (KeyError, TypeError) as wrong:
        raise ValueError(f"an object without metadata.{field}") from wrong


def is_back(version: str, before: str) -> bool:
    """Say whether a resourceVersion is from before another: versions rise in the order of what happened."""
    return version.isdigit() and before.isdigit() and int(version) < int(before)


def next_limit(limit: int, took: int) -> int:
    """Say how many objects to ask for after a page of so many bytes: so few that the next one fits too."""
    if took > PAGE_BYTES:
        return max(1, limit * PAGE_BYTES // took)
    return min(LONGEST_PAGE, limit * 2) if 2 * took <= PAGE_BYTES else limit


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value
