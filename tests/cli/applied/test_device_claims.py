"""`slices plan` of pods that claim chips as devices, by dynamic resource allocation."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.applied.asking import Json, a_jobset, answer, pod_of
from tests.cli.conftest import Slices


def claiming(**spec: Any) -> Any:
    """Return a JobSet whose pods claim devices in the place of requesting chips."""
    jobset = a_jobset()
    pod = pod_of(jobset)
    pod["containers"][0]["resources"] = {"claims": [{"name": "tpus"}]}
    pod |= {"resourceClaims": [{"name": "tpus", "resourceClaimTemplateName": "all-tpus"}], **spec}
    return jobset


def template(device_class: str, name: str = "all-tpus") -> Json:
    requests = [{"name": "tpus", "exactly": {"deviceClassName": device_class, "allocationMode": "All"}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": {"devices": {"requests": requests}}},
    }


def skipped(slices: Slices, *documents: Any) -> dict[str, tuple[str, str]]:
    """Return by kind why an object gets no slice."""
    found = answer(slices, *documents)
    assert found["slices"] == []
    return {each["kind"]: (each["reason"], each["message"]) for each in found["skipped"]}


@pytest.mark.parametrize("documents", [(claiming(),), (claiming(nodeSelector={}), template("tpu.google.com"))])
def test_a_jobset_whose_pods_claim_chips_is_told_so_and_what_to_request_instead(
    slices: Slices, documents: tuple[Any, ...]
) -> None:
    """By the hosts that they select, or by the template of the claim in the same file."""
    reason, message = skipped(slices, *documents)["JobSet"]
    assert reason == "NotServed"
    assert message == (
        "JobSet v5e gets no slice: its pods claim chips as devices (resourceClaims: tpus), by dynamic resource "
        "allocation, for which no slice is made: request google.com/tpu in resources.limits instead"
    )


@pytest.mark.parametrize(
    "documents",
    [(claiming(), template("gpu.nvidia.com")), (claiming(nodeSelector={}), template("tpu.google.com", "b"))],
)
def test_who_claims_other_devices_or_what_is_not_known_requests_no_chips(
    slices: Slices, documents: tuple[Any, ...]
) -> None:
    assert skipped(slices, *documents)["JobSet"] == ("RequestsNoTpu", "JobSet v5e requests no TPU chips")


def test_so_is_a_deployment(slices: Slices) -> None:
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "serve"},
        "spec": {"template": {"spec": pod_of(claiming())}},
    }
    reason, message = skipped(slices, deployment)["Deployment"]
    assert (reason, message.partition(": ")[0]) == ("NotServed", "Deployment serve gets no slice")
    assert "resourceClaims: tpus" in message


def test_of_a_jobset_that_mixes_the_replicated_job_that_claims_chips_gets_no_slice(slices: Slices) -> None:
    jobset, (claims,) = a_jobset(), claiming()["spec"]["replicatedJobs"]
    jobset["spec"]["replicatedJobs"].append(claims | {"name": "scorers"})
    found = answer(slices, jobset)
    assert "scorers" not in {each["replicated_job"] for each in found["slices"]}
    (message,) = (each["message"] for each in found["skipped"])
    assert message.startswith("JobSet v5e: replicatedJob scorers gets no slice: its pods claim chips as devices")
