"""Which pod templates get the label of a gang, by the policy's expressions and by the webhook, without an API server.

The same on a real one: tests/kubernetes/admission.
"""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.webhook.gangs import patch_of
from tests.infra.admission.judges import options_of
from tests.infra.admission.pods import Json
from tests.infra.admission.policy import patched
from tests.infra.admission.settings import GANGS, GANGS_BINDING, GANGS_POLICY, OPTED_OUT
from tests.infra.admission.workloads import (
    ASKED,
    HELD,
    MULTISLICE,
    Asked,
    a_jobset,
    a_lone_job,
    a_set,
    a_template,
    labelled,
    templates_of,
)
from tpu_slices.domain.model.gangs import GANG


def by_policy(case: Asked) -> Json:
    return GANGS_POLICY.admitted(case.workload, case.old, **case.settings)


def by_webhook(case: Asked) -> Json:
    """Judge by the webhook, asked as the policy's conditions say."""
    workload = case.workload
    if not GANGS_POLICY.matches(workload, case.old):
        return workload
    for operation in patch_of(workload, case.old, options_of(case.settings).gangs):
        workload = patched(workload, operation)
    return workload


JUDGES = {"policy": by_policy, "webhook": by_webhook}


def test_no_two_cases_have_the_same_name() -> None:
    assert len({case.name for case in ASKED}) == len(ASKED)


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("case", ASKED, ids=lambda case: case.name)
def test_the_templates_that_the_table_says_get_the_label_and_nothing_else_changes(case: Asked, judge: str) -> None:
    stored = JUDGES[judge](case)
    assert labelled(stored) == case.gets
    assert unlabelled(stored) == unlabelled(case.workload)


def unlabelled(workload: Json) -> Json:
    result = copy.deepcopy(workload)
    for template in templates_of(result).values():
        metadata = template.setdefault("metadata", {})
        metadata.setdefault("labels", {}).pop(GANG, None)
    return result


@pytest.mark.parametrize("case", ASKED, ids=lambda case: case.name)
def test_the_webhook_is_asked_about_all_that_it_would_change(case: Asked) -> None:
    """Its conditions are there to leave all else alone while it does not answer."""
    would_change = patch_of(case.workload, case.old, options_of(case.settings).gangs)
    assert not would_change or GANGS_POLICY.matches(case.workload, case.old)


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("case", ASKED, ids=lambda case: case.name)
def test_what_was_judged_and_is_applied_again_as_it_was_submitted_changes_no_more(case: Asked, judge: str) -> None:
    stored = JUDGES[judge](case)
    again = Asked(name="again", workload=case.workload, gets=case.gets, old=stored, settings=case.settings)
    assert unlabelled(JUDGES[judge](again)) == unlabelled(stored)
    assert labelled(JUDGES[judge](again)) == labelled(stored)


TEMPLATES = st.builds(
    a_template,
    st.sampled_from(["0", "4"]),
    st.sampled_from(
        [None, {}, HELD, {"labels": {GANG: "no"}}, {"labels": {"a": "b"}}, {"labels": {OPTED_OUT: "true"}}]
    ),
)
SAID = st.sampled_from([None, "all", "true", "replicatedjob", "none", "some"])
MORE = st.sampled_from([{}, {"labels": {OPTED_OUT: "true"}}, {"labels": {"jobset.sigs.k8s.io/jobset-name": "x"}}])
JOBSETS = st.builds(
    lambda templates, said, replicas, suspended, more: a_jobset(
        *templates, gang=said, replicas=replicas, suspend=suspended, **more
    ),
    st.lists(TEMPLATES, min_size=1, max_size=3),
    SAID,
    st.integers(0, 2),
    st.booleans(),
    MORE,
)
JOBS = st.builds(
    lambda template, said, suspended, more: a_lone_job(template, said, suspend=suspended, **more),
    TEMPLATES,
    SAID,
    st.booleans(),
    MORE,
)
SETS = st.builds(a_set, TEMPLATES, st.none() | TEMPLATES, SAID)
CHANGES = st.one_of(*(st.tuples(each, st.none() | each) for each in (JOBSETS, JOBS, SETS)))


@given(CHANGES, st.booleans())
def test_the_policy_and_the_webhook_label_all_alike(change: tuple[Json, Json | None], multislice: bool) -> None:
    workload, old = change
    case = Asked(name="drawn", workload=workload, old=old, gets=frozenset(), settings=MULTISLICE if multislice else {})
    assert by_policy(case) == by_webhook(case)
    assert not patch_of(workload, old, options_of(case.settings).gangs) or GANGS_POLICY.matches(workload, old)


def test_an_error_of_the_policy_lets_nothing_pass() -> None:
    assert GANGS["spec"]["failurePolicy"] == "Fail"


def test_the_setting_is_off_and_part_of_the_policy_itself() -> None:
    variables = {each["name"]: each["expression"] for each in GANGS["spec"]["variables"]}
    assert variables["gangs"] == '"none"'
    assert "paramKind" not in GANGS["spec"]
    assert GANGS_BINDING["spec"] == {"policyName": GANGS["metadata"]["name"]}


def test_only_creations_and_changes_of_the_workloads_themselves_are_matched() -> None:
    rules = GANGS["spec"]["matchConstraints"]["resourceRules"]
    assert [each["resources"] for each in rules] == [["jobsets"], ["jobs"], ["leaderworkersets"]]
    assert {tuple(each["operations"]) for each in rules} == {("CREATE", "UPDATE")}
