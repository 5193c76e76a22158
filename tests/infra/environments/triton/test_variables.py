"""The variables of the Triton environment: which GPUs a machine type can have, and what is refused."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.infra.environments.evaluation import TRITON, Refusal, evaluated, planned, prepared, refusals, said
from tests.infra.evaluation import terraform

pytestmark = [
    pytest.mark.emulators,
    pytest.mark.enable_socket,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return prepared(tmp_path, TRITON)


def gpus(machine_type: str, accelerator_type: str, count: int, disk_type: str = "pd-balanced") -> dict[str, object]:
    return {
        "machine_type": machine_type,
        "accelerator_type": accelerator_type,
        "accelerator_count": count,
        "disk_type": disk_type,
    }


def test_the_files_are_formatted() -> None:
    terraform(TRITON, "fmt", "-check", "-diff", ".")


ACCEPTED: list[dict[str, object]] = [
    {},
    gpus("n1-standard-32", "nvidia-tesla-t4", 2, "pd-standard"),
    gpus("n1-standard-96", "nvidia-tesla-t4", 4),
    gpus("n1-highmem-8", "nvidia-tesla-v100", 1),
    gpus("n1-custom-12-65536", "nvidia-tesla-v100", 1),
    gpus("g2-standard-8", "nvidia-l4", 1),
    gpus("g2-standard-24", "nvidia-l4", 2, "pd-ssd"),
    gpus("g4-standard-48", "nvidia-rtx-pro-6000", 1, "hyperdisk-balanced"),
    gpus("a2-highgpu-1g", "nvidia-tesla-a100", 1),
    gpus("a2-megagpu-16g", "nvidia-tesla-a100", 16),
    gpus("a2-ultragpu-4g", "nvidia-a100-80gb", 4),
    gpus("a3-highgpu-8g", "nvidia-h100-80gb", 8, "hyperdisk-balanced"),
    gpus("a3-megagpu-8g", "nvidia-h100-mega-80gb", 8),
    gpus("a3-ultragpu-8g", "nvidia-h200-141gb", 8, "hyperdisk-balanced"),
    gpus("a4-highgpu-8g", "nvidia-b200", 8, "hyperdisk-balanced"),
    gpus("a5-highgpu-8g", "nvidia-b300", 8, "hyperdisk-balanced"),  # which nobody knows here
    {"asm_release_channel": "stable"},
    {"asm_release_channel": "rapid", "gke_release_channel": "RAPID"},
    {"gke_release_channel": "EXTENDED"},
    {"triton_node_count": 12},
    {"triton_min_node_count": 2},
    {"subnet_ip_range": "192.168.96.0/28"},
    {"triton_namespace": "default"},
    {"triton_sa_roles": ["roles/cloudtrace.agent"]},
    {"artifact_registry_location": "us"},
]


@pytest.mark.parametrize("variables", ACCEPTED)
def test_what_google_has_is_accepted(folder: Path, variables: dict[str, object]) -> None:
    planned(folder, **variables)


def test_room_is_what_the_nodes_take(folder: Path) -> None:
    """A /24 for a node of 110 pods, and a CPU node more while one is upgraded."""
    found = evaluated(folder, {"nodes": "local.nodes", "pods": "local.pod_addresses"}, triton_node_count=6)
    assert found == {"nodes": 3 + 1 + 6, "pods": 10 * 256}


REFUSED: list[Refusal] = [
    ({"project_id": "example.com:shop"}, "must be a project id"),
    ({"region": "us-central1-a"}, "must be the name of a region"),
    ({"zone": "us-east5-a"}, "must be one of us-central1"),
    ({"zone": "us-central1"}, "must be one of us-central1, such as us-central1-a"),
    ({"network_name": "Serving"}, "network's name"),
    ({"subnet_name": "serving-"}, "subnet's name"),
    ({"cluster_name": "c" * 41}, "up to 40"),
    ({"subnet_ip_range": "10.129.0.0/33"}, "such as 10.129.0.0/20"),
    ({"pods_ip_range": "192.168.1.0/17"}, "beginning of a range"),
    ({"services_ip_range": "many"}, "such as 192.168.80.0/20"),
    ({"services_ip_range": "192.168.64.0/24"}, "must not overlap"),
    ({"subnet_ip_range": "192.168.0.0/16"}, "must not overlap"),
    ({"triton_node_count": 13}, "must be a /19 or larger: each of 17 nodes takes 256 addresses"),
    ({"subnet_ip_range": "10.129.0.0/29"}, "must have 10 addresses or more: one for each of 6 nodes, and 4"),
    ({"gke_release_channel": "UNSPECIFIED"}, "RAPID, REGULAR, STABLE or EXTENDED"),
    ({"asm_release_channel": "asm-managed"}, "rapid, regular or stable"),
    ({"asm_release_channel": "rapid"}, "leave it out. The managed mesh follows the cluster, which is in STABLE"),
    ({"mesh_feature": "yes"}, "new, or existing"),
    ({"maintenance_window": {"start_time": "b", "end_time": "a", "recurrence": ""}}, "must begin before it ends"),
    ({"default_pool_node_count": 0}, "1 or more: the gateway needs a node"),
    ({"default_pool_machine_type": "medium"}, "such as e2-standard-2"),
    ({"max_pods_per_node": 300}, "8 to 256"),
    ({"machine_type": "e2-standard-4"}, "one that can have GPUs"),
    ({"machine_type": "n1"}, "one that can have GPUs"),
    ({"accelerator_type": "t4"}, "such as nvidia-tesla-t4"),
    ({"accelerator_type": "nvidia-tesla-t4-vws"}, "not one for workstations"),
    ({"accelerator_count": 3}, "1, 2, 4, 8 or 16"),
    ({"accelerator_count": 8}, "an N1 can have .*1, 2, 4 of nvidia-tesla-t4"),
    (gpus("n1-standard-4", "nvidia-l4", 1), "an N1 can have"),
    (gpus("n1-standard-16", "nvidia-tesla-v100", 1), "with 1 of nvidia-tesla-v100, an N1 has up to 12 CPUs"),
    (gpus("n1-custom-50-65536", "nvidia-tesla-t4", 1), "an N1 has up to 48 CPUs"),
    (gpus("g2-standard-8", "nvidia-tesla-t4", 1), "g2-standard-8 has 1 of nvidia-l4: say so"),
    (gpus("g2-standard-24", "nvidia-l4", 1), "g2-standard-24 has 2 of nvidia-l4"),
    (gpus("a2-highgpu-1g", "nvidia-a100-80gb", 1), "a2-highgpu-1g has 1 of nvidia-tesla-a100"),
    (gpus("g2-standard-8", "nvidia-l4", 1, "pd-standard"), "g2-standard-8 starts from pd-balanced or pd-ssd"),
    (gpus("n1-standard-4", "nvidia-tesla-t4", 1, "hyperdisk-balanced"), "starts from pd-standard or pd-balanced"),
    (gpus("a4-highgpu-8g", "nvidia-b200", 8), "a4-highgpu-8g starts from hyperdisk-balanced"),
    (gpus("a3-ultragpu-8g", "nvidia-h200-141gb", 8), "a3-ultragpu-8g starts from hyperdisk-balanced"),
    ({"gpu_driver_version": "INSTALLATION_DISABLED"}, "without a driver, no pod gets a GPU"),
    ({"triton_node_count": 0}, "1 or more"),
    ({"triton_min_node_count": -1}, "0 or more"),
    ({"triton_min_node_count": 3}, "triton_node_count at most"),
    ({"disk_type": "ssd"}, "pd-standard, pd-balanced"),
    ({"disk_size_gb": 50}, "100 or more"),
    ({"gke_sa_name": "gke"}, "6 to 30"),
    ({"gke_sa_roles": ["roles/owner"]}, "not owner or editor"),
    ({"triton_sa_name": "t"}, "6 to 30"),
    ({"triton_sa_name": "triton-gke-sa"}, "must differ"),
    ({"triton_sa_roles": ["roles/editor"]}, "not owner or editor"),
    ({"triton_sa_roles": ["storage.objectViewer"]}, "such as roles/logging.logWriter"),
    ({"triton_namespace": "kube-system"}, "not be GKE's or the mesh's"),
    ({"triton_namespace": "istio-system"}, "not be GKE's or the mesh's"),
    ({"triton_namespace": "Triton"}, "up to 63"),
    ({"repository_bucket_name": "Models"}, "3 to 63"),
    ({"repository_bucket_name": "google-models"}, "not begin with goog"),
    ({"deleted_objects_kept_days": 3}, "0, or 7 to 90"),
    ({"artifact_registry_name": "Images"}, "up to 63"),
    ({"artifact_registry_location": "us-central1-a"}, "a region, or us, europe or asia"),
]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = prepared(tmp_path_factory.mktemp("refused"), TRITON)
    return refusals(REFUSED, lambda variables: said(folder, variables))


@pytest.mark.parametrize("index", range(len(REFUSED)), ids=[f"{variables}" for variables, _ in REFUSED])
def test_what_cannot_be_is_refused_with_what_can(told: list[str], index: int) -> None:
    _, says = REFUSED[index]
    assert re.search(says, told[index]), told[index]
