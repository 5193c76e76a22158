"""When to look again, and what becomes of a slice whose pool could not be made."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import MINUTE, NOW, a_record, an_occupant, settings
from tpu_slices.domain.model.clusters import Backoff, Limits
from tpu_slices.domain.model.decisions import CreatePool, DeletePool
from tpu_slices.domain.model.observations import Failure, FailureKind, Refused, Started
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.records import Desire, Phase, SliceRecord, TerminatingAttempt
from tpu_slices.domain.reconciling.outcomes import acted
from tpu_slices.domain.reconciling.patience import FAILED, due, failed

LIMITS = Limits()
SECOND = timedelta(seconds=1)
LEFT = TerminatingAttempt(attempt=1, delete_requested_at=NOW)
GUEST = TerminatingAttempt(attempt=1, occupants=(an_occupant("other"),))
MADE = {
    "phase": Phase.PROVISIONING,
    "create_requested_at": NOW,
    "creating": True,
    "slot": 0,
    "operation": "operation-1",
}


@pytest.mark.parametrize(
    ("record", "after"),
    [
        pytest.param(a_record(phase=Phase.READY), None, id="ready: settled"),
        pytest.param(a_record(phase=Phase.REFUSED), None, id="refused: settled"),
        pytest.param(a_record(phase=Phase.GONE), None, id="gone: settled"),
        pytest.param(a_record(phase=Phase.READY, desire=Desire.ABSENT), MINUTE, id="ready, unwanted: not settled"),
        pytest.param(
            a_record(phase=Phase.READY, attempt=2, terminating=(LEFT,)), 20 * SECOND, id="ready, one is leaving"
        ),
        pytest.param(a_record(phase=Phase.READY, attempt=2, terminating=(GUEST,)), MINUTE, id="ready, a guest stays"),
        pytest.param(
            a_record(phase=Phase.GONE, transition_count=3, announced_count=2), MINUTE, id="gone, and to be told"
        ),
        pytest.param(a_record(reason=Reason.OPERATION_LIMIT), MINUTE, id="queued for a slot"),
        pytest.param(a_record(reason=Reason.DEMAND_STALE), 15 * MINUTE, id="queued without a fresh want"),
        pytest.param(a_record(**{**MADE, "operation": None}, reason=Reason.CREATION_STARTED), MINUTE, id="order open"),
        pytest.param(a_record(**MADE, reason=Reason.CREATION_STARTED), 10 * MINUTE, id="ordered: its end is told"),
        pytest.param(a_record(**MADE, reason=Reason.CREATING), 10 * MINUTE, id="creating: its end is told"),
        pytest.param(a_record(**MADE, reason=Reason.HOSTS_JOINING), 10 * MINUTE, id="hosts join: counts are told"),
        pytest.param(a_record(**MADE, reason=Reason.POOL_BUSY), MINUTE, id="busy: nobody tells"),
        pytest.param(a_record(**MADE, reason=Reason.POOL_BROKEN), MINUTE, id="broken under its Job: nobody tells"),
        pytest.param(a_record(phase=Phase.WAITING, retry_at=NOW + 7 * MINUTE), 7 * MINUTE, id="waiting: at its time"),
        pytest.param(a_record(phase=Phase.WAITING), timedelta(), id="waiting for nothing known: now"),
        pytest.param(a_record(phase=Phase.BLOCKED), 10 * MINUTE, id="blocked: settings may change"),
        pytest.param(a_record(phase=Phase.RELEASING), 20 * SECOND, id="releasing"),
        pytest.param(
            a_record(phase=Phase.WAITING, retry_at=NOW + 7 * MINUTE, attempt=2, terminating=(LEFT,)),
            20 * SECOND,
            id="waiting, one is leaving: the sooner",
        ),
        pytest.param(
            a_record(attempt=3, terminating=(GUEST, TerminatingAttempt(attempt=2))),
            20 * SECOND,
            id="one of two that leave has a guest",
        ),
    ],
)
def test_a_slice_is_looked_at_again_in_its_time(record: SliceRecord, after: timedelta | None) -> None:
    assert due(record, NOW, LIMITS) == (None if after is None else NOW + after)


def test_what_is_untold_is_told_within_a_minute_whatever_else_waits() -> None:
    record = a_record(phase=Phase.BLOCKED, transition_count=1)
    assert due(record, NOW, LIMITS) == NOW + MINUTE


@pytest.mark.parametrize("kind", list(FailureKind))
def test_every_kind_of_failure_has_its_place_and_its_words(kind: FailureKind) -> None:
    after = failed(a_record(**MADE), Failure(kind, "in the vendor's words"), NOW, settings())
    unmoved = (Phase.PROVISIONING, Reason.WANTED)
    assert (after.phase, after.reason) == (unmoved if kind is FailureKind.NAME_TAKEN else FAILED[kind])
    assert "in the vendor's words" in after.message
    assert "{" not in after.message


@pytest.mark.parametrize(
    ("kind", "retry"),
    [
        pytest.param(FailureKind.STOCKOUT, MINUTE, id="stockout"),
        pytest.param(FailureKind.QUOTA, 5 * MINUTE, id="quota"),
        pytest.param(FailureKind.RESERVATION, 2 * MINUTE, id="reservation"),
        pytest.param(FailureKind.IP_SPACE, 5 * MINUTE, id="pod addresses"),
        pytest.param(FailureKind.RATE, 5 * SECOND, id="too many at once"),
        pytest.param(FailureKind.BUSY, 10 * SECOND, id="in the way"),
        pytest.param(FailureKind.UNKNOWN, MINUTE, id="unknown"),
        pytest.param(FailureKind.CONFIGURATION, 60 * MINUTE, id="a person is needed, or a permission was granted"),
        pytest.param(FailureKind.IMPOSSIBLE, None, id="impossible: never"),
    ],
)
def test_a_failed_create_gives_back_its_slot_and_waits_by_its_kind(kind: FailureKind, retry: timedelta | None) -> None:
    after = failed(a_record(**MADE), Failure(kind, "why"), NOW, settings())
    assert after.retry_at == (None if retry is None else NOW + retry)
    assert (after.slot, after.creating, after.operation, after.create_requested_at, after.failures) == (
        None,
        False,
        None,
        None,
        1,
    )


def test_a_waiting_slice_says_when_it_tries_again() -> None:
    after = failed(a_record(**MADE), Failure(FailureKind.STOCKOUT, "none left."), NOW, settings())
    assert after.message == ("us-central2-b has no tpu-v5-lite-podslice 4x4 to give; next try 12:01:00 UTC: none left.")


def test_a_slice_without_a_spec_fails_in_whole_sentences() -> None:
    after = failed(a_record(spec=None), Failure(FailureKind.STOCKOUT, "none left."), NOW, settings())
    assert after.message.startswith("The zone has no slice")


def test_what_needs_a_person_remembers_the_settings_it_was_blocked_under() -> None:
    after = failed(a_record(**MADE), Failure(FailureKind.CONFIGURATION, "no such account"), NOW, settings(version="s7"))
    assert (after.phase, after.blocked_settings_version) == (Phase.BLOCKED, "s7")


def test_what_gke_never_makes_is_refused_for_good() -> None:
    after = failed(a_record(**MADE), Failure(FailureKind.IMPOSSIBLE, "unsupported"), NOW, settings())
    assert after.refusal is not None
    assert (after.refusal.reason, after.refusal.message) == (Reason.IMPOSSIBLE_SHAPE, after.message)


def test_a_name_that_is_taken_is_no_failure_but_a_reason_to_look() -> None:
    record = a_record(**MADE, failures=3)
    after = failed(record, Failure(FailureKind.NAME_TAKEN, "already exists"), NOW, settings())
    assert (after.failures, after.creating, after.slot, after.create_requested_at) == (3, True, 0, NOW)
    assert due(after, NOW, LIMITS) is not None


backoffs = st.builds(
    lambda first, times: Backoff(timedelta(seconds=first), timedelta(seconds=first * times)),
    st.integers(1, 600),
    st.integers(1, 50),
)


@given(backoffs, st.integers(1, 10_000))
def test_a_pause_lies_between_the_first_and_the_longest_and_never_shrinks(backoff: Backoff, failures: int) -> None:
    pause = backoff.after(failures)
    assert backoff.initial <= pause <= backoff.maximum
    assert pause <= backoff.after(failures + 1)


@given(backoffs)
def test_a_pause_doubles_until_it_is_the_longest(backoff: Backoff) -> None:
    assert backoff.after(1) == backoff.initial
    for failures in range(1, 12):
        assert backoff.after(failures + 1) == min(2 * backoff.after(failures), backoff.maximum)


@given(st.sampled_from(FailureKind), st.integers(0, 100_000))
def test_every_failure_comes_to_rest_or_is_looked_at_again(kind: FailureKind, failures: int) -> None:
    after = failed(a_record(**MADE, failures=failures), Failure(kind, "why"), NOW, settings())
    again = due(after, NOW, LIMITS)
    assert again is not None
    assert again > NOW
    announced_count = due(_told(after), NOW, LIMITS)
    assert (announced_count is None) == (after.phase is Phase.REFUSED)


def _told(record: SliceRecord) -> SliceRecord:
    return a_record(phase=record.phase, reason=record.reason, retry_at=record.retry_at)


@pytest.mark.parametrize("kind", list(FailureKind))
def test_a_delete_that_gke_does_not_take_leaves_the_attempt_to_be_asked_again(kind: FailureKind) -> None:
    record = a_record(phase=Phase.RELEASING, attempt=2, terminating=(LEFT,))
    after = acted(record, DeletePool(1), Refused(Failure(kind, "not now")), NOW, settings())
    assert [left.attempt for left in after.terminating] == [1]
    assert after.phase is Phase.RELEASING
    assert _at(after) <= NOW + LIMITS.requeue_after
    passing = kind in {FailureKind.BUSY, FailureKind.RATE}
    assert (after.reason is Reason.DELETION_REFUSED) is not passing


def _at(record: SliceRecord) -> datetime:
    assert record.next_reconcile_at is not None
    return record.next_reconcile_at


def test_a_creation_that_gke_took_is_known_by_its_operation_and_its_end_is_waited_for() -> None:
    record = a_record(**{**MADE, "operation": None}, reason=Reason.CREATION_STARTED)
    after = acted(record, CreatePool(1), Started("operation-9"), NOW, settings())
    assert (after.operation, after.next_reconcile_at) == ("operation-9", NOW + LIMITS.resync_after)


def test_patience_begins_anew_where_the_last_failure_was_another() -> None:
    record = a_record()
    kinds = [FailureKind.STOCKOUT, FailureKind.STOCKOUT, FailureKind.QUOTA, FailureKind.QUOTA]
    counts = []
    for kind in kinds:
        record = failed(record, Failure(kind, "no."), NOW, settings())
        counts.append(record.failures)
    assert counts == [1, 2, 1, 2]
