"""The log of changes: the source of every resourceVersion and of every watch."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import orjson

from infra.local.embedded.store import errors

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(frozen=True, kw_only=True)
class Change:
    """One change of one object; neither dict is ever modified again.

    `object`: the new state; for DELETED the last state, with the deletion's resourceVersion.
    `previous`: the state before; None for ADDED.
    """

    version: int
    type: ChangeType
    object: dict[str, Any]
    previous: dict[str, Any] | None

    @cached_property
    def encoded(self) -> bytes:
        """Return the object as JSON, encoded once for all watches."""
        return orjson.dumps(self.object)


class History:
    """Changes by kind, at most `window` of each; older ones are compacted, as in etcd."""

    def __init__(self, window: int) -> None:
        self.version = 0
        self.listeners: list[Callable[[], None]] = []
        """Called after each change, in the thread that made it."""
        self._window = window
        self._changes: dict[str, deque[Change]] = {}
        self._compacted: dict[str, int] = {}
        self._bell = asyncio.Event()

    def record(
        self, kind: str, what: ChangeType, obj: dict[str, Any], previous: dict[str, Any] | None
    ) -> dict[str, Any]:
        """Record a change under the next resourceVersion and wake all waiters; return the object with that version.

        The object and its metadata are copied, so that nothing recorded before shares them.
        """
        self.version += 1
        stamped = obj | {"metadata": obj["metadata"] | {"resourceVersion": str(self.version)}}
        changes = self._changes.setdefault(kind, deque())
        changes.append(Change(version=self.version, type=what, object=stamped, previous=previous))
        while len(changes) > self._window:
            self._compacted[kind] = changes.popleft().version
        self.ring()
        return stamped

    def ring(self) -> None:
        """Wake all waiters."""
        bell, self._bell = self._bell, asyncio.Event()
        bell.set()
        for heard in self.listeners:
            heard()

    def since(self, kind: str, version: int) -> list[Change]:
        """Return the changes after `version`, oldest first. Raise ApiError 410 if some of them were compacted."""
        compacted = self._compacted.get(kind, 0)
        if version < compacted:
            raise errors.expired(f"too old resource version: {version} ({compacted})")
        found: list[Change] = []
        for change in reversed(self._changes.get(kind, ())):
            if change.version <= version:
                break
            found.append(change)
        return found[::-1]

    async def rung(self) -> None:
        """Wait for the next change, or the next call of `ring`."""
        await self._bell.wait()
