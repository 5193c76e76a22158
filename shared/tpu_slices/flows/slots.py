"""The governor's slots: taken before a creation is remembered, freed after its end is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.records import SliceRecord
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.reconciling.limiter import Candidate, ConcurrencyLimiter, Slot, admit, capacity_pool_of, raised
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.errors import StaleRecord
from tpu_slices.ports.store import Change, Stored


def take(record: SliceRecord, settings: ClusterSettings, deps: ReconcileDeps) -> int | None:
    """Take a slot for the record's attempt; the one it already has, if a crash came in between. None: none is free."""
    if record.spec is None:
        return None
    cluster, now = settings.cluster, deps.clock.now()
    running = [slot.value for slot in deps.store.slots(cluster)]
    for slot in running:
        if (slot.slice_id, slot.attempt) == (record.id, record.attempt):
            return slot.number
    _, limiter = _limiter(cluster, now, deps)
    me = Candidate(record.id, capacity_pool_of(record.spec), record.since)
    if not admit([me], running, limiter, now, settings.limits):
        return None
    number = _first_free({slot.number for slot in running})
    slot = Slot(
        cluster=cluster,
        number=number,
        slice_id=record.id,
        attempt=record.attempt,
        capacity_pool=me.capacity_pool,
        taken_at=now,
    )
    deps.store.commit(Change(None, slot))
    return number


def free(slot: Stored[Slot], settings: ClusterSettings, deps: ReconcileDeps) -> None:
    """Give a slot back, and nudge those who may start now. If somebody else freed it, they did both."""
    with suppress(StaleRecord):
        deps.store.commit(Change(slot, None))
        change_limiter(lambda limiter, now: raised(limiter, now, settings.limits), settings.cluster, deps)
        _admit_next(settings, deps)


def change_limiter(
    change: Callable[[ConcurrencyLimiter, datetime], ConcurrencyLimiter], cluster: ClusterId, deps: ReconcileDeps
) -> None:
    """Change the governor; if somebody else did so at the same moment, theirs is as good as ours."""
    now = deps.clock.now()
    stored, before = _limiter(cluster, now, deps)
    after = change(before, now)
    if after != before:
        with suppress(StaleRecord):
            deps.store.commit(Change(stored, after))


def _limiter(
    cluster: ClusterId, now: datetime, deps: ReconcileDeps
) -> tuple[Stored[ConcurrencyLimiter] | None, ConcurrencyLimiter]:
    stored = deps.store.limiter(cluster)
    return stored, stored.value if stored else ConcurrencyLimiter(cluster=cluster, changed_at=now, shortages={})


def _admit_next(settings: ClusterSettings, deps: ReconcileDeps) -> None:
    cluster, now = settings.cluster, deps.clock.now()
    _, limiter = _limiter(cluster, now, deps)
    waiting = deps.store.queued_slices(cluster, 2 * limiter.limit)
    candidates = [
        Candidate(record.id, capacity_pool_of(record.spec), record.since) for record in waiting if record.spec
    ]
    running = [slot.value for slot in deps.store.slots(cluster)]
    admitted = admit(candidates, running, limiter, now, settings.limits)
    if admitted:
        deps.publisher.request_reconcile(cluster, [candidate.slice_id for candidate in admitted])


def _first_free(taken: set[int]) -> int:
    number = 0
    while number in taken:
        number += 1
    return number
