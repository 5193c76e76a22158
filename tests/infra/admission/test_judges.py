"""The golden table of pods, judged by the policy's expressions and by the webhook, without an API server.

The same on a real one: tests/kubernetes/admission.
"""

from __future__ import annotations

import copy

import pytest

from tests.infra.admission.case import Case
from tests.infra.admission.cases import CASES
from tests.infra.admission.judges import JUDGES, Judge
from tests.infra.admission.pods import Json, gates_of, terms_of


@pytest.fixture(params=JUDGES, autouse=True)
def judge(request: pytest.FixtureRequest) -> Judge:
    return JUDGES[request.param]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_pod_runs_where_the_table_says(case: Case, judge: Judge) -> None:
    admitted = judge(case.pod, case.settings)
    assert terms_of(admitted) == (case.required if case.hosts else terms_of(case.pod))
    selected = case.pod["spec"].get("nodeSelector") if case.selector is None else case.selector
    assert admitted["spec"].get("nodeSelector") == selected
    assert gates_of(admitted) == case.gates


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_nothing_else_of_a_pod_changes(case: Case, judge: Judge) -> None:
    assert _unplaced(judge(case.pod, case.settings)) == _unplaced(case.pod)


def _unplaced(pod: Json) -> Json:
    result = copy.deepcopy(pod)
    for placed in ("nodeSelector", "schedulingGates"):
        result["spec"].pop(placed, None)
    affinity = result["spec"].pop("affinity", None) or {}
    node_affinity = affinity.pop("nodeAffinity", None) or {}
    node_affinity.pop("requiredDuringSchedulingIgnoredDuringExecution", None)
    return {**result, "other affinity": [affinity, node_affinity]}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_pod_that_is_judged_again_stays_as_it_is(case: Case, judge: Judge) -> None:
    once = judge(case.pod, case.settings)
    assert judge(once, case.settings) == once


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_pod_that_the_other_has_judged_stays_as_it_is(case: Case, judge: Judge) -> None:
    """Both are in force while a cluster changes from the webhook to the policy."""
    for other in JUDGES.values():
        once = other(case.pod, case.settings)
        assert judge(once, case.settings) == once
