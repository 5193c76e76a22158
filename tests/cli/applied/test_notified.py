"""`slices plan` says who is notified of a workload, and of names that are no targets."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.cli.applied.asking import a_jobset
from tests.cli.conftest import ROOT, Slices
from tpu_slices.domain.model.notifications import NOTIFY

NOTIFYING = str(ROOT / "examples" / "clusters" / "notifying.yaml")
SLACK = (
    "JobSet v5e: ml-slack is notified when it waits for more than 20 min, has pods that do not run on its slices or "
    "has ended."
)
PAGER = "JobSet v5e: pager is notified when it loses hosts or has pods that do not run on its slices."


def planned(slices: Slices, annotation: str | None = None, namespace: str | None = None) -> Any:
    jobset = a_jobset()
    jobset["metadata"]["annotations"] = {
        **jobset["metadata"].get("annotations", {}),
        **({NOTIFY: annotation} if annotation is not None else {}),
    }
    if namespace:
        jobset["metadata"]["namespace"] = namespace
    result = slices("plan", "-f", "-", "--cluster", NOTIFYING, "-o", "json", input=yaml.safe_dump(jobset))
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("annotation", "lines"),
    [(None, [SLACK]), ("none", []), ("pager", [PAGER]), ("pager, ml-slack", [PAGER, SLACK])],
)
def test_a_plan_says_who_is_notified_of_what(annotation: str | None, lines: list[str], slices: Slices) -> None:
    found = planned(slices, annotation)
    assert (found["notifications"], [each for each in found["warnings"] if "notify" in each]) == (lines, [])


def test_a_plan_warns_of_a_name_that_is_no_target_of_the_namespace(slices: Slices) -> None:
    found = planned(slices, "research-mail, ml-slack")
    assert found["notifications"] == [SLACK]
    [warning] = [each for each in found["warnings"] if "research-mail" in each]
    assert warning.endswith("This namespace has no such target, and none is notified: name ml-slack or pager.")


def test_of_a_namespace_without_targets_nothing_is_told(slices: Slices) -> None:
    assert planned(slices, namespace="vision")["notifications"] == []


def test_people_read_the_lines_below_the_slices(slices: Slices) -> None:
    result = slices("plan", "-f", "-", "--cluster", NOTIFYING, input=yaml.safe_dump(a_jobset()))
    assert "\nJobSet v5e: ml-slack is notified when it waits for more than 20 min," in result.stdout
