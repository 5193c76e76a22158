"""Preflight as a whole: which questions it asks over HTTP, what it prints, and the code that it ends with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from google.auth.credentials import AnonymousCredentials
from google.auth.transport.requests import AuthorizedSession
from google.iam.v1 import iam_policy_pb2 as iam
from google.protobuf.json_format import MessageToDict, ParseDict

from infra.preflight import __main__ as preflight
from infra.preflight.__main__ import Outside
from infra.preflight.answers import Denied, Found, Missing, Unreachable
from infra.preflight.api import Api
from infra.preflight.findings import Section, Severity, error, report, warning
from infra.preflight.gke import Endpoint
from tests.builders import CLUSTER as DEMO
from tests.infra.preflight import google_rest
from tests.infra.preflight.clouds import ASKED, CLUSTER, NODES, PATH, PROJECT, changed
from tests.infra.preflight.google_rest import Cloud

pytestmark = pytest.mark.enable_socket


def test_a_cloud_that_lacks_nothing_has_no_finding(api: Api, folder: Path) -> None:
    sections = preflight.check(api, ASKED, folder)

    assert report(sections) == (
        "project shop: nothing is missing\n"
        "project shop, of clusters: nothing is missing\n"
        f"cluster blue ({PATH}): nothing is missing\n"
        "0 errors, 0 warnings.\n"
    )


def test_more_instances_than_the_region_has_cpus_for_are_told_with_what_fits(
    api: Api, cloud: Cloud, folder: Path
) -> None:
    path = "/v1/projects/shop/locations/global/services/run.googleapis.com/quotaInfos/CpuAllocPerProjectRegion"
    rows = [{"dimensions": {"region": "us-central1"}, "details": {"value": "8000"}}]
    cloud.documents[path] = {"dimensionsInfos": rows}
    told = report(preflight.check(api, ASKED, folder))
    assert "ERROR    Cloud Run's quota of us-central1 has 8 CPUs" in told
    assert "max_instances = 2 # in infra/terraform/terraform.tfvars" in told


def test_that_gangs_are_held_as_is_set_is_not_known_from_outside_and_the_command_is_told(
    api: Api, folder: Path
) -> None:
    file = folder / "blue.yaml"
    file.write_text(json.dumps({**yaml.safe_load(file.read_text()), "gangs": "multislice"}))
    told = report(preflight.check(api, ASKED, folder))
    assert "NOTE     The setting `gangs` is multislice. Whether the cluster holds the pods" in told
    assert "is not known from here" in " ".join(told.split())
    assert "slices doctor" in told


def test_what_clusters_share_is_asked_once(api: Api, cloud: Cloud, folder: Path) -> None:
    shutil.copy(folder / "blue.yaml", folder / "red.yaml")
    preflight.check(api, ASKED, folder)

    assert cloud.asked.count("POST /v3/projects/shop:getIamPolicy") == 1
    assert cloud.asked.count(f"GET /v1/{PATH}") == 2


BODIES = {
    "/v3/projects/shop:testIamPermissions": iam.TestIamPermissionsRequest,
    "/v3/projects/shop:getIamPolicy": iam.GetIamPolicyRequest,
}


def test_what_is_sent_is_what_the_apis_read(api: Api, cloud: Cloud, folder: Path) -> None:
    preflight.check(api, ASKED, folder)
    assert cloud.bodies.keys() == BODIES.keys()
    for path, message in BODIES.items():
        assert MessageToDict(ParseDict(cloud.bodies[path], message())) == cloud.bodies[path]


def test_all_that_is_missing_is_told_at_once(api: Api, cloud: Cloud, folder: Path) -> None:
    cloud.documents.clear()
    bare = changed(CLUSTER, workloadIdentityConfig=None, nodePools=[], controlPlaneEndpointsConfig=None)
    cloud.documents[f"/v1/{PATH}"] = bare
    cloud.documents["/v3/projects/shop"] = 403
    cloud.documents["/v3/projects/shop/notificationChannels"] = {}
    (folder / "green.yaml").write_text("path: somewhere")
    (folder / "red.yaml").write_text(json.dumps({"path": PATH.replace("/b", "/r")}))

    sections = preflight.check(api, ASKED, folder)

    told = {section.subject: [finding.message for finding in section.findings] for section in sections}
    beginnings = {
        subject.partition(" (")[0]: [" ".join(message.split()[:4]) for message in messages]
        for subject, messages in told.items()
    }
    assert beginnings == {
        "project shop": [
            "Whether the APIs of",
            "The permissions of the",
            "The bucket gs://state of",
            "It is not known",
            "Alerts in shop notify",
        ],
        "project shop, of clusters": ["Whether the APIs of", "The permissions of the"],
        "cluster green": [beginnings["cluster green"][0]],
        "cluster blue": [
            f"The service account {NODES}",
            "It is not known",
            "Workload Identity is off,",
            "The relay fits no",
            "Whether private nodes reach",
            "The build cannot reach",
        ],
        "cluster red": ["Nothing but quota limits", "TPU nodes have no", "It is not known", "GKE has no cluster"],
    }
    assert "projects/P/locations/L/clusters/C" in told["cluster green"][0]


def test_an_answer_is_told_from_a_refusal_and_from_silence(api: Api, cloud: Cloud) -> None:
    cloud.documents.update({"/v1/x": {"a": 1}, "/v1/y": 403, "/v1/z": 503, "/v1/w": b"<html>"})

    assert api.get("iam", "v1/x") == Found({"a": 1})
    assert api.get("iam", "v1/y") == Denied("refused with 403")
    assert api.get("iam", "v1/none") == Missing()
    assert api.get("iam", "v1/z") == Unreachable(f"{cloud.url}/v1/z: 503 refused with 503")
    assert isinstance(api.get("iam", "v1/w"), Unreachable)


def test_nobody_at_an_address_is_no_answer() -> None:
    with google_rest.served() as gone:
        address = gone.url
    with AuthorizedSession(AnonymousCredentials()) as session:  # type: ignore[no-untyped-call]
        assert isinstance(Api(session).kubernetes(Endpoint(address), "/version"), Unreachable)


def test_a_report_has_each_finding_with_its_remedies_below_and_what_is_to_be_done_in_order() -> None:
    project = Section("project shop", (warning("It is old.", "renew it"), error("It is off.", "turn it on")))
    cluster = Section("cluster blue", (error("It is off, too.", "turn it on"), error("Use another one.")))
    assert report([project, cluster], "The build.") == (
        "project shop:\n"
        "  WARNING  It is old.\n"
        "           renew it\n"
        "  ERROR    It is off.\n"
        "           turn it on\n"
        "cluster blue:\n"
        "  ERROR    It is off, too.\n"
        "           turn it on\n"
        "  ERROR    Use another one.\n"
        "3 errors, 1 warning.\n"
        "Next:\n"
        "  1. project shop, cluster blue:\n"
        "         turn it on\n"
        "  2. cluster blue: Use another one.\n"
        "  3. Run this again, or submit the build again if this was its step.\n"
        "Not in the way of that:\n"
        "  1. project shop:\n"
        "         renew it\n"
    )


def test_what_only_warns_is_not_in_the_way_of_what_follows() -> None:
    sections = [Section("cluster blue", (warning("It is old.", "renew it"),))]
    told = (
        "0 errors, 1 warning.\nNext:\n  1. The build.\nNot in the way of that:\n  1. cluster blue:\n         renew it\n"
    )
    assert report(sections, "The build.").endswith(told)
    assert "Next" not in report(sections)


def test_only_an_error_ends_the_build(
    outside: Outside, cloud: Cloud, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["check", "--project", PROJECT, "--region", "us-central1", "--state-bucket", "state"]
    command += ["--firestore-location", "nam5", "--folder", str(folder)]

    cloud.documents["/storage/v1/b/state"] = {}
    assert preflight.main(command, outside) == 0
    assert "\n0 errors, 1 warning.\nNext:\n  1. The build: " in capsys.readouterr().out
    cloud.documents["/storage/v1/b/state"] = 404
    assert preflight.main(command, outside) == 1
    assert "\n1 error, 0 warnings.\nNext:\n  1. project shop:\n" in capsys.readouterr().out


def test_a_build_without_its_substitutions_is_told_which(capsys: pytest.CaptureFixture[str]) -> None:
    assert preflight.main(["check", "--project", PROJECT, "--region", "us-central1"]) == 2
    assert "Not set: _STATE_BUCKET, _FIRESTORE_LOCATION." in capsys.readouterr().err


def test_without_credentials_the_command_to_log_in_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(folder / "none.json"))
    assert preflight.main(["held", "--project", PROJECT]) == 1
    assert capsys.readouterr().err == "nobody is logged in: gcloud auth application-default login\n"


def test_a_folder_without_files_deploys_for_nobody(tmp_path: Path) -> None:
    files, [section] = preflight.files_of(tmp_path)
    assert files == []
    assert [finding.severity for finding in section.findings] == [Severity.WARNING]


def test_clusters_are_listed_for_scripts_however_their_path_is_quoted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "red.yaml").write_text(
        "zone: us-east5-a\npath: 'projects/other/locations/us-east5/clusters/r' # quoted\n"
    )
    assert preflight.main(["clusters", "--project", PROJECT, "--folder", str(folder)]) == 0
    assert capsys.readouterr().out == "blue shop us-central2 b\nred other us-east5 r\n"


def test_no_cluster_is_listed_if_the_file_of_any_is_wrong(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "red.yaml").write_text("path: somewhere")
    assert preflight.main(["clusters", "--project", PROJECT, "--folder", str(folder)]) == 1
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("command", ["dropped", "held"])
def test_the_records_are_asked_only_once_there_is_a_database(
    outside: Outside, cloud: Cloud, folder: Path, command: str
) -> None:
    arguments = [command, "--project", PROJECT, "--folder", str(folder)]

    assert preflight.main(arguments, outside) == 0
    cloud.documents["/v1/projects/shop/databases/(default)"] = {"type": "FIRESTORE_NATIVE"}
    assert preflight.main(arguments, outside) == 1
    (folder / f"{DEMO}.yaml").write_text("its file is back")
    assert preflight.main(arguments, outside) == {"dropped": 0, "held": 1}[command]


def test_the_clusters_that_the_records_know_are_listed_for_scripts(
    outside: Outside, cloud: Cloud, capsys: pytest.CaptureFixture[str]
) -> None:
    assert preflight.main(["recorded", "--project", PROJECT], outside) == 0
    assert capsys.readouterr().out == ""
    cloud.documents["/v1/projects/shop/databases/(default)"] = {"type": "FIRESTORE_NATIVE"}
    assert preflight.main(["recorded", "--project", PROJECT], outside) == 0
    assert capsys.readouterr().out == f"{DEMO}\n"


def test_what_is_made_in_a_cluster_is_listed_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    assert preflight.main(["objects"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "namespace/tpu-slice-provisioner"
