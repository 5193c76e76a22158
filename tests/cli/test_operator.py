"""Who runs the command: by the credentials, by gcloud's configuration, or by the machine."""

from __future__ import annotations

import getpass
import json
from pathlib import Path

import pytest

from tpu_slices_cli.operator import operator

CONFIGURED = "[core]\naccount = ada@example.com\nproject = p\n"


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.fixture
def gcloud(tmp_path: Path) -> Path:
    folder = tmp_path / ".config" / "gcloud"
    write(folder / "active_config", "work\n")
    write(folder / "configurations" / "config_work", CONFIGURED)
    write(folder / "configurations" / "config_other", CONFIGURED.replace("ada", "other"))
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
