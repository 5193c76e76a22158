"""The log of changes: the source of every resourceVersion and of every watch."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import orjson

from infra.local.embedded.store import errors

_FIRST = 100
"""The resourceVersion before the first change: earlier ones are history, as in a cluster that has been up."""

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
        self.version = _FIRST
        self.listeners: list[Callable[[], None]] = []
        """Called after each change."""
        self._window = window
        self._changes: defaultdict[str, deque[Change]] = defaultdict(deque)
        self._compacted: defaultdict[str, int] = defaultdict(lambda: _FIRST)
        self._bell = asyncio.Event()

    def record(self, kind: str, what: ChangeType, obj: dict[str, Any], old: dict[str, Any] | None) -> dict[str, Any]:
        """Record a change under the next resourceVersion; return the object with it, and metadata that are its own."""
        self.version += 1
        stamped = obj | {"metadata": obj["metadata"] | {"resourceVersion": str(self.version)}}
        changes = self._changes[kind]
        changes.append(Change(version=self.version, type=what, object=stamped, previous=old))
        while len(changes) > self._window:
            self._compacted[kind] = changes.popleft().version
        self.ring()
        return stamped

    def ring(self) -> None:
        """Wake all waiters."""
        bell, self._bell = self._bell, asyncio.Event()
        bell.set()
        for listener in self.listeners:
            listener()

    async def rung(self) -> None:
        """Wait for the next change, or the next call of `ring`."""
        await self._bell.wait()

    def since(self, kind: str, version: int) -> list[Change]:
        """Return the changes after `version`, oldest first. Raise ApiError 410 if some of them were compacted."""
        if version < self._compacted[kind]:
            message = f"too old resource version: {version} ({self._compacted[kind]})"
            raise errors.ApiError(410, "Expired", message)
        found: list[Change] = []
        for change in reversed(self._changes[kind]):
            if change.version <= version:
                break
            found.append(change)
        return found[::-1]
