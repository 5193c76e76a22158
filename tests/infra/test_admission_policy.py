"""The policy that pins TPU Jobs to their own slices: its expressions, evaluated without an API server.

The same cases on a real one: tests/kubernetes/test_admission.py.
"""

from __future__ import annotations

import copy

import pytest

from tests.infra.admission import Json
from tests.infra.admission_cases import (
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
    Case,
    a_job,
    key_of,
    selecting,
    selector_of,
)
from tpu_slices.domain.planning.host_labels import CAPACITY_KEYS


def test_no_two_cases_have_the_same_name() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job["metadata"]["name"])
def test_every_tpu_job_of_the_examples_is_pinned_and_nothing_else_changes(job: Json) -> None:
    admitted = POLICY.admitted(job)
    assert selector_of(admitted) == {**selector_of(job), "job-key": key_of(job)}
    del admitted["spec"]["template"]["spec"]["nodeSelector"]
    before = copy.deepcopy(job)
    del before["spec"]["template"]["spec"]["nodeSelector"]
    assert admitted == before


def test_two_jobs_are_never_pinned_to_the_same_slice() -> None:
    pinned = [selector_of(POLICY.admitted(job))["job-key"] for job in JOBS]
    assert len(set(pinned)) == len(pinned)


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
