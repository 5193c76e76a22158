"""Compares the mirror that a relay keeps with the records, and tells all of it once it differs.

| a heartbeat's digest of the mirror     | then                                                                       |
|----------------------------------------|----------------------------------------------------------------------------|
| is that of the records                 | the relay is told that the mirror was right then                           |
| has been another for three minutes, or | all objects are told, in parts by ranges of keys, by the sweep; records    |
| is the first                           | that an earlier release wrote are written anew, as they have no digest     |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import chain

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import Heartbeat
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.records.heartbeats import RelayHeartbeat, with_mirror
from tpu_slices.domain.records.mirror import Mirrored
from tpu_slices.flows.mirror.telling import Shown, object_of
from tpu_slices.ports.deps import IntakeDeps, ReconcileDeps
from tpu_slices.ports.errors import Permanent, StaleRecord, Temporary
from tpu_slices.ports.publisher import MirrorConfirmed, MirrorListed, Publisher
from tpu_slices.ports.store import Change, SliceStore, Stored

PART = 50
"""Objects in one message: with the longest reports it stays below what a message may have."""
MOST_MADE_WHOLE = 500
"""The most records that are written anew each time all is told."""


def with_mirror_compared(
    heartbeat: RelayHeartbeat, beat: Heartbeat, told_at: datetime, deps: IntakeDeps
) -> RelayHeartbeat:
    """Return the stored heartbeat with how the mirror compares; as it was, if Firestore cannot add up the digests.

    While a release is rolled out, their index may not be there yet: that fails no heartbeat.
    """
    try:
        recorded = deps.store.mirror_digest(heartbeat.cluster) if beat.mirrored is not None else 0
    except (Temporary, Permanent):
        return heartbeat
    return with_mirror(heartbeat, beat.mirrored, recorded, told_at)


def confirm_mirror(cluster: ClusterId, at: datetime, publisher: Publisher) -> None:
    """Announce to the relay that its mirror was right then."""
    with suppress(Temporary, Permanent):
        publisher.announce_mirror(cluster, [MirrorConfirmed(at=at)])


def list_mirror(settings: ClusterSettings, deps: ReconcileDeps) -> None:
    """Announce all that the relay's mirror is to show, if it has differed from the records for a while."""
    cluster, now = settings.cluster, deps.clock.now()
    stored = deps.store.heartbeat(cluster)
    kept = stored.value.mirror if stored is not None else None
    if stored is None or kept is None or not kept.to_be_listed(now):
        return
    deps.store.commit(Change(stored, replace(stored.value, mirror=replace(kept, listed_at=now))))
    objects = sorted((object_of(each.value, settings) for each in _shown(cluster, deps.store)), key=lambda it: it.key)
    for part in _parts([each for each in objects if each.digest], now):
        deps.publisher.announce_mirror(cluster, [part])


def _shown(cluster: ClusterId, store: SliceStore) -> Iterator[Stored[Shown]]:
    """Yield the records that may be shown; those of an earlier release are written anew first, with their digests."""
    left = MOST_MADE_WHOLE
    every: Iterable[Stored[Shown]] = chain(store.kept_slices(cluster), store.live_workloads(cluster))
    for stored in every:
        if not stored.is_whole and left:
            left -= 1
            with suppress(StaleRecord, Permanent):
                store.commit(Change(stored, stored.value))
        yield stored


def _parts(objects: Sequence[Mirrored], at: datetime) -> Iterator[MirrorListed]:
    """Yield parts of a list; the last one has no end, so that an empty list is one of nothing."""
    after = None
    for first in range(0, max(1, len(objects)), PART):
        part = objects[first : first + PART]
        up_to = part[-1].key if first + PART < len(objects) else None
        yield MirrorListed(objects=tuple(part), after=after, up_to=up_to, at=at)
        after = up_to
