"""Stops the releases of JobSets that were deleted if there are too many of them, until an operator confirms."""

from __future__ import annotations

from dataclasses import replace

from tpu_slices.domain.model.records import SliceRecord
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.model.workloads import WorkloadRecord
from tpu_slices.domain.reconciling.brake import SUDDEN_ENDS, Brake, counted_since, stops, too_many
from tpu_slices.flows import edits
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.store import Change


def stopped(record: SliceRecord, workload: WorkloadRecord | None, deps: ReconcileDeps) -> str | None:
    """Return why the release of a slice is stopped, or None; too many deletions stop those that come after as well."""
    if workload is None or workload.state not in SUDDEN_ENDS or record.release_requested:
        return None
    stored = deps.store.brake(record.cluster)
    brake = stored.value if stored else None
    if brake is None or brake.confirmed_at is not None:
        pulled = _pulled(record.cluster, brake, deps)
        if pulled is None:
            return None
        deps.store.commit(Change(stored, pulled))
        brake = pulled
    return brake.message if stops(brake, workload) else None


def _pulled(cluster: ClusterId, brake: Brake | None, deps: ReconcileDeps) -> Brake | None:
    now = deps.clock.now()
    since = counted_since(brake, now)
    deleted = deps.store.ended_workloads(cluster, SUDDEN_ENDS, since)
    live = deps.store.live_count(cluster) if too_many(deleted, 0) else 0
    return Brake.pulled(cluster, since, now, deleted=deleted, live=live)


def confirm(cluster: ClusterId, deps: ReconcileDeps) -> Brake | None:
    """Let the releases go on that were stopped, and request them; return the brake, or None if none was stopped."""
    stored = deps.store.brake(cluster)
    if stored is None or stored.value.confirmed_at is not None:
        return None
    deps.store.commit(Change(stored, replace(stored.value, confirmed_at=deps.clock.now())))
    edits.wake(cluster, deps)
    return stored.value
