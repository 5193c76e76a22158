"""How an action's outcome changes the record."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.builders import MINUTE, NOW, had, settings, with_fields
from tests.domain.cases import OURS, going, owned, requested, seen, with_hosts
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.observations import (
    Busy,
    Creating,
    Failure,
    FailureKind,
    Observation,
    Outcome,
    Refused,
    Started,
)
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.decisions import (
    Action,
    CancelCreation,
    CloseHosts,
    CreatePool,
    Decision,
    DeletePool,
    OpenHosts,
)
from tpu_slices.domain.reconciling.outcomes import acted, cancellation_refused, left_by
from tpu_slices.domain.records.attempts import Hindrance
from tpu_slices.domain.records.slices import SliceRecord

LIMITS = settings().limits
MOMENT = timedelta(milliseconds=500)
PASSING = [FailureKind.BUSY, FailureKind.RATE]
LASTING = [kind for kind in FailureKind if kind not in PASSING]
DELETE, CANCEL = DeletePool(1), CancelCreation(1)


def a_failure(kind: FailureKind, message: str = "not now") -> Refused:
    return Refused(Failure(kind, message))


def releasing() -> SliceRecord:
    """Return a claim whose slice is being deleted, or the creation of that cancelled."""
    record = going(reason=Reason.DELETION_STARTED, slot=0, delete_requested_at=NOW)
    return replace(record, claimed_by=record.maker)


def after(action: Action, outcome: Outcome, record: SliceRecord | None = None) -> SliceRecord:
    return acted(record or releasing(), action, outcome, NOW, settings())


def next_decision(record: SliceRecord, pool: Observation, later: timedelta = MOMENT) -> Decision:
    """Return the decision a moment later, with the pool still there and a slot free."""
    known = owned(WorkloadState.COMPLETED, slots={1: 3})
    relay = replace(known.relay, last_at=NOW + later)
    return decide(record, seen(pool), NOW + later, settings(), replace(known, relay=relay))


# deletions


@pytest.mark.parametrize("kind", PASSING)
def test_a_deletion_refused_for_now_is_repeated_at_the_next_reconcile_with_a_new_slot(kind: FailureKind) -> None:
    record = after(DELETE, a_failure(kind))
    assert (record.phase, record.reason, sorted(record.slots)) == (Phase.RELEASING, Reason.DELETION_STARTED, [])
    assert record.next_reconcile_at == NOW + LIMITS.delete_retry_after
    again = next_decision(record, OURS, LIMITS.delete_retry_after)
    assert (again.actions, again.reason, sorted(again.record.slots)) == ((DELETE,), Reason.DELETION_STARTED, [3])


def test_a_deletion_that_is_refused_for_another_operation_is_repeated_after_a_growing_pause() -> None:
    record, pauses = releasing(), LIMITS.backoff[FailureKind.BUSY]
    for times in range(1, 5):
        record = after(DELETE, a_failure(FailureKind.BUSY), record)
        current = record.current
        assert (current.hindered, current.slot) == (Hindrance(at=NOW, times=times, message="not now"), None)
        pause = pauses.after(times)
        waiting = next_decision(record, OURS, pause - MOMENT)
        assert (waiting.actions, waiting.reason) == ((), Reason.DELETION_POSTPONED)
        assert "while another operation is in progress" in waiting.message
        assert waiting.record.next_reconcile_at == NOW + pause
        assert waiting.record.slots == frozenset()


def test_while_gke_works_on_the_pool_a_refused_deletion_waits_for_its_end_and_is_asked_for_each_hour() -> None:
    record = after(DELETE, a_failure(FailureKind.BUSY))
    for later in (MOMENT, 9 * MINUTE, 59 * MINUTE):
        waiting = next_decision(record, Busy("upgrade"), later)
        assert (waiting.actions, waiting.reason) == ((), Reason.DELETION_POSTPONED)
        assert waiting.record.next_reconcile_at == NOW + min(later + LIMITS.resync_after, 60 * MINUTE)
    ended = next_decision(record, OURS, 9 * MINUTE)
    assert ended.reason is not Reason.DELETION_POSTPONED
    asked = next_decision(record, Busy("repair"), 60 * MINUTE)
    assert asked.reason is not Reason.DELETION_POSTPONED


def test_too_many_calls_do_not_count_as_another_operation() -> None:
    record = after(DELETE, a_failure(FailureKind.BUSY))
    assert after(DELETE, a_failure(FailureKind.RATE), record).current.hindered == record.current.hindered


def test_a_deletion_under_way_is_not_repeated_at_every_reconcile_and_keeps_its_slot() -> None:
    record = after(DELETE, Started("operation-1"))
    assert record == releasing()
    again = next_decision(record, OURS)
    assert (again.actions, sorted(again.record.slots)) == ((), [0])


@pytest.mark.parametrize("kind", LASTING)
def test_a_deletion_refused_for_good_has_its_reason_until_gke_accepts_it(kind: FailureKind) -> None:
    record = after(DELETE, a_failure(kind, "missing permission"))
    assert record.slots == set()
    soon = next_decision(record, OURS)
    assert (soon.actions, soon.reason) == ((), Reason.DELETION_REFUSED)
    assert "missing permission" in soon.message
    later = next_decision(soon.record, OURS, LIMITS.delete_retry_after)
    assert (later.actions, later.reason) == ((DELETE,), Reason.DELETION_REFUSED)
    assert later.record.transition_count == soon.record.transition_count


# cancellations


def test_a_cancelled_creation_is_awaited() -> None:
    record = after(CANCEL, Started("operation-1"))
    again = next_decision(record, Creating())
    assert (again.actions, again.reason) == ((), Reason.CREATION_IN_DOUBT)


@pytest.mark.parametrize("kind", [kind for kind in FailureKind if kind is not FailureKind.RATE])
def test_a_creation_that_gke_does_not_cancel_is_awaited_and_its_pool_deleted_at_once(kind: FailureKind) -> None:
    record = after(CANCEL, a_failure(kind, "Only node upgrade operations can be cancelled."))
    for minute in range(1, 5):
        assert next_decision(record, Creating(), minute * MINUTE).actions in {
            (),
            (CloseHosts(1, 2),),
        }
    assert next_decision(record, OURS).actions == (DELETE,)


def test_a_creation_that_gke_is_not_permitted_to_cancel_is_awaited_and_says_so() -> None:
    words = 'Required "container.clusters.update" permission(s).'
    record = after(CANCEL, a_failure(FailureKind.CONFIGURATION, words))
    waiting = next_decision(record, Creating())
    assert (waiting.actions, waiting.reason) == ((), Reason.CREATION_IN_DOUBT)
    assert waiting.message.endswith(f"refused to cancel its creation: {words}")
    assert cancellation_refused(releasing(), record)
    assert not cancellation_refused(record, waiting.record)
    asking = next_decision(with_hosts(record, asked=None), Creating())
    assert (asking.reason, words.rstrip(".") in asking.message) == (Reason.CLOSING_HOSTS, True)
    assert words.rstrip(".") not in next_decision(asking.record, OURS, MINUTE).message


def test_that_gke_cancels_no_creations_is_nothing_that_anybody_is_told() -> None:
    words = "Only node upgrade operations can be cancelled."
    record = after(CANCEL, a_failure(FailureKind.BUSY, words))
    assert words not in next_decision(record, Creating()).message
    assert not cancellation_refused(releasing(), record)


def test_a_cancellation_that_came_too_fast_is_requested_again() -> None:
    record = after(CANCEL, a_failure(FailureKind.RATE))
    assert next_decision(record, Creating()).actions == (CANCEL,)


# creations


def test_a_started_creation_has_its_operation_and_is_reconciled_at_the_resync() -> None:
    ordered = requested(create_requested_at=NOW, slot=0, reason=Reason.CREATION_STARTED)
    record = after(CreatePool(1), Started("operation-9"), ordered)
    assert record == with_fields(
        ordered,
        operation="operation-9",
        made_by="operation-9",
        ours_since=NOW,
        next_reconcile_at=NOW + LIMITS.resync_after,
        look_at=NOW + LIMITS.resync_after,
    )


def test_a_refused_creation_fails_without_an_attempt() -> None:
    ordered = requested(create_requested_at=NOW, slot=0, reason=Reason.CREATION_STARTED)
    record = after(CreatePool(1), a_failure(FailureKind.QUOTA), ordered)
    assert (record.reason, record.attempt, had(record)) == (Reason.QUOTA_EXCEEDED, 1, ())
    assert left_by(ordered, CreatePool(1), a_failure(FailureKind.QUOTA), NOW) is None
    assert (sorted(record.slots), record.current.create_requested_at, record.chips_bought) == ([], None, 0)


# questions


@pytest.mark.parametrize("question", [CloseHosts(1, 1), OpenHosts(1, 2)])
def test_a_question_that_was_asked_changes_nothing(question: Action) -> None:
    assert after(question, Started(None)) == releasing()
