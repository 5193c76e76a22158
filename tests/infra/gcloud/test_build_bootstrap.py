"""infra/bootstrap.sh, by the real gcloud, on accounts with memory."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from infra.preflight.project import APIS, CLUSTER_APIS, CLUSTER_ROLES, CUSTOM_PERMISSIONS, ROLES
from infra.preflight.spending import MARK, marked
from tests.infra.gcloud.accounts import Accounts
from tests.infra.gcloud.conftest import PERSON, Gcloud
from tests.infra.loopback import serving
from tests.infra.sources import ROOT

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

DEPLOYER = "tpu-slice-deployer@shop.iam.gserviceaccount.com"
CUSTOM = "projects/other/roles/tpuSliceDeployer_shop"
TAKEN_BACK = "projects/shop/roles/tpuSliceDeployer_shop"
CLUSTERS = ("--cluster-project", "shop", "--cluster-project", "other")
COMMAND = ("infra/bootstrap.sh", "--project", "shop", "--region", "us-central1", "--firestore-location", "nam5")


class Bed:
    """Accounts, and runs of the script on them."""

    def __init__(self, gcloud: Gcloud, accounts: Accounts, url: str) -> None:
        self.gcloud, self.accounts, self._url = gcloud, accounts, url

    def run(self, *command: str, **environment: str) -> CompletedProcess[str]:
        return self.gcloud.run(*command, url=self._url, environment=environment)


@pytest.fixture
def bed(gcloud: Gcloud) -> Iterator[Bed]:
    accounts = Accounts(projects={"shop": True, "other": True, "poor": False})
    with serving(accounts.answer) as url:
        yield Bed(gcloud, accounts, url)
    assert accounts.unknown == []


def test_two_projects_are_made_ready_and_left_as_they_are_the_second_time(bed: Bed) -> None:
    google = bed.accounts
    google.roles[TAKEN_BACK] = {"name": TAKEN_BACK, "deleted": True}  # by an earlier removal
    granted = [{"role": role, "members": [f"serviceAccount:{DEPLOYER}"]} for role in list(ROLES)[2:]]
    google.policies["shop"] = {"etag": "MA==", "bindings": granted}  # an earlier run was interrupted
    made = bed.run(*COMMAND, *CLUSTERS)
    assert made.returncode == 0, made.stderr

    member = f"serviceAccount:{DEPLOYER}"
    assert google.apis == {
        f"{project}/{api}.googleapis.com"
        for project, apis in {"shop": APIS, "other": CLUSTER_APIS}.items()
        for api in apis
    }
    assert google.members("shop") == {(role, member) for role in (*ROLES, *CLUSTER_ROLES, TAKEN_BACK)}
    assert google.members("other") == {(role, member) for role in (*CLUSTER_ROLES, CUSTOM)}
    assert google.members(DEPLOYER) == {("roles/iam.serviceAccountUser", f"user:{PERSON}")}
    for role in (CUSTOM, TAKEN_BACK):
        assert google.roles[role]["includedPermissions"] == [*CUSTOM_PERMISSIONS]
        assert "deleted" not in google.roles[role]
    bucket = google.buckets["shop-tpu-slice-state"]
    assert bucket["versioning"]["enabled"] is True
    assert bucket["iamConfiguration"]["uniformBucketLevelAccess"]["enabled"] is True
    assert bucket["iamConfiguration"]["publicAccessPrevention"] == "enforced"
    logs = google.buckets["shop-tpu-build-logs"]
    assert "versioning" not in logs
    assert logs["softDeletePolicy"]["retentionDurationSeconds"] in {0, "0"}
    assert google.members("gs://shop-tpu-build-logs") == {("roles/storage.objectViewer", f"user:{PERSON}")}
    assert len(google.agents) == 6

    google.changes.clear()
    again = bed.run(*COMMAND, *CLUSTERS)
    assert again.returncode == 0, again.stderr
    assert google.changes == []
    assert "add-iam-policy-binding" not in again.stdout


def test_what_was_made_is_taken_away_but_for_the_state(bed: Bed) -> None:
    google, member = bed.accounts, f"serviceAccount:{DEPLOYER}"
    google.accounts[DEPLOYER] = {"email": DEPLOYER}
    google.buckets["shop-tpu-slice-state"] = {"name": "shop-tpu-slice-state"}
    google.roles[CUSTOM] = {"name": CUSTOM}
    for project, roles in {"shop": ("roles/run.admin", "roles/pubsub.admin"), "other": (CUSTOM,)}.items():
        google.policies[project] = {
            "etag": "MA==",
            "bindings": [
                *({"role": role, "members": [member, f"user:{PERSON}"]} for role in roles),
                {"role": "roles/owner", "members": [f"user:{PERSON}"]},
            ],
        }

    removed = bed.run(*COMMAND, *CLUSTERS, "--remove")
    assert removed.returncode == 0, removed.stderr
    assert google.accounts == {}
    assert member not in {grantee for project in google.policies for _, grantee in google.members(project)}
    assert ("roles/run.admin", f"user:{PERSON}") in google.members("shop")
    assert google.roles[CUSTOM]["deleted"] is True
    assert list(google.buckets) == ["shop-tpu-slice-state"]
    assert "gcloud storage rm --recursive gs://shop-tpu-slice-state gs://shop-tpu-build-logs" in removed.stdout


def test_a_provisioner_that_stands_is_not_robbed_of_its_account(bed: Bed) -> None:
    bed.accounts.buckets["shop-tpu-slice-functions"] = {"name": "shop-tpu-slice-functions"}
    refused = bed.run(*COMMAND, "--remove")

    assert refused.returncode == 1
    assert "infra/cloudbuild.destroy.yaml" in refused.stderr
    assert bed.accounts.changes == []


NOTIFY = ("--notify", "ops@example.com", "--notify", "on.call+tpu@example.com")


def told(google: Accounts) -> list[tuple[str, str, str]]:
    """Return project, address and mark of each channel."""
    return sorted(
        (name.split("/")[1], each["labels"]["email_address"], each.get("userLabels", {}).get(MARK, ""))
        for name, each in google.channels.items()
    )


def test_who_is_to_be_told_of_alerts_gets_a_channel_in_each_project_once(bed: Bed) -> None:
    google = bed.accounts
    for _ in range(2):
        made = bed.run(*COMMAND, *CLUSTERS, *NOTIFY)
        assert made.returncode == 0, made.stderr
        assert told(google) == [
            (project, email, "shop") for project in ("other", "shop") for email in sorted(NOTIFY[1::2])
        ]
    for name, channel in google.channels.items():
        assert marked({"notificationChannels": [channel]}, "shop") == [channel]
        assert re.fullmatch(r"projects/[a-z]+/notificationChannels/[0-9]+", name)
        assert channel["type"] == "email"
        assert channel["enabled"] is True

    google.changes.clear()
    assert bed.run(*COMMAND, *CLUSTERS, "--notify", "new@example.com").returncode == 0
    assert google.changes == [f"POST /v3/projects/{project}/notificationChannels" for project in ("shop", "other")]


def test_whoever_names_an_address_is_told_how_to_see_a_mail_there(bed: Bed, gcloud: Gcloud) -> None:
    said = bed.run(*COMMAND, *CLUSTERS, *NOTIFY, "--dry-run").stdout
    assert "Alerts notify ops@example.com on.call+tpu@example.com. Whether mails arrive there nobody checks." in said
    commands = [line.strip() for line in said.splitlines() if line.startswith("  gcloud pubsub ")]
    assert [command.split()[2:5] for command in commands] == [
        ["topics", "publish", "dead-letters"],
        ["subscriptions", "seek", "dead-letters"],
    ]
    assert [gcloud.parse("bash", "-c", command) for command in commands] == ["", ""]


def test_without_an_address_no_channel_is_made_or_asked_about(bed: Bed) -> None:
    dry = bed.run(*COMMAND, "--dry-run")
    assert "channels" not in dry.stdout
    assert "dead-letters" not in dry.stdout


def test_only_the_channels_that_were_made_here_are_taken_away(bed: Bed) -> None:
    google = bed.accounts
    google.accounts[DEPLOYER] = {"email": DEPLOYER}
    ours: dict[str, Any] = {
        "type": "email",
        "displayName": "TPU slice provisioner of shop",
        "userLabels": {MARK: "shop"},
    }
    others: dict[str, dict[str, Any]] = {
        "another provisioner's": {**ours, "userLabels": {MARK: "office"}},
        "marked by somebody": {**ours, "displayName": "On call"},
        "nobody's": {"type": "email", "displayName": "On call"},
    }
    for number, channel in enumerate([ours, *others.values()]):
        name = f"projects/shop/notificationChannels/{number}"
        google.channels[name] = {**channel, "name": name, "labels": {"email_address": f"{number}@example.com"}}

    removed = bed.run(*COMMAND, "--remove")
    assert removed.returncode == 0, removed.stderr
    assert list(google.channels) == [f"projects/shop/notificationChannels/{number}" for number in (1, 2, 3)]


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        (["--project", "shop", "--region", "r", "--notify", "ops"], {}, "--notify ops: that is no e-mail address"),
        (["--project", "shop", "--region", "r", "--notify", "a@b,c@d"], {}, "--notify a@b,c@d: that is no e-mail"),
        (["--project", "nobody", "--region", "us-central1"], {}, f"{PERSON} cannot read the project nobody"),
        (["--project", "poor", "--region", "us-central1"], {}, "the project poor has no billing account"),
        (["--region", "us-central1"], {}, "which project? --project PROJECT"),
        (["--project", "shop"], {}, "which region? --region us-central1, for example"),
        (["--project", "shop", "--region"], {}, "--region needs a value"),
        (["--projekt", "shop"], {}, "there is no option --projekt"),
        (["--remove", "--dry-run"], {}, "--dry-run shows what is made"),
        (["--project", "shop"], {"CLOUDSDK_CORE_ACCOUNT": ""}, "gcloud is not logged in: gcloud auth login"),
    ],
)
def test_what_is_lacking_is_said_before_anything_is_changed(
    bed: Bed, arguments: list[str], environment: dict[str, str], message: str
) -> None:
    refused = bed.run("infra/bootstrap.sh", *arguments, **environment)

    assert refused.returncode == 1
    assert f"bootstrap: {message}" in refused.stderr
    assert bed.accounts.changes == []


def test_without_gcloud_it_says_where_to_get_it(bed: Bed, tmp_path: Path) -> None:
    refused = bed.run("env", f"PATH={tmp_path}", "/bin/bash", *COMMAND)
    assert refused.returncode == 1
    assert "gcloud is not installed: https://" in refused.stderr


def test_a_dry_run_prints_the_commands_and_needs_no_gcloud(bed: Bed) -> None:
    dry = bed.run(*COMMAND, "--cluster-project", "other", "--dry-run", GCLOUD_SERVED_AT="nowhere")

    assert dry.returncode == 0, dry.stderr
    assert bed.accounts.changes == []
    commands = [line for line in dry.stdout.splitlines() if line.startswith("gcloud ")]
    assert {shlex.split(command)[0] for command in commands} == {"gcloud"}
    assert len([command for command in commands if "projects add-iam-policy-binding" in command]) == len(
        [*ROLES, *CLUSTER_ROLES, CUSTOM]
    )


def test_the_command_that_comes_next_sets_what_the_build_needs(bed: Bed) -> None:
    pool = "projects/shop/locations/us-east5/workerPools/w"
    dry = bed.run(*COMMAND, "--worker-pool", pool, "--dry-run")

    [command] = [line for line in dry.stdout.splitlines() if line.startswith("  gcloud builds submit")]
    given = dict(pair.split("=", 1) for pair in re.findall(r"--substitutions=(\S+),_COMMIT", command)[0].split(","))
    assert given == {
        "_STATE_BUCKET": "shop-tpu-slice-state",
        "_REGION": "us-central1",
        "_FIRESTORE_LOCATION": "nam5",
        "_WORKER_POOL": pool,
    }
    assert f"--region us-east5 --worker-pool {pool}" in command
    assert command.endswith(",_COMMIT=$(git rev-parse HEAD)")


def test_the_help_has_every_option() -> None:
    text = (ROOT / "infra" / "bootstrap.sh").read_text()
    header = text.partition("set -euo pipefail")[0]
    assert set(re.findall(r"^ +(--[a-z-]+)\)", text, re.MULTILINE)) == set(
        re.findall(r"^#   (--[a-z-]+)", header, re.MULTILINE)
    )
