"""How an action's outcome changes the record."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.builders import NOW, a_record, heard, settings
from tpu_slices.domain.model.decisions import CancelCreation, Decision, DeletePool
from tpu_slices.domain.model.observations import (
    Absent,
    Failure,
    FailureKind,
    PoolObservations,
    Refused,
    Running,
    Started,
)
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.records import Desire, SliceRecord, TerminatingAttempt
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


def next_decision(record: SliceRecord) -> Decision:
    """Return the decision a moment later, with the pool still there, a slot free, and its release forced."""
    forced = replace(record, release_requested=True, release_forced=True)
    return decide(forced, PoolObservations(Absent(), {1: Running()}), NOW + MOMENT, settings(), heard(slots={1: 0}))


@pytest.mark.parametrize("kind", [FailureKind.BUSY, FailureKind.RATE])
def test_a_deletion_refused_for_now_is_repeated_at_the_next_reconcile(kind: FailureKind) -> None:
    record = acted(terminating(), DELETE, Refused(Failure(kind, "not now")), NOW, settings())
    assert (record.phase, record.reason) == (Phase.RELEASING, Reason.DELETION_STARTED)
    assert record.next_reconcile_at == NOW + settings().limits.delete_retry_after
    assert next_decision(record).actions == (DELETE,)


def test_a_deletion_under_way_is_not_repeated_at_every_reconcile() -> None:
    record = acted(terminating(), DELETE, Started("operation-1"), NOW, settings())
    assert next_decision(record).actions == ()


def test_a_deletion_refused_for_good_has_its_reason_and_is_not_repeated_at_every_reconcile() -> None:
    failure = Failure(FailureKind.CONFIGURATION, "missing permission")
    record = acted(terminating(), DELETE, Refused(failure), NOW, settings())
    decision = next_decision(record)
    assert (decision.reason, decision.actions) == (Reason.DELETION_REFUSED, ())
    assert "missing permission" in decision.message


def test_a_creation_that_gke_does_not_cancel_is_not_cancelled_again() -> None:
    record = acted(
        terminating(), CancelCreation(1), Refused(Failure(FailureKind.BUSY, "only upgrades")), NOW, settings()
    )
    assert (record.terminating[0].not_cancellable, record.terminating[0].delete_requested_at) == (True, None)
