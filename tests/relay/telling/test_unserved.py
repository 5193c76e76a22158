"""What the relay tells with the state of a workload for which no slices are made: why, as `slices plan` says."""

from __future__ import annotations

from typing import Any

import pytest

from relay.messages import state_of
from tests.relay.objects import OPTED_OUT, jobset, read_jobset
from tpu_slices.domain.model.facts import WorkloadChanged, WorkloadState
from tpu_slices.wire.readers import OUT

OPTED_OUT_POD = {"metadata": {"annotations": {OPTED_OUT: "true"}}}


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ({}, ""),
        ({"metadata": {"annotations": {OPTED_OUT: "true"}}}, f"it {OUT}"),
        (
            {"spec": {"managedBy": "kueue.x-k8s.io/multikueue"}},
            'spec.managedBy is "kueue.x-k8s.io/multikueue": it gets its slices where that controller runs it',
        ),
    ],
    ids=["plain", "opted out", "another controller"],
)
def test_why_a_jobset_gets_no_slices_is_told_with_its_state(parts: dict[str, Any], why: str) -> None:
    seen = read_jobset(jobset(**parts))
    assert seen is not None
    assert state_of(seen) == WorkloadChanged(workload=seen.ref, state=WorkloadState.ACTIVE, unserved=why)
    assert seen.demand_tells_all is not bool(why)


def test_why_none_of_its_templates_gets_a_slice_is_told_too() -> None:
    out, none = jobset(), jobset()
    for job in out["spec"]["replicatedJobs"]:
        job["template"]["spec"]["template"] |= OPTED_OUT_POD
    for job in none["spec"]["replicatedJobs"]:
        job["replicas"] = 0
    told = [seen.unserved for seen in map(read_jobset, (out, none)) if seen is not None]
    assert told == [f"every replicatedJob with TPU {OUT}", "it has 0 replicas"]
