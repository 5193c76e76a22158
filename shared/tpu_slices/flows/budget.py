"""Counts chips: those that all other pools hold, before a creation is decided, and what a cluster has in all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.planning.policy import Held
from tpu_slices.domain.records.limiters import Budget
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.reporting.counts import COUNTED_PHASES, HELD, ON_HOLD, RELEASED_NOW, ClusterCount
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.store import Change


@dataclass(frozen=True, slots=True)
class Counted:
    """The chips that all other pools hold, and the write that orders a creation based on this count."""

    held: Held | None = None
    """None: no limit applies, or the slice is not in demand."""
    guards: tuple[Change, ...] = ()


def count(record: SliceRecord, settings: ClusterSettings, deps: ReconcileDeps, *, always: bool = False) -> Counted:
    """Return the chips that all other pools hold, earlier ones of the slice too, if a limit applies, or always.

    The budget is read before the chips, so that a creation saved in between makes the next one's save stale.
    """
    cluster, namespace = settings.cluster, record.owner.namespace
    if not (always or (record.wanted and settings.policy.counts(namespace))):
        return Counted()
    stored = deps.store.budget(cluster)
    now = deps.clock.now()
    before = stored.value if stored else Budget.of(cluster, now)
    own = record.chips_bought
    held = Held(
        in_namespace=deps.store.chips_bought(cluster, namespace) - own,
        in_cluster=deps.store.chips_bought(cluster) - own,
    )
    return Counted(held, (Change(stored, replace(before, creations=before.creations + 1, changed_at=now)),))


def counted(cluster: ClusterId, deps: ReconcileDeps) -> ClusterCount:
    """Return the count of a cluster; Firestore adds it up, so no record is read.

    Its calls are made one after another: the parts may be of different moments.
    """
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
