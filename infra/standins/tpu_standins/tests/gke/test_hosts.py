"""Hosts as Nodes: their manifests, and that only changes are sent to the API."""

import re

import pytest
from google.cloud import container_v1 as gke

from tpu_standins.gke.paths import instance_names, instance_stem
from tpu_standins.testing.gke import Policy, World, a_pool, a_single_host

_CLOUD = "cloud.google.com"
_SPECIFIC = gke.ReservationAffinity.Type.SPECIFIC_RESERVATION


def _usable(pool: gke.NodePool | None = None) -> World:
    world = World()
    world.create(pool)
    world.after(10)
    return world


def test_a_node_carries_gkes_labels_the_pools_and_its_provider_id() -> None:
    world = _usable(a_pool(config={"labels": {"google.com/tpu-slice-id": "slice"}}))
    name, node = next(iter(world.nodes.nodes.items()))
    assert node["metadata"]["labels"] == {
        "google.com/tpu-slice-id": "slice",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": "ct4p-hightpu-4t",
        "topology.kubernetes.io/zone": "us-central2-b",
        "topology.kubernetes.io/region": "us-central2",
        "tpu-slices.local/host": "true",
        "cloud.google.com/gke-nodepool": "pool",
        "cloud.google.com/gke-tpu-accelerator": "tpu-v4-podslice",
        "cloud.google.com/gke-tpu-topology": "2x2x2",
        "cloud.google.com/gke-accelerator-count": "4",
    }
    assert node["spec"]["providerID"] == f"gce://demo-project/us-central2-b/{name}"


def test_a_single_host_is_labelled_with_its_machines_topology() -> None:
    world = _usable(a_single_host(config={"machine_type": "ct5lp-hightpu-8t", "spot": True}))
    (node,) = world.nodes.nodes.values()
    assert node["metadata"]["labels"]["cloud.google.com/gke-tpu-topology"] == "2x4"
    assert node["metadata"]["labels"]["cloud.google.com/gke-spot"] == "true"


@pytest.mark.parametrize("topology", ["", "2x2x2"])
def test_a_tpu7x_slice_is_labelled_with_the_topology_and_the_name_of_its_workload_policy(topology: str) -> None:
    policy = Policy(policy_name="tpu-provisioner-2x2x2", tpu_topology=topology)
    world = _usable(a_pool(config={"machine_type": "tpu7x-standard-4t"}, placement_policy=policy))
    assert len(world.nodes.nodes) == 2
    for node in world.nodes.nodes.values():
        labels = node["metadata"]["labels"]
        assert {key: labels[f"{_CLOUD}/{key}"] for key in ("gke-tpu-accelerator", "gke-tpu-topology")} == {
            "gke-tpu-accelerator": "tpu7x",
            "gke-tpu-topology": "2x2x2",
        }
        assert labels[f"{_CLOUD}/gke-accelerator-count"] == "4"
        assert labels[f"{_CLOUD}/placement-policy-name"] == "tpu-provisioner-2x2x2"
        assert node["status"]["capacity"] == {"cpu": "224", "memory": "992Gi", "pods": "110", "google.com/tpu": "4"}


@pytest.mark.parametrize(
    ("value", "labels"),
    [
        ("hall", {"reservation-name": "hall"}),
        ("projects/p/reservations/hall", {"reservation-project": "p", "reservation-name": "hall"}),
        ("hall/reservationBlocks/b", {"reservation-name": "hall", "reservation-blocks": "b"}),
        (
            "projects/p/reservations/hall/reservationBlocks/b/reservationSubBlocks/s",
            {
                "reservation-project": "p",
                "reservation-name": "hall",
                "reservation-blocks": "b",
                "reservation-subblocks": "s",
            },
        ),
    ],
)
def test_a_node_says_which_reservation_it_is_from(value: str, labels: dict[str, str]) -> None:
    reservation = gke.ReservationAffinity(
        consume_reservation_type=_SPECIFIC, key="compute.googleapis.com/reservation-name", values=[value]
    )
    (node,) = _usable(a_single_host(config={"reservation_affinity": reservation})).nodes.nodes.values()
    seen = {key.removeprefix(f"{_CLOUD}/"): text for key, text in node["metadata"]["labels"].items()}
    assert {key: text for key, text in seen.items() if key.startswith("reservation-")} == labels


def test_a_spot_node_has_its_label_and_the_taint_it_was_ordered_with() -> None:
    taint = gke.NodeTaint(key=f"{_CLOUD}/gke-spot", value="true", effect=gke.NodeTaint.Effect.NO_SCHEDULE)
    (node,) = _usable(a_single_host(config={"spot": True, "taints": [taint]})).nodes.nodes.values()
    assert node["metadata"]["labels"][f"{_CLOUD}/gke-spot"] == "true"
    assert {"key": f"{_CLOUD}/gke-spot", "value": "true", "effect": "NoSchedule"} in node["spec"]["taints"]


def test_a_node_with_the_metadata_server_says_so() -> None:
    mode = gke.WorkloadMetadataConfig(mode=gke.WorkloadMetadataConfig.Mode.GKE_METADATA)
    (node,) = _usable(a_single_host(config={"workload_metadata_config": mode})).nodes.nodes.values()
    assert node["metadata"]["labels"]["iam.gke.io/gke-metadata-server-enabled"] == "true"


def test_a_ready_node_has_the_tpu_taint_and_the_pools() -> None:
    taint = gke.NodeTaint(key="team", value="a", effect=gke.NodeTaint.Effect.NO_EXECUTE)
    (node, _) = _usable(a_pool(config={"taints": [taint]})).nodes.nodes.values()
    assert node["spec"]["taints"] == [
        {"key": "team", "value": "a", "effect": "NoExecute"},
        {"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"},
    ]


def test_a_taint_given_as_gkes_own_is_there_once() -> None:
    taint = gke.NodeTaint(key="google.com/tpu", value="present", effect=gke.NodeTaint.Effect.NO_SCHEDULE)
    (node, _) = _usable(a_pool(config={"taints": [taint]})).nodes.nodes.values()
    assert len(node["spec"]["taints"]) == 1


def test_a_node_offers_what_the_machine_leaves_to_pods() -> None:
    pods = gke.MaxPodsConstraint(max_pods_per_node=15)
    (node, _) = _usable(a_pool(max_pods_constraint=pods)).nodes.nodes.values()
    assert node["status"]["allocatable"] == {
        "cpu": "239330m",
        "memory": "385Gi",
        "pods": "15",
        "google.com/tpu": "4",
    }


def test_the_api_is_told_each_change_once() -> None:
    world = _usable(a_single_host())
    world.after(100)
    (name,) = world.nodes.nodes
    assert world.nodes.said == [f"register {name}", f"update {name}", f"update {name}"]


def test_what_the_api_did_not_take_is_told_again() -> None:
    world = World()
    world.create(a_single_host())
    world.nodes.down = True
    world.after(5.5)
    assert world.nodes.nodes == {}
    world.nodes.down = False
    world.after(0.5)
    assert len(world.nodes.nodes) == 1


def test_a_node_that_is_lost_comes_back_as_it_was() -> None:
    world = _usable(a_single_host())
    before = dict(world.nodes.nodes)
    world.nodes.nodes.clear()
    world.after(6)
    assert world.nodes.nodes == before


def test_a_node_that_another_calls_unknown_is_ready_again() -> None:
    world = _usable(a_single_host())
    (node,) = world.nodes.nodes.values()
    node["status"]["conditions"][0]["status"] = "Unknown"
    world.after(6)
    assert list(world.conditions().values()) == ["True"]


def test_the_nodes_of_a_control_plane_that_was_killed_are_removed_by_the_next() -> None:
    old = _usable()
    new = World(nodes=old.nodes)
    new.create(a_single_host())
    new.after(10)
    assert len(new.nodes.nodes) == 1


def test_instance_names_fit_and_differ_even_for_the_largest_pool() -> None:
    stem = instance_stem("a-cluster-with-quite-a-long-name-of-40-c", "p" * 40, "token")
    names = instance_names(stem, 1_000)
    assert len(set(names)) == 1_000
    assert all(len(name) <= 63 and re.fullmatch(r"gke-[-a-z0-9]+-[0-9a-f]{8}-[0-9a-z]{4}", name) for name in names)


def test_another_create_of_the_same_name_makes_other_instances() -> None:
    assert instance_stem("demo", "pool", "one") != instance_stem("demo", "pool", "two")
