"""From facts about hosts, leaders and JobSets to the record of a slice."""

from __future__ import annotations

import pytest

from tests.builders import a_jobset, a_record
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.records import Desire
from tpu_slices.domain.model.workloads import WorkloadRecord
from tpu_slices.domain.reconciling.demand import with_current_desire

ENDS = [state for state in WorkloadState if state.ended]


@pytest.mark.parametrize(
    ("workloads", "desire"),
    [
        pytest.param([a_jobset()], Desire.PRESENT, id="active"),
        pytest.param([], Desire.PRESENT, id="unknown: nothing is deleted"),
        pytest.param([a_jobset(state=WorkloadState.SUSPENDED)], Desire.ABSENT, id="suspended"),
        *(pytest.param([a_jobset(state=end)], Desire.ABSENT, id=end) for end in ENDS),
    ],
)
def test_a_slices_desire_follows_from_its_jobsets_state(workloads: list[WorkloadRecord], desire: Desire) -> None:
    record = with_current_desire(a_record(), next(iter(workloads), None))
    assert record.desire is desire


def test_a_requested_release_overrides_the_jobsets_demand() -> None:
    assert with_current_desire(a_record(release_requested=True), a_jobset()).desire is Desire.ABSENT
