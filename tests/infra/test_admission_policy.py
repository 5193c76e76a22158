"""The policy that pins TPU Jobs to their own slices: its expressions, evaluated on the Jobs of the examples."""

from __future__ import annotations

import copy
import hashlib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.infra.admission import Json, Policy
from tests.infra.sources import ROOT
from tpu_slices.domain.planning.host_labels import CAPACITY_KEYS

DEFINED, BINDING = yaml.safe_load_all((ROOT / "infra" / "kubernetes" / "admission.yaml").read_text())
POLICY = Policy(DEFINED["spec"])
STRIP = {"stripSpotAndReservation": "true"}
OPTED_OUT = {"tpu-provisioner.cloud.google.com/disable-autoprovisioning": "true"}
EXAMPLES = sorted((ROOT / "examples").glob("**/*.yaml"))


def jobs_of(example: Path) -> list[Json]:
    """Return the Jobs that the JobSet controller creates, as far as the policy reads them."""
    return [
        a_job(f"{document['metadata']['name']}-{job['name']}-{index}", spec=copy.deepcopy(job["template"]["spec"]))
        for document in yaml.safe_load_all(example.read_text())
        if document.get("kind") == "JobSet"
        for job in document["spec"]["replicatedJobs"]
        for index in range(job["replicas"])
    ]


def a_job(name: str = "llama-workers-0", **parts: Any) -> Json:
    key = hashlib.sha256(f"default/{name}".encode()).hexdigest()[:40]
    pod = {"containers": [{"name": "train", "resources": {"limits": {"google.com/tpu": 4}}}]}
    metadata = {"name": name, "labels": {"jobset.sigs.k8s.io/job-key": key}}
    return {"metadata": metadata, "spec": {"template": {"spec": pod}}, **parts}


def selector_of(job: Json) -> dict[str, str]:
    selector: dict[str, str] = job["spec"]["template"]["spec"].get("nodeSelector", {})
    return selector


def selecting(**selector: str) -> Json:
    job = a_job()
    job["spec"]["template"]["spec"]["nodeSelector"] = {key.replace("__", "/"): value for key, value in selector.items()}
    return job


JOBS = [job for example in EXAMPLES for job in jobs_of(example)]


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job["metadata"]["name"])
def test_every_tpu_job_of_the_examples_is_pinned_and_nothing_else_changes(job: Json) -> None:
    key = job["metadata"]["labels"]["jobset.sigs.k8s.io/job-key"]
    admitted = POLICY.admitted(job)
    assert selector_of(admitted) == {**selector_of(job), "job-key": key}
    del admitted["spec"]["template"]["spec"]["nodeSelector"]
    before = copy.deepcopy(job)
    del before["spec"]["template"]["spec"]["nodeSelector"]
    assert admitted == before


def test_two_jobs_are_never_pinned_to_the_same_slice() -> None:
    pinned = [selector_of(POLICY.admitted(job))["job-key"] for job in JOBS]
    assert len(set(pinned)) == len(pinned)


def cpu_job() -> Json:
    return a_job(spec={"template": {"spec": {"containers": [{"name": "x", "resources": {"limits": {"cpu": "1"}}}]}}})


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(cpu_job(), id="a CPU Job of a JobSet"),
        pytest.param(a_job(spec={"template": {"spec": {"containers": [{"name": "x"}]}}}), id="no resources at all"),
        pytest.param(a_job(metadata={"name": "alone"}), id="a Job of no JobSet"),
        pytest.param(a_job(metadata={"name": "alone", "labels": {"app": "x"}}), id="a Job with other labels"),
        pytest.param(
            a_job(metadata={**a_job()["metadata"], "annotations": OPTED_OUT}), id="opted out by its annotation"
        ),
        pytest.param(
            a_job(spec={"template": {**a_job()["spec"]["template"], "metadata": {"labels": OPTED_OUT}}}),
            id="opted out by its pods' label",
        ),
    ],
)
def test_other_jobs_do_not_match(job: Json) -> None:
    assert not POLICY.matches(job)
    assert POLICY.admitted(job, **STRIP) == job


@pytest.mark.parametrize("section", ["requests", "limits"])
@pytest.mark.parametrize("where", ["containers", "initContainers"])
def test_chips_count_wherever_they_are_requested(where: str, section: str) -> None:
    pod = {"containers": [{"name": "x"}], where: [{"name": "x", "resources": {section: {"google.com/tpu": "4"}}}]}
    assert POLICY.matches(a_job(spec={"template": {"spec": pod}}))


def test_a_job_without_selectors_gets_its_job_key() -> None:
    assert list(selector_of(POLICY.admitted(a_job()))) == ["job-key"]


def test_a_tenants_own_job_key_is_replaced() -> None:
    key = a_job()["metadata"]["labels"]["jobset.sigs.k8s.io/job-key"]
    assert selector_of(POLICY.admitted(selecting(**{"job-key": "another's"}))) == {"job-key": key}


def test_spot_and_reservations_are_stripped_if_that_is_set() -> None:
    job = selecting(team="vision", **dict.fromkeys(CAPACITY_KEYS, "true"))
    assert set(selector_of(POLICY.admitted(job, **STRIP))) == {"team", "job-key"}
    assert set(selector_of(POLICY.admitted(job))) == {"team", "job-key", *CAPACITY_KEYS}


def test_stripping_absent_selectors_is_no_error() -> None:
    assert set(selector_of(POLICY.admitted(selecting(team="vision"), **STRIP))) == {"team", "job-key"}


def test_a_location_hint_is_added_if_one_is_set() -> None:
    admitted = POLICY.admitted(a_job(), locationHint='"cell-a"')
    assert selector_of(admitted)["cloud.google.com/gke-location-hint"] == "cell-a"


def test_the_settings_are_off_and_part_of_the_policy_itself() -> None:
    """The API server keeps old parameters after a policy or its binding was made anew."""
    assert {"stripSpotAndReservation", "locationHint"} <= {each["name"] for each in DEFINED["spec"]["variables"]}
    assert list(selector_of(POLICY.admitted(a_job()))) == ["job-key"]
    assert "paramKind" not in DEFINED["spec"]
    assert list(BINDING["spec"]) == ["policyName"]


def test_a_failure_of_the_policy_does_not_block_a_job() -> None:
    assert DEFINED["spec"]["failurePolicy"] == "Ignore"


def test_only_the_creation_of_jobs_is_matched() -> None:
    (rule,) = DEFINED["spec"]["matchConstraints"]["resourceRules"]
    assert (rule["apiGroups"], rule["resources"], rule["operations"]) == (["batch"], ["jobs"], ["CREATE"])


def test_what_the_api_server_would_fill_in_is_written_out() -> None:
    """Else another field manager owns the defaults, and a server-side apply conflicts with it."""
    constraints = DEFINED["spec"]["matchConstraints"]
    defaults = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
    assert {key: constraints[key] for key in defaults} == defaults
    assert [rule["scope"] for rule in constraints["resourceRules"]] == ["*"]


def test_the_binding_refers_to_the_policy() -> None:
    assert BINDING["spec"]["policyName"] == DEFINED["metadata"]["name"]
