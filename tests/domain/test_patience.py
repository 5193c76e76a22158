"""When a slice is reconciled again, and what becomes of one whose pool could not be created."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import MINUTE, NOW, a_record, an_occupant, settings, some_hosts
from tpu_slices.domain.model.clusters import Backoff, Limits
from tpu_slices.domain.model.decisions import CreatePool, DeletePool
from tpu_slices.domain.model.observations import Failure, FailureKind, Refused, Started
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.records import Rejection, SliceRecord, TerminatingAttempt
from tpu_slices.domain.reconciling.deletion import Assessment, Step
from tpu_slices.domain.reconciling.outcomes import acted
from tpu_slices.domain.reconciling.patience import FAILED, due, failed

LIMITS = Limits()
SECOND = timedelta(seconds=1)
TERMINATING = TerminatingAttempt(attempt=1, delete_requested_at=NOW)
RELEASING = a_record(phase=Phase.RELEASING)
CREATING = {"phase": Phase.PROVISIONING, "create_requested_at": NOW, "slot": 0, "operation": "operation-1"}
IN_USE = some_hosts(occupants=(an_occupant(),))


def kept_until(minutes: float | None) -> Assessment:
    until = None if minutes is None else NOW + minutes * MINUTE
    return Assessment(Step.WAIT, Reason.OCCUPIED, "somebody runs on it", until)


@pytest.mark.parametrize(
    ("record", "assessments", "after"),
    [
        pytest.param(a_record(phase=Phase.READY, hosts=IN_USE), (), None, id="ready and in use: settled"),
        pytest.param(
            a_record(phase=Phase.READY, hosts=some_hosts(vacant_since=NOW)), (), 31 * MINUTE, id="ready and unused"
        ),
        pytest.param(
            a_record(phase=Phase.READY, reason=Reason.RUNS_ELSEWHERE), (), 10 * MINUTE, id="its Job runs elsewhere"
        ),
        pytest.param(a_record(phase=Phase.REFUSED), (), None, id="refused: settled"),
        pytest.param(
            a_record(phase=Phase.REFUSED, reason=Reason.CHIP_LIMIT_REACHED), (), MINUTE, id="others hold the chips"
        ),
        pytest.param(a_record(phase=Phase.GONE), (), None, id="gone: settled"),
        pytest.param(
            a_record(phase=Phase.READY, hosts=IN_USE), (kept_until(5),), 5 * MINUTE, id="ready, one is terminating"
        ),
        pytest.param(RELEASING, (kept_until(None),), MINUTE, id="releasing, nothing announced"),
        pytest.param(RELEASING, (kept_until(-5),), timedelta(), id="releasing, its time has come"),
        pytest.param(RELEASING, (kept_until(9), kept_until(3)), 3 * MINUTE, id="the sooner of two"),
        pytest.param(a_record(reason=Reason.OPERATION_LIMIT), (), 10 * MINUTE, id="queued: a freed slot is announced"),
        pytest.param(a_record(reason=Reason.DEMAND_STALE), (), 15 * MINUTE, id="queued without fresh demand"),
        pytest.param(
            a_record(**{**CREATING, "operation": None}, reason=Reason.CREATION_STARTED), (), MINUTE, id="not answered"
        ),
        pytest.param(a_record(**CREATING, reason=Reason.CREATION_STARTED), (), 10 * MINUTE, id="requested"),
        pytest.param(a_record(**CREATING, reason=Reason.CREATING), (), 10 * MINUTE, id="creating: its end is reported"),
        pytest.param(a_record(**CREATING, reason=Reason.HOSTS_JOINING), (), 10 * MINUTE, id="hosts are reported"),
        pytest.param(a_record(**CREATING, reason=Reason.POOL_BUSY), (), MINUTE, id="busy: nothing is reported"),
        pytest.param(a_record(**CREATING, reason=Reason.POOL_BROKEN), (), MINUTE, id="broken: nothing is reported"),
        pytest.param(a_record(phase=Phase.WAITING, retry_at=NOW + 7 * MINUTE), (), 7 * MINUTE, id="waiting"),
        pytest.param(a_record(phase=Phase.WAITING), (), timedelta(), id="waiting for nothing known: now"),
        pytest.param(a_record(phase=Phase.BLOCKED), (), 10 * MINUTE, id="blocked: settings may change"),
    ],
)
def test_a_slice_is_reconciled_again_in_due_time(
    record: SliceRecord, assessments: tuple[Assessment, ...], after: timedelta | None
) -> None:
    assert due(record, assessments, NOW, LIMITS) == (None if after is None else NOW + after)


@pytest.mark.parametrize("kind", list(FailureKind))
def test_every_kind_of_failure_has_its_phase_reason_and_message(kind: FailureKind) -> None:
    after = failed(a_record(**CREATING), Failure(kind, "in the vendor's words"), NOW, settings())
    assert (after.reason, after.phase) == (FAILED[kind], FAILED[kind].phase)
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
        pytest.param(FailureKind.BUSY, 10 * SECOND, id="busy"),
        pytest.param(FailureKind.UNKNOWN, MINUTE, id="unknown"),
        pytest.param(FailureKind.CONFIGURATION, 60 * MINUTE, id="configuration"),
        pytest.param(FailureKind.IMPOSSIBLE, None, id="impossible: never"),
    ],
)
def test_a_failed_creation_frees_its_slot_and_backs_off_by_its_kind(kind: FailureKind, retry: timedelta | None) -> None:
    after = failed(a_record(**CREATING), Failure(kind, "why"), NOW, settings())
    assert after.retry_at == (None if retry is None else NOW + retry)
    assert (after.slot, after.operation, after.create_requested_at, after.failures) == (None, None, None, 1)


def test_a_waiting_slices_message_has_the_next_attempt() -> None:
    after = failed(a_record(**CREATING), Failure(FailureKind.STOCKOUT, "none left."), NOW, settings())
    assert after.message == (
        "us-central2-b is out of tpu-v5-lite-podslice 4x4; next attempt at 12:01:00 UTC. Cause: none left."
    )


def test_a_slice_without_a_spec_has_a_message_all_the_same() -> None:
    after = failed(a_record(spec=None), Failure(FailureKind.STOCKOUT, "none left."), NOW, settings())
    assert after.message.startswith("The zone is out of such hosts")


def test_a_blocked_slice_records_the_version_of_the_settings() -> None:
    after = failed(
        a_record(**CREATING), Failure(FailureKind.CONFIGURATION, "no such account"), NOW, settings(version="s7")
    )
    assert (after.phase, after.blocked_settings_version) == (Phase.BLOCKED, "s7")


def test_a_shape_that_gke_never_creates_is_rejected_under_these_settings() -> None:
    after = failed(a_record(**CREATING), Failure(FailureKind.IMPOSSIBLE, "unsupported"), NOW, settings())
    assert after.rejection == Rejection(
        reason=Reason.IMPOSSIBLE_SHAPE, message=after.message, settings_version=settings().version
    )


def test_a_name_that_is_taken_is_no_failure_and_the_slice_is_reconciled_again() -> None:
    record = a_record(**CREATING, failures=3)
    after = failed(record, Failure(FailureKind.NAME_TAKEN, "already exists"), NOW, settings())
    assert (after.failures, after.slot, after.create_requested_at) == (3, 0, NOW)
    assert due(after, (), NOW, LIMITS) is not None


backoffs = st.builds(
    lambda first, times: Backoff(timedelta(seconds=first), timedelta(seconds=first * times)),
    st.integers(1, 600),
    st.integers(1, 50),
)


@given(backoffs, st.integers(1, 10_000))
def test_a_backoff_lies_between_initial_and_maximum_and_never_shrinks(backoff: Backoff, failures: int) -> None:
    pause = backoff.after(failures)
    assert backoff.initial <= pause <= backoff.maximum
    assert pause <= backoff.after(failures + 1)


@given(backoffs)
def test_a_backoff_doubles_up_to_the_maximum(backoff: Backoff) -> None:
    assert backoff.after(1) == backoff.initial
    for failures in range(1, 12):
        assert backoff.after(failures + 1) == min(2 * backoff.after(failures), backoff.maximum)


@given(st.sampled_from(FailureKind), st.integers(0, 100_000))
def test_after_every_failure_the_slice_is_settled_or_reconciled_again(kind: FailureKind, failures: int) -> None:
    after = failed(a_record(**CREATING, failures=failures), Failure(kind, "why"), NOW, settings())
    again = due(after, (), NOW, LIMITS)
    assert (again is None) == (after.phase is Phase.REFUSED)
    assert again is None or again > NOW


@pytest.mark.parametrize("kind", list(FailureKind))
def test_an_attempt_whose_deletion_is_refused_stays_and_is_reconciled_again(kind: FailureKind) -> None:
    record = a_record(phase=Phase.RELEASING, attempt=2, terminating=(TERMINATING,))
    after = acted(record, DeletePool(1), Refused(Failure(kind, "not now")), NOW, settings())
    assert [each.attempt for each in after.terminating] == [1]
    assert after.phase is Phase.RELEASING
    assert _at(after) <= NOW + LIMITS.requeue_after
    (earlier,) = after.terminating
    passing = kind in {FailureKind.BUSY, FailureKind.RATE}
    assert (earlier.slot, earlier.refused) == (None, "" if passing else "not now")
    assert after.transitions == record.transitions, "told by the next decision"


def _at(record: SliceRecord) -> datetime:
    assert record.next_reconcile_at is not None
    return record.next_reconcile_at


def test_a_started_creation_has_its_operation_and_is_reconciled_at_the_resync() -> None:
    record = a_record(**{**CREATING, "operation": None}, reason=Reason.CREATION_STARTED)
    after = acted(record, CreatePool(1), Started("operation-9"), NOW, settings())
    assert (after.operation, after.next_reconcile_at) == ("operation-9", NOW + LIMITS.resync_after)


def test_backoff_starts_anew_after_a_failure_of_another_kind() -> None:
    record = a_record()
    kinds = [FailureKind.STOCKOUT, FailureKind.STOCKOUT, FailureKind.QUOTA, FailureKind.QUOTA]
    counts = []
    for kind in kinds:
        record = failed(record, Failure(kind, "no."), NOW, settings())
        counts.append(record.failures)
    assert counts == [1, 2, 1, 2]
