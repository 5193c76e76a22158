"""What came of looking at a slice once, and its announcement to the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import LAST_ATTEMPT, PoolName
from tpu_slices.domain.reconciling.decisions import Decision
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows.report import Reported
from tpu_slices.ports.deps import IntakeDeps
from tpu_slices.ports.publisher import SliceUpdate


@dataclass(frozen=True, slots=True)
class Reconciled:
    """The outcome of one reconcile, logged as one line."""

    before: SliceRecord
    decision: Decision
    after: SliceRecord
    reported: Reported | None = None
    """What was reported on its workload at the same time."""

    @property
    def ready_after(self) -> timedelta | None:
        """How long the slice was awaited, if this made it READY; one that is READY again was not."""
        awaited_since = self.before.claim.awaited_since
        return self.after.since - awaited_since if awaited_since and self.after.phase is Phase.READY else None


def announce(record: SliceRecord, known: int, deps: IntakeDeps) -> None:
    """Announce the transitions that came after so many; those of a slice that no Job's claim has concern nobody."""
    if record.unclaimed or record.owner.kind.is_spare:
        return
    transitions = record.transitions_after(known)
    first = record.transition_count - len(transitions) + 1
    updates = [
        SliceUpdate(
            job=record.job,
            slice_id=record.last_claim,
            pool=_announced_pool(record),
            transition_number=first + offset,
            transition=transition,
        )
        for offset, transition in enumerate(transitions)
    ]
    if updates:
        deps.publisher.announce(record.cluster, updates)


def _announced_pool(record: SliceRecord) -> PoolName:
    """Return the pool to announce: the current one or, if it was not requested, the last one before."""
    unmade = record.current.create_requested_at is None
    if record.claim.earlier and unmade:
        return PoolName(record.claim.earlier[-1])
    return record.pool_of(min(record.attempt, LAST_ATTEMPT))
