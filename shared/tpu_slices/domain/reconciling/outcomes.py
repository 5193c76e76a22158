"""What an action's outcome makes of the record that ordered it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.decisions import Action, CreatePool, DeletePool
from tpu_slices.domain.model.observations import FailureKind, Outcome, Refused, Started
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.records import SliceRecord
from tpu_slices.domain.reconciling.patience import due, failed


def acted(
    record: SliceRecord, action: Action, outcome: Outcome, now: datetime, settings: ClusterSettings
) -> SliceRecord:
    """Give the record after an action's outcome is known; losing it is harmless, the next look finds the same."""
    match action, outcome:
        case CreatePool(), Started(operation):
            record = replace(record, operation=operation)
        case CreatePool(), Refused(failure):
            record = failed(record, failure, now, settings)
        case DeletePool(attempt), Refused(failure) if failure.kind in {FailureKind.BUSY, FailureKind.RATE}:
            record = _not_ordered(record, attempt)
        case DeletePool(attempt), Refused(failure):
            message = f"GKE refused to delete attempt {attempt}: {failure.message}"
            record = record.transitioned(now, record.phase, Reason.DELETION_REFUSED, message)
        case _:
            return record
    return replace(record, next_reconcile_at=due(record, now, settings.limits))


def _not_ordered(record: SliceRecord, attempt: int) -> SliceRecord:
    """Let the next look order the deletion again: it comes when the operation that was in the way has ended."""
    return replace(
        record,
        terminating=tuple(
            replace(left, delete_requested_at=None) if left.attempt == attempt else left for left in record.terminating
        ),
    )
