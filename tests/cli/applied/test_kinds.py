"""What `slices plan` says of objects that request TPUs in a way that gets no slice."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.applied.asking import a_job, a_jobset, answer, job_of, pod_of
from tests.cli.conftest import Slices
from tpu_slices.domain.model.facts import EXCLUSIVE


def with_limits(obj: Any, spec: Any, resource: str) -> Any:
    """Return the object whose pods have this limit alone."""
    spec["containers"][0]["resources"] = {"limits": {resource: 8}}
    return obj


JOBSET, (_, JOB) = a_jobset(), a_job()
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "old"}, "spec": {"containers": [{"name": "main"}]}}


@pytest.mark.parametrize("resource", ["cloud-tpus.google.com/v2", "cloud-tpus.google.com/preemptible-v3"])
@pytest.mark.parametrize(
    ("obj", "spec"),
    [(JOBSET, pod_of(JOBSET)), (JOB, JOB["spec"]["template"]["spec"]), (POD, POD["spec"])],
    ids=["JobSet", "Job", "Pod"],
)
def test_a_resource_of_tpu_nodes_is_named_with_that_of_today(
    slices: Slices, obj: Any, spec: Any, resource: str
) -> None:
    (skipped,) = answer(slices, with_limits(obj, spec, resource))["skipped"]
    assert skipped["reason"] == "NotServed"
    assert skipped["message"].endswith(
        f"gets no slice: it requests {resource}, which was for TPU Nodes and which no host offers: request "
        "google.com/tpu, and select an accelerator and a topology"
    )


def test_a_replicated_job_that_is_not_indexed_has_no_leader(slices: Slices) -> None:
    jobset = a_jobset()
    job_of(jobset)["completionMode"] = "NonIndexed"
    found = answer(slices, jobset)
    (skipped,) = found["skipped"]
    assert (found["slices"], skipped["reason"]) == ([], "NotServed")
    assert skipped["message"].startswith(
        "JobSet v5e: replicatedJob workers gets no slice: its pods have no completion index, by which one of them "
        "leads: set completionMode to Indexed"
    )


def of_one_pod() -> Any:
    """Return a JobSet of Jobs of one pod without a completion index, which fills a slice."""
    jobset = a_jobset()
    jobset["metadata"]["annotations"] = {}
    job_of(jobset).update(completionMode="NonIndexed", parallelism=1, completions=1)
    pod_of(jobset)["nodeSelector"]["cloud.google.com/gke-tpu-topology"] = "2x2"
    return jobset


def test_a_replicated_job_whose_only_pod_has_no_index_gets_slices(slices: Slices) -> None:
    (planned,) = answer(slices, of_one_pod())["slices"]
    assert (planned["hosts"], planned["chips"]) == (1, 4)


def test_a_pod_without_an_index_cannot_be_placed_exclusively(slices: Slices) -> None:
    jobset = of_one_pod()
    jobset["metadata"]["annotations"] = {EXCLUSIVE: "cloud.google.com/gke-nodepool"}
    (skipped,) = answer(slices, jobset)["skipped"]
    assert "JobSet's webhook refuses its pod, which has no completion index" in skipped["message"]
