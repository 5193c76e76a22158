"""The version stands in pyproject.toml only; whatever shows it has it from there."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from infra.kubernetes.__main__ import main as write_overlays
from tests.house.sources import ROOT
from tests.infra.relay.manifests import IMAGE, built, environment, the
from tests.infra.sources import local, resource
from tpu_slices_cli.app import main

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSION: str = PROJECT["version"]


def test_it_has_the_form_that_terraform_and_the_build_look_for() -> None:
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    assert [line for line in lines if line.startswith("version = ")] == [f'version = "{VERSION}"']


def test_the_installed_project_has_it() -> None:
    assert importlib.metadata.version(PROJECT["name"]) == VERSION


def test_the_command_shows_it() -> None:
    shown = CliRunner().invoke(main, ["--version"])
    assert (shown.exit_code, shown.output) == (0, f"slices, version {VERSION}\n")


def test_functions_get_it_from_terraform_in_their_environment_and_as_a_label() -> None:
    function = resource("google_cloudfunctions2_function", "function")
    [config] = function["service_config"]
    assert "pyproject.toml" in local("version")
    assert config["environment_variables"]["VERSION"] == "${local.version}"
    assert "version = local.version_label" in " ".join(str(local("labels")).split())


def test_functions_log_it() -> None:
    configured = re.findall(r"^logs\.configure\(.*$", (ROOT / "functions" / "main.py").read_text(), re.MULTILINE)
    assert ['version=os.environ.get("VERSION", "")' in line for line in configured] == [True]


@pytest.mark.emulators
def test_the_relay_gets_it_from_the_build_in_its_environment_and_as_a_label(tmp_path: Path) -> None:
    settings = "infra/clusters/example-project/example-cluster.yaml"
    assert write_overlays(["--project", "p", "--image", IMAGE, "--into", str(tmp_path), str(ROOT / settings)]) == 0
    manifests = built(tmp_path / "example-cluster")
    relay = the("Deployment", manifests)
    assert environment(manifests)["VERSION"] == VERSION
    for labelled in (relay, relay["spec"]["template"]):
        assert labelled["metadata"]["labels"]["app.kubernetes.io/version"] == VERSION
