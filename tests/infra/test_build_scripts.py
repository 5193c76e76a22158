"""The scripts of cloudbuild.yaml, run on copies of the sources with stand-ins for the tools that they call."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from infra.local import messaging
from tests.infra.sources import ROOT, STEPS

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

RECORDER = """#!/usr/bin/env bash
echo "$(basename "$0") $*" >> "$CALLS"
[[ "$*" != *"$FAILS_ON"* ]]
"""


def run(step: str, folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    command = ["setpriv", "--pdeathsig", "TERM", "bash", "-c", STEPS[step]["script"]]
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
    for name in ("gcloud", "kubectl"):
        (tools / name).write_text(RECORDER)
        (tools / name).chmod(0o755)
    return {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "CALLS": str(folder / "calls"),
        "FAILS_ON": fails_on,
        "_REGION": "us-central1",
        "PROJECT_ID": "shop",
        "BUILD_ID": "b-1",
    }


def test_the_staged_source_serves_every_function(folder: Path) -> None:
    (folder / "shared" / "tpu_slices" / "__pycache__").mkdir(exist_ok=True)
    staged = run("stage", folder, {"PATH": os.environ["PATH"]})
    assert staged.returncode == 0, staged.stderr

    source = folder / "build" / "functions"
    assert sorted(path.name for path in source.iterdir()) == ["main.py", "requirements.txt", "tpu_slices"]
    assert not list(source.rglob("__pycache__"))
    load = (
        "import functions_framework, main, tpu_slices, sys\n"
        "assert tpu_slices.__file__.startswith(sys.argv[1]), tpu_slices.__file__\n"
        "for target in sys.argv[2:]:\n"
        "    functions_framework.create_app(target, 'main.py', 'http')\n"  # what a function without a trigger is given
        "    print(target, functions_framework._function_registry.get_func_signature_type(target, 'http'))\n"
    )
    command = ["setpriv", "--pdeathsig", "TERM", sys.executable, "-B", "-c", load]
    targets = messaging.read().functions
    served = subprocess.run(
        [*command, str(source), *targets],
        cwd=source,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert served.stdout.split("\n")[:-1] == [f"{target} cloudevent" for target in targets], served.stderr


def test_the_settings_of_every_cluster_of_the_project_are_written(folder: Path) -> None:
    environment = cluster_tools(folder)
    (folder / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(folder / "tools" / "kubectl", folder / ".venv" / "bin" / "slices")
    configured = run("configure", folder, environment)

    assert configured.returncode == 0, configured.stderr
    assert (folder / "calls").read_text().splitlines() == [
        "slices --project shop configure --yes infra/clusters/shop/blue.yaml infra/clusters/shop/red.yaml"
    ]


def test_a_failing_configure_ends_the_build(folder: Path) -> None:
    environment = cluster_tools(folder, fails_on="configure")
    (folder / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(folder / "tools" / "kubectl", folder / ".venv" / "bin" / "slices")

    assert run("configure", folder, environment).returncode != 0
