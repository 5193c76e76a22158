"""Slices that stand though their workload does not need them are in its report."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import NOW, a_job, a_jobset, a_record, some_hosts
from tpu_slices.domain.model.reasons import Phase, Reason, ReportReason
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.reporting.reports import report
from tpu_slices.domain.reporting.waits import QueueState


def a_slice(index: int, phase: Phase, reason: Reason, **changes: Any) -> SliceRecord:
    return a_record(job=a_job(job_index=index), phase=phase, reason=reason, **changes)


@pytest.mark.parametrize(
    ("going", "told"),
    [
        ([1], "; llama-slice-1 stands with 16 chips that are not needed: being released."),
        ([1, 2], "; llama-slice-1, llama-slice-2 stand with 32 chips that are not needed: being released."),
        ([], "."),
    ],
)
def test_slices_of_groups_that_are_scaled_away_are_told_of_as_long_as_they_stand(going: list[int], told: str) -> None:
    stands = {"create_requested_at": NOW, "hosts": some_hosts()}
    left = [a_slice(index, Phase.RELEASING, Reason.CLOSING_HOSTS, **stands) for index in going]
    gone = a_slice(3, Phase.GONE, Reason.RELEASED, **stands)
    made = report(a_jobset(groups=1), [a_slice(0, Phase.READY, Reason.READY), *left, gone], QueueState(), NOW)
    assert made.message == f"1 of 1 slices ready{told}"
    assert (made.reason, made.requested, made.ready) == (ReportReason.READY, 1, 1)
