"""Counts the slices and chips of a cluster; Firestore adds them up, so no record is read."""

from __future__ import annotations

from datetime import timedelta

from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.reporting.counts import COUNTED_PHASES, HELD, ON_HOLD, RELEASED_NOW, ClusterCount
from tpu_slices.ports.deps import ReconcileDeps


def counted(cluster: ClusterId, deps: ReconcileDeps) -> ClusterCount:
    """Return the count of a cluster. Its calls are made one after another: the parts may be of different moments."""
    now, paid = deps.clock.now(), deps.store.paid_longest(cluster)
    return ClusterCount(
        cluster=cluster,
        phases={phase: deps.store.phase_count(cluster, phase) for phase in COUNTED_PHASES},
        on_hold=deps.store.reason_count(cluster, ON_HOLD),
        chips_bought=deps.store.chips_bought(cluster),
        chips_idle=deps.store.chips_idle(cluster),
        releasing_for=now - (deps.store.oldest_since(cluster, RELEASED_NOW) or now),
        held_for=now - (deps.store.oldest_since(cluster, HELD) or now),
        paid_for=now - paid[1] if paid else timedelta(0),
        paid_slice=paid[0] if paid else None,
    )
