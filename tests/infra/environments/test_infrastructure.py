"""What Terraform would make of the training environment, planned as a whole."""

from __future__ import annotations

import json
import re
import shutil
from typing import Any

import pytest

from tests.infra.environments.planned import Plan, plan_of
from tests.infra.evaluation import as_answered

pytestmark = [
    pytest.mark.emulators,
    pytest.mark.enable_socket,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed"),
]

TPUS: dict[str, Any] = {"tpu_type": "v4-32", "num_tpu_pools": 2}


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return plan_of(tmp_path_factory.mktemp("planned"), **TPUS)


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """The same, with nothing that can be left out."""
    return plan_of(tmp_path_factory.mktemp("without"), **{**TPUS, "num_tpu_pools": 0}, enable_tensorboard=False)


def node_configs(plan: Plan) -> dict[str, Any]:
    found = {name: body["node_config"][0] for name, body in plan.all("google_container_node_pool").items()}
    return {**found, "first": plan.resources["google_container_cluster.cluster"]["node_config"][0]}


def grants(plan: Plan) -> set[tuple[str, str]]:
    """Return who is granted what, by the places in the plan that say so."""
    return {
        (address.partition(".")[2].partition("[")[0], body["role"])
        for address, body in plan.resources.items()
        if "_iam_" in address
    }


def test_without_pools_all_else_is_the_same(planned: Plan, without: Plan) -> None:
    gone = {address: body for address, body in planned.resources.items() if address not in without.resources}
    assert {re.sub(r"\[.*", "", address) for address in gone} == {
        "google_container_node_pool.tpu",
        "google_vertex_ai_tensorboard.tensorboard",
        "google_service_account.tensorboard",
        "google_project_iam_member.tensorboard",
        "google_storage_bucket_iam_member.user",
        "google_project_service.api",
    }
    changed = {address for address, body in without.resources.items() if body != planned.resources[address]}
    assert changed == {"terraform_data.request"}
    assert without.outputs["chips"] == 0
    assert without.outputs["flavors"] == {}


def test_no_node_has_a_public_address_or_the_projects_default_account(planned: Plan) -> None:
    cluster = planned.resources["google_container_cluster.cluster"]
    assert cluster["private_cluster_config"][0]["enable_private_nodes"] is True
    for name, config in node_configs(planned).items():
        assert "service_account" not in config, f"{name}: known before the account is made, so not of it"
        assert config["workload_metadata_config"] == [{"mode": "GKE_METADATA"}], name


def test_the_control_plane_is_reached_by_name_alone(planned: Plan) -> None:
    [endpoints] = planned.resources["google_container_cluster.cluster"]["control_plane_endpoints_config"]
    assert endpoints["ip_endpoints_config"] == [{"enabled": False}]
    assert endpoints["dns_endpoint_config"][0]["allow_external_traffic"] is True


def test_the_cluster_finds_its_ranges_by_name(planned: Plan) -> None:
    [subnet] = planned.all("google_compute_subnetwork").values()
    ranges = {each["range_name"]: each["ip_cidr_range"] for each in subnet["secondary_ip_range"]}
    [policy] = planned.resources["google_container_cluster.cluster"]["ip_allocation_policy"]
    assert ranges[policy["cluster_secondary_range_name"]] == "192.168.0.0/17"
    assert ranges[policy["services_secondary_range_name"]] == "192.168.128.0/20"


def test_only_these_roles_are_granted(planned: Plan, without: Plan) -> None:
    least = {
        ("nodes", "roles/container.defaultNodeServiceAccount"),
        ("nodes", "roles/artifactregistry.reader"),
        ("user", "roles/storage.objectUser"),
        ("user", "roles/storage.legacyBucketReader"),
    }
    assert grants(without) == least
    assert grants(planned) == least | {
        ("tensorboard", "roles/aiplatform.user"),
        ("user", "roles/storage.objectViewer"),
    }


def test_nothing_is_granted_in_place_of_what_others_were_granted(planned: Plan) -> None:
    """A binding or a policy would take away what they have."""
    kinds = {address.partition(".")[0] for address in planned.resources if "_iam_" in address}
    assert all(kind.endswith("_iam_member") for kind in kinds)


def test_the_bucket_is_private_and_cleans_up(planned: Plan) -> None:
    [bucket] = planned.all("google_storage_bucket").values()
    assert bucket["uniform_bucket_level_access"] is True
    assert bucket["public_access_prevention"] == "enforced"
    assert [rule["action"][0]["type"] for rule in bucket["lifecycle_rule"]] == ["AbortIncompleteMultipartUpload"]


def test_what_is_deleted_by_age_is_named_by_its_beginning(tmp_path: Any) -> None:
    [bucket] = plan_of(tmp_path, delete_objects_after_days={"scratch/": 14}).all("google_storage_bucket").values()
    [delete] = [rule for rule in bucket["lifecycle_rule"] if rule["action"][0]["type"] == "Delete"]
    assert (delete["condition"][0]["age"], delete["condition"][0]["matches_prefix"]) == (14, ["scratch/"])


METRICS = {
    "kubernetes.io/node/accelerator/duty_cycle",
    "kubernetes.io/node/accelerator/memory_bandwidth_utilization",
    "kubernetes.io/node/accelerator/memory_total",
    "kubernetes.io/node/accelerator/memory_used",
    "kubernetes.io/node/accelerator/tensorcore_utilization",
}
"""Of Google's list of GKE's system metrics (cloud.google.com/monitoring/api/metrics_kubernetes), for k8s_node."""


def test_the_dashboard_shows_metrics_that_gke_has_of_this_cluster(planned: Plan) -> None:
    [dashboard] = planned.all("google_monitoring_dashboard").values()
    found = json.loads(dashboard["dashboard_json"])
    filters = re.findall(r'metric\.type=\\"([^\\]+)\\" AND resource\.type=\\"k8s_node\\"', json.dumps(found))
    assert set(filters) == METRICS
    assert json.dumps(found).count('resource.labels.cluster_name=\\"trainer\\"') == len(filters)


def test_the_dashboard_is_written_as_the_api_answers_it(planned: Plan) -> None:
    """So a second apply changes nothing."""
    [dashboard] = planned.all("google_monitoring_dashboard").values()
    written = json.loads(dashboard["dashboard_json"])
    assert as_answered(written) == written


def test_the_tiles_of_the_dashboard_do_not_overlap(planned: Plan) -> None:
    [dashboard] = planned.all("google_monitoring_dashboard").values()
    layout = json.loads(dashboard["dashboard_json"])["mosaicLayout"]
    cells = [
        (x, y)
        for tile in layout["tiles"]
        for x in range(tile.get("xPos", 0), tile.get("xPos", 0) + tile["width"])
        for y in range(tile.get("yPos", 0), tile.get("yPos", 0) + tile["height"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < layout["columns"]


def test_slices_that_train_together_know_their_group_and_its_size(planned: Plan) -> None:
    labels = [pool["node_config"][0]["labels"] for pool in planned.pools().values()]
    assert labels == [{"MultisliceGroup": "multi-slice-group", "MultisliceGroupSize": "2"}] * 2


def test_the_configuration_is_told_all_that_it_must_not_type_again(planned: Plan) -> None:
    assert set(planned.outputs) == {
        "bucket",
        "chips",
        "cluster",
        "cpu_pool",
        "flavors",
        "image_repository",
        "project_id",
        "provisioner_settings",
        "service_accounts",
        "tensorboard",
        "workload_pool",
    }
    assert planned.outputs["chips"] == 32, "two slices of v4-32, which the reference's user counts by hand"
