"""What preflight asks of each project over HTTP: whom alerts notify, and the organisation policies in effect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from infra.preflight import __main__ as preflight
from infra.preflight.__main__ import Outside
from infra.preflight.api import Api
from infra.preflight.findings import Severity
from infra.preflight.org_policies import OF_CLUSTERS, OF_PROVISIONER
from tests.infra.preflight.clouds import ASKED, CHANNELS, CLUSTER, PATH, PROJECT, changed
from tests.infra.preflight.google_rest import Cloud

pytestmark = pytest.mark.enable_socket


def channels_of(project: str, mark: str, *numbers: int) -> dict[str, Any]:
    return {
        "notificationChannels": [
            {"name": f"projects/{project}/notificationChannels/{number}", "userLabels": {"tpu-slice-provisioner": mark}}
            for number in numbers
        ]
    }


CHANNELS_COMMAND = ["channels", "--project", PROJECT, "--folder"]


def test_terraform_is_told_of_the_channels_in_each_project_with_alerts(
    outside: Outside, cloud: Cloud, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "red.yaml").write_text("path: projects/other/locations/us-east5/clusters/r\n")
    (folder / "own.yaml").write_text(
        "path: projects/machines/locations/us-east5\ncompute: {image: projects/p/global/images/i}\n"
    )
    cloud.documents["/v3/projects/shop/notificationChannels"] = {
        "notificationChannels": [
            *channels_of("shop", "office", 1)["notificationChannels"],
            {"name": "projects/shop/notificationChannels/2"},
            *CHANNELS["notificationChannels"],
        ]
    }
    cloud.documents["/v3/projects/other/notificationChannels"] = channels_of("other", PROJECT, 8, 9)

    assert preflight.main([*CHANNELS_COMMAND, str(folder)], outside) == 0
    assert json.loads(capsys.readouterr().out) == {
        "notification_channels": [
            "projects/other/notificationChannels/8",
            "projects/other/notificationChannels/9",
            "projects/shop/notificationChannels/7",
        ]
    }
    assert not [asked for asked in cloud.asked if "machines" in asked], "alerts on relays are on GKE's log"


def test_nobody_to_notify_is_no_reason_to_fail(
    outside: Outside, cloud: Cloud, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud.documents["/v3/projects/shop/notificationChannels"] = {}
    assert preflight.main([*CHANNELS_COMMAND, str(folder)], outside) == 0
    assert json.loads(capsys.readouterr().out) == {"notification_channels": []}


@pytest.mark.parametrize("status", [403, 404, 500])
def test_channels_that_cannot_be_read_end_the_build_and_are_not_taken_from_the_alerts(
    outside: Outside, cloud: Cloud, folder: Path, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud.documents["/v3/projects/shop/notificationChannels"] = status
    assert preflight.main([*CHANNELS_COMMAND, str(folder)], outside) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "shop" in told.err


EFFECTIVE = "/v2/projects/{}/policies/{}:getEffectivePolicy"


def test_organisation_policies_in_effect_are_asked_in_each_project_once(api: Api, cloud: Cloud, folder: Path) -> None:
    (folder / "red.yaml").write_text("path: projects/other/locations/us-east5/clusters/r\n")
    (folder / "green.yaml").write_text("path: projects/other/locations/us-east5/clusters/g\n")
    preflight.check(api, ASKED, folder)

    asked = [each for each in cloud.asked if each.startswith("GET /v2/")]
    assert {f"GET {EFFECTIVE.format('shop', each)}" for each in (*OF_PROVISIONER, *OF_CLUSTERS)} <= {*asked}
    assert {f"GET {EFFECTIVE.format('other', each)}" for each in OF_CLUSTERS} <= {*asked}
    assert len(asked) == len({*asked})


def test_organisation_policies_that_may_not_be_read_are_told_once_for_a_project_and_end_no_build(
    outside: Outside, cloud: Cloud, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud.documents |= {EFFECTIVE.format("shop", each): 403 for each in (*OF_PROVISIONER, *OF_CLUSTERS)}
    command = ["check", "--project", PROJECT, "--region", "us-central1", "--state-bucket", "state"]
    assert preflight.main([*command, "--firestore-location", "nam5", "--folder", str(folder)], outside) == 0
    assert "\n0 errors, 1 warning.\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (("run.allowedIngress", {"denyAll": True}), ("project shop", Severity.ERROR)),
        (
            ("gcp.resourceLocations", {"values": {"allowedValues": ["us-central1", "nam5"]}}),
            (f"cluster blue ({PATH})", Severity.ERROR),
        ),
        (
            ("gcp.resourceLocations", {"values": {"allowedValues": ["us-central1", "us-central2"]}}),
            ("project shop", Severity.ERROR),
        ),
        (
            ("iam.allowedPolicyMemberDomains", {"values": {"allowedValues": ["C01"]}}),
            ("project shop", Severity.NOTE),
        ),
    ],
)
def test_what_a_policy_refuses_is_told_of_its_subject(
    api: Api, cloud: Cloud, folder: Path, policy: tuple[str, Any], expected: tuple[str, Severity]
) -> None:
    constraint, rule = policy
    cloud.documents[EFFECTIVE.format("shop", constraint)] = {"spec": {"rules": [rule]}}
    found = [
        (section.subject, each.severity) for section in preflight.check(api, ASKED, folder) for each in section.findings
    ]
    assert found == [expected]


def test_nodes_with_external_addresses_are_told_where_no_machine_may_have_any(
    api: Api, cloud: Cloud, folder: Path
) -> None:
    cloud.documents[EFFECTIVE.format("shop", "compute.vmExternalIpAccess")] = {"spec": {"rules": [{"denyAll": True}]}}
    assert not [each for section in preflight.check(api, ASKED, folder) for each in section.findings]
    cloud.documents[f"/v1/{PATH}"] = changed(CLUSTER, networkConfig__defaultEnablePrivateNodes=False)
    [finding] = [each for section in preflight.check(api, ASKED, folder) for each in section.findings]
    assert finding.message.startswith("compute.vmExternalIpAccess allows no external addresses")


def test_each_project_with_alerts_is_told_once_if_they_notify_nobody(api: Api, cloud: Cloud, folder: Path) -> None:
    for name, path in {"red": "other/locations/us-east5/clusters/r", "own": "machines/locations/us-east5"}.items():
        compute = "compute: {image: projects/p/global/images/i}\n" if name == "own" else ""
        (folder / f"{name}.yaml").write_text(f"path: projects/{path}\n{compute}")
    cloud.documents |= {f"/v3/projects/{name}/notificationChannels": {} for name in ("shop", "other", "machines")}

    told = [
        (section.subject, finding.remedies)
        for section in preflight.check(api, ASKED, folder)
        for finding in section.findings
        if "notify nobody" in finding.message
    ]
    command = (
        "infra/bootstrap.sh --project shop --region us-central1 --firestore-location nam5 --state-bucket state"
        "{} --notify EMAIL"
    )
    assert told == [
        ("project shop", (command.format(""),)),
        ("project other, of clusters", (command.format(" --cluster-project other"),)),
    ]
