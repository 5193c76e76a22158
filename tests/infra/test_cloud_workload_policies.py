"""Which workload policies Terraform makes of what a cluster's settings name."""

import shutil
from pathlib import Path

import pytest
import yaml

from tests.infra.evaluation import PROJECT, evaluated, prepared, write_cluster
from tpu_slices.domain.model.clusters import PoolSettings
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.wire.cluster_settings import decode_settings

pytestmark = [
    pytest.mark.emulators,
    pytest.mark.enable_socket,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed"),
]

NODES = "service_account: nodes@shop-project.iam.gserviceaccount.com"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return prepared(tmp_path)


def policies(folder: Path, settings: str, **variables: str) -> tuple[dict[str, str], list[str]]:
    """Return the topology of each policy that is made for the cluster "blue", by name, and those that are not made."""
    write_cluster(folder, "blue", settings=settings)
    path = f"projects/{PROJECT}/locations/us-central2/clusters/blue"
    decode_settings(ClusterId("blue"), {**yaml.safe_load(settings), "path": path}, "")  # it is a valid file
    queries = {"made": "local.workload_policies", "unmade": "local.unmade_workload_policies"}
    found = evaluated(folder, queries, **variables)
    return {policy["name"]: policy["topology"] for policy in found["made"].values()}, found["unmade"]


def test_a_policy_that_is_named_with_its_topology_is_made(folder: Path) -> None:
    settings = f"""
pools: {{{NODES}}}
policy:
  workload_policies: [tpu-provisioner-2x2x2]
  namespaces:
    research: {{workload_policies: [tpu7x-128-4x4x4-placement-policy, tpu-provisioner-2x2x2]}}
    web: {{zones: [us-central2-b]}}
"""
    made = {"tpu-provisioner-2x2x2": "2x2x2", "tpu7x-128-4x4x4-placement-policy": "4x4x4"}
    assert policies(folder, settings) == (made, [])


@pytest.mark.parametrize("name", ["tpu-*", "hall-7", "a-2x2x2-4x4x4", "tpu-2x2x1", "tpu-4x4", "tpu7x4x4x4"])
def test_a_name_that_does_not_tell_one_topology_of_several_hosts_is_not_guessed(folder: Path, name: str) -> None:
    assert policies(folder, f'pools: {{{NODES}}}\npolicy: {{workload_policies: ["{name}"]}}\n') == ({}, [name])


def test_the_pattern_of_the_settings_alone_makes_none_and_asks_for_none(folder: Path) -> None:
    pattern = PoolSettings().workload_policy
    assert policies(folder, f'pools: {{{NODES}, workload_policy: "{pattern}"}}\n') == ({}, [])


def test_a_policy_for_all_slices_is_made_by_its_name(folder: Path) -> None:
    settings = f"pools: {{{NODES}, workload_policy: cube-4x4x4}}\n"
    assert policies(folder, settings) == ({"cube-4x4x4": "4x4x4"}, [])


def test_one_that_exists_is_left_alone(folder: Path) -> None:
    settings = f"pools: {{{NODES}}}\npolicy: {{workload_policies: [tpu-4x4x4, hall-7]}}\n"
    assert policies(folder, settings, existing_workload_policies='["tpu-4x4x4", "hall-7"]') == ({}, [])


def test_clusters_of_one_region_share_a_policy_and_a_zonal_one_has_it_in_its_region(folder: Path) -> None:
    settings = f"pools: {{{NODES}}}\npolicy: {{workload_policies: [tpu-4x4x4]}}\n"
    write_cluster(folder, "green", settings=settings)
    zonal = folder.parent / "clusters" / PROJECT / "yellow.yaml"
    zonal.write_text(f"path: projects/{PROJECT}/locations/us-east5-a/clusters/y\n{settings}")
    write_cluster(folder, "blue", settings=settings)
    made = evaluated(folder, {"made": "local.workload_policies"})["made"]
    assert list(made) == [f"{PROJECT}/us-central2/tpu-4x4x4", f"{PROJECT}/us-east5/tpu-4x4x4"]
