"""From the records of JobSets to the desire of their slices, and whose slice a waiting leader needs."""

from __future__ import annotations

import pytest

from tests.builders import (
    NOW,
    a_jobset,
    a_record,
    unclaimed,
)
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.reconciling.demand import with_current_desire
from tpu_slices.domain.records.slices import Desire
from tpu_slices.domain.records.workloads import WorkloadRecord

ENDS = [state for state in WorkloadState if state.ended]


@pytest.mark.parametrize(
    ("own", "desire"),
    [
        pytest.param(a_jobset(), Desire.PRESENT, id="active"),
        pytest.param(None, Desire.PRESENT, id="unknown: nothing is deleted"),
        pytest.param(a_jobset(state=WorkloadState.SUSPENDED), Desire.ABSENT, id="suspended"),
        *(pytest.param(a_jobset(state=end), Desire.ABSENT, id=end) for end in ENDS),
    ],
)
def test_a_slices_desire_follows_from_its_jobsets_state(own: WorkloadRecord | None, desire: Desire) -> None:
    assert with_current_desire(a_record(), own).desire is desire


def test_a_requested_release_overrides_the_jobsets_demand() -> None:
    released = with_current_desire(a_record(release_requested=True), a_jobset())
    assert (released.desire, released.desire_message) == (Desire.ABSENT, "an operator requested its release")


@pytest.mark.parametrize("own", [None, *(a_jobset(state=state) for state in WorkloadState)])
@pytest.mark.parametrize("released", [True, False])
def test_nobody_waits_for_a_slice_that_no_claim_has(own: WorkloadRecord | None, released: bool) -> None:
    """It goes for its own reason, whatever becomes of the JobSet that it was made for."""
    record = unclaimed(a_record(), demand_confirmed_at=None, release_requested=released)
    assert with_current_desire(record, own, NOW) == record


def test_a_slices_demand_is_what_its_jobset_has_for_it() -> None:
    record = a_record(demand_confirmed_at=None)
    assert with_current_desire(record, a_jobset(demand={record.maker: NOW})).claim.demand_confirmed_at == NOW
    assert with_current_desire(a_record(), a_jobset(demand={})).claim.demand_confirmed_at is None
    assert with_current_desire(a_record(), None).claim.demand_confirmed_at == NOW
