"""Watches: the stream of changes that a client receives, and faults that break streams in tests."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from infra.local.cluster.errors import ApiError
from infra.local.cluster.history import Change
from infra.local.cluster.objects import RESOURCES, Objects
from infra.local.cluster.selectors import Predicate

Render = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    """The parameters of a watch.

    `since`: the resourceVersion to continue from; None starts with the current state, each object as ADDED.
    `render`: converts an object to what the client requested (a Table); None for the object itself.
    `timeout_seconds`: when the server ends the watch. `bookmark_seconds`: the interval of bookmarks, if any.
    """

    plural: str
    matches: Predicate
    since: int | None
    render: Render | None
    timeout_seconds: float
    bookmark_seconds: float | None


@dataclass(slots=True, eq=False)
class _Open:
    plural: str
    silent: bool = False
    rewound: bool = False
    ended: bool = False
    to_say: list[bytes] = field(default_factory=list)
    touched: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a fault was injected, to wake the watch."""


class Watches:
    """The open watches."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._open: set[_Open] = set()
        self._over = False

    def end(self) -> None:
        """End the open watches, and any new one immediately: the server is about to stop."""
        self._over = True
        self.close()

    def close(self, plural: str | None = None) -> int:
        """End the open watches (of one resource), so that clients see the end of the stream; return how many."""
        chosen = self._chosen(plural)
        for one in chosen:
            one.ended = True
            one.touched.set()
        return len(chosen)

    def silence(self, plural: str | None = None) -> int:
        """Make the open watches send nothing more, not even bookmarks, but stay open; return how many."""
        chosen = self._chosen(plural)
        for one in chosen:
            one.silent = True
        return len(chosen)

    def rewind(self, plural: str | None = None) -> int:
        """Make the open watches repeat all changes that are still in the history; return how many."""
        chosen = self._chosen(plural)
        for one in chosen:
            one.rewound = True
            one.touched.set()
        return len(chosen)

    def say(self, text: bytes, plural: str | None = None) -> int:
        """Send raw bytes, such as a partial event, on the open watches; return how many."""
        chosen = self._chosen(plural)
        for one in chosen:
            one.to_say.append(text)
            one.touched.set()
        return len(chosen)

    def _chosen(self, plural: str | None) -> list[_Open]:
        return [one for one in self._open if plural in (None, one.plural)]

    async def stream(self, request: WatchRequest) -> AsyncIterator[bytes]:
        """Yield watch events as lines of JSON until the timeout, or until the watch is closed."""
        one = _Open(request.plural)
        self._open.add(one)
        if self._over:
            one.ended = True
        try:
            async for line in self._lines(request, one):
                if not one.silent:
                    yield line
        finally:
            self._open.discard(one)

    async def _lines(self, request: WatchRequest, one: _Open) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        end = loop.time() + request.timeout_seconds
        pause = request.bookmark_seconds or request.timeout_seconds
        bookmark_at = loop.time() + pause
        position = self._objects.version if request.since is None else request.since
        if request.since is None:
            for line in self._present(request):
                yield line
        while not one.ended and loop.time() < end:
            one.touched.clear()
            position, one.rewound = (0 if one.rewound else position), False
            try:
                changes = self._objects.changes(request.plural, position)
            except ApiError as error:
                yield _event("ERROR", orjson.dumps(error.status()))
                return
            position = max(position, self._objects.version)
            while one.to_say:
                yield one.to_say.pop(0)
            for change in changes:
                if seen := _seen(change, request):
                    yield seen
            if request.bookmark_seconds and loop.time() >= bookmark_at:
                yield self._bookmark(request, position)
                bookmark_at = loop.time() + pause
            await self._wait(one, position, min(end, bookmark_at) - loop.time())

    def _present(self, request: WatchRequest) -> list[bytes]:
        found = self._objects.stored(request.plural)
        return [_event("ADDED", _encode(obj, request.render)) for obj in found if request.matches(obj)]

    @staticmethod
    def _bookmark(request: WatchRequest, position: int) -> bytes:
        resource = RESOURCES[request.plural]
        kind = {"kind": resource.kind, "apiVersion": resource.api_version}
        if request.render:
            kind = {"kind": "Table", "apiVersion": "meta.k8s.io/v1"}
        mark = kind | {"metadata": {"resourceVersion": str(position), "creationTimestamp": None}}
        return _event("BOOKMARK", orjson.dumps(mark))

    async def _wait(self, one: _Open, position: int, seconds: float) -> None:
        """Wait for a change, an injected fault or the timeout."""
        waits = {
            asyncio.ensure_future(self._objects.changed(position)),
            asyncio.ensure_future(one.touched.wait()),
        }
        try:
            await asyncio.wait(waits, timeout=max(seconds, 0), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiting in waits:
                waiting.cancel()


def _seen(change: Change, request: WatchRequest) -> bytes | None:
    """Return the event of a change under the selector: a new match is ADDED, a lost match is DELETED."""
    was = change.previous is not None and request.matches(change.previous)
    is_now = change.type != "DELETED" and request.matches(change.object)
    if not was and not is_now:
        return None
    if was and is_now:
        return _event("MODIFIED", _encoded(change, request.render))
    if is_now:
        return _event("ADDED", _encoded(change, request.render))
    if change.type == "DELETED":
        return _event("DELETED", _encoded(change, request.render))
    assert change.previous is not None
    left = change.previous["metadata"] | {"resourceVersion": str(change.version)}
    return _event("DELETED", _encode(change.previous | {"metadata": left}, request.render))


def _encoded(change: Change, render: Render | None) -> bytes:
    return _encode(change.object, render) if render else change.encoded


def _encode(obj: dict[str, Any], render: Render | None) -> bytes:
    return orjson.dumps(render(obj) if render else obj)


def _event(kind: str, obj: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + obj + b"}\n"
