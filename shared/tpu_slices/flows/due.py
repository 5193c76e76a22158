"""Requests reconciles of what is due in a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial

from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.flows.failures import Failures
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.errors import StaleRecord
from tpu_slices.ports.store import Change

PAGE = 500
"""The most slices of a cluster that one sweep reads as due; the earliest due come first, the others a
minute later."""
NO_EFFECT_AFTER = timedelta(minutes=1)
"""A slice that has been due for so long was requested by an earlier sweep, too."""
MOVED_ON_BY = timedelta(minutes=10)
"""When such a slice is requested again: it is under way, or redelivered, or fails each time."""
_BATCH = 100
"""How many slices are moved on in one commit."""


def request_due(cluster: ClusterId, deps: ReconcileDeps, failures: Failures) -> int:
    """Request reconciles of the cluster's due slices; return their number.

    A slice stays due until its reconcile is saved. One that an earlier sweep requested without that effect is moved on,
    so that it is neither requested each minute nor in the way of others; it is never settled by that.
    """
    now = deps.clock.now()
    slices = deps.store.due_slices(cluster, now, PAGE)
    deps.publisher.request_reconcile(cluster, sorted(stored.value.name for stored in slices))
    stuck = [stored for stored in slices if now - (stored.value.next_reconcile_at or now) >= NO_EFFECT_AFTER]
    moved_on = [Change(stored, replace(stored.value, next_reconcile_at=now + MOVED_ON_BY)) for stored in stuck]
    for first in range(0, len(moved_on), _BATCH):
        batch = moved_on[first : first + _BATCH]
        failures.attempt(cluster, partial(_commit, batch, deps), None, "slices are requested again in a minute")
    return len(slices)


def _commit(changes: Sequence[Change], deps: ReconcileDeps) -> None:
    """Write the changes, without those of records that were written meanwhile."""
    try:
        deps.store.commit(*changes)
    except StaleRecord:
        for change in changes:
            with suppress(StaleRecord):
                deps.store.commit(change)
