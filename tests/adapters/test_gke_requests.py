"""The requests as GKE gets them, and the labels that prove whose a pool is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google.cloud.container_v1 import CreateNodePoolRequest

from infra.local.gke.refusals import refusal
from infra.local.gke.rules import Ask
from shared.adapters.gke_requests import CannotBeMade, create_request, operation_path, pool_path
from shared.adapters.pool_labels import label_value, labels_of, missing_proof, pool_seen
from shared.domain.accelerators import CATALOGUE, ImpossibleShape, Placement, legal_topologies, shape_of
from shared.domain.clusters import PoolSettings
from shared.domain.facts import SliceRequest
from shared.domain.fit import spec_for
from shared.domain.observations import PoolSeen
from shared.domain.slices import Capacity, CapacityKind, ClusterId, JobSetUid, SliceSpec, slice_id
from shared.domain.topology import Topology
from shared.ports import PoolOrder
from tests.builders import a_job, a_spec, settings
from tests.local.gke.world import DEMO, a_state

NODES_PER_ZONE = 1000  # GKE's limit for one node pool


def an_order(**changes: Any) -> PoolOrder:
    job = changes.pop("job", a_job())
    fields: dict[str, Any] = {
        "cluster_path": DEMO,
        "cluster_gke_id": None,
        "slice_id": slice_id(job),
        "attempt": 1,
        "job": job,
        "spec": a_spec(),
        "settings": PoolSettings(),
    }
    return PoolOrder(**{**fields, **changes})


def as_dict(request: CreateNodePoolRequest) -> dict[str, Any]:
    shown: dict[str, Any] = CreateNodePoolRequest.to_dict(
        request, use_integers_for_enums=False, always_print_fields_with_no_presence=False
    )
    return shown


def test_a_slice_of_several_hosts_is_one_compact_pool_in_one_zone() -> None:
    assert as_dict(create_request(an_order(attempt=3))) == {
        "parent": "projects/demo-project/locations/us-central2/clusters/demo",
        "node_pool": {
            "name": "tpu-llama-slice-0-oahqlz77blgqd-3",
            "initial_node_count": 4,
            "locations": ["us-central2-b"],
            "placement_policy": {"type_": "COMPACT", "tpu_topology": "4x4"},
            "management": {"auto_repair": True, "auto_upgrade": True},
            "max_pods_constraint": {"max_pods_per_node": "15"},
            "upgrade_settings": {"max_surge": 1},
            "node_drain_config": {
                "grace_termination_duration": "120s",
                "respect_pdb_during_node_pool_deletion": False,
            },
            "config": {
                "machine_type": "ct5lp-hightpu-4t",
                "disk_type": "pd-balanced",
                "disk_size_gb": 100,
                "oauth_scopes": ["https://www.googleapis.com/auth/cloud-platform"],
                "workload_metadata_config": {"mode": "GKE_METADATA"},
                "shielded_instance_config": {"enable_secure_boot": True, "enable_integrity_monitoring": True},
                "labels": {
                    "google.com/nodepool-manager": "tpu-provisioner",
                    "google.com/tpu-provisioner-parent-kind": "job",
                    "google.com/tpu-provisioner-parent-name": "llama-slice-0",
                    "google.com/tpu-provisioner-parent-namespace": "research",
                    "google.com/tpu-provisioner-jobset-name": "llama",
                    "google.com/tpu-provisioner-jobset-namespace": "research",
                    "google.com/tpu-provisioner-nodepool-hash": a_spec().fingerprint,
                    "google.com/tpu-slice-id": "tpu-llama-slice-0-oahqlz77blgqd",
                    "google.com/tpu-slice-jobset-uid": "uid-llama",
                    "google.com/tpu-slice-attempt": "3",
                    "google.com/tpu-slice-fingerprint": a_spec().fingerprint,
                    "google.com/tpu-slice-replicated-job": "slice",
                    "google.com/tpu-slice-job-index": "0",
                },
            },
        },
    }


def test_a_single_host_has_neither_placement_nor_topology() -> None:
    spec = a_spec(hosts=1, topology=Topology.parse("2x2"), placement=None)
    pool = create_request(an_order(spec=spec)).node_pool
    assert "placement_policy" not in pool
    assert pool.initial_node_count == 1


def test_a_clusters_settings_are_in_the_request() -> None:
    account = "tpu-nodes@demo-project.iam.gserviceaccount.com"
    chosen = PoolSettings(
        service_account=account, boot_disk_gb=200, max_pods_per_node=32, auto_upgrade=False, network_tags=("tpu",)
    )
    pool = create_request(an_order(settings=chosen)).node_pool
    assert (pool.config.service_account, pool.config.disk_size_gb) == (account, 200)
    assert pool.max_pods_constraint.max_pods_per_node == 32
    assert (pool.management.auto_upgrade, pool.management.auto_repair) == (False, True)
    assert list(pool.config.tags) == ["tpu"]


def test_spot_hosts_are_asked_for_as_such() -> None:
    config = create_request(an_order(spec=a_spec(capacity=Capacity(CapacityKind.SPOT)))).node_pool.config
    assert config.spot
    assert "reservation_affinity" not in config


@pytest.mark.parametrize("name", ["hall-7", "projects/other/reservations/hall-7"])
def test_a_reservation_is_asked_for_by_name(name: str) -> None:
    spec = a_spec(capacity=Capacity(CapacityKind.RESERVATION, name))
    shown = as_dict(create_request(an_order(spec=spec)))["node_pool"]["config"]["reservation_affinity"]
    assert shown == {
        "consume_reservation_type": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": [name],
    }


def test_a_tenants_labels_are_there_and_replace_none_of_ours() -> None:
    plain = create_request(an_order()).node_pool.config.labels
    wishes = {**dict.fromkeys(plain, "mine-now"), "team": "vision"}
    labels = create_request(an_order(spec=a_spec(node_labels=tuple(wishes.items())))).node_pool.config.labels
    assert labels == {**dict(plain), "team": "vision"}


def test_the_same_order_gives_the_same_request() -> None:
    assert create_request(an_order()) == create_request(an_order())


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"spec": None}, "found without a record"),
        ({"spec": a_spec(placement=Placement.WORKLOAD_POLICY)}, "workload policy are not implemented"),
    ],
    ids=["no-spec", "workload-policy"],
)
def test_what_cannot_be_written_as_a_request_says_why(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(CannotBeMade, match=says):
        create_request(an_order(**changes))


def test_paths_are_googles() -> None:
    assert pool_path(an_order()) == f"{DEMO}/nodePools/tpu-llama-slice-0-oahqlz77blgqd-1"
    operation = operation_path(DEMO, "operation-1")
    assert operation == "projects/demo-project/locations/us-central2/operations/operation-1"


def every_spec() -> Iterator[SliceSpec]:
    """Give every slice of the catalogue that one zone can hold, in each kind of capacity."""
    for label, kind in CATALOGUE.items():
        for topology in legal_topologies(kind):
            for machine in kind.machines:
                try:
                    shape = shape_of(label, topology, machine.chips)
                except ImpossibleShape:
                    continue
                if shape.hosts <= NODES_PER_ZONE:
                    yield from _in_each_capacity(label, topology, machine.chips)


def _in_each_capacity(label: str, topology: Topology, chips: int) -> Iterator[SliceSpec]:
    selectors = {"cloud.google.com/gke-tpu-accelerator": label, "cloud.google.com/gke-tpu-topology": str(topology)}
    capacities: tuple[dict[str, str], ...] = (
        {},
        {"cloud.google.com/gke-spot": "true"},
        {"cloud.google.com/reservation-name": "hall-7"},
    )
    for capacity in capacities:
        request = SliceRequest(
            replicated_job="slice",
            replicas=1,
            accelerator=label,
            topology=str(topology),
            chips_per_pod=chips,
            node_selector=tuple({**selectors, **capacity}.items()),
        )
        spec = spec_for(request, settings())
        assert isinstance(spec, SliceSpec), spec
        yield spec


def test_the_local_gke_accepts_every_slice_of_the_catalogue() -> None:
    state = a_state()
    specs = list(every_spec())
    assert {spec.accelerator for spec in specs} == set(CATALOGUE)
    refused = {}
    for spec in specs:
        pool = create_request(an_order(spec=spec)).node_pool
        no = refusal("CreateNodePool", Ask(state=state, cluster_path=DEMO, name=pool.name, spec=pool))
        if no is not None:
            refused[f"{spec.accelerator} {spec.topology} {spec.capacity}"] = no.message
    assert refused == {}


LONGEST = a_job(namespace="n" * 63, jobset="j" * 100, uid=JobSetUid("0" * 36), replicated_job="r" * 63, index=99_999)


def test_labels_leave_room_for_a_tenants_own() -> None:
    labels = labels_of(an_order(job=LONGEST, attempt=9999), a_spec().fingerprint)
    assert sum(len(key) + len(value) for key, value in labels.items()) <= 900
    assert max(map(len, labels.values())) <= 63


def test_shortened_values_of_different_names_differ() -> None:
    one, other = "a" * 80, "a" * 81
    assert label_value(one) != label_value(other)
    assert {len(label_value(one)), len(label_value(other))} == {63}
    assert label_value("a" * 63) == "a" * 63


def test_a_shortened_value_is_no_broken_label() -> None:
    assert "-.-" not in label_value(f"{'a' * 48}.-{'b' * 40}")
    assert label_value(f"{'a' * 48}.-{'b' * 40}").startswith(f"{'a' * 48}-")


@pytest.mark.parametrize("job", [a_job(), LONGEST], ids=["short", "longest"])
def test_a_pools_labels_prove_that_it_is_ours(job: Any) -> None:
    order = an_order(job=job)
    assert missing_proof(labels_of(order, ""), order) is None


@pytest.mark.parametrize(
    "key", ["google.com/nodepool-manager", "google.com/tpu-slice-id", "google.com/tpu-slice-jobset-uid"]
)
def test_without_each_of_three_labels_there_is_no_proof(key: str) -> None:
    order = an_order()
    labels = labels_of(order, "")
    other = {**labels, key: "another"}
    assert missing_proof(other, order) == f'its label {key} is "another", not "{labels[key]}".'
    del other[key]
    assert missing_proof(other, order) == f"it has no label {key}."


def test_an_inventoried_pool_says_whose_it_is() -> None:
    order = an_order(attempt=12)
    name = pool_path(order).rpartition("/")[2]
    seen = pool_seen(name, labels_of(order, ""), ClusterId("demo"))
    assert seen == PoolSeen(name=name, slice_id=order.slice_id, attempt=12, job=order.job)


def test_a_shortened_jobset_name_still_belongs_to_its_slice() -> None:
    order = an_order(job=LONGEST)
    seen = pool_seen(pool_path(order).rpartition("/")[2], labels_of(order, ""), ClusterId("demo"))
    assert seen is not None
    assert (seen.slice_id, seen.job.uid, seen.job.index) == (order.slice_id, LONGEST.uid, LONGEST.index)


@pytest.mark.parametrize(
    "change",
    [
        {"google.com/nodepool-manager": "somebody"},
        {"google.com/tpu-slice-id": None},
        {"google.com/tpu-slice-id": "tpu-llama-slice-0-aaaaaaaaaaaaa"},
        {"google.com/tpu-slice-jobset-uid": "uid-other"},
        {"google.com/tpu-slice-replicated-job": None},
        {"google.com/tpu-slice-job-index": "1"},
        {"google.com/tpu-slice-job-index": "first"},
        {"google.com/tpu-slice-attempt": "2"},
        {"google.com/tpu-slice-attempt": "0"},
    ],
    ids=str,
)
def test_a_pool_whose_labels_do_not_agree_is_none_of_our_business(change: dict[str, str | None]) -> None:
    order = an_order()
    labels = {key: value for key, value in {**labels_of(order, ""), **change}.items() if value is not None}
    assert pool_seen(pool_path(order).rpartition("/")[2], labels, ClusterId("demo")) is None


def test_a_pool_made_under_another_clusters_name_is_none_of_our_business() -> None:
    order = an_order()
    assert pool_seen(pool_path(order).rpartition("/")[2], labels_of(order, ""), ClusterId("staging")) is None
