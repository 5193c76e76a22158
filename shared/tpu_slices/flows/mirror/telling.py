"""Announces what the mirror is to show, with each change of a record that is saved, by whatever flow.

Nothing is told to a relay that keeps no mirror. Nothing that is decided depends on it: what fails here is not tried
again, and `listing` makes up for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, cast

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.planning.costs import price_of
from tpu_slices.domain.records.mirror import Mirrored, mirror_digest, mirrored
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.ports.clock import Clock
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.publisher import MirrorChanged, Publisher
from tpu_slices.ports.store import READ_FIRST, Change, Revision, SliceStore

KNOWN_FOR = timedelta(minutes=1)
"""How long it is taken to be known whether a relay keeps a mirror, and what chips cost in its cluster."""
Shown = SliceRecord | WorkloadRecord


@dataclass(frozen=True, slots=True)
class _Known:
    settings: ClusterSettings | None
    """None: the relay keeps no mirror."""
    until: datetime


class _Mirroring:
    """A store that tells what of each change the mirror is to show, once it is saved."""

    def __init__(self, store: SliceStore, publisher: Publisher, clock: Clock) -> None:
        self._store, self._publisher, self._clock = store, publisher, clock
        self._known: dict[ClusterId, _Known] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, *changes: Change) -> tuple[Revision, ...]:
        at = self._clock.now()
        written = self._store.commit(*changes)
        for cluster in {each.cluster for change in changes for each in _before_and_after(change) if each}:
            with suppress(Temporary, Permanent):
                self._tell(changes, cluster, at)
        return written

    def _tell(self, changes: Iterable[Change], cluster: ClusterId, at: datetime) -> None:
        changed = [each for each in changes if _concerns(each, cluster) and _shows_otherwise(each)]
        settings = self._settings(cluster) if changed else None
        if settings is not None:
            objects = tuple(shown for each in changed for shown in _objects(each, settings))
            self._publisher.announce_mirror(cluster, [MirrorChanged(objects=objects, at=at)])

    def _settings(self, cluster: ClusterId) -> ClusterSettings | None:
        known, now = self._known.get(cluster), self._clock.now()
        if known is None or known.until <= now:
            read = self._store.together(cluster, READ_FIRST)
            kept = read.heartbeat is not None and read.heartbeat.value.mirror is not None
            self._known[cluster] = known = _Known(read.settings if kept else None, now + KNOWN_FOR)
        return known.settings


def mirroring(store: SliceStore, publisher: Publisher, clock: Clock) -> SliceStore:
    """Return the store that tells what the mirror is to show of each change."""
    return cast("SliceStore", _Mirroring(store, publisher, clock))


def _before_and_after(change: Change) -> tuple[Shown | None, Shown | None]:
    """Return the records of a change that may be shown."""
    before = change.before.value if change.before is not None else None
    return before if isinstance(before, Shown) else None, change.after if isinstance(change.after, Shown) else None


def _concerns(change: Change, cluster: ClusterId) -> bool:
    return any(each is not None and each.cluster == cluster for each in _before_and_after(change))


def _shows_otherwise(change: Change) -> bool:
    before, after = (mirror_digest(each) if each is not None else 0 for each in _before_and_after(change))
    return before != after


def _objects(change: Change, settings: ClusterSettings) -> Iterator[Mirrored]:
    """Yield what is to be shown after a change, and which object is not any more: a slice may change its namespace."""
    before, after = _before_and_after(change)
    shown = object_of(after, settings) if after is not None else None
    was = replace(mirrored(before), digest=0, slice=None, workload=None) if before is not None else None
    if shown is not None:
        yield shown
    if was is not None and (shown is None or was.key != shown.key):
        yield was


def object_of(record: Shown, settings: ClusterSettings) -> Mirrored:
    if isinstance(record, WorkloadRecord):
        return mirrored(record)
    spec = record.made_as
    return replace(mirrored(record), price=str(price_of(spec, settings)) if spec is not None else "unknown")
