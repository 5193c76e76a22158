"""Updates a record with the outcome of its actions."""

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
    """Return the record after an action's outcome; losing it is harmless, the next reconcile finds the same."""
    match action, outcome:
        case CreatePool(), Started(operation):
            record = replace(record, operation=operation)
        case CreatePool(), Refused(failure):
            record = failed(record, failure, now, settings)
        case DeletePool(attempt), Refused(failure) if failure.kind in {FailureKind.BUSY, FailureKind.RATE}:
            record = _with_deletion_due(record, attempt)
        case DeletePool(attempt), Refused(failure):
            message = f"GKE refused to delete the node pool of attempt {attempt}: {failure.message}"
            record = record.transitioned(now, record.phase, Reason.DELETION_REFUSED, message)
        case _:
            return record
    return replace(record, next_reconcile_at=due(record, now, settings.limits))


def _with_deletion_due(record: SliceRecord, attempt: int) -> SliceRecord:
    """Return the record so that the next reconcile, after the conflicting operation ended, deletes the pool again."""
    return replace(
        record,
        terminating=tuple(
            replace(earlier, delete_requested_at=None) if earlier.attempt == attempt else earlier
            for earlier in record.terminating
        ),
    )
