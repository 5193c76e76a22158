"""Clears a JobSet's `next_reconcile_at` once reconcile requests for its slices are published."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from tpu_slices.domain.model.workloads import WorkloadRecord
from tpu_slices.flows.retrying import retry_on_conflict
from tpu_slices.ports.deps import IntakeDeps
from tpu_slices.ports.errors import StaleRecord
from tpu_slices.ports.store import Change


def clear(requested: WorkloadRecord, deps: IntakeDeps) -> None:
    """Clear `next_reconcile_at` of a JobSet after reconcile requests for its slices, unless it was set anew since."""
    with suppress(StaleRecord):  # then the sweep requests them once more, and clears it
        retry_on_conflict(lambda: _once(requested, deps), deps.clock)


def _once(requested: WorkloadRecord, deps: IntakeDeps) -> None:
    stored = deps.store.workloads(requested.cluster, [requested.owner.uid]).get(requested.owner.uid)
    if stored is not None and stored.value.next_reconcile_at == requested.next_reconcile_at is not None:
        deps.store.commit(Change(stored, replace(stored.value, next_reconcile_at=None)))
