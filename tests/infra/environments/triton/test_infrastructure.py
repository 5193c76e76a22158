"""What Terraform would make of the Triton environment, planned as a whole."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.infra.environments.evaluation import TRITON
from tests.infra.environments.planned import Plan, plan_of, prepared
from tests.infra.stand_in.provider import plan

pytestmark = [
    pytest.mark.emulators,
    pytest.mark.enable_socket,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed"),
]

CLUSTER = "google_container_cluster.cluster"
POOL = "google_container_node_pool.triton"


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return plan_of(tmp_path_factory.mktemp("planned"), TRITON)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """What is made by other values than the defaults."""
    return plan_of(
        tmp_path_factory.mktemp("other"),
        TRITON,
        machine_type="g2-standard-24",
        accelerator_type="nvidia-l4",
        accelerator_count=2,
        gpu_driver_version="DEFAULT",
        triton_min_node_count=1,
        triton_node_count=5,
        triton_spot=True,
        mesh_feature="existing",
        maintenance_window=None,
    )


def node_configs(planned: Plan) -> dict[str, Mapping[str, Any]]:
    found = {name: body["node_config"][0] for name, body in planned.all("google_container_node_pool").items()}
    return {**found, "first": planned.resources[CLUSTER]["node_config"][0]}


def test_gke_installs_the_driver_of_the_gpus_that_were_asked_for(planned: Plan, other: Plan) -> None:
    """And not a DaemonSet from the newest state of a repository."""

    def gpus(found: Plan) -> tuple[str, str, int, str]:
        [config] = found.resources[POOL]["node_config"]
        [gpu] = config["guest_accelerator"]
        [driver] = gpu["gpu_driver_installation_config"]
        return config["machine_type"], gpu["type"], gpu["count"], driver["gpu_driver_version"]

    assert gpus(planned) == ("n1-standard-4", "nvidia-tesla-t4", 1, "LATEST")
    assert gpus(other) == ("g2-standard-24", "nvidia-l4", 2, "DEFAULT")


def test_gpu_nodes_come_when_they_are_needed_and_go_afterwards(planned: Plan, other: Plan) -> None:
    def sizes(found: Plan) -> tuple[int, int]:
        [scaled] = found.resources[POOL]["autoscaling"]
        return scaled["min_node_count"], scaled["max_node_count"]

    assert (sizes(planned), sizes(other)) == ((0, 2), (1, 5))
    assert [found.resources[POOL]["node_config"][0]["spot"] for found in (planned, other)] == [False, True]


def test_only_pods_that_ask_for_a_gpu_get_to_its_node(planned: Plan, other: Plan) -> None:
    """The reference's taint only says that others are not preferred."""
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}
    for found in (planned, other):
        assert found.resources[POOL]["node_config"][0]["taint"] == [taint]
        assert found.resources["google_container_node_pool.cpu"]["node_config"][0]["taint"] == []
    told = planned.outputs["gpus"]["node_taints"]
    assert told == [{**taint, "effect": "NoSchedule"}]


def test_an_upgrade_needs_no_gpu_beside_those_there_are(planned: Plan) -> None:
    [upgrade] = planned.resources[POOL]["upgrade_settings"]
    assert (upgrade["max_surge"], upgrade["max_unavailable"]) == (0, 1)


def test_every_node_is_private_with_an_account_of_its_own_and_workload_identity(planned: Plan) -> None:
    """The mesh takes no cluster with a pool that lacks the latter."""
    assert planned.resources[CLUSTER]["private_cluster_config"][0]["enable_private_nodes"] is True
    for name, config in node_configs(planned).items():
        assert "service_account" not in config, f"{name}: known before the account is made, so not of it"
        assert config["workload_metadata_config"] == [{"mode": "GKE_METADATA"}], name


def test_the_control_plane_is_reached_by_name_alone(planned: Plan) -> None:
    [endpoints] = planned.resources[CLUSTER]["control_plane_endpoints_config"]
    assert endpoints["ip_endpoints_config"] == [{"enabled": False}]
    assert endpoints["dns_endpoint_config"][0]["allow_external_traffic"] is True


def test_the_cluster_finds_its_ranges_by_name(planned: Plan) -> None:
    [subnet] = planned.all("google_compute_subnetwork").values()
    ranges = {each["range_name"]: each["ip_cidr_range"] for each in subnet["secondary_ip_range"]}
    [policy] = planned.resources[CLUSTER]["ip_allocation_policy"]
    assert ranges[policy["cluster_secondary_range_name"]] == "192.168.64.0/20"
    assert ranges[policy["services_secondary_range_name"]] == "192.168.80.0/20"


def test_managed_prometheus_is_there_for_tritons_metrics(planned: Plan) -> None:
    [monitoring] = planned.resources[CLUSTER]["monitoring_config"]
    assert monitoring["managed_prometheus"][0]["enabled"] is True


def test_google_manages_the_mesh_of_this_cluster_and_of_no_other(planned: Plan) -> None:
    """The reference's Terraform registers the cluster, and its build enables the mesh."""
    assert planned.resources[CLUSTER]["fleet"][0]["project"] == "shop-project"
    [feature] = planned.all("google_gke_hub_feature").values()
    assert (feature["name"], feature["fleet_default_member_config"]) == ("servicemesh", [])
    [member] = planned.all("google_gke_hub_feature_membership").values()
    assert member["feature"] == "servicemesh"
    assert member["mesh"][0]["management"] == "MANAGEMENT_AUTOMATIC"


def test_a_mesh_that_others_may_use_is_joined_and_never_taken_away(planned: Plan, other: Plan) -> None:
    assert not other.all("google_gke_hub_feature")
    assert [found.all("google_gke_hub_feature_membership") for found in (planned, other)].count({}) == 0


def test_only_these_roles_are_granted(planned: Plan) -> None:
    granted = {
        (address.partition("[")[0], body["role"]) for address, body in planned.resources.items() if "_iam_" in address
    }
    assert granted == {
        ("google_project_iam_member.nodes", "roles/container.defaultNodeServiceAccount"),
        ("google_artifact_registry_repository_iam_member.nodes", "roles/artifactregistry.reader"),
        ("google_storage_bucket_iam_member.triton", "roles/storage.objectViewer"),
        ("google_storage_bucket_iam_member.triton", "roles/storage.legacyBucketReader"),
        ("google_service_account_iam_member.triton", "roles/iam.workloadIdentityUser"),
    }


def test_only_tritons_account_in_its_namespace_may_read_models(tmp_path: Path) -> None:
    found = plan_of(tmp_path, TRITON, triton_namespace="shop", triton_sa_name="shop-triton")
    member = found.resources["google_service_account_iam_member.triton"]["member"]
    assert member == "serviceAccount:shop-project.svc.id.goog[shop/shop-triton]"
    assert found.resources["google_service_account.triton"]["account_id"] == "shop-triton"


def test_the_bucket_is_private_cleans_up_and_can_be_destroyed_with_the_models(planned: Plan) -> None:
    [bucket] = planned.all("google_storage_bucket").values()
    assert (bucket["name"], bucket["location"]) == ("shop-project-models", "us-central1")
    assert bucket["uniform_bucket_level_access"] is True
    assert bucket["public_access_prevention"] == "enforced"
    assert bucket["force_destroy"] is True
    assert [rule["action"][0]["type"] for rule in bucket["lifecycle_rule"]] == ["AbortIncompleteMultipartUpload"]


def test_the_tag_of_an_image_is_of_one_image(planned: Plan) -> None:
    [images] = planned.all("google_artifact_registry_repository").values()
    assert images["docker_config"][0]["immutable_tags"] is True


def test_gke_upgrades_in_a_window_unless_there_is_none(planned: Plan, other: Plan) -> None:
    [policy] = planned.resources[CLUSTER]["maintenance_policy"]
    assert policy["recurring_window"][0]["recurrence"] == "FREQ=WEEKLY;BYDAY=SA,SU"
    assert other.resources[CLUSTER]["maintenance_policy"] == []


def test_serving_and_the_builds_are_told_all_that_they_must_not_type_again(planned: Plan) -> None:
    assert set(planned.outputs) == {
        "bucket",
        "cluster",
        "gpus",
        "image_repository",
        "mesh",
        "model_repository",
        "namespace",
        "network",
        "project_id",
        "service_accounts",
    }


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        (
            {"accelerator_type": "nvidia-tesla-v100"},
            "CUDA 13, which has left out nvidia-tesla-v100: serve with an older image.",
        ),
        (
            {"machine_type": "a5-highgpu-8g", "accelerator_type": "nvidia-b300", "accelerator_count": 8},
            "a5-highgpu-8g is not in locals.tf",
        ),
        ({}, ""),
    ],
)
def test_what_may_be_wrong_is_said_and_planned(tmp_path: Path, variables: dict[str, object], says: str) -> None:
    checks = plan(prepared(tmp_path, TRITON, **variables))["checks"]
    problems = [
        problem["message"]
        for check in checks
        if check["address"]["kind"] == "check"
        for instance in check["instances"]
        for problem in instance.get("problems", [])
    ]
    assert [says in problem for problem in problems] == ([True] if says else [])
