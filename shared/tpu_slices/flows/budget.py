"""Counts the chips that all other pools hold, if the settings limit them, before a creation is decided."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.planning.policy import Held
from tpu_slices.domain.records.limiters import Budget
from tpu_slices.domain.records.slices import SliceRecord
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
    own = record.current_chips_held
    held = Held(
        in_namespace=deps.store.chips_held(cluster, namespace) - own,
        in_cluster=deps.store.chips_bought(cluster) - own,
    )
    return Counted(held, (Change(stored, replace(before, creations=before.creations + 1, changed_at=now)),))
