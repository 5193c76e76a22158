"""The slice that a TPUNodeGroup gets, or every field that stands in its way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import CLUSTER, settings
from tests.node_groups import PROJECT, TEMPLATE, Json, changed, of_a_template, one_host, two_hosts
from tpu_slices.domain.catalogue.topology import Topology
from tpu_slices.domain.model.clusters import Allowed, ClusterSettings, ComputeSettings, Policy, PoolSettings
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import (
    Capacity,
    CapacityKind,
    Owner,
    OwnerKind,
    SliceSpec,
    WorkloadJob,
    WorkloadUid,
    same_request,
)
from tpu_slices.domain.planning.node_groups import declared_slice, group_labels
from tpu_slices.domain.records.claims import Refusal
from tpu_slices.wire.node_groups import group_of

OWNER = Owner(kind=OwnerKind.TPU_NODE_GROUP, namespace="default", name="my-group", uid=WorkloadUid("uid-my-group"))
JOB = WorkloadJob.declared(CLUSTER, OWNER)
EVERYTHING = Allowed(service_accounts=("*",), instance_templates=("*",))


def self_managed(**changes: Any) -> ClusterSettings:
    compute = ComputeSettings(image="projects/demo-project/global/images/family/hosts")
    fields: dict[str, Any] = {
        "path": f"projects/{PROJECT}/locations/us-central1",
        "zone": "us-central1-c",
        "pools": PoolSettings(compute=compute),
        "policy": Policy(everyone=EVERYTHING),
    }
    return settings(**{**fields, **changes})


def planned(group: Json, of_cluster: ClusterSettings | None = None) -> SliceSpec:
    outcome = declared_slice(group_of(group), JOB, of_cluster or self_managed())
    assert isinstance(outcome, SliceSpec), outcome
    return outcome


def refused(group: Json, of_cluster: ClusterSettings | None = None) -> Refusal:
    outcome = declared_slice(group_of(group), JOB, of_cluster or self_managed())
    assert isinstance(outcome, Refusal), outcome
    return outcome


def test_the_readmes_group_is_a_slice_of_two_hosts_in_its_reservation() -> None:
    spec = planned(two_hosts())
    assert (spec.accelerator, spec.topology, spec.hosts) == ("tpu7x", Topology.parse("2x2x2"), 2)
    assert (spec.machine_type, spec.chips_per_host, spec.zone) == ("tpu7x-standard-4t", 4, "us-central1-c")
    assert spec.capacity == Capacity(CapacityKind.RESERVATION, "my-tpu-reservation")
    assert (spec.boot_disk, spec.jobset_chips) == ("hyperdisk-balanced", 8)


def test_what_only_a_group_can_ask_is_in_the_request_of_its_instances() -> None:
    asked = planned(
        changed(one_host(), instanceConfig__networkTags=["tpu"], instanceConfig__metadata={"a": "1"})
    ).instance
    assert asked is not None
    assert (asked.boot_disk_gb, asked.boot_disk_type) == (250, "hyperdisk-balanced")
    assert (asked.subnetwork, asked.network_tags) == ("regions/us-central1/subnetworks/default", ("tpu",))
    assert (asked.scopes, asked.metadata) == (("https://example.com/scope",), (("a", "1"),))
    assert (asked.kubernetes, asked.control_plane) == ("1.31", "10.128.0.2:6443")


def test_without_bootstrapping_hosts_join_by_themselves() -> None:
    asked = planned(changed(two_hosts(), bootstrapKubernetes=None)).instance
    assert asked is not None
    assert (asked.kubernetes, asked.control_plane) == (None, None)


def test_hosts_carry_the_labels_of_tpu_operator_for_the_group() -> None:
    assert dict(planned(two_hosts()).node_labels) == {
        "cloud.google.com/tpu-node-group-name": "my-group",
        "cloud.google.com/tpu-node-group-namespace": "default",
        "cloud.google.com/tpu-node-group": "default-my-group",
    }


def test_the_label_of_both_names_is_left_out_where_it_is_no_value_of_a_label() -> None:
    assert set(group_labels(replace(OWNER, name="a" * 60))) == {
        "cloud.google.com/tpu-node-group-name",
        "cloud.google.com/tpu-node-group-namespace",
    }


@pytest.mark.parametrize(
    ("changes", "capacity"),
    [
        ({"instanceConfig__provisioningModel": None}, Capacity(CapacityKind.RESERVATION, "my-tpu-reservation")),
        (
            {"instanceConfig__provisioningModel": "STANDARD", "instanceConfig__reservation": None},
            Capacity(CapacityKind.ON_DEMAND),
        ),
        (
            {"instanceConfig__provisioningModel": None, "instanceConfig__reservation": None},
            Capacity(CapacityKind.ON_DEMAND),
        ),
        (
            {"instanceConfig__provisioningModel": "SPOT", "instanceConfig__reservation": None},
            Capacity(CapacityKind.SPOT),
        ),
    ],
)
def test_capacity_is_as_given_else_the_reservation_else_on_demand(changes: dict[str, Any], capacity: Capacity) -> None:
    assert planned(changed(two_hosts(), **changes)).capacity == capacity


@pytest.mark.parametrize(
    ("topology", "nodes", "machine", "accelerator"),
    [
        ("1x1", 1, "ct6e-standard-1t", "tpu-v6e-slice"),
        ("2x4", 1, "ct6e-standard-8t", "tpu-v6e-slice"),
        ("2x4", 2, "ct6e-standard-4t", "tpu-v6e-slice"),
        ("4x4", 4, "ct6e-standard-4t", "tpu-v6e-slice"),
        ("1x1x1", 1, "tpu7x-standard-1t", "tpu7x"),
        ("4x4x4", 16, "tpu7x-standard-4t", "tpu7x"),
        ("2x2x2", 2, "tpu7-standard-4t", "tpu7"),
    ],
)
def test_a_machine_type_names_the_accelerator(topology: str, nodes: int, machine: str, accelerator: str) -> None:
    group = changed(two_hosts(), topology=topology, nodeCount=nodes, instanceConfig__machineType=machine)
    spec = planned(group)
    assert (spec.accelerator, spec.hosts, spec.machine_type) == (accelerator, nodes, machine)


def test_the_hosts_of_a_template_follow_from_topology_and_nodes() -> None:
    spec = planned(of_a_template())
    assert (spec.accelerator, spec.machine_type, spec.hosts) == ("tpu7x", "tpu7x-standard-4t", 2)
    assert spec.instance is not None
    assert spec.instance.template == TEMPLATE
    assert "those of the instance template" in spec.caveat


def test_the_accelerator_of_a_template_may_be_told_by_a_label() -> None:
    group = of_a_template()
    group["metadata"]["labels"] = {"cloud.google.com/gke-tpu-accelerator": "tpu7"}
    assert planned(group).machine_type == "tpu7-standard-4t"


@pytest.mark.parametrize(
    ("group", "reason", "message"),
    [
        (
            changed(two_hosts(), nodeCount=4),
            Reason.DOES_NOT_FIT,
            "spec.nodeCount: it is 4, and tpu7x 2x2x2 consists of 2 x",
        ),
        (
            changed(two_hosts(), topology="2x2x3"),
            Reason.IMPOSSIBLE_SHAPE,
            "spec.topology: tpu7x has no 2x2x3: use 2x2x1",
        ),
        (changed(two_hosts(), topology="2x2"), Reason.IMPOSSIBLE_SHAPE, "spec.topology: tpu7x has no 2x2: use"),
        (changed(two_hosts(), topology="two"), Reason.IMPOSSIBLE_SHAPE, 'spec.topology: "two" is not a topology'),
        (
            changed(two_hosts(), instanceConfig__machineType="tpu7x-standard-1t"),
            Reason.DOES_NOT_FIT,
            "spec.instanceConfig.machineType: tpu7x 2x2x2 is not made of tpu7x-standard-1t: use tpu7x-standard-4t",
        ),
        (
            changed(two_hosts(), instanceConfig__machineType="n1-standard-1"),
            Reason.DOES_NOT_FIT,
            'spec.instanceConfig.machineType: "n1-standard-1" is of no TPUNodeGroup',
        ),
        (
            changed(two_hosts(), instanceConfig__machineType="ct5lp-hightpu-4t"),
            Reason.DOES_NOT_FIT,
            '"ct5lp-hightpu-4t" is of no TPUNodeGroup',
        ),
        (
            changed(of_a_template(), nodeCount=3),
            Reason.DOES_NOT_FIT,
            "spec.nodeCount: it is 3, and the 8 chips of 2x2x2",
        ),
        (
            changed(two_hosts(), project="other-project"),
            Reason.DOES_NOT_FIT,
            "the hosts of this cluster are in demo-project",
        ),
        (
            changed(two_hosts(), nodeLocation="europe-west4-b"),
            Reason.DOES_NOT_FIT,
            'spec.nodeLocation: it is "europe-west4-b", where this cluster can have no',
        ),
        (
            changed(two_hosts(), instanceConfig__diskType="pd-ssd"),
            Reason.DOES_NOT_FIT,
            'spec.instanceConfig.diskType: it is "pd-ssd", and hosts of tpu7x support hyperdisk-balanced',
        ),
        (
            changed(two_hosts(), instanceConfig__metadata={"startup-script": "true"}),
            Reason.DOES_NOT_FIT,
            "spec.instanceConfig.metadata.startup-script: it is set for bootstrapKubernetes",
        ),
    ],
)
def test_what_is_impossible_is_refused_with_the_field(group: Json, reason: Reason, message: str) -> None:
    refusal = refused(group)
    assert refusal.reason is reason
    assert message in refusal.message


def test_a_script_of_its_own_is_the_users_where_hosts_join_by_themselves() -> None:
    planned(changed(two_hosts(), bootstrapKubernetes=None, instanceConfig__metadata={"startup-script": "true"}))


def test_all_obstacles_are_named_at_once() -> None:
    refusal = refused(changed(two_hosts(), project="other-project", topology="2x2x3", nodeLocation="mars-west1-a"))
    for field in ("spec.project", "spec.topology", "spec.nodeLocation"):
        assert field in refusal.message


def test_a_cluster_of_gke_serves_no_group() -> None:
    assert "settings of this one have no compute" in refused(two_hosts(), settings()).message


@pytest.mark.parametrize(
    ("group", "allowed", "message"),
    [
        (two_hosts(), {"reservations": ("ours",)}, "reservations: my-tpu-reservation is not allowed"),
        (two_hosts(), {"capacity": (CapacityKind.SPOT,)}, "capacity: reservation is not allowed"),
        (one_host(), {"service_accounts": ()}, "hosts@demo-project.iam.gserviceaccount.com is not allowed"),
        (of_a_template(), {"instance_templates": ()}, f"instance_templates: {TEMPLATE} is not allowed"),
        (two_hosts(), {"accelerators": ("tpu-v6e-slice",)}, "accelerators: tpu7x is not allowed"),
        (two_hosts(), {"zones": ("us-central1-a",)}, "zones: us-central1-c is not allowed"),
        (two_hosts(), {"chips_per_slice": 4}, "policy.chips_per_slice: this slice has 8 chips"),
    ],
)
def test_the_policy_counts_for_groups_too(group: Json, allowed: dict[str, Any], message: str) -> None:
    refusal = refused(group, self_managed(policy=Policy(everyone=replace(EVERYTHING, **allowed))))
    assert refusal.reason is Reason.NOT_ALLOWED
    assert message in refusal.message


def test_where_nothing_but_on_demand_is_bought_a_group_is_no_exception() -> None:
    assert planned(two_hosts(), self_managed(force_on_demand=True)).capacity == Capacity()


@pytest.mark.parametrize(
    "changes",
    [
        {"instanceConfig__reservation": "other"},
        {"instanceConfig__metadata": {"a": "1"}},
        {"bootstrapKubernetes__version": "1.32"},
        {"bootstrapKubernetes": None},
    ],
)
def test_every_field_is_part_of_the_request(changes: dict[str, Any]) -> None:
    assert not same_request(planned(changed(two_hosts(), **changes)).fingerprint, planned(two_hosts()))
