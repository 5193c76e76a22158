"""What preflight says of where the slices of a self-managed cluster are to be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from google.auth.credentials import AnonymousCredentials
from google.auth.transport.requests import AuthorizedSession

from infra.preflight import __main__ as preflight
from infra.preflight.api import Api
from infra.preflight.findings import Finding, Severity, report
from infra.preflight.project import Asked
from tests.infra.preflight import google_rest
from tests.infra.preflight.clouds import (
    BUCKET,
    NETWORK,
    PERMISSIONS,
    PROJECT,
    QUOTA_INFOS,
    SERVICES,
    SUBNETWORK,
    changed,
)
from tests.infra.preflight.google_rest import Cloud

pytestmark = pytest.mark.enable_socket

ASKED = Asked(project=PROJECT, region="us-central1", state_bucket="state", firestore_location="nam5", max_instances=10)
HOSTS = "tpu-hosts@shop.iam.gserviceaccount.com"
AGENT = "4711@cloudservices.gserviceaccount.com"
HERE = "/compute/v1/projects/shop"
AT = f"{HERE}/regions/us-central1"
SETTINGS: dict[str, Any] = {
    "path": "projects/shop/locations/us-central1",
    "zone": "us-central1-c",
    "policy": {"chips_per_cluster": 64},
    "compute": {
        "image": "projects/images/global/images/family/tpu",
        "subnetwork": "hosts",
        "join": "kubeadm",
        "control_plane": "10.0.0.2:6443",
        "kubernetes": "1.36",
    },
    "pools": {"service_account": HOSTS},
}
WHOLE: dict[str, Any] = {
    "/v1/projects/shop/services:batchGet": SERVICES,
    "/v3/projects/shop:testIamPermissions": PERMISSIONS,
    "/v3/projects/shop:getIamPolicy": {
        "bindings": [{"role": "roles/editor", "members": [f"serviceAccount:{AGENT}"]}],
    },
    "/v3/projects/shop": {"name": "projects/4711"},
    "/storage/v1/b/state": BUCKET,
    f"/v1/projects/-/serviceAccounts/{HOSTS}": {"email": HOSTS},
    **QUOTA_INFOS,
    f"{AT}/subnetworks/hosts": SUBNETWORK,
    f"{AT}/routers": {"items": [{"network": NETWORK, "nats": [{"name": "nat"}]}]},
    f"{HERE}/zones/us-central1-c": {"status": "UP"},
    "/compute/v1/projects/images/global/images/family/tpu": {"name": "tpu-7", "status": "READY"},
}
ENABLE = (
    "gcloud compute networks subnets update hosts --region us-central1 --project shop --enable-private-ip-google-access"
)


@dataclass(frozen=True)
class Bed:
    """A cloud, and a folder for the cluster's file."""

    cloud: Cloud
    api: Api
    folder: Path

    def findings(self, **changes: Any) -> tuple[Finding, ...]:
        """Return what is found of the cluster, with changes to its settings."""
        (self.folder / "own.yaml").write_text(json.dumps(changed(SETTINGS, **changes)))
        *_, of_cluster = preflight.check(self.api, ASKED, self.folder)
        assert of_cluster.subject == "cluster own (projects/shop/locations/us-central1)"
        *found, elsewhere = of_cluster.findings
        assert elsewhere.severity is Severity.NOTE
        assert elsewhere.remedies == (f"python -m infra.preflight inside {self.folder}/own.yaml",)
        return tuple(found)


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Bed]:
    """Return a cloud that lacks nothing."""
    session = AuthorizedSession(AnonymousCredentials())  # type: ignore[no-untyped-call]
    with google_rest.served() as cloud, session:
        cloud.documents.update(WHOLE)
        yield Bed(cloud, Api(session, cloud.hosts), tmp_path)


def test_where_nothing_is_missing_it_says_how_to_ask_the_cluster_itself_and_gke_is_not_asked(bed: Bed) -> None:
    (bed.folder / "own.yaml").write_text(json.dumps(SETTINGS))
    told = report(preflight.check(bed.api, ASKED, bed.folder))
    command = f"python -m infra.preflight inside {bed.folder}/own.yaml\n"
    assert f"{command}0 errors, 0 warnings.\n" in told
    assert told.endswith(command)
    assert not [asked for asked in bed.cloud.asked if "/clusters/" in asked or "kubernetes" in asked]


@pytest.mark.parametrize(
    ("subnetwork", "asked"),
    [
        ("regions/us-east5/subnetworks/hosts", f"{HERE}/regions/us-east5/subnetworks/hosts"),
        (
            "projects/net/regions/us-east5/subnetworks/hosts",
            "/compute/v1/projects/net/regions/us-east5/subnetworks/hosts",
        ),
    ],
)
def test_a_subnetwork_is_looked_for_where_the_settings_say(bed: Bed, subnetwork: str, asked: str) -> None:
    [missing] = bed.findings(compute__subnetwork=subnetwork)
    assert f"GET {asked}" in bed.cloud.asked
    assert missing.severity is Severity.ERROR
    assert "There is no subnetwork hosts in us-east5 of " in missing.message


def test_hosts_that_reach_nothing_of_google_are_an_error_with_the_command(bed: Bed) -> None:
    bed.cloud.documents[f"{AT}/subnetworks/hosts"] = changed(SUBNETWORK, privateIpGoogleAccess=False)
    bed.cloud.documents[f"{AT}/routers"] = {}
    [unreachable] = bed.findings()
    assert (unreachable.severity, unreachable.remedies) == (Severity.ERROR, (ENABLE,))


def test_without_nat_hosts_install_nothing_unless_their_image_lets_them_join(bed: Bed) -> None:
    bed.cloud.documents[f"{AT}/routers"] = {}
    [installs] = bed.findings()
    assert installs.severity is Severity.WARNING
    assert [remedy.split()[:4] for remedy in installs.remedies] == [
        ["gcloud", "compute", "routers", "create"],
        ["gcloud", "compute", "routers", "nats"],
    ]
    assert bed.findings(compute__join="none") == ()


IMAGE = "/compute/v1/projects/images/global/images/family/tpu"
INFOS = "/v1/projects/shop/locations/global/services/compute.googleapis.com/quotaInfos"
BY_FAMILY, SPOT_OF_V6E = (
    f"{INFOS}/TPUS-PER-TPU-FAMILY-per-project-region",
    f"{INFOS}/PREEMPTIBLE-TPU-V6E-per-project-region",
)
ASK = "gcloud beta quotas preferences create --service compute.googleapis.com --project shop --quota-id"
V6E = {"policy__accelerators": ["tpu-v6e-slice"]}


def info(chips: int, **dimensions: str) -> dict[str, Any]:
    return {"dimensions": dimensions, "details": {"value": str(chips)}}


def infos(*told: dict[str, Any]) -> dict[str, Any]:
    """Return a quota as Cloud Quotas shows it."""
    return {"dimensionsInfos": [*told]}


@pytest.mark.parametrize(
    ("path", "document", "expected"),
    [
        (IMAGE, None, ("ERROR", "There is no image projects/images/")),
        (IMAGE, 403, ("WARNING", "roles/compute.imageUser in images")),
        (IMAGE, {"deprecated": {"state": "OBSOLETE"}}, ("ERROR", "is OBSOLETE: no host can be made of it")),
        (f"{HERE}/zones/us-central1-c", None, ("ERROR", "There is no zone us-central1-c")),
        (f"{HERE}/zones/us-central1-c", {"status": "DOWN"}, ("WARNING", "the zone us-central1-c is DOWN")),
        (BY_FAMILY, 403, ("WARNING", "It could not be read which quotas for TPUs us-central1 has")),
        (f"{AT}/subnetworks/hosts", 403, ("WARNING", "It could not be read whether the subnetwork")),
        (f"/v1/projects/-/serviceAccounts/{HOSTS}", None, ("ERROR", f"The service account {HOSTS} of TPU nodes")),
        ("/v3/projects/shop:getIamPolicy", {"bindings": []}, ("ERROR", f"{AGENT}, by which Google makes")),
    ],
)
def test_what_is_missing_is_named(bed: Bed, path: str, document: Any, expected: tuple[str, str]) -> None:
    if document is None:
        del bed.cloud.documents[path]
    else:
        bed.cloud.documents[path] = document
    [found] = bed.findings()
    assert found.severity == expected[0]
    assert expected[1] in found.message


def test_quotas_are_told_by_accelerator_and_by_how_hosts_are_bought(bed: Bed) -> None:
    here = {"region": "us-central1", "tpu_family": "CT6E"}
    bed.cloud.documents[BY_FAMILY] = infos(info(0, **here), info(64, region="us-central1"), info(512))
    bed.cloud.documents[SPOT_OF_V6E] = infos(info(0), info(1536, region="us-east5"))
    on_demand, spot = bed.findings(**V6E)
    assert on_demand.message.startswith("us-central1 has no quota for chips of tpu-v6e-slice on demand")
    (command,) = on_demand.remedies
    assert command.startswith(f"{ASK} TPUS-PER-TPU-FAMILY-per-project-region ")
    assert command.endswith(" --dimensions region=us-central1,tpu_family=CT6E --preferred-value CHIPS")
    assert "tpu-v6e-slice as spot (PREEMPTIBLE-TPU-V6E-per-project-region)" in spot.message
    assert "region=us-central1 " in spot.remedies[0]


@pytest.mark.parametrize(
    "told",
    [
        infos(info(0), info(8, region="us-central1", tpu_family="CT6E")),
        infos(info(0, region="us-east5"), info(-1)),
        infos(info(0, region="us-east5")),
        infos(),
    ],
    ids=["of this family", "unlimited", "of elsewhere", "not told"],
)
def test_what_may_be_enough_is_no_finding(bed: Bed, told: dict[str, Any]) -> None:
    bed.cloud.documents[BY_FAMILY] = told
    assert bed.findings(**V6E) == ()


def test_a_quota_that_cloud_quotas_does_not_know_is_named_and_what_is_known_is_judged_all_the_same(bed: Bed) -> None:
    del bed.cloud.documents[SPOT_OF_V6E]
    bed.cloud.documents[BY_FAMILY] = infos(info(0))
    unknown, lacking = bed.findings(**V6E)
    assert unknown.severity is Severity.NOTE
    assert "whether us-central1 has quota for chips of tpu-v6e-slice as spot: Cloud Quotas does not know" in (
        unknown.message
    )
    assert unknown.message.endswith("PREEMPTIBLE-TPU-V6E-per-project-region.")
    assert lacking.message.startswith("us-central1 has no quota for chips of tpu-v6e-slice on demand")


def test_of_accelerators_that_nobody_named_one_with_quota_is_enough(bed: Bed) -> None:
    bed.cloud.documents[BY_FAMILY] = infos(info(0))
    everything = {"policy__accelerators": ["*"]}
    assert bed.findings(**everything) == ()
    for id_ in ("PREEMPTIBLE-TPU-V6E", "PREEMPTIBLE-TPU7X", "TPU-V5P", "PREEMPTIBLE-TPU-V5P"):
        bed.cloud.documents[f"{INFOS}/{id_}-per-project-region"] = infos(info(0))
    assert len(bed.findings(**everything)) == 6
    assert not [asked for asked in bed.cloud.asked if "LITE" in asked]


def test_what_the_policy_does_not_allow_is_not_asked_for(bed: Bed) -> None:
    bed.cloud.documents[BY_FAMILY] = infos(info(0))
    bed.cloud.documents[SPOT_OF_V6E] = infos(info(8))
    assert bed.findings(policy__accelerators=["tpu-v6e-slice"], policy__capacity=["spot"]) == ()
    assert f"GET {BY_FAMILY}" not in bed.cloud.asked


def test_scripts_tell_a_self_managed_cluster_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own.yaml").write_text(json.dumps(SETTINGS))
    (tmp_path / "blue.yaml").write_text("path: projects/shop/locations/us-central2/clusters/b\n")
    assert preflight.main(["clusters", "--project", PROJECT, "--folder", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "blue shop us-central2 b\nown shop us-central1 -\n"
