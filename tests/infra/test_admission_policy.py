"""The policy that pins TPU Jobs to their own slices: its expressions, evaluated without an API server.

The same cases on a real one: tests/kubernetes/test_admission.py.
"""

from __future__ import annotations

import copy

import pytest

from tests.infra.admission import Json
from tests.infra.admission_cases import (
    A_NODE,
    ALONE,
    BINDING,
    CASES,
    CHIPS,
    DEFINED,
    HINT,
    HINT_KEY,
    JOBS,
    OTHERS,
    POLICY,
    STRIP,
    VISION,
    Case,
    a_container,
    a_job,
    key_of,
    placement_of,
    requiring,
    selecting,
    selector_of,
    spec_of,
    together,
)
from tests.infra.admission_nodes import slice_of, usable
from tpu_slices.domain.model.facts import EXCLUSIVE
from tpu_slices.domain.planning.host_labels import CAPACITY_KEYS, NODE_POOL
from tpu_slices.domain.planning.pool_labels import OWNER, OWNER_LABEL, PARENT_KIND_LABEL

STATIC: dict[str, str] = {}
"""No label of a provisioner."""
LEGACY = {OWNER_LABEL: OWNER, PARENT_KIND_LABEL: "job"}
LONE = together(a_job(metadata=ALONE, spec={**spec_of(a_container()), "completionMode": "Indexed"}))
"""A Job by itself, with an annotation that JobSet does not heed there."""


def test_no_two_cases_have_the_same_name() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job["metadata"]["name"])
def test_nothing_but_the_placement_of_the_examples_tpu_jobs_changes(job: Json) -> None:
    admitted, before = POLICY.admitted(job), copy.deepcopy(job)
    assert placement_of(admitted) != placement_of(before)
    for each in (admitted, before):
        for placement in ("nodeSelector", "affinity"):
            each["spec"]["template"]["spec"].pop(placement, None)
    assert admitted == before


@pytest.fixture(scope="module")
def slices() -> dict[str, dict[str, str]]:
    """Return the labels of a slice for each Job of the examples, by its name."""
    return {each["metadata"]["name"]: slice_of(each) for each in JOBS}


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job["metadata"]["name"])
def test_no_job_of_the_examples_runs_on_a_slice_that_was_created_for_another(
    slices: dict[str, dict[str, str]], job: Json
) -> None:
    assert usable(job, {**slices, "of TPU Provisioner": LEGACY}) == {job["metadata"]["name"]}


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job["metadata"]["name"])
def test_a_job_of_the_examples_runs_on_static_slices_too_where_its_pods_stay_on_one(job: Json) -> None:
    annotations = job["spec"]["template"].get("metadata", {}).get("annotations", {})
    stay = annotations.get(EXCLUSIVE) == NODE_POOL or job["spec"]["parallelism"] == 1
    assert usable(job, {"static": STATIC}) == ({"static"} if stay else set())


@pytest.mark.parametrize("job", [a_job(), together(a_job(), "topology.kubernetes.io/zone"), LONE], ids=str)
def test_a_job_whose_pods_could_spread_over_static_slices_runs_on_its_own_alone(job: Json) -> None:
    assert usable(job, {"own": slice_of(job), "static": STATIC}) == {"own"}


def test_a_job_of_one_pod_needs_no_annotation_to_run_on_a_static_slice() -> None:
    job = a_job(spec={**spec_of(a_container()), "parallelism": 1, "completions": 1})
    assert usable(job, {"own": slice_of(job), "static": STATIC, "another": slice_of(a_job("other-workers-0"))}) == {
        "own",
        "static",
    }


def test_a_group_of_pods_of_the_same_name_is_another_workload() -> None:
    job = together(a_job())
    assert usable(job, {"group": {**slice_of(job), PARENT_KIND_LABEL: "leaderworkerset"}}) == set()


def test_what_a_job_requires_of_its_nodes_itself_holds_on_static_slices_and_its_own() -> None:
    job = requiring(VISION, A_NODE)
    nodes = {"own": slice_of(job), "static": STATIC}
    vision = {f"{name}, vision": {**labels, "team": "vision"} for name, labels in nodes.items()}
    assert usable(job, {**nodes, **vision, "another": {**LEGACY, "team": "vision"}}) == set(vision)
    assert usable(job, {"host-0": STATIC}) == {"host-0"}
    assert usable(requiring({**VISION, **A_NODE}), {"host-0": STATIC, **vision}) == set()


@pytest.mark.parametrize("case", OTHERS, ids=lambda case: case.name)
def test_other_jobs_do_not_match(case: Case) -> None:
    assert not POLICY.matches(case.job)
    assert POLICY.admitted(case.job, **case.settings) == case.job


@pytest.mark.parametrize("case", CHIPS, ids=lambda case: case.name)
def test_chips_count_wherever_they_are_requested(case: Case) -> None:
    assert POLICY.matches(case.job)


def test_a_job_without_selectors_gets_its_job_key() -> None:
    assert list(selector_of(POLICY.admitted(a_job()))) == ["job-key"]


def test_a_tenants_own_job_key_is_replaced() -> None:
    assert selector_of(POLICY.admitted(selecting(**{"job-key": "another"}))) == {"job-key": key_of(a_job())}


def test_spot_and_reservations_are_stripped_if_that_is_set() -> None:
    job = selecting(team="vision", **dict.fromkeys(CAPACITY_KEYS, "true"))
    assert set(selector_of(POLICY.admitted(job, **STRIP))) == {"team", "job-key"}
    assert set(selector_of(POLICY.admitted(job))) == {"team", "job-key", *CAPACITY_KEYS}


def test_stripping_absent_selectors_is_no_error() -> None:
    assert set(selector_of(POLICY.admitted(selecting(team="vision"), **STRIP))) == {"team", "job-key"}


def test_a_location_hint_is_added_if_one_is_set() -> None:
    assert selector_of(POLICY.admitted(a_job(), **HINT))[HINT_KEY] == "cell-a"


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
