"""What runs for contributors calls the same verbs as the build, and brings no tools of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.infra.sources import ROOT, STEPS, on_hub
from tpu_standins.prerequisites import Prerequisite

WORKFLOWS = sorted((ROOT / ".github" / "workflows").iterdir())
EACH = pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
HOOKS: dict[str, Any] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())


def job(workflow: Path) -> Any:
    [only] = yaml.safe_load(workflow.read_text())["jobs"].values()
    return only


def verbs(workflow: Path) -> list[str]:
    """Return what a workflow calls of the Makefile, in order."""
    return [step["run"] for step in job(workflow)["steps"] if step.get("run", "").startswith("make ")]


def test_forks_run_the_whole_gate_and_each_night_the_proof() -> None:
    called = {path.stem: verbs(path) for path in WORKFLOWS}
    assert called == {"proof": ["make proof"], "test": ["make test", "make test-real"]}
    gate = (ROOT / ".ci" / "run").read_text()
    assert [line.removeprefix("exec ") for line in gate.splitlines() if "make " in line] == called["test"]


@EACH
def test_a_workflow_runs_in_the_builds_python(workflow: Path) -> None:
    assert job(workflow)["container"] == on_hub(STEPS["check"]["name"])


@EACH
def test_a_workflow_installs_what_the_local_stack_demands(workflow: Path) -> None:
    steps = job(workflow)["steps"]
    [components] = [step["with"]["install_components"] for step in steps if "setup-gcloud" in step.get("uses", "")]
    remedies = {each: each.value[1] for each in Prerequisite}
    for each in (Prerequisite.KUBECTL, Prerequisite.PUBSUB_JAR, Prerequisite.FIRESTORE_JAR):
        wanted = remedies[each].partition(",")[0].removeprefix("gcloud components install ")
        assert wanted in components.split(","), remedies[each]
    package = remedies[Prerequisite.JAVA].rpartition(" ")[2]
    assert any(package in step.get("run", "") for step in steps)


@EACH
def test_a_workflow_may_only_read(workflow: Path) -> None:
    assert yaml.safe_load(workflow.read_text())["permissions"] == {"contents": "read"}


def test_hooks_download_nothing_and_call_the_tools_of_the_gate() -> None:
    makefile = (ROOT / "Makefile").read_text()
    [local] = HOOKS["repos"]
    assert local["repo"] == "local"
    for hook in local["hooks"]:
        assert hook["language"] == "system"
        assert hook["entry"].replace(".venv/bin", "$(BIN)") in makefile
