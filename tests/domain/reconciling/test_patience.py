"""When a slice is reconciled again, and what becomes of one whose pool could not be created."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import MINUTE, NOW, a_record, a_spec, an_occupant, settings, some_hosts
from tests.domain.cases import going, unneeded
from tpu_slices.domain.model.clusters import Backoff, Limits
from tpu_slices.domain.model.observations import Cause, Failure, FailureKind, Refused
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import Capacity, CapacityKind
from tpu_slices.domain.reconciling.decisions import DeletePool
from tpu_slices.domain.reconciling.deletion import Assessment, Step
from tpu_slices.domain.reconciling.outcomes import acted
from tpu_slices.domain.reconciling.patience import FAILED, due, due_after, failed
from tpu_slices.domain.records.claims import Rejection
from tpu_slices.domain.records.returning import Returning
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.use import UNUSED_FOR

LIMITS = Limits()
RESERVED = a_spec(capacity=Capacity(CapacityKind.RESERVATION, "hall-7"))
HOUR = 60 * MINUTE
SECOND = timedelta(seconds=1)
CREATING: dict[str, Any] = {
    "phase": Phase.PROVISIONING,
    "create_requested_at": NOW,
    "slot": 0,
    "operation": "operation-1",
}


def a_slice(reason: Reason, **changes: Any) -> SliceRecord:
    """Return a slice with this reason and its phase."""
    return a_record(**{"phase": reason.phase, "reason": reason, **changes})


def vacant(lasting: timedelta, **changes: Any) -> SliceRecord:
    hosts = some_hosts(vacant_since=NOW - lasting)
    return a_slice(Reason.READY, **{"since": NOW - lasting, "hosts": hosts, **changes})


def since(lasting: timedelta) -> Returning:
    """Return an upgrade that began so long ago."""
    return Returning(cause=Cause.UPGRADE, since=NOW - lasting, counts_from=NOW - lasting)


IN_USE = some_hosts(occupants=(an_occupant(),))
CLOSED = some_hosts(occupants=(an_occupant(),), usable=0, closed=4)
IDLE = LIMITS.idle_after


@pytest.mark.parametrize(
    ("record", "after"),
    [
        pytest.param(a_slice(Reason.READY, hosts=IN_USE), None, id="ready, in use: settled"),
        pytest.param(vacant(timedelta()), UNUSED_FOR, id="ready, unused: when it counts as idle"),
        pytest.param(vacant(UNUSED_FOR), IDLE + MINUTE - UNUSED_FOR, id="ready, idle: when it is so for too long"),
        pytest.param(vacant(10 * MINUTE), IDLE - 9 * MINUTE, id="ready, unused for a while"),
        pytest.param(vacant(2 * IDLE), MINUTE, id="ready, unused for too long: soon"),
        pytest.param(vacant(10 * MINUTE, since=NOW - MINUTE), 4 * MINUTE, id="ready for a minute, vacant for longer"),
        pytest.param(a_slice(Reason.READY), UNUSED_FOR, id="ready, nothing reported"),
        pytest.param(a_slice(Reason.NOT_ALLOWED), None, id="refused: settled"),
        pytest.param(a_slice(Reason.CHIP_LIMIT_REACHED), None, id="over the chip limit: told when chips are released"),
        pytest.param(a_slice(Reason.PURCHASES_STOPPED), None, id="purchases stopped: told when chips are released"),
        pytest.param(a_slice(Reason.RELEASED), None, id="gone: settled"),
        pytest.param(a_slice(Reason.OPERATION_LIMIT), None, id="queued: whoever frees a slot requests it"),
        pytest.param(a_slice(Reason.DEMAND_STALE), 15 * MINUTE, id="queued without fresh demand"),
        pytest.param(
            a_slice(Reason.DEMAND_STALE, create_requested_at=NOW), MINUTE, id="without demand, an order may take effect"
        ),
        pytest.param(
            a_slice(Reason.CREATION_STARTED, create_requested_at=NOW), MINUTE, id="create request not answered"
        ),
        pytest.param(a_slice(Reason.CREATION_STARTED, **CREATING), 10 * MINUTE, id="create requested"),
        pytest.param(a_slice(Reason.CREATING, **CREATING), 10 * MINUTE, id="creating: its end is reported"),
        pytest.param(a_slice(Reason.HOSTS_JOINING, **CREATING), 10 * MINUTE, id="hosts join: counts are reported"),
        pytest.param(a_slice(Reason.HOSTS_LOST, **CREATING), 10 * MINUTE, id="hosts lost: counts are reported"),
        pytest.param(
            a_slice(Reason.GKE_UPGRADES, **CREATING, returning=since(2 * HOUR)), 10 * MINUTE, id="hosts come back"
        ),
        pytest.param(
            a_slice(Reason.GKE_UPGRADES, **CREATING, returning=since(6 * HOUR - 3 * MINUTE)),
            3 * MINUTE,
            id="hosts come back: not awaited any longer then",
        ),
        pytest.param(
            a_slice(Reason.GKE_UPGRADES, **CREATING, returning=since(7 * HOUR)),
            10 * MINUTE,
            id="hosts come back late, and are in use",
        ),
        pytest.param(a_slice(Reason.POOL_BROKEN, **CREATING), MINUTE, id="broken under its Job: nothing is reported"),
        pytest.param(a_slice(Reason.STOCKOUT, retry_at=NOW + 7 * MINUTE), 7 * MINUTE, id="waiting: at its time"),
        pytest.param(a_slice(Reason.STOCKOUT), timedelta(), id="waiting for nothing known: now"),
        pytest.param(a_slice(Reason.HELD), 10 * MINUTE, id="blocked: settings may change"),
        pytest.param(a_slice(Reason.READY, hosts=IN_USE, earlier=(1,)), None, id="ready, had another before: settled"),
        pytest.param(
            a_slice(Reason.DELETION_STARTED, earlier=(1,)), 10 * MINUTE, id="releasing, for what it had before"
        ),
        pytest.param(a_slice(Reason.READY, hosts=CLOSED), MINUTE, id="ready, with closed hosts: they are to be open"),
        pytest.param(unneeded(a_slice(Reason.RELEASED, hosts=CLOSED)), None, id="gone, with closed hosts: settled"),
    ],
)
def test_a_slice_is_reconciled_again_in_due_time(record: SliceRecord, after: timedelta | None) -> None:
    assert due(record, None, NOW, LIMITS) == (None if after is None else NOW + after)


def kept(reason: Reason = Reason.OCCUPIED, until: datetime | None = None) -> Assessment:
    return Assessment(Step.WAIT, reason, "why", until)


@pytest.mark.parametrize(
    ("still", "after"),
    [
        pytest.param(kept(until=NOW + SECOND), SECOND, id="when why it still stands may change"),
        pytest.param(kept(), MINUTE, id="no time known: after a minute"),
        pytest.param(kept(until=NOW - MINUTE), timedelta(), id="a time in the past: now"),
        pytest.param(
            kept(Reason.DELETION_QUEUED, NOW + SECOND), None, id="its deletion waits for a slot: one is handed on to it"
        ),
    ],
)
def test_a_slice_that_goes_is_reconciled_when_why_it_still_stands_may_change(
    still: Assessment, after: timedelta | None
) -> None:
    record = going(reason=still.reason)
    assert due(record, still, NOW, LIMITS) == (None if after is None else NOW + after)


@given(st.sampled_from(Reason))
def test_after_an_action_no_slice_is_reconciled_later_than_was_decided(reason: Reason) -> None:
    phase = reason.phase or Phase.READY
    goes = phase is Phase.RELEASING
    record = going(reason=reason) if goes else a_slice(reason, phase=phase, attempt=2, earlier=(1,), retry_at=NOW)
    still = kept(until=NOW + LIMITS.delete_retry_after) if goes else None
    assert due_after(record, NOW, LIMITS) == due(record, still, NOW, LIMITS)


@pytest.mark.parametrize("kind", list(FailureKind))
def test_every_kind_of_failure_has_its_phase_reason_and_message(kind: FailureKind) -> None:
    after = failed(a_record(**CREATING, spec=RESERVED), Failure(kind, "in the vendor's words"), NOW, settings())
    assert (after.phase, after.reason) == (FAILED[kind].phase, FAILED[kind])
    assert "in the vendor's words" in after.message
    assert "{" not in after.message


@pytest.mark.parametrize(
    ("kind", "retry"),
    [
        pytest.param(FailureKind.STOCKOUT, MINUTE, id="stockout"),
        pytest.param(FailureKind.QUOTA, 5 * MINUTE, id="quota"),
        pytest.param(FailureKind.EXHAUSTED, MINUTE, id="stock or quota"),
        pytest.param(FailureKind.RESERVATION, MINUTE, id="reservation"),
        pytest.param(FailureKind.RESERVATION_AWAITED, MINUTE, id="reservation that is not there yet"),
        pytest.param(FailureKind.IP_SPACE, 5 * MINUTE, id="pod addresses"),
        pytest.param(FailureKind.RATE, 5 * SECOND, id="too many at once"),
        pytest.param(FailureKind.BUSY, 10 * SECOND, id="busy"),
        pytest.param(FailureKind.HOSTS, 5 * MINUTE, id="hosts"),
        pytest.param(FailureKind.UNKNOWN, MINUTE, id="unknown"),
        pytest.param(FailureKind.CONFIGURATION, 60 * MINUTE, id="configuration"),
        pytest.param(FailureKind.IMPOSSIBLE, None, id="impossible: never"),
    ],
)
def test_a_failed_creation_frees_its_slot_and_backs_off_by_its_kind(kind: FailureKind, retry: timedelta | None) -> None:
    after = failed(a_record(**CREATING), Failure(kind, "why"), NOW, settings())
    assert after.claim.retry_at == (None if retry is None else NOW + retry)
    assert (after.current.slot, after.current.operation, after.current.create_requested_at, after.claim.failures) == (
        None,
        None,
        None,
        1,
    )


def test_a_waiting_slices_message_has_the_next_attempt() -> None:
    after = failed(a_record(**CREATING), Failure(FailureKind.STOCKOUT, "none left."), NOW, settings())
    assert after.message == (
        "us-central2-b is out of tpu-v6e-slice 4x4; next attempt at 12:01:00 UTC. Cause: none left."
    )


@pytest.mark.parametrize(
    ("kind", "reserved", "said"),
    [
        (FailureKind.STOCKOUT, False, "us-central2-b is out of tpu-v6e-slice 4x4;"),
        (
            FailureKind.EXHAUSTED,
            False,
            "us-central2-b is out of tpu-v6e-slice 4x4, or the project's quota does not allow more of them; GKE does ",
        ),
        (
            FailureKind.RESERVATION,
            True,
            "The reservation hall-7 cannot provide tpu-v6e-slice 4x4 in us-central2-b now;",
        ),
        (FailureKind.RESERVATION, False, "us-central2-b is out of tpu-v6e-slice 4x4;"),
        (FailureKind.RESERVATION_AWAITED, True, "The reservation hall-7 is not there, or cannot be used yet;"),
    ],
)
def test_what_is_not_there_is_called_what_it_is(kind: FailureKind, reserved: bool, said: str) -> None:
    record = a_record(**CREATING, spec=RESERVED if reserved else a_spec())
    after = failed(record, Failure(kind, "none left."), NOW, settings())
    assert after.message.startswith(said)
    assert after.reason is (Reason.STOCKOUT if said.endswith("4x4;") else FAILED[kind])


def test_a_reservation_that_is_not_there_yet_is_tried_every_few_minutes() -> None:
    record, at, tries = a_record(spec=RESERVED), NOW, 0
    while at < NOW + timedelta(hours=4):
        record, tries = failed(record, Failure(FailureKind.RESERVATION_AWAITED, "no such."), at, settings()), tries + 1
        assert record.claim.retry_at is not None
        assert record.claim.retry_at - at <= 5 * MINUTE
        at = record.claim.retry_at
    assert tries <= 52


def test_a_slice_without_a_spec_has_a_message_all_the_same() -> None:
    after = failed(a_record(spec=None), Failure(FailureKind.STOCKOUT, "none left."), NOW, settings())
    assert after.message.startswith("The zone is out of such hosts")


def test_a_blocked_slice_records_the_version_of_the_settings() -> None:
    after = failed(
        a_record(**CREATING), Failure(FailureKind.CONFIGURATION, "no such account"), NOW, settings(version="s7")
    )
    assert (after.phase, after.claim.blocked_settings_version) == (Phase.BLOCKED, "s7")


def test_a_shape_that_gke_never_creates_is_rejected_under_these_settings() -> None:
    after = failed(a_record(**CREATING), Failure(FailureKind.IMPOSSIBLE, "unsupported"), NOW, settings(version="s7"))
    assert after.claim.rejection == Rejection(
        reason=Reason.IMPOSSIBLE_SHAPE, message=after.message, settings_version="s7"
    )


def test_a_name_that_is_taken_is_no_failure_and_the_slice_is_reconciled_again() -> None:
    record = a_record(**CREATING, failures=3)
    after = failed(record, Failure(FailureKind.NAME_TAKEN, "already exists"), NOW, settings())
    assert (after.claim.failures, after.current.slot, after.current.create_requested_at, after.current.operation) == (
        3,
        0,
        NOW,
        None,
    )
    assert due(after, None, NOW, LIMITS) == NOW + LIMITS.act_window


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
    again = due(after, None, NOW, LIMITS)
    assert (again is None) == (after.phase is Phase.REFUSED)
    assert again is None or again > NOW


@pytest.mark.parametrize("kind", list(FailureKind))
def test_a_slice_whose_deletion_is_refused_stays_and_is_reconciled_again(kind: FailureKind) -> None:
    record = going(delete_requested_at=NOW)
    after = acted(record, DeletePool(1), Refused(Failure(kind, "not now")), NOW, settings())
    assert (after.phase, after.current.create_requested_at) == (Phase.RELEASING, record.current.create_requested_at)
    assert after.next_reconcile_at is not None
    assert after.next_reconcile_at <= NOW + LIMITS.requeue_after
    passing = kind in {FailureKind.BUSY, FailureKind.RATE}
    assert (after.current.slot, after.current.refused) == (None, "" if passing else "not now")
    assert after.transitions == record.transitions, "told by the next decision"


def test_backoff_starts_anew_after_a_failure_of_another_kind() -> None:
    record = a_record()
    kinds = [FailureKind.STOCKOUT, FailureKind.STOCKOUT, FailureKind.QUOTA, FailureKind.QUOTA]
    counts = []
    for kind in kinds:
        record = failed(record, Failure(kind, "no."), NOW, settings())
        counts.append(record.claim.failures)
    assert counts == [1, 2, 1, 2]
