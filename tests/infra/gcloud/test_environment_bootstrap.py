"""The script that makes a project ready for the builds of an environment, by the real gcloud."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from subprocess import CompletedProcess

import pytest

from tests.infra.gcloud.accounts import Accounts
from tests.infra.gcloud.conftest import PERSON, Gcloud
from tests.infra.loopback import serving
from tests.infra.sources import ROOT

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

SCRIPT = "infra/environments/bootstrap.sh"
BUILDER = "tpu-training-builder@shop.iam.gserviceaccount.com"
MEMBER = f"serviceAccount:{BUILDER}"
BUCKET = "shop-tf-state"
LOGS = "shop-tpu-build-logs"
COMMAND = (SCRIPT, "training", "--project", "shop", "--region", "us-central2")


class Bed:
    """Accounts, and runs of the script on them."""

    def __init__(self, gcloud: Gcloud, accounts: Accounts, url: str) -> None:
        self.gcloud, self.accounts, self._url = gcloud, accounts, url

    def run(self, *command: str) -> CompletedProcess[str]:
        return self.gcloud.run(*command, url=self._url, environment={})


@pytest.fixture
def bed(gcloud: Gcloud) -> Iterator[Bed]:
    accounts = Accounts(projects={"shop": True})
    with serving(accounts.answer) as url:
        yield Bed(gcloud, accounts, url)
    assert accounts.unknown == []


def roles(bed: Bed) -> set[str]:
    return {role for role, member in bed.accounts.members("shop") if member == MEMBER}


def test_a_project_is_made_ready_and_left_as_it_is_the_second_time(bed: Bed) -> None:
    made = bed.run(*COMMAND)
    assert made.returncode == 0, made.stderr

    google = bed.accounts
    assert {"shop/container.googleapis.com", "shop/aiplatform.googleapis.com"} <= google.apis
    assert {"roles/container.admin", "roles/monitoring.dashboardEditor"} <= roles(bed)
    assert not roles(bed) & {"roles/owner", "roles/editor"}
    assert google.members(BUILDER) == {("roles/iam.serviceAccountUser", f"user:{PERSON}")}
    bucket = google.buckets[BUCKET]
    assert bucket["location"].lower() == google.buckets[LOGS]["location"].lower() == "us-central2"
    assert google.members(f"gs://{LOGS}") == {("roles/storage.objectViewer", f"user:{PERSON}")}
    assert bucket["versioning"]["enabled"] is True
    assert bucket["iamConfiguration"]["uniformBucketLevelAccess"]["enabled"] is True
    assert bucket["iamConfiguration"]["publicAccessPrevention"] == "enforced"

    google.changes.clear()
    again = bed.run(*COMMAND)
    assert (again.returncode, again.stdout, google.changes) == (0, "", [])
    checked = bed.run(*COMMAND, "--check")
    assert (checked.returncode, checked.stdout) == (0, "")


def test_a_check_tells_the_commands_for_what_is_missing_and_changes_nothing(bed: Bed) -> None:
    assert bed.run(*COMMAND).returncode == 0
    google = bed.accounts
    google.apis.remove("shop/container.googleapis.com")
    google.buckets[BUCKET]["versioning"]["enabled"] = False
    policy, role = google.policies["shop"], "roles/container.admin"
    policy["bindings"] = [each for each in policy["bindings"] if each["role"] != role]
    google.changes.clear()
    checked = bed.run(*COMMAND, "--check")

    assert checked.returncode == 1
    assert [shlex.split(line) for line in checked.stdout.splitlines()] == [
        shlex.split(line)
        for line in (
            "gcloud services enable container.googleapis.com --project shop",
            f"gcloud storage buckets update gs://{BUCKET} --versioning",
            f"gcloud projects add-iam-policy-binding shop --member {MEMBER} --role {role} --condition None",
        )
    ]
    assert f"{SCRIPT} training --project shop --state-bucket {BUCKET}" in checked.stderr
    assert google.changes == []


def test_a_check_of_an_empty_project_has_every_command(bed: Bed) -> None:
    checked = bed.run(*COMMAND, "--check")
    assert checked.returncode == 1
    assert "gcloud storage buckets create" in checked.stdout
    assert checked.stdout.count("add-iam-policy-binding") > 10
    assert bed.accounts.changes == []


def test_what_was_made_is_taken_away_but_for_the_state(bed: Bed) -> None:
    assert bed.run(*COMMAND).returncode == 0
    bed.accounts.policies["shop"]["bindings"].append({"role": "roles/owner", "members": [f"user:{PERSON}"]})
    removed = bed.run(SCRIPT, "training", "--project", "shop", "--remove")

    assert removed.returncode == 0, removed.stderr
    assert bed.accounts.accounts == {}
    assert bed.accounts.members("shop") == {("roles/owner", f"user:{PERSON}")}
    assert list(bed.accounts.buckets) == [BUCKET, LOGS]
    assert f"gcloud storage rm --recursive gs://{BUCKET} gs://{LOGS}" in removed.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "which environment? training"),
        (["traning"], "which environment? training"),
        (["training"], "which project? --project PROJECT"),
        (["training", "--project"], "--project needs a value"),
        (["training", "--projekt", "shop"], "there is no option --projekt"),
        (["training", "--project", "shop", "--check", "--remove"], "--check changes nothing"),
    ],
)
def test_what_is_lacking_is_said_before_anything_is_changed(bed: Bed, arguments: list[str], message: str) -> None:
    refused = bed.run(SCRIPT, *arguments)
    assert refused.returncode == 1
    assert f"bootstrap: {message}" in refused.stderr
    assert bed.accounts.changes == []


def test_the_help_has_every_option() -> None:
    text = (ROOT / SCRIPT).read_text()
    header = text.partition("set -euo pipefail")[0]
    assert set(re.findall(r"^ +(--[a-z-]+)\)", text, re.MULTILINE)) == set(
        re.findall(r"^#   (--[a-z-]+)", header, re.MULTILINE)
    )
