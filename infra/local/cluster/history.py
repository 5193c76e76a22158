"""The store's memory of what changed: the source of every resourceVersion and of every watch."""

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
    """One change of one object. Neither dict is ever written to again.

    `object`: as it is now; for DELETED as it last was, with the deletion's resourceVersion.
    `previous`: as it was before, None for ADDED.
    """

    version: int
    type: ChangeType
    object: dict[str, Any]
    previous: dict[str, Any] | None

    @cached_property
    def encoded(self) -> bytes:
        """The object as JSON, encoded once for all watchers."""
        return orjson.dumps(self.object)


class History:
    """Changes by resource, at most `window` of each; older ones are compacted away, as in etcd."""

    def __init__(self, plurals: Iterable[str], window: int) -> None:
        self._window = window
        self._changes: dict[str, deque[Change]] = {plural: deque() for plural in plurals}
        self._compacted: dict[str, int] = dict.fromkeys(self._changes, 0)
        self._bell = asyncio.Event()
        self.version = 0

    def record(self, plural: str, kind: ChangeType, obj: dict[str, Any], previous: dict[str, Any] | None) -> None:
        """Give `obj` the next resourceVersion, remember the change and wake whoever waits."""
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        changes = self._changes[plural]
        changes.append(Change(version=self.version, type=kind, object=obj, previous=previous))
        while len(changes) > self._window:
            self._compacted[plural] = changes.popleft().version
        bell, self._bell = self._bell, asyncio.Event()
        bell.set()

    def since(self, plural: str, version: int) -> list[Change]:
        """List changes after `version`, oldest first. ApiError 410 when some of them were compacted."""
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
        """Forget every change so far: watches from before now answer 410."""
        for plural, changes in self._changes.items():
            changes.clear()
            self._compacted[plural] = self.version

    async def changed(self, since: int) -> int:
        """Wait until something changed after `since`; the version it has now."""
        while self.version <= since:
            await self._bell.wait()
        return self.version
