"""The scripts of cloudbuild.yaml, run on copies of the sources with stand-ins for the tools that they call."""

import json
import os
import shutil
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.infra.builds.test_build import APPLYING
from tests.infra.sources import ROOT, STEPS

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

RECORDER = """#!/usr/bin/env bash
echo "$(basename "$0") $*" >> "$CALLS"
[[ "$*" != *"$FAILS_ON"* ]]
"""
SUBSTITUTIONS = {
    "PROJECT_ID": "shop",
    "BUILD_ID": "b-1",
    "_STATE_BUCKET": "state",
    "_REGION": "us-central1",
    "_FIRESTORE_LOCATION": "nam5",
    "_COMMIT": "c0ffee5",
    "_APPLY": "yes",
    "_PLAN": "",
    "_SOURCE": "",
    "_IMAGE": "",
    "_ADMISSION": "yes",
    "_WORKER_POOL": "",
}


def run(step: str, folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    script = STEPS[step]["script"]
    shell = "sh" if script.startswith("#!/bin/sh") else "bash"
    command = ["setpriv", "--pdeathsig", "TERM", shell, "-c", script]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of what is deployed, with two clusters of the project `shop`."""
    for name in ("functions", "shared", "infra/kubernetes"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "p"\nversion = "1.2.3"\nrequires-python = ">=3.11"\n')
    clusters = tmp_path / "infra" / "clusters" / "shop"
    clusters.mkdir(parents=True)
    (clusters / "blue.yaml").write_text("path: projects/shop/locations/us-central2/clusters/b  # the first\n")
    (clusters / "red.yaml").write_text("zone: us-east5-a\npath: projects/other/locations/us-east5/clusters/r\n")
    return tmp_path


def cluster_tools(folder: Path, fails_on: str = "nothing of the kind") -> dict[str, str]:
    """Return an environment whose gcloud and kubectl record how they are called."""
    tools = folder / "tools"
    tools.mkdir()
    for name in ("docker", "gcloud", "kubectl", "terraform"):
        (tools / name).write_text(RECORDER)
        (tools / name).chmod(0o755)
    return {
        **SUBSTITUTIONS,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "CALLS": str(folder / "calls"),
        "FAILS_ON": fails_on,
    }


def test_the_staged_source_is_the_package_with_its_requirements(folder: Path) -> None:
    (folder / "shared" / "tpu_slices" / "__pycache__").mkdir(exist_ok=True)
    staged = run("stage", folder, {**SUBSTITUTIONS, "PATH": os.environ["PATH"]})
    assert staged.returncode == 0, staged.stderr

    source = folder / "build" / "functions"
    assert sorted(path.name for path in source.iterdir()) == [
        "main.py",
        "requirements.txt",
        "tpu_slices",
        "version.txt",
    ]
    assert not list(source.rglob("__pycache__"))


def given_source(folder: Path, version: str) -> dict[str, str]:
    """Return the environment of a build that is given a source, which was fetched."""
    (folder / "build").mkdir()
    with zipfile.ZipFile(folder / "build" / "source.zip", "w") as source:
        source.writestr("main.py", "it was given")
        source.writestr("version.txt", f"{version}\n")
    return {**SUBSTITUTIONS, "PATH": os.environ["PATH"], "_SOURCE": "gs://state/given.zip"}


def test_a_source_that_is_given_is_staged_as_it_is(folder: Path) -> None:
    staged = run("stage", folder, given_source(folder, "1.2.3"))

    assert staged.returncode == 0, staged.stderr
    files = (folder / "build" / "functions").iterdir()
    assert {path.name: path.read_text() for path in files} == {"main.py": "it was given", "version.txt": "1.2.3\n"}


def test_a_source_of_another_version_is_refused(folder: Path) -> None:
    staged = run("stage", folder, given_source(folder, "1.2.2"))

    assert staged.returncode == 1
    assert "gs://state/given.zip is of version 1.2.2, these sources are of 1.2.3" in staged.stderr


def test_exactly_what_was_planned_is_applied(folder: Path) -> None:
    environment = cluster_tools(folder)
    (folder / "build").mkdir()
    for step in ("init", "plan", "apply"):
        done = run(step, folder, environment)
        assert done.returncode == 0, done.stderr

    at = "terraform -chdir=infra/terraform"
    variables = "-var=project=shop -var=region=us-central1 -var=firestore_location=nam5 -var=commit=c0ffee5"
    assert (folder / "calls").read_text().splitlines() == [
        f"{at} init -input=false -upgrade -backend-config=bucket=state -backend-config=prefix=tpu-slice-provisioner",
        f"{at} plan -input=false -out=provisioner.tfplan {variables}",
        f"{at} show -no-color provisioner.tfplan",
        f"{at} apply -input=false provisioner.tfplan",
    ]


@pytest.mark.parametrize("step", APPLYING)
def test_a_build_that_only_plans_changes_nothing(folder: Path, step: str) -> None:
    environment = {**cluster_tools(folder), "_APPLY": "no"}
    done = run(step, folder, environment)

    assert done.returncode == 0, done.stderr
    assert not (folder / "calls").exists()


@pytest.mark.parametrize("step", ["check", "fetch", "stage", "channels", "plan", "keep"])
def test_a_build_that_applies_an_earlier_plan_makes_none(folder: Path, step: str) -> None:
    environment = {**cluster_tools(folder), "_PLAN": "b-0"}
    shutil.copy(folder / "tools" / "kubectl", folder / "tools" / "make")
    before = sorted(path for path in folder.rglob("*"))
    done = run(step, folder, environment)

    assert done.returncode == 0, done.stderr
    assert sorted(path for path in folder.rglob("*")) == before


def test_preflight_is_told_what_the_build_was_told(folder: Path) -> None:
    environment = {**cluster_tools(folder), "_WORKER_POOL": "w"}
    shutil.copy(folder / "tools" / "kubectl", folder / "tools" / "make")
    (folder / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(folder / "tools" / "kubectl", folder / ".venv" / "bin" / "python")
    assert run("preflight", folder, environment).returncode == 0
    assert run("dropped", folder, environment).returncode == 0

    told = "--region us-central1 --state-bucket state --firestore-location nam5 --worker-pool w"
    assert (folder / "calls").read_text().splitlines() == [
        "make .venv/.installed",
        f"python -m infra.preflight check --project shop {told}",
        "python -m infra.preflight dropped --project shop",
    ]


def test_terraform_plans_with_the_channels_that_were_found_and_not_without_them(folder: Path) -> None:
    environment = cluster_tools(folder, fails_on="--project office")
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / "infra" / "terraform").mkdir()
    python = folder / ".venv" / "bin" / "python"
    python.write_text(RECORDER.replace("[[", "echo '{\"notification_channels\": []}'\n[["))
    python.chmod(0o755)
    assert run("channels", folder, environment).returncode == 0
    assert (folder / "calls").read_text() == "python -m infra.preflight channels --project shop\n"
    written = folder / "infra" / "terraform" / "channels.auto.tfvars.json"
    assert json.loads(written.read_text()) == {"notification_channels": []}
    assert run("channels", folder, {**environment, "PROJECT_ID": "office"}).returncode != 0


def test_the_settings_of_every_cluster_of_the_project_are_written(folder: Path) -> None:
    environment = cluster_tools(folder)
    (folder / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(folder / "tools" / "kubectl", folder / ".venv" / "bin" / "slices")
    configured = run("configure", folder, environment)

    assert configured.returncode == 0, configured.stderr
    assert (folder / "calls").read_text().splitlines() == [
        "slices --project shop configure --yes infra/clusters/shop/blue.yaml infra/clusters/shop/red.yaml"
    ]


def test_in_the_end_every_part_is_checked(folder: Path) -> None:
    environment = cluster_tools(folder)
    (folder / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(folder / "tools" / "kubectl", folder / ".venv" / "bin" / "slices")

    (folder / "build").mkdir()
    (folder / "build" / "clusters").write_text("blue shop us-central2 b\nred other us-east5 r\n")
    assert run("doctor", folder, environment).returncode == 0
    assert (folder / "calls").read_text().splitlines() == ["slices --project shop doctor"]
    assert run("doctor", folder, {**environment, "FAILS_ON": "doctor"}).returncode != 0


def test_a_failing_configure_ends_the_build(folder: Path) -> None:
    environment = cluster_tools(folder, fails_on="configure")
    (folder / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(folder / "tools" / "kubectl", folder / ".venv" / "bin" / "slices")

    assert run("configure", folder, environment).returncode != 0
