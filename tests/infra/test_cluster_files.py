"""The settings files of clusters."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.infra.sources import ROOT
from tpu_slices.domain.model.clusters import ClusterSettings, ComputeSettings, Join, Limits, Policy, PoolSettings
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.wire.cluster_settings import decode_settings, encode_settings
from tpu_slices.wire.settings_form import ComputeForm

CLUSTERS = sorted((ROOT / "infra" / "clusters").glob("*/*.yaml"))
EXAMPLE = ROOT / "infra" / "clusters" / "example-project" / "example-cluster.yaml"
SELF_MANAGED = EXAMPLE.with_name("example-self-managed.yaml")


def read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(path.read_text())
    return document


def names(document: dict[str, Any], above: str = "") -> set[str]:
    """Return every field as a path: `limits.backoff.rate.initial`."""
    found = set()
    for name, value in document.items():
        named_by_people = name in {"namespaces", "reservation_zones", "resource_labels"}
        inner = names(value, f"{above}{name}.") if isinstance(value, dict) and not named_by_people else {above + name}
        found |= {field.lower() for field in inner}
    return found


@pytest.mark.parametrize("path", CLUSTERS, ids=lambda path: path.stem)
def test_every_settings_file_is_valid(path: Path) -> None:
    settings = decode_settings(ClusterId(path.stem), read(path), "")

    assert settings.cluster == path.stem
    assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", path.stem), "it is part of the names of topics"


def test_the_example_names_every_field() -> None:
    settings = decode_settings(ClusterId("example-cluster"), read(EXAMPLE), "")
    for_people = {"note"}

    assert names(read(EXAMPLE)) == names(encode_settings(settings)) | for_people


def test_the_example_shows_the_defaults() -> None:
    settings = decode_settings(ClusterId("example-cluster"), read(EXAMPLE), "")

    assert settings.limits == Limits()
    assert replace(settings.pools, service_account=None) == PoolSettings()
    assert replace(settings.policy, namespaces={}) == Policy()
    plain = ClusterSettings(cluster=settings.cluster, path=settings.path, zone=settings.zone)
    assert replace(settings, pools=plain.pools, policy=plain.policy) == plain


def test_the_example_of_a_self_managed_cluster_names_every_field_of_its_own() -> None:
    document = read(SELF_MANAGED)
    settings = decode_settings(ClusterId("example-self-managed"), document, "")
    compute = settings.pools.compute

    assert compute is not None
    assert set(document["compute"]) == set(ComputeForm.model_fields)
    assert replace(compute, join=Join.NONE, control_plane=None, kubernetes=None) == ComputeSettings(image=compute.image)


@pytest.mark.parametrize("example", [EXAMPLE, SELF_MANAGED], ids=lambda path: path.stem)
def test_every_field_of_an_example_is_explained(example: Path) -> None:
    lines = example.read_text().splitlines()
    plain = {"boot_disk_gb", "unknown"}  # the name is enough
    for before, line in pairwise(lines):
        if name := re.match(r"\s*(\w+):", line):
            assert "#" in line or before.lstrip().startswith("#") or name[1] in plain, line
