"""The build that takes the provisioner away: its own steps, and those that gcloud runs, by the real gcloud."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import yaml

from tests.infra.builds.test_build_scripts import RECORDER, SUBSTITUTIONS
from tests.infra.gcloud.conftest import Gcloud
from tests.infra.gcloud.objects import Objects
from tests.infra.loopback import NOT_FOUND, Request, Response, refusal, serving
from tests.infra.sources import DESTROY_STEPS, ROOT

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

KUBECTL = """#!/usr/bin/env bash
echo "kubectl $*" >> "$CALLS"
case "$*" in
  *mutating*) echo 'error: the server doesn'"'"'t have a resource type "mutatingadmissionpolicy"' >&2; exit 1 ;;
  *"$FAILS_ON"*) echo "Error from server (Forbidden): no" >&2; exit 1 ;;
esac
"""
"""A cluster that is too old for the optional policy."""
PYTHON = """#!/usr/bin/env bash
echo "python $*" >> "$CALLS"
[[ "$*" != *" recorded "* ]] || printf 'blue\\ndropped\\n'
[[ "$*" != *" held "* || -z "$HOLDS" ]]
"""
"""Preflight, which finds slices if HOLDS says so, and two clusters in the records."""
NAME, CLOSED = "gke-b.us-central2.gke.goog", {"endpoint": "gke-r.us-east5.gke.goog"}
CLUSTERS = {
    "/v1/projects/shop/locations/us-central2/clusters/b": {
        "name": "b",
        "zone": "us-central2",
        "status": "RUNNING",
        "endpoint": "203.0.113.5",
        "controlPlaneEndpointsConfig": {"dnsEndpointConfig": {"endpoint": NAME, "allowExternalTraffic": True}},
    },
    "/v1/projects/other/locations/us-east5/clusters/r": {
        "name": "r",
        "zone": "us-east5",
        "status": "RUNNING",
        "endpoint": "203.0.113.6",
        "masterAuth": {"clusterCaCertificate": "Y2VydGlmaWNhdGU="},
        "privateClusterConfig": {"privateEndpoint": "10.0.0.6"},
        "controlPlaneEndpointsConfig": {"dnsEndpointConfig": CLOSED},
    },
}
PACKAGES = "/v1/projects/shop/locations/us-central1/repositories/gcf-artifacts/packages"


@dataclass
class Google:
    """GKE, Artifact Registry and Cloud Storage, as far as these steps ask them."""

    objects: Objects = field(default_factory=lambda: Objects({"state": {}}))
    packages: list[str] | None = None
    """Of the repository that all functions share; None: it does not exist."""
    forbids: str = "nothing of the kind"
    """A request whose path has this in it is refused with 403."""

    def answer(self, request: Request) -> Response:
        path = request.path
        if path in CLUSTERS:
            return Response(CLUSTERS[path])
        if self.forbids in path:
            return refusal(403, "The caller does not have permission")
        if "/storage/v1/" in path:
            return self.objects.answer(request)
        if path == PACKAGES.removesuffix("/gcf-artifacts/packages"):
            there = {"name": PACKAGES.removeprefix("/v1/").removesuffix("/packages"), "format": "DOCKER"}
            return Response({"repositories": [] if self.packages is None else [there]})
        if self.packages is not None and path == PACKAGES:
            return Response({"packages": [{"name": f"{PACKAGES[4:]}/{name}"} for name in self.packages]})
        if self.packages is not None and request.method == "DELETE" and path.startswith(PACKAGES):
            self.packages.remove(path.rpartition("/")[2])
            return Response({"name": "projects/shop/locations/us-central1/operations/1", "done": True, "response": {}})
        return refusal(NOT_FOUND)


class Bed:
    def __init__(self, gcloud: Gcloud, google: Google, folder: Path) -> None:
        self._gcloud, self.google, self.folder = gcloud, google, folder

    def run(self, step: str, **changes: str) -> CompletedProcess[str]:
        """Run a step; kubectl, Terraform and the project's own programs record how they are called."""
        environment = {
            **SUBSTITUTIONS,
            "PROJECT_NUMBER": "4711",
            "_DESTROY": "shop",
            "CALLS": str(self.folder / "calls"),
            "FAILS_ON": "nothing of the kind",
            "HOLDS": "",
            "KUBECONFIG": str(self.folder / "kubeconfig"),
            "PATH": f"{self.folder / 'tools'}:{self._gcloud.folder}:{os.environ['PATH']}",
            **changes,
        }
        command = ("bash", "-c", DESTROY_STEPS[step]["script"])
        return self._gcloud.run(*command, url=self.google.objects.url, environment=environment, folder=self.folder)

    @property
    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def bed(gcloud: Gcloud, tmp_path: Path) -> Iterator[Bed]:
    programs = {
        "tools/kubectl": KUBECTL,
        "tools/terraform": RECORDER,
        "tools/make": RECORDER,
        ".venv/bin/python": PYTHON,
        ".venv/bin/slices": RECORDER,
    }
    for name, text in programs.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    for folder in ("build", "functions", "infra/terraform"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "functions" / "main.py").write_text("")
    shutil.copytree(ROOT / "infra" / "kubernetes", tmp_path / "infra" / "kubernetes")
    (tmp_path / "build" / "clusters").write_text("blue shop us-central2 b\nred other us-east5 r\n")
    (tmp_path / "build" / "objects").write_text("mutatingadmissionpolicy.admissionregistration.k8s.io/o\nnamespace/n\n")
    google = Google()
    with serving(google.answer) as google.objects.url:
        yield Bed(gcloud, google, tmp_path)


@pytest.mark.parametrize("confirmed", ["", "shop-2"])
def test_nobody_comes_here_by_mistake(bed: Bed, confirmed: str) -> None:
    refused = bed.run("confirm", _DESTROY=confirmed)
    assert refused.returncode == 1
    assert "submit with _DESTROY=shop" in refused.stderr
    assert bed.calls == []


def test_whoever_means_it_is_prepared_for(bed: Bed) -> None:
    assert bed.run("confirm").returncode == 0
    assert bed.calls == [
        "make .venv/.installed",
        "python -m infra.preflight clusters --project shop",
        "python -m infra.preflight objects",
    ]
    assert (bed.folder / "build" / "functions" / "main.py").exists()


HELD, RECORDED = (f"python -m infra.preflight {each} --project shop" for each in ("held", "recorded"))
RETIRES = [
    f"slices --project shop retire {cluster} --yes --message the provisioner is being removed"
    for cluster in ("blue", "dropped")
]


@pytest.mark.parametrize(
    ("changes", "code", "calls"),
    [
        ({}, 0, [HELD, RECORDED, *RETIRES]),
        ({"HOLDS": "yes"}, 1, [HELD]),
        ({"FAILS_ON": "retire blue"}, 1, [HELD, RECORDED, RETIRES[0]]),
    ],
    ids=["empty", "with slices", "one that cannot be retired"],
)
def test_all_clusters_that_the_records_know_are_retired_unless_there_are_slices(
    bed: Bed, changes: dict[str, str], code: int, calls: list[str]
) -> None:
    assert bed.run("retire", **changes).returncode == code
    assert bed.calls == calls


def test_the_records_are_unprotected_first_and_then_all_is_destroyed(bed: Bed) -> None:
    bed.google.objects.buckets["state"]["tpu-slice-provisioner/terraform.lock.hcl"] = b"checksums"
    for step in ("fetch", "init", "unprotect", "destroy"):
        done = bed.run(step)
        assert done.returncode == 0, done.stderr

    assert (bed.folder / "infra" / "terraform" / ".terraform.lock.hcl").read_text() == "checksums"
    at, variables = (
        "terraform -chdir=infra/terraform",
        "-var=project=shop -var=region=us-central1 -var=firestore_location=nam5",
    )
    targets = ("database.records", "index.index", "field.field", "field.rest")
    unprotected = " ".join(f"-target=google_firestore_{target}" for target in targets)
    assert bed.calls[1:] == [
        f"{at} apply -input=false -auto-approve {unprotected} {variables} -var=destroy=yes",
        f"{at} destroy -input=false -auto-approve {variables} -var=destroy=yes",
    ]


def test_what_is_in_each_cluster_is_deleted_whatever_kinds_it_serves(bed: Bed) -> None:
    done = bed.run("relays", _WORKER_POOL="projects/shop/locations/us-central1/workerPools/w")
    assert done.returncode == 0, done.stderr

    deleted = [
        "kubectl delete mutatingadmissionpolicy.admissionregistration.k8s.io/o --ignore-not-found",
        "kubectl delete namespace/n --ignore-not-found",
    ]
    assert bed.calls == deleted * 2
    kubeconfig = yaml.safe_load((bed.folder / "kubeconfig").read_text())
    servers = {each["name"]: each["cluster"]["server"] for each in kubeconfig["clusters"]}
    assert servers == {"gke_shop_us-central2_b": f"https://{NAME}", "gke_other_us-east5_r": "https://10.0.0.6"}


def test_a_control_plane_that_cannot_be_reached_ends_the_build(bed: Bed) -> None:
    done = bed.run("relays")
    assert done.returncode != 0
    assert len(bed.calls) == 2  # of the first cluster


def test_an_object_that_cannot_be_deleted_ends_the_build(bed: Bed) -> None:
    done = bed.run("relays", FAILS_ON="namespace")
    assert done.returncode == 1
    assert "Forbidden" in done.stderr


def test_of_what_all_functions_share_only_ours_is_deleted(bed: Bed) -> None:
    bed.google.packages = ["shop__us--central1__tpu--slice--receive", "shop__us--central1__another"]
    sources = "gcf-v2-sources-4711-us-central1"
    names = ["tpu-slice-receive/function-source.zip", "tpu-slice-sweep/function-source.zip", "another/source.zip"]
    bed.google.objects.buckets[sources] = dict.fromkeys(names, b"source")
    done = bed.run("leftovers")

    assert done.returncode == 0, done.stderr
    assert bed.google.packages == ["shop__us--central1__another"]
    assert list(bed.google.objects.buckets[sources]) == ["another/source.zip"]


def test_where_nothing_is_left_nothing_is_deleted(bed: Bed) -> None:
    done = bed.run("leftovers")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "forbidden", ["/repositories", "/packages", "/storage/v1/b", "/storage/v1/b/gcf-v2-sources-4711-us-central1/o"]
)
def test_what_cannot_be_listed_is_not_taken_for_nothing(bed: Bed, forbidden: str) -> None:
    bed.google.packages = ["shop__us--central1__tpu--slice--receive"]
    bed.google.objects.buckets["gcf-v2-sources-4711-us-central1"] = {"tpu-slice-receive/function-source.zip": b"x"}
    bed.google.forbids = forbidden
    done = bed.run("leftovers")

    assert done.returncode != 0
    assert "does not have permission" in done.stderr
