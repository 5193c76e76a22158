"""The answers of the local GKE have the forms that were recorded with Google's API: see [kcc] in `tpu_standins.gke`."""

from __future__ import annotations

from typing import Any

import pytest
from google.cloud import container_v1 as gke

from tpu_standins.gke.codes import Code
from tpu_standins.gke.messages import PROVISIONING_MODEL
from tpu_standins.gke.paths import ClusterPath
from tpu_standins.gke.rules import Refusal
from tpu_standins.testing.gke import DEMO, World, a_cluster, a_pool, a_state, of_flex_start, pool_path

ZONAL = "projects/demo-project/locations/us-central2-b/clusters/demo"
API = "https://container.googleapis.com/v1"


def zonal() -> World:
    cluster = a_cluster(path=ClusterPath("demo-project", "us-central2-b", "demo"))
    return World(a_state(clusters={ZONAL: cluster}))


def created(world: World, cluster: str, pool: gke.NodePool | None = None) -> gke.Operation:
    request = gke.CreateNodePoolRequest(parent=cluster, node_pool=pool or a_pool())
    answer = world.ask("CreateNodePool", request)
    assert isinstance(answer, gke.Operation), answer
    return answer


def read(world: World, cluster: str) -> tuple[gke.Cluster, gke.NodePool]:
    found = world.ask("GetCluster", gke.GetClusterRequest(name=cluster))
    pool = world.ask("GetNodePool", gke.GetNodePoolRequest(name=f"{cluster}/nodePools/pool"))
    return found, pool


def bare(**config: Any) -> gke.NodePool:
    """Return what a pool of that configuration becomes that says nothing which it need not."""
    world = World()
    world.create(a_pool(config=config))
    return world.pool()


@pytest.mark.parametrize(
    ("world", "cluster", "place"),
    [(World(), DEMO, "locations/us-central2"), (zonal(), ZONAL, "zones/us-central2-b")],
    ids=["regional", "zonal"],
)
def test_links_name_the_zone_of_what_is_in_one_and_the_projects_number_in_operations_alone(
    world: World, cluster: str, place: str
) -> None:
    operation = created(world, cluster)
    by_number = f"{API}/projects/123456789012/{place}"
    assert operation.self_link == f"{by_number}/operations/{operation.name}"
    assert operation.target_link == f"{by_number}/clusters/demo/nodePools/pool"
    assert (operation.zone, operation.location) == (place.partition("/")[2], "")
    found, pool = read(world, cluster)
    assert found.self_link == f"{API}/projects/demo-project/{place}/clusters/demo"
    assert pool.self_link == f"{found.self_link}/nodePools/pool"


def test_an_operation_that_succeeded_has_an_end_and_no_error() -> None:
    world = World()
    begun = world.create()
    assert (begun.status, begun.end_time) == (gke.Operation.Status.PENDING, "")
    world.after(60)
    ended = world.operation(begun.name)
    assert (ended.status, ended.operation_type) == (gke.Operation.Status.DONE, gke.Operation.Type.CREATE_NODE_POOL)
    assert ended.end_time > ended.start_time == begun.start_time
    assert "error" not in ended
    assert (ended.detail, ended.status_message, list(ended.nodepool_conditions)) == ("", "", [])


def absent(world: World, method: str, request: Any) -> Refusal:
    refused = world.refused(method, request)
    assert refused.code is Code.NOT_FOUND
    return refused


def test_a_pool_that_is_not_there_is_told_by_its_name() -> None:
    told = 'Not found: node pool "pool" not found.'
    assert absent(World(), "GetNodePool", gke.GetNodePoolRequest(name=pool_path())).message == told
    assert absent(zonal(), "DeleteNodePool", gke.DeleteNodePoolRequest(name=f"{ZONAL}/nodePools/pool")).message == told


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (f"{DEMO}-2", f"Not found: {DEMO}-2."),
        (f"{ZONAL}-2", "Not found: projects/demo-project/zones/us-central2-b/clusters/demo-2."),
    ],
)
def test_a_cluster_that_is_not_there_is_told_by_its_path_as_gke_writes_it(asked: str, told: str) -> None:
    assert absent(World(), "GetCluster", gke.GetClusterRequest(name=asked)).message == told


def test_a_pool_has_what_its_request_left_out() -> None:
    pool = bare()
    assert (pool.upgrade_settings.max_surge, pool.upgrade_settings.strategy) == (1, gke.NodePoolUpdateStrategy.SURGE)
    assert (pool.max_pods_constraint.max_pods_per_node, pool.pod_ipv4_cidr_size) == (110, 24)
    assert pool.network_config.subnetwork == "projects/demo-project/regions/us-central2/subnetworks/default"
    assert pool.network_config.pod_range.startswith("gke-demo-pods-")
    config = pool.config
    assert (config.image_type, config.service_account) == ("COS_CONTAINERD", "default")
    assert (config.boot_disk.disk_type, config.boot_disk.size_gb) == (config.disk_type, config.disk_size_gb)
    assert dict(config.metadata) == {"disable-legacy-endpoints": "true"}
    assert config.shielded_instance_config.enable_integrity_monitoring
    assert config.kubelet_config.insecure_kubelet_readonly_port_enabled is False
    assert "windows_node_config" in config
    assert len(config.oauth_scopes) == 6


def test_a_pool_keeps_what_its_request_says() -> None:
    config = {
        "disk_size_gb": 200,
        "disk_type": "pd-ssd",
        "oauth_scopes": ["https://www.googleapis.com/auth/monitoring"],
    }
    world = World()
    no_monitoring = gke.ShieldedInstanceConfig(enable_secure_boot=True)
    asked = a_pool(
        config={**config, "metadata": {"team": "a"}, "shielded_instance_config": no_monitoring},
        max_pods_constraint=gke.MaxPodsConstraint(max_pods_per_node=15),
        upgrade_settings=gke.NodePool.UpgradeSettings(max_unavailable=1),
    )
    world.create(asked)
    pool = world.pool()
    assert (pool.max_pods_constraint.max_pods_per_node, pool.pod_ipv4_cidr_size) == (15, 27)
    assert pool.upgrade_settings == asked.upgrade_settings
    assert (pool.config.boot_disk.disk_type, pool.config.boot_disk.size_gb) == ("pd-ssd", 200)
    assert list(pool.config.oauth_scopes) == config["oauth_scopes"]
    assert pool.config.metadata["team"] == "a"
    assert not pool.config.shielded_instance_config.enable_integrity_monitoring


@pytest.mark.parametrize(("asked", "model"), [({}, "on-demand"), ({"spot": True}, "spot")], ids=["on-demand", "spot"])
def test_machines_are_labelled_with_how_they_are_had_beside_the_labels_of_the_request(
    asked: dict[str, Any], model: str
) -> None:
    found = bare(resource_labels={"team": "a"}, labels={"team": "b"}, **asked).config
    assert dict(found.resource_labels) == {"team": "a", PROVISIONING_MODEL: model}
    assert dict(found.labels) == {"team": "b"}


def test_an_empty_pool_of_the_autoscaler_has_no_number_of_nodes() -> None:
    world = World()
    world.create(of_flex_start())
    pool = world.pool()
    assert (pool.initial_node_count, pool.autoscaling.min_node_count) == (0, 0)
    assert pool.upgrade_settings == gke.NodePool.UpgradeSettings(strategy=gke.NodePoolUpdateStrategy.SHORT_LIVED)


def test_a_clusters_pools_are_the_same_as_each_read_by_itself() -> None:
    world = World()
    world.create()
    found, pool = read(world, DEMO)
    assert list(found.node_pools) == [pool]
    assert (found.zone, found.location) == ("us-central2", "us-central2")
