"""Since when a slice is awaited: from its request until it is READY for the first time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import (
    MINUTE,
    NOW,
    a_jobset,
    a_record,
    leaders_wait,
    settings,
)
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.reconciling.demand import asked_by, wanted, with_current_desire
from tpu_slices.domain.records.slices import Desire


def test_a_slice_is_awaited_from_its_first_request_on() -> None:
    demand = wanted(asked_by(leaders_wait(), None, settings()), {}, NOW)
    assert demand is not None
    assert {record.claim.awaited_since for record in demand.slices.values()} == {NOW}
    again = wanted(asked_by(leaders_wait(), demand.workload, settings()), demand.slices, NOW + 5 * MINUTE)
    assert again is not None
    assert again.slices == {}


@pytest.mark.parametrize("reason", [reason for reason in Reason if reason.phase])
def test_it_is_awaited_until_it_is_ready(reason: Reason) -> None:
    record = a_record(awaited_since=NOW).transitioned(NOW + MINUTE, reason, "")
    assert record.claim.awaited_since == (None if reason.phase is Phase.READY else NOW)
    assert (
        record.transitioned(NOW + 2 * MINUTE, reason, "Another message.").claim.awaited_since
        == record.claim.awaited_since
    )


def test_one_that_lost_its_hosts_is_not_awaited_again() -> None:
    ready = a_record(awaited_since=NOW).transitioned(NOW + MINUTE, Reason.READY, "")
    assert with_current_desire(ready.transitioned(NOW, Reason.HOSTS_LOST, ""), a_jobset()).claim.awaited_since is None


def test_a_jobset_that_ends_awaits_nothing() -> None:
    awaited = a_record(awaited_since=NOW)
    assert with_current_desire(awaited, a_jobset(state=WorkloadState.COMPLETED)).claim.awaited_since is None
    assert with_current_desire(replace(awaited, release_requested=True), a_jobset()).claim.awaited_since is None
    assert with_current_desire(awaited, a_jobset()).claim.awaited_since == NOW


def test_a_jobset_that_resumes_awaits_it_from_then_on() -> None:
    released = a_record(desire=Desire.ABSENT)
    resumed = a_jobset(state_since=NOW + MINUTE, demand={released.maker: NOW - MINUTE})
    assert with_current_desire(released, resumed).claim.awaited_since == NOW + MINUTE


def test_a_group_that_is_scaled_up_again_awaits_it_from_its_demand_on() -> None:
    released = a_record(desire=Desire.ABSENT)
    scaled = a_jobset(state_since=NOW, demand={released.maker: NOW + MINUTE})
    assert with_current_desire(released, scaled).claim.awaited_since == NOW + MINUTE
