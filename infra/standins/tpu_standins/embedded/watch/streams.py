"""The stream of changes of one watch, and the end of all of them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import NamedTuple

import orjson

from tpu_standins.embedded.store.errors import ApiError
from tpu_standins.embedded.store.kinds import Kind, Object
from tpu_standins.embedded.store.objects import Change, Objects


class Asked(NamedTuple):
    """What is watched; `since` None begins with the current state, each object as ADDED, `render` makes a Table."""

    kind: Kind
    matches: Callable[[Object], bool]
    since: int | None
    render: Callable[[Object], Object] | None
    seconds: float
    bookmark_seconds: float | None


class Streams:
    """The open watches."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._over = False

    def end(self) -> None:
        """End the open watches, and any new one at once: the server is about to stop."""
        self._over = True
        self._objects.ring()

    async def stream(self, asked: Asked) -> AsyncIterator[bytes]:
        """Yield watch events as lines of JSON until the timeout; one with an error of code 410 is the last."""
        loop = asyncio.get_running_loop()
        end, pause = loop.time() + asked.seconds, asked.bookmark_seconds or asked.seconds
        bookmark_at = loop.time() + pause
        position = self._objects.version if asked.since is None else asked.since
        for obj in self._objects.stored(asked.kind) if asked.since is None else ():
            if asked.matches(obj):
                yield _event("ADDED", obj, asked)
        while not self._over and loop.time() < end:
            try:
                changes = self._objects.changes(asked.kind, position)
            except ApiError as error:
                yield _event("ERROR", orjson.dumps(error.status()), asked)
                return
            position = max(position, self._objects.version)
            for change in changes:
                if seen := _seen(change, asked):
                    yield seen
            if asked.bookmark_seconds and loop.time() >= bookmark_at:
                yield _bookmark(asked, position)
                bookmark_at = loop.time() + pause
            if self._objects.version == position and not self._over:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._objects.rung(), min(end, bookmark_at) - loop.time())
        if asked.bookmark_seconds:
            yield _bookmark(asked, position)


def _bookmark(asked: Asked, position: int) -> bytes:
    table = {"kind": "Table", "apiVersion": "meta.k8s.io/v1"}
    kind = table if asked.render else {"kind": asked.kind.kind, "apiVersion": asked.kind.api_version}
    return _event("BOOKMARK", orjson.dumps(kind | {"metadata": {"resourceVersion": str(position)}}), asked)


def _seen(change: Change, asked: Asked) -> bytes | None:
    """Return the event of a change under the selector: a new match is ADDED, a lost match is DELETED."""
    before = change.previous if change.previous is not None and asked.matches(change.previous) else None
    if change.type != "DELETED" and asked.matches(change.object):
        return _event("MODIFIED" if before else "ADDED", change.object if asked.render else change.encoded, asked)
    if before is None:
        return None
    last = before | {"metadata": before["metadata"] | {"resourceVersion": str(change.version)}}
    return _event("DELETED", last, asked)


def _event(kind: str, obj: Object | bytes, asked: Asked) -> bytes:
    shown = obj if isinstance(obj, bytes) else orjson.dumps(asked.render(obj) if asked.render else obj)
    return b'{"type":"' + kind.encode() + b'","object":' + shown + b"}\n"
