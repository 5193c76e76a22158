"""How an action's outcome changes the record."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.builders import NOW, a_record, settings
from tpu_slices.domain.model.decisions import DeletePool
from tpu_slices.domain.model.observations import (
    Absent,
    Creating,
    Failure,
    FailureKind,
    PoolObservations,
    Refused,
    Started,
)
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.records import Desire, Phase, SliceRecord, TerminatingAttempt
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.outcomes import acted

MOMENT = timedelta(milliseconds=500)
DELETE = DeletePool(1)


def terminating() -> SliceRecord:
    """Return a slice whose first pool's deletion is being requested."""
    return a_record(
        desire=Desire.ABSENT,
        phase=Phase.RELEASING,
        reason=Reason.DELETION_STARTED,
        attempt=2,
        terminating=(TerminatingAttempt(attempt=1, delete_requested_at=NOW),),
    )


def next_actions(record: SliceRecord) -> tuple[object, ...]:
    """Return the actions of a decision a moment later, with the pool still there."""
    return decide(record, PoolObservations(Absent(), {1: Creating()}), NOW + MOMENT, settings()).actions


@pytest.mark.parametrize("kind", [FailureKind.BUSY, FailureKind.RATE])
def test_a_deletion_refused_for_now_is_repeated_at_the_next_reconcile(kind: FailureKind) -> None:
    record = acted(terminating(), DELETE, Refused(Failure(kind, "not now")), NOW, settings())
    assert (record.phase, record.reason) == (Phase.RELEASING, Reason.DELETION_STARTED)
    assert record.next_reconcile_at == NOW + settings().limits.delete_retry_after
    assert next_actions(record) == (DELETE,)


def test_a_deletion_under_way_is_not_repeated_at_every_reconcile() -> None:
    record = acted(terminating(), DELETE, Started("operation-1"), NOW, settings())
    assert next_actions(record) == ()


def test_a_deletion_refused_for_good_has_its_reason_and_is_not_repeated_at_every_reconcile() -> None:
    failure = Failure(FailureKind.CONFIGURATION, "missing permission")
    record = acted(terminating(), DELETE, Refused(failure), NOW, settings())
    assert record.reason is Reason.DELETION_REFUSED
    assert "missing permission" in record.message
    assert next_actions(record) == ()
