"""What runs for contributors calls the same verbs as the build, and brings no tools of its own."""

from __future__ import annotations

from typing import Any

import yaml

from infra.local.prerequisites import Prerequisite
from tests.infra.sources import ROOT, STEPS

[WORKFLOW] = (ROOT / ".github" / "workflows").iterdir()
[JOB] = yaml.safe_load(WORKFLOW.read_text())["jobs"].values()
HOOKS: dict[str, Any] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())


def test_the_workflow_ends_with_the_whole_gate() -> None:
    assert JOB["steps"][-1] == {"run": "make test"}


def test_the_workflow_runs_in_the_builds_python() -> None:
    assert JOB["container"] == STEPS["check"]["name"]


def test_the_workflow_installs_what_the_local_stack_demands() -> None:
    [components] = [
        step["with"]["install_components"] for step in JOB["steps"] if "setup-gcloud" in step.get("uses", "")
    ]
    remedies = {each: each.value[1] for each in Prerequisite}
    for each in (Prerequisite.KUBECTL, Prerequisite.PUBSUB_JAR, Prerequisite.FIRESTORE_JAR):
        wanted = remedies[each].partition(",")[0].removeprefix("gcloud components install ")
        assert wanted in components.split(","), remedies[each]
    package = remedies[Prerequisite.JAVA].rpartition(" ")[2]
    assert any(package in step.get("run", "") for step in JOB["steps"])


def test_the_workflow_may_only_read() -> None:
    assert yaml.safe_load(WORKFLOW.read_text())["permissions"] == {"contents": "read"}


def test_hooks_download_nothing_and_call_the_tools_of_the_gate() -> None:
    makefile = (ROOT / "Makefile").read_text()
    [local] = HOOKS["repos"]
    assert local["repo"] == "local"
    for hook in local["hooks"]:
        assert hook["language"] == "system"
        assert hook["entry"].replace(".venv/bin", "$(BIN)") in makefile
