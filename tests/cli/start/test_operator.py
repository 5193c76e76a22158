"""Who runs the command, and which project it asks: by options, variables, gcloud's configuration, or the machine."""

from __future__ import annotations

import getpass
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tpu_slices_cli.app import main
from tpu_slices_cli.gcloud.configuration import Project, project_of
from tpu_slices_cli.gcloud.operator import operator

CONFIGURED = "[core]\naccount = ada@example.com\nproject = shop\n"


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.fixture
def gcloud(tmp_path: Path) -> Path:
    folder = tmp_path / ".config" / "gcloud"
    write(folder / "active_config", "work\n")
    write(folder / "configurations" / "config_work", CONFIGURED)
    write(folder / "configurations" / "config_other", CONFIGURED.replace("ada", "other").replace("shop", "bakery"))
    return folder


@pytest.mark.parametrize("told", [{"client_email": "ci@example.com"}, {"account": "ci@example.com"}])
def test_the_credentials_that_are_used_say_it_first(gcloud: Path, tmp_path: Path, told: dict[str, str]) -> None:
    named = write(tmp_path / "key.json", json.dumps(told))
    assert operator({"GOOGLE_APPLICATION_CREDENTIALS": str(named)}, tmp_path) == "ci@example.com"
    write(gcloud / "application_default_credentials.json", json.dumps(told))
    assert operator({}, tmp_path) == "ci@example.com"


@pytest.mark.parametrize(
    ("environment", "account"),
    [
        ({}, "ada@example.com"),
        ({"CLOUDSDK_ACTIVE_CONFIG_NAME": "other"}, "other@example.com"),
        ({"CLOUDSDK_CORE_ACCOUNT": "env@example.com"}, "env@example.com"),
    ],
)
@pytest.mark.parametrize("credentials", ["{}", '{"account": ""}', "[]", "{"])
def test_gcloud_says_it_where_the_credentials_do_not(
    gcloud: Path, tmp_path: Path, environment: dict[str, str], account: str, credentials: str
) -> None:
    write(gcloud / "application_default_credentials.json", credentials)
    assert operator(environment, tmp_path) == account


def test_the_machine_says_it_where_nothing_else_does(tmp_path: Path) -> None:
    assert operator({}, tmp_path).startswith(f"{getpass.getuser()}@")
    write(tmp_path / ".config" / "gcloud" / "active_config", "work")
    write(tmp_path / ".config" / "gcloud" / "configurations" / "config_work", "no sections")
    assert operator({}, tmp_path).startswith(f"{getpass.getuser()}@")


@pytest.mark.parametrize(
    ("option", "environment", "project"),
    [
        ("p", {"GOOGLE_CLOUD_PROJECT": "q"}, Project("p", "--project")),
        (None, {"GOOGLE_CLOUD_PROJECT": "q", "CLOUDSDK_CORE_PROJECT": "r"}, Project("q", "GOOGLE_CLOUD_PROJECT")),
        (None, {"CLOUDSDK_CORE_PROJECT": "r"}, Project("r", "CLOUDSDK_CORE_PROJECT")),
        (None, {}, Project("shop", "gcloud's configuration work")),
        (None, {"CLOUDSDK_ACTIVE_CONFIG_NAME": "other"}, Project("bakery", "gcloud's configuration other")),
        (None, {"CLOUDSDK_ACTIVE_CONFIG_NAME": "missing"}, None),
    ],
)
@pytest.mark.usefixtures("gcloud")
def test_the_project_is_that_which_is_named_most_directly(
    tmp_path: Path, option: str | None, environment: dict[str, str], project: Project | None
) -> None:
    assert project_of(option, environment, tmp_path) == project


def test_without_a_project_the_error_says_how_to_name_one(tmp_path: Path) -> None:
    nowhere = {"GOOGLE_CLOUD_PROJECT": "", "CLOUDSDK_CORE_PROJECT": "", "CLOUDSDK_CONFIG": str(tmp_path)}
    result = CliRunner().invoke(main, ["list"], env=nowhere, prog_name="slices")
    assert result.exit_code == 2
    for remedy in ("GOOGLE_CLOUD_PROJECT is not set", "--project", "gcloud config set project"):
        assert remedy in result.stderr
