"""The versions in docs/compatibility.md are those that the sources pin; what the other pages name is there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
import yaml

from infra.preflight.kubernetes import INSTALL_JOBSET
from tests.house.sources import ROOT
from tpu_slices.domain.catalogue.accelerators import CATALOGUE
from tpu_standins.controllers.catalogue import JOBSET, JOBSET_EARLIER, KUEUE, LWS
from tpu_standins.gke.state import Cluster
from tpu_standins.kubernetes.versions import MODULE, pinned, required

PYTHON_IMAGES = ("cloudbuild.yaml", "relay/image/Dockerfile", ".github/workflows/test.yaml")


def read(path: str) -> str:
    return (ROOT / path).read_text()


def only(pattern: str, *paths: str) -> str:
    """Return the one thing that the pattern finds in these files, each of which has it."""
    found = [set(re.findall(pattern, read(path), re.MULTILINE)) for path in paths]
    assert all(len(each) == 1 for each in found), f"{pattern} in {paths}: {found}"
    [version] = set.union(*found)
    return str(version)


def locked(package: str, lock: str = "tests/requirements.txt") -> str:
    return only(rf"^{package}==(\S+)", lock)


def rows(page: str) -> Iterator[list[str]]:
    for line in read(page).splitlines():
        if line.startswith("|"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def versions_of(cell: str) -> set[str]:
    """Return what is written as code in a cell and is a version."""
    return {code for code in re.findall(r"`([^`]+)`", cell) if re.fullmatch(r"(v|python)?\d[\w.-]*", code)}


KUBERNETES = pinned()
PROVIDERS = json.loads(read("tests/infra/data/providers.json"))["version"]
PINNED = {
    "GKE": {Cluster.__dataclass_fields__["version"].default},
    "Kubernetes": {KUBERNETES, required("go.etcd.io/etcd/server/v3", (MODULE / "go.mod").read_text())},
    "JobSet": {JOBSET.version, JOBSET_EARLIER.version},
    "LeaderWorkerSet": {LWS.version},
    "Kueue": {KUEUE.version},
    "plain Jobs": {KUBERNETES},
    "Python, functions and relay": {
        only(r"python:(3\.[\d.]+)-", *PYTHON_IMAGES),
        only(r'runtime += "(\w+)"', "infra/terraform/functions.tf"),
    },
    "functions-framework": {locked("functions-framework", "functions/requirements.txt")},
    "clients of Google": {
        locked(f"google-cloud-{each}", "functions/requirements.txt") for each in ("container", "firestore", "pubsub")
    },
    "client of Kubernetes": {locked("kubernetes", "relay/image/requirements.txt")},
    "Terraform": {only(r"hashicorp/terraform:(\S+)", "cloudbuild.yaml", "infra/cloudbuild.destroy.yaml")},
    "providers": set(PROVIDERS.values()),
    "gcloud": {only(r"google-cloud-cli:([\d.]+)", "cloudbuild.yaml", "infra/cloudbuild.destroy.yaml")},
    "admission policies": {locked("cel-expr-python")},
    "Triton, in its environment": {locked("tritonclient"), locked("onnxruntime")},
}


def test_every_version_in_the_page_is_the_one_that_is_pinned() -> None:
    told = {row[0]: versions for row in rows("docs/compatibility.md") if (versions := versions_of(row[1]))}
    assert told == PINNED


def test_every_accelerator_has_its_row_with_its_first_version_of_gke() -> None:
    told = {
        row[0].strip("`"): versions_of(row[2]) for row in rows("docs/compatibility.md") if row[0].startswith("`tpu")
    }
    assert told == {
        label: {known.minimum_gke} - {None} if known.minimum_gke else set() for label, known in CATALOGUE.items()
    }


def test_the_jobset_that_preflight_proposes_is_one_that_is_tried() -> None:
    assert f"/download/{JOBSET_EARLIER.version}/" in INSTALL_JOBSET


@pytest.mark.parametrize("page", ["docs/quotas.md", "docs/cost.md"])
def test_every_setting_in_a_page_exists(page: str) -> None:
    settings = yaml.safe_load(read("infra/clusters/example-project/example-cluster.yaml"))
    named = re.findall(r"`((?:limits|pools|policy)\.[\w.]+)`", read(page))
    assert named
    for name in named:
        known = settings
        for part in name.split("."):
            assert part in known, f"{name} is no setting"
            known = known[part]


def test_the_page_of_quotas_counts_the_indexes_that_there_are() -> None:
    declared = json.loads(read("infra/firestore.indexes.json"))
    told = {row[0]: row[3] for row in rows("docs/quotas.md") if len(row) == 5}
    assert told["composite indexes of a database"].startswith(f"{len(declared['indexes'])}, ")
    assert told["single-field configurations (overrides and TTL)"].startswith(f"{len(declared['fieldOverrides'])}:")
