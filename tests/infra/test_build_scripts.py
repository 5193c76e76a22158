"""The scripts of cloudbuild.yaml, run on copies of the sources with stand-ins for the tools that they call."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from infra.local import messaging
from tests.infra.sources import ROOT, STEPS

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

RECORDER = """#!/usr/bin/env bash
echo "$(basename "$0") $*" >> "$CALLS"
[[ "$*" != *"$FAILS_ON"* ]]
"""
IMAGE = "us-central1-docker.pkg.dev/shop/tpu-slice-provisioner/relay:b-1"


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


def test_the_relay_is_rolled_out_to_every_cluster_of_the_project(folder: Path) -> None:
    (folder / "build").mkdir()
    rolled = run("roll-out", folder, cluster_tools(folder))

    assert rolled.returncode == 0, rolled.stderr
    apply = "kubectl apply --server-side -f build/relay.yaml"
    wait = "kubectl rollout status deployment/relay --namespace tpu-slice-provisioner --timeout 5m"
    assert (folder / "calls").read_text().splitlines() == [
        "gcloud container clusters get-credentials b --location us-central2 --project shop",
        apply,
        wait,
        "gcloud container clusters get-credentials r --location us-east5 --project other",
        apply,
        wait,
    ]


def test_the_manifest_is_filled_in_for_the_cluster(folder: Path) -> None:
    (folder / "build").mkdir()
    run("roll-out", folder, cluster_tools(folder))

    text = (folder / "build" / "relay.yaml").read_text()
    [deployment] = [obj for obj in yaml.safe_load_all(text) if obj["kind"] == "Deployment"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert "${" not in text
    assert container["image"] == IMAGE
    assert {variable["name"]: variable["value"] for variable in container["env"]} == {
        "CLUSTER": "red",
        "GOOGLE_CLOUD_PROJECT": "shop",
        "PROBE_HOST": "0.0.0.0",
        "PROBE_PORT": "8081",
        "VERSION": "1.2.3",
    }
    for labelled in (deployment, deployment["spec"]["template"]):
        assert labelled["metadata"]["labels"]["app.kubernetes.io/version"] == "1.2.3"
    assert (deployment["metadata"]["name"], deployment["metadata"]["namespace"]) == ("relay", "tpu-slice-provisioner")


@pytest.mark.parametrize("fails_on", ["get-credentials b", "apply", "rollout"])
def test_a_cluster_that_fails_ends_the_build(folder: Path, fails_on: str) -> None:
    (folder / "build").mkdir()
    rolled = run("roll-out", folder, cluster_tools(folder, fails_on))

    assert rolled.returncode != 0
    assert "clusters get-credentials r" not in (folder / "calls").read_text()


def test_the_image_is_pushed_under_the_name_it_was_built_with(folder: Path) -> None:
    environment = cluster_tools(folder)
    shutil.copy(folder / "tools" / "kubectl", folder / "tools" / "docker")
    built = run("image", folder, environment)

    assert built.returncode == 0, built.stderr
    assert (folder / "calls").read_text().splitlines() == [
        f"docker build --tag {IMAGE} --file relay/Dockerfile .",
        f"docker push {IMAGE}",
    ]
