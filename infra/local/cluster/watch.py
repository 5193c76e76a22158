"""Watches: the stream of changes a client sees, and the buttons that break streams in tests."""

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
    """What a client asks of a watch.

    `since`: the resourceVersion to go on from; None starts with the present state, each object as ADDED.
    `render`: turns an object into what the client wants to see (a Table); None for the object itself.
    `timeout_seconds`: when the server ends the watch. `bookmark_seconds`: how often it says where it is.
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
    """A button was pressed: look now."""


class Watches:
    """The watches that are open now."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._open: set[_Open] = set()
        self._over = False

    def end(self) -> None:
        """End the open watches, and from now on every new one at once: the server is about to stop."""
        self._over = True
        self.close()

    def close(self, plural: str | None = None) -> int:
        """End the open watches (of one resource): the client meets the end of the stream. How many."""
        chosen = self._chosen(plural)
        for one in chosen:
            one.ended = True
            one.touched.set()
        return len(chosen)

    def silence(self, plural: str | None = None) -> int:
        """Make the open watches say nothing more, bookmarks included, and stay open. How many."""
        chosen = self._chosen(plural)
        for one in chosen:
            one.silent = True
        return len(chosen)

    def rewind(self, plural: str | None = None) -> int:
        """Make the open watches say again what happened, from the beginning of what is remembered. How many."""
        chosen = self._chosen(plural)
        for one in chosen:
            one.rewound = True
            one.touched.set()
        return len(chosen)

    def say(self, text: bytes, plural: str | None = None) -> int:
        """Put bytes into the open watches that are no event, or not the whole of one. How many."""
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
        """Wait for a change, a button or the time."""
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
    """Tell what a change looks like through the selector: entering is ADDED, leaving is DELETED."""
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
