"""How attempts are told: which one it is, what the others failed of, since when, and until when this one may take."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest

from tests.builders import MINUTE, NOW, a_jobset, a_record, a_spec, settings
from tests.domain.cases import FLEX
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.observations import Failure, FailureKind
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import Capacity, CapacityKind, SliceSpec
from tpu_slices.domain.model.vendors import COMPUTE_ENGINE, GKE, Vendor
from tpu_slices.domain.reconciling.demand import with_current_desire
from tpu_slices.domain.reconciling.patience import failed
from tpu_slices.domain.records import attempts_told
from tpu_slices.domain.records.awaited import Shortage
from tpu_slices.domain.records.transitions import HISTORY

STOCKOUT = Failure(FailureKind.STOCKOUT, "none left.")


@pytest.mark.parametrize(
    ("setbacks", "failed_so_far", "ahead"),
    [
        ([{}], "no attempt so far", ""),
        ([{Reason.STOCKOUT: 1}], "1 attempt so far, out of stock once", "attempt 2, out of stock once"),
        ([{Reason.STOCKOUT: 3}], "3 attempts so far, out of stock 3 times", "attempt 4, out of stock 3 times"),
        (
            [{Reason.STOCKOUT: 2, Reason.QUOTA_EXCEEDED: 1}],
            "3 attempts so far, out of stock 2 times, beyond the quota once",
            "attempt 4, out of stock 2 times, beyond the quota once",
        ),
        ([{Reason.LATER_RELEASE: 2}], "2 attempts so far, failed 2 times", "attempt 3, failed 2 times"),
        (
            [{Reason.STOCKOUT: 1}, {Reason.STOCKOUT: 4}],
            "1 to 4 attempts so far, out of stock 1 to 4 times",
            "attempt 2 to 5, out of stock 1 to 4 times",
        ),
        (
            [{}, {Reason.STOCKOUT: 1}],
            "0 to 1 attempts so far, out of stock 0 to 1 times",
            "attempt 1 to 2, out of stock 0 to 1 times",
        ),
    ],
)
def test_attempts_are_counted_by_what_they_failed_of(
    setbacks: list[Mapping[Reason, int]], failed_so_far: str, ahead: str
) -> None:
    records = [a_record(setbacks=each) for each in setbacks]
    assert (attempts_told.failed(records), attempts_told.ahead(records)) == (failed_so_far, ahead)


@pytest.mark.parametrize(
    ("spec", "vendor", "minutes", "told"),
    [
        (a_spec(), GKE, 0, "this one may take until 12:36 UTC"),
        (a_spec(), GKE, 35, "this one may take until 12:36 UTC"),
        (a_spec(), GKE, 36, "GKE usually reports a stockout before 12:36 UTC, and has not yet"),
        (a_spec(), COMPUTE_ENGINE, 0, ""),
        (FLEX, GKE, 0, ""),
    ],
)
def test_an_attempt_may_take_until_its_vendor_gives_it_up(
    spec: SliceSpec, vendor: Vendor, minutes: int, told: str
) -> None:
    record = a_record(spec=spec, create_requested_at=NOW)
    assert attempts_told.lasts([record], vendor, NOW + minutes * MINUTE) == told


@pytest.mark.parametrize(
    ("capacity", "shortage", "told"),
    [
        (
            Capacity(),
            Shortage(at=NOW, reason=Reason.STOCKOUT, what="v4 2x2x4"),
            "us-central2-b was out of v4 2x2x4 at 12:00 UTC",
        ),
        (
            Capacity(),
            Shortage(at=NOW, reason=Reason.RESOURCES_EXHAUSTED, what="v4 2x2x4"),
            "us-central2-b was out of v4 2x2x4, or the project of quota for them, at 12:00 UTC",
        ),
        (
            Capacity(CapacityKind.RESERVATION, "hall-7"),
            Shortage(at=NOW, reason=Reason.RESERVATION_UNAVAILABLE, what="v4 2x2x4", again_at=NOW + MINUTE),
            "The reservation hall-7 could not provide v4 2x2x4 in us-central2-b at 12:00 UTC: one slice at a time",
        ),
        (
            Capacity(CapacityKind.RESERVATION, "hall-7"),
            Shortage(at=NOW, reason=Reason.RESERVATION_AWAITED, again_at=NOW + MINUTE),
            "The reservation hall-7 was not there, or could not be used yet, at 12:00 UTC",
        ),
    ],
)
def test_what_ran_out_is_told_with_its_place_and_time(capacity: Capacity, shortage: Shortage, told: str) -> None:
    said = attempts_told.ran_out(a_record(spec=a_spec(capacity=capacity)), shortage)
    assert said.startswith(told)
    assert said.endswith("and this one waits for its turn")


def test_the_first_request_and_the_attempts_are_known_however_long_the_history() -> None:
    record = a_record(awaited_since=NOW, created_at=NOW)
    for attempt in range(1, 2 * HISTORY):
        at = NOW + attempt * 40 * MINUTE
        record = record.transitioned(at, Reason.CREATION_STARTED, "Creating.").with_current(create_requested_at=at)
        record = failed(record, STOCKOUT, at + 35 * MINUTE, settings())
    assert record.transition_count > len(record.transitions) == HISTORY
    assert (record.claim.waits_since, record.claim.setbacks) == (NOW, {Reason.STOCKOUT: 2 * HISTORY - 1})
    assert (
        f"{2 * HISTORY - 1} attempts so far, out of stock {2 * HISTORY - 1} times since 2026-03-01 12:00 UTC"
        in record.message
    )


@pytest.mark.parametrize("kind", [FailureKind.RATE, FailureKind.BUSY, FailureKind.NAME_TAKEN])
def test_an_operation_that_was_in_the_way_is_no_attempt_that_failed(kind: FailureKind) -> None:
    assert failed(a_record(), Failure(kind, "later."), NOW, settings()).claim.setbacks == {}


@pytest.mark.parametrize("reason", [reason for reason in Reason if reason.phase])
def test_a_slice_waits_and_its_attempts_count_until_it_is_ready_or_not_needed(reason: Reason) -> None:
    waits = a_record(awaited_since=NOW, setbacks={Reason.STOCKOUT: 2}).transitioned(NOW + MINUTE, reason, "")
    ready = reason.phase is Phase.READY
    assert (waits.claim.waits_since, waits.claim.setbacks) == ((None, {}) if ready else (NOW, {Reason.STOCKOUT: 2}))
    unneeded = with_current_desire(waits, a_jobset(state=WorkloadState.SUSPENDED)).transitioned(NOW, reason, "")
    assert (unneeded.claim.waits_since, unneeded.claim.setbacks) == (None, {})


def test_a_slice_that_was_ready_waits_since_it_lost_its_hosts() -> None:
    record = a_record(awaited_since=NOW).transitioned(NOW + MINUTE, Reason.READY, "")
    lost = record.transitioned(NOW + 2 * MINUTE, Reason.HOSTS_LOST, "")
    later = failed(lost, STOCKOUT, NOW + timedelta(hours=1), settings())
    assert (later.claim.waits_since, later.claim.setbacks) == (NOW + 2 * MINUTE, {Reason.STOCKOUT: 1})
