"""The concurrency limiter's slots: taken before a creation is saved, freed after its end is saved."""

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
    """Reserve a slot for the record's attempt and return its number, or None if none is free.

    An attempt that already has a slot, after a crash, keeps it.
    """
    if record.spec is None:
        return None
    cluster, now = settings.cluster, deps.clock.now()
    running = [slot.value for slot in deps.store.slots(cluster)]
    for slot in running:
        if (slot.slice_id, slot.attempt) == (record.id, record.attempt):
            return slot.number
    _, limiter = _limiter(cluster, now, deps)
    candidate = Candidate(record.id, capacity_pool_of(record.spec), record.since)
    if not admit([candidate], running, limiter, now, settings.limits):
        return None
    number = _first_free({slot.number for slot in running})
    slot = Slot(
        cluster=cluster,
        number=number,
        slice_id=record.id,
        attempt=record.attempt,
        capacity_pool=candidate.capacity_pool,
        taken_at=now,
    )
    deps.store.commit(Change(None, slot))
    return number


def free(slot: Stored[Slot], settings: ClusterSettings, deps: ReconcileDeps) -> None:
    """Free a slot and request a reconcile of the slices that may start now, unless another process freed it."""
    with suppress(StaleRecord):
        deps.store.commit(Change(slot, None))
        change_limiter(lambda limiter, now: raised(limiter, now, settings.limits), settings.cluster, deps)
        _admit_next(settings, deps)


def change_limiter(
    change: Callable[[ConcurrencyLimiter, datetime], ConcurrencyLimiter], cluster: ClusterId, deps: ReconcileDeps
) -> None:
    """Change the limiter; if another process changes it at the same time, only its change is kept."""
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
