"""The variables of the training environment: the forms in which slices are asked for, and what is refused."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.infra.environments.evaluation import TRAINING, Refusal, evaluated, planned, prepared, refusals, said
from tests.infra.evaluation import terraform
from tpu_slices.domain.model.gangs import Gangs
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.wire.cluster_settings import decode_settings

pytestmark = [
    pytest.mark.emulators,
    pytest.mark.enable_socket,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed"),
]

HERE = {"more_tpu_zones": {"tpu-v5p-slice": ["us-central2-b"], "tpu-v6e-slice": ["us-central2-b"]}}

SHAPE = {"tpu_machine_type": "ct4p-hightpu-4t", "tpu_topology": "2x2x4", "tpu_num_nodes": 4, "num_tpu_pools": 2}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return prepared(tmp_path)


def test_the_files_are_formatted() -> None:
    terraform(TRAINING, "fmt", "-check", "-diff", ".")


def slices(folder: Path, **variables: object) -> dict[str, tuple[str, str, int]]:
    found = evaluated(folder, {"slices": "local.slices"}, **variables)["slices"]
    return {name: (each["machine_type"], each["topology"], each["hosts"]) for name, each in found.items()}


def test_slices_are_asked_for_by_a_name_and_a_number(folder: Path) -> None:
    found = slices(folder, tpu_type="v4-32", num_tpu_pools=2)
    assert found == dict.fromkeys(("tpu-node-pool-0", "tpu-node-pool-1"), ("ct4p-hightpu-4t", "2x2x4", 4))


def test_slices_are_asked_for_by_machine_type_topology_and_number_of_hosts(folder: Path) -> None:
    assert slices(folder, **SHAPE) == slices(folder, tpu_type="v4-32", num_tpu_pools=2)


def test_an_ambiguous_topology_is_as_many_hosts_as_the_machine_type_says(folder: Path) -> None:
    pools = {
        "one": {"machine_type": "ct6e-standard-8t", "topology": "2x4"},
        "two": {"machine_type": "ct6e-standard-4t", "topology": "2x4"},
    }
    found = slices(folder, tpu_pools=pools)
    assert {name: hosts for name, (_, _, hosts) in found.items()} == {"one-0": 1, "two-0": 2}


def test_nothing_said_is_one_slice_of_the_references_type(folder: Path) -> None:
    assert slices(folder) == {"tpu-node-pool-0": ("ct4p-hightpu-4t", "2x2x2", 2)}


def test_pools_of_a_map_are_beside_each_other(folder: Path) -> None:
    pools = {"big": {"type": "v4-4096"}, "small": {"type": "v4-8", "slices": 3}, "none": {"type": "v4-8", "slices": 0}}
    assert slices(folder, tpu_pools=pools) == {
        "big-0": ("ct4p-hightpu-4t", "8x16x16", 512),
        **{f"small-{index}": ("ct4p-hightpu-4t", "2x2x1", 1) for index in range(3)},
    }


@pytest.mark.parametrize("pools", [{}, {"big": {"type": "v4-4096"}}])
def test_no_pools_takes_all_static_slices_away(folder: Path, pools: dict[str, object]) -> None:
    assert slices(folder, num_tpu_pools=0, tpu_pools=pools) == {}


def test_several_slices_are_a_multislice_group_and_one_is_none(folder: Path) -> None:
    def groups(**variables: object) -> Any:
        return evaluated(folder, {"groups": "local.groups"}, **variables)["groups"]

    assert groups(tpu_type="v4-32") == {}
    assert groups(tpu_type="v4-32", num_tpu_pools=2) == {
        "multi-slice-group": {"slices": 2, "shapes": ["ct4p-hightpu-4t 2x2x4"]}
    }
    pools = {
        "a": {"type": "v4-32", "multislice_group": "llama", "slices": 2},
        "b": {"type": "v4-32", "multislice_group": "llama", "capacity": "spot"},
        "c": {"type": "v4-8"},
    }
    assert groups(tpu_pools=pools)["llama"]["slices"] == 3


def test_flavors_sum_up_slices_that_are_alike(folder: Path) -> None:
    reserved = "projects/hall/reservations/hall-7/reservationBlocks"
    pools = {
        "a": {"type": "v4-32", "slices": 2},
        "b": {"type": "v4-32"},
        "c": {"type": "v4-32", "capacity": "spot"},
        "d": {"type": "v4-32", "capacity": "reservation", "reservation": f"{reserved}/b1"},
        "e": {"type": "v4-32", "capacity": "reservation", "reservation": f"{reserved}/b2"},
    }
    found = evaluated(folder, {"flavors": "local.flavors"}, tpu_pools=pools)["flavors"]
    assert {name: (each["slices"], each["chips"]) for name, each in found.items()} == {
        "ct4p-hightpu-4t-2x2x4": (3, 48),
        "ct4p-hightpu-4t-2x2x4-spot": (1, 16),
        "ct4p-hightpu-4t-2x2x4-reservation-hall-7-b1": (1, 16),
        "ct4p-hightpu-4t-2x2x4-reservation-hall-7-b2": (1, 16),
    }


def test_the_provisioner_reads_the_settings_for_this_cluster(folder: Path) -> None:
    text = evaluated(folder, {"settings": "local.provisioner_settings"})["settings"]
    settings = decode_settings(ClusterId("trainer"), yaml.safe_load(text), "")
    assert settings.policy.chips_per_cluster == 4 * 64, "for as many hosts as the ranges have room for by default"

    assert settings.path == "projects/shop-project/locations/us-central2/clusters/trainer"
    assert settings.pools.service_account == "gke-sa@shop-project.iam.gserviceaccount.com"


@pytest.mark.parametrize(("pools", "gangs"), [(0, Gangs.MULTISLICE), (2, Gangs.NONE)])
def test_runs_of_several_slices_are_gangs_where_all_slices_are_bought(folder: Path, pools: int, gangs: Gangs) -> None:
    """Pods of gangs wait at a gate, and so come to no static slice."""
    text = evaluated(folder, {"settings": "local.provisioner_settings"}, num_tpu_pools=pools)["settings"]
    assert decode_settings(ClusterId("trainer"), yaml.safe_load(text), "").gangs is gangs


def test_room_is_what_the_nodes_take(folder: Path) -> None:
    """A /24 for a node of 110 pods, a /27 for a host of 15, and a node more while one is upgraded."""
    found = evaluated(folder, {"pods": "local.pod_addresses"}, tpu_type="v4-32", provisioned_hosts=10)
    assert found["pods"] == 4 * 256 + 14 * 32


POOL = {"type": "v4-32"}


REFUSED: list[Refusal] = [
    ({"project_id": "example.com:shop"}, "must be a project id"),
    ({"region": "us-central2-b"}, "must be the name of a region"),
    ({"zone": "us-east5-a"}, "must be one of us-central2"),
    ({"zone": "us-central2"}, "must be one of us-central2, such as us-central2-b"),
    ({"network_name": "Training"}, "network's name"),
    ({"subnet_name": "training-"}, "subnet's name"),
    ({"cluster_name": "c" * 41}, "up to 40"),
    ({"artifact_repository_bucket_name": "Artifacts"}, "3 to 63"),
    ({"subnet_ip_range": "10.129.0.0/33"}, "such as 10.129.0.0/20"),
    ({"pods_ip_range": "192.168.1.0/17"}, "beginning of a range"),
    ({"services_ip_range": "many"}, "such as 192.168.128.0/20"),
    ({"services_ip_range": "192.168.64.0/20"}, "must not overlap"),
    ({"subnet_ip_range": "192.168.0.0/16"}, "must not overlap"),
    ({"pods_ip_range": "192.168.0.0/21"}, "must be a /20 or larger: each of 4 CPU nodes takes 256 addresses"),
    ({"subnet_ip_range": "10.129.0.0/26"}, "must have 74 addresses or more"),
    ({"tpu_type": "v4-4096", "subnet_ip_range": "10.129.0.0/23"}, "one for each of 4 CPU nodes and 576 TPU hosts"),
    ({"network_mtu": 9000}, "1300 to 8896"),
    ({"gke_release_channel": "UNSPECIFIED"}, "RAPID, REGULAR, STABLE or EXTENDED"),
    ({"gke_version": "latest"}, "such as 1.35"),
    ({"gke_version": "1.31.1-gke.9999999", "tpu_type": "v6e-64", **HERE}, "needs 1.31.2-gke.1115000"),
    ({"gke_version": "1.30", "tpu_type": "v6e-64", **HERE}, "needs 1.31.2-gke.1115000"),
    ({"maintenance_window": {"start_time": "b", "end_time": "a", "recurrence": ""}}, "must begin before it ends"),
    ({"cpu_pool_node_count": 0}, "1 or more"),
    ({"cpu_pool_machine_type": "ct4p-hightpu-4t"}, "without TPUs"),
    ({"cpu_pool_disk_type": "ssd"}, "pd-standard, pd-balanced"),
    ({"cpu_pool_disk_size": 10}, "20 or more"),
    ({"max_pods_per_node": 300}, "8 to 256"),
    ({"tpu_max_pods_per_node": 4}, "8 to 256"),
    ({"tpu_boot_disk_gb": 20}, "50 or more"),
    ({"provisioned_hosts": -1}, "0 or more"),
    ({"num_tpu_pools": -1}, "0 or more"),
    ({"tpu_node_pool_name_prefix": "TPU"}, "up to 35"),
    ({"multislice_group_name": "llama/70b"}, "value of a node label"),
    ({"tpu_type": "v4-33"}, "v4-33 is none. Types are named as v4-32, v5litepod-256"),
    ({"tpu_type": "v6e-64"}, "tpu-v6e-slice is in .*europe-west4-a.*, not in us-central2-b"),
    ({"tpu_topology": "2x2x4"}, "both tpu_machine_type and tpu_topology"),
    ({"tpu_machine_type": "ct4p-hightpu-4t", "tpu_topology": "2x2x3"}, "has no 2x2x3, but 2x2x1, 2x2x2, 2x2x4"),
    ({"tpu_machine_type": "ct5lp-hightpu-8t", "tpu_topology": "4x4"}, "has no 4x4, but 2x4"),
    ({"tpu_machine_type": "n1-standard-4", "tpu_topology": "2x2x1"}, "is one of ct3-hightpu-4t, ct3p-hightpu-4t"),
    ({"tpu_type": "v4-8", "tpu_machine_type": "ct4p-hightpu-4t", "tpu_topology": "2x2x2"}, "say otherwise"),
    ({"tpu_type": "v4-64", "tpu_num_nodes": 4}, "has 8 hosts"),
    ({"tpu_num_nodes": 0}, "1 or more"),
    ({"more_tpu_zones": {"v6e": ["us-central2-b"]}}, "zones by accelerator: tpu-v3-device"),
    ({"tpu_pools": {"a": POOL}, "num_tpu_pools": 2}, "num_tpu_pools, which may be 0"),
    ({"tpu_pools": {"a": POOL}, "tpu_type": "v4-8"}, "tpu_pools is instead of tpu_type"),
    ({"tpu_pools": {"a": {}}}, "either a type, or both"),
    (
        {"tpu_pools": {"a": {**POOL, "machine_type": "ct4p-hightpu-4t", "topology": "2x2x1"}}},
        "either a type, or both",
    ),
    ({"tpu_pools": {"a": {"type": "v4-9"}}}, "a: v4-9 is no type"),
    ({"tpu_pools": {"a": {"machine_type": "ct4p-hightpu-4t", "topology": "2x2"}}}, "has no 2x2, but 2x2x1"),
    ({"tpu_pools": {"a": {"machine_type": "n1", "topology": "2x2"}}}, "a: machine_type is one of"),
    ({"tpu_pools": {"a": {**POOL, "slices": -1}}}, "slices is 0 or more"),
    ({"tpu_pools": {"a": {**POOL, "capacity": "cheap"}}}, "on_demand, spot, reservation or flex_start"),
    ({"tpu_pools": {"a": {**POOL, "capacity": "reservation"}}}, "needs a reservation"),
    ({"tpu_pools": {"a": {**POOL, "reservation": "hall-7"}}}, "others none"),
    ({"tpu_pools": {"a": {**POOL, "capacity": "flex_start"}}}, "no flex-start for tpu-v4-podslice"),
    (
        {"tpu_pools": {"a": {"type": "v6e-8", "capacity": "flex_start", "max_run_duration": "8d"}}, **HERE},
        "600s to 604800s",
    ),
    ({"tpu_pools": {"a": {**POOL, "zone": "us-east5-a"}}}, "one of us-central2"),
    ({"tpu_pools": {"a" * 39: POOL}}, "up to 40"),
    ({"tpu_pools": {"tpu-llama-slice-aaaaaaaaaaaaa": {**POOL, "slices": 2}}}, "not be the provisioner's"),
    ({"tpu_pools": {"a": {**POOL, "multislice_group": "-"}}}, "value of a node label"),
    (
        {"tpu_pools": {"a": {**POOL, "multislice_group": "g"}, "b": {"type": "v4-8", "multislice_group": "g"}}},
        "must be alike. g has ct4p-hightpu-4t 2x2x4 and ct4p-hightpu-4t 2x2x1",
    ),
    ({"gke_sa_name": "gke"}, "6 to 30"),
    ({"gke_sa_roles": ["roles/owner"]}, "not owner or editor"),
    ({"gke_sa_roles": ["logging.logWriter"]}, "such as roles/logging.logWriter"),
    ({"tpu_sa_roles": ["roles/editor"]}, "not owner or editor"),
    ({"tpu_sa_name": "gke-sa"}, "must differ"),
    ({"tensorboard_sa_name": "t"}, "6 to 30"),
    ({"tensorboard_region": "us"}, "such as us-central1"),
    ({"tensorboard_name": ""}, "1 to 128"),
    ({"artifact_registry_name": "Images"}, "up to 63"),
    ({"artifact_registry_location": "us-central2-b"}, "a region, or us, europe or asia"),
    ({"delete_objects_after_days": {"": 7}}, "would be all"),
    ({"deleted_objects_kept_days": 3}, "0, or 7 to 90"),
]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = prepared(tmp_path_factory.mktemp("refused"), TRAINING)
    return refusals(REFUSED, lambda variables: said(folder, variables))


@pytest.mark.parametrize("index", range(len(REFUSED)), ids=[f"{variables}" for variables, _ in REFUSED])
def test_what_cannot_be_is_refused_with_what_can(told: list[str], index: int) -> None:
    _, says = REFUSED[index]
    assert re.search(says, told[index]), told[index]


ACCEPTED: list[dict[str, object]] = [
    {"gke_version": "1.35", "tpu_type": "v6e-64", **HERE},
    {"gke_version": "1.31.2-gke.1115000", "tpu_type": "v6e-64", **HERE},
    {"tpu_pools": {"tpu-llama": {"type": "v4-32", "slices": 2}}, "maintenance_window": None},
    {"subnet_ip_range": "192.168.144.0/20", "tpu_type": "v4-32"},
    {"provisioned_hosts": 900},  # for which the ranges have room by default
    SHAPE,
]


@pytest.mark.parametrize("variables", ACCEPTED)
def test_what_could_be_misread_is_accepted(folder: Path, variables: dict[str, object]) -> None:
    planned(folder, **variables)
