"""The store's log of changes: the source of every resourceVersion and of every watch."""

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import orjson

from infra.local.cluster import errors

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(frozen=True, kw_only=True)
class Change:
    """One change of one object. Neither dict is ever modified again.

    `object`: the new state; for DELETED the last state, with the deletion's resourceVersion.
    `previous`: the state before; None for ADDED.
    """

    version: int
    type: ChangeType
    object: dict[str, Any]
    previous: dict[str, Any] | None

    @cached_property
    def encoded(self) -> bytes:
        """Return the object as JSON, encoded once for all watchers."""
        return orjson.dumps(self.object)


class History:
    """Changes by resource, at most `window` per resource; older ones are compacted, as in etcd."""

    def __init__(self, plurals: Iterable[str], window: int) -> None:
        self._window = window
        self._changes: dict[str, deque[Change]] = {plural: deque() for plural in plurals}
        self._compacted: dict[str, int] = dict.fromkeys(self._changes, 0)
        self._bell = asyncio.Event()
        self.version = 0

    def record(self, plural: str, kind: ChangeType, obj: dict[str, Any], previous: dict[str, Any] | None) -> None:
        """Set the next resourceVersion on `obj`, record the change and wake all waiters."""
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        changes = self._changes[plural]
        changes.append(Change(version=self.version, type=kind, object=obj, previous=previous))
        while len(changes) > self._window:
            self._compacted[plural] = changes.popleft().version
        bell, self._bell = self._bell, asyncio.Event()
        bell.set()

    def since(self, plural: str, version: int) -> list[Change]:
        """Return the changes after `version`, oldest first. Raise ApiError 410 if some of them were compacted."""
        compacted = self._compacted[plural]
        if version < compacted:
            raise errors.expired(f"too old resource version: {version} ({compacted})")
        found: list[Change] = []
        for change in reversed(self._changes[plural]):
            if change.version <= version:
                break
            found.append(change)
        return found[::-1]

    def compact(self) -> None:
        """Discard all changes so far: watches from an earlier version get 410."""
        for plural, changes in self._changes.items():
            changes.clear()
            self._compacted[plural] = self.version

    async def changed(self, since: int) -> int:
        """Wait until something has changed after `since`; return the current version."""
        while self.version <= since:
            await self._bell.wait()
        return self.version
