"""TPUNodeGroups as they are read, whatever stands in them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.node_groups import IMAGE, PROJECT, SAMPLES, TEMPLATE, Json, changed, of_a_template, one_host, two_hosts
from tpu_slices.domain.model.facts import WorkloadRef, WorkloadState
from tpu_slices.domain.model.node_groups import Bootstrap, InstanceConfig, NodeGroup
from tpu_slices.domain.model.slices import Owner, OwnerKind, WorkloadUid
from tpu_slices.wire import node_groups
from tpu_slices.wire.node_groups import METADATA_BYTES, group_of
from tpu_slices.wire.readers import READERS, reader_of


def test_every_field_of_the_readmes_manifest_is_read() -> None:
    assert group_of(two_hosts()) == NodeGroup(
        project="demo-project",
        zone="us-central1-c",
        nodes=2,
        topology="2x2x2",
        instance=InstanceConfig(
            machine_type="tpu7x-standard-4t",
            provisioning_model="RESERVATION_BOUND",
            reservation="my-tpu-reservation",
            image=IMAGE,
            boot_disk_gb=100,
            subnetwork="projects/demo-project/regions/us-central1/subnetworks/default",
        ),
        bootstrap=Bootstrap(kubernetes="1.31", control_plane="10.128.0.2"),
    )


def test_account_tags_metadata_and_disk_are_read() -> None:
    config = group_of(
        changed(one_host(), instanceConfig__networkTags=["tpu"], instanceConfig__metadata={"b": "2", "a": "1"})
    ).instance
    assert config is not None
    assert (config.service_account, config.scopes) == (
        "hosts@demo-project.iam.gserviceaccount.com",
        ("https://example.com/scope",),
    )
    assert (config.network_tags, config.metadata) == (("tpu",), (("a", "1"), ("b", "2")))
    assert config.boot_disk_type == "hyperdisk-balanced"


def test_a_template_and_the_label_of_its_accelerator_are_read() -> None:
    labelled = of_a_template()
    labelled["metadata"]["labels"] = {"cloud.google.com/gke-tpu-accelerator": "tpu7"}
    assert (group_of(of_a_template()).template, group_of(of_a_template()).instance) == (TEMPLATE, None)
    assert (group_of(of_a_template()).accelerator, group_of(labelled).accelerator) == (None, "tpu7")


def test_a_machine_type_may_be_an_address() -> None:
    zone = f"https://www.googleapis.com/compute/v1/projects/{PROJECT}/zones/us-central1-c"
    group = group_of(changed(two_hosts(), instanceConfig__machineType=f"{zone}/machineTypes/ct6e-standard-4t"))
    assert group.instance is not None
    assert group.instance.machine_type == "ct6e-standard-4t"


def test_a_version_that_is_left_out_is_that_of_the_schema() -> None:
    bootstrap = group_of(one_host()).bootstrap
    assert bootstrap is not None
    assert bootstrap.kubernetes == "1.31"


def test_null_is_as_if_a_field_were_left_out() -> None:
    group = two_hosts()
    group["spec"]["instanceTemplateURI"] = None
    group["spec"]["instanceConfig"]["metadata"] = None
    assert group_of(group) == group_of(two_hosts())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"project": None}, "spec.project: Field required"),
        ({"nodeCount": "two"}, "spec.nodeCount: Input should be a valid integer"),
        ({"nodeCount": 0}, "spec.nodeCount: Input should be greater than or equal to 1"),
        ({"nodeCount": True}, "spec.nodeCount: Input should be a valid integer"),
        ({"topology": 4}, "spec.topology: Input should be a valid string"),
        ({"instanceConfig__machineType": None}, "spec.instanceConfig.machineType: Field required"),
        ({"instanceConfig__bootDiskSizeGB": "100"}, "spec.instanceConfig.bootDiskSizeGB: Input should be a valid"),
        ({"instanceConfig__metadata": {"key": 1}}, "spec.instanceConfig.metadata.key: Input should be a valid string"),
        (
            {"instanceConfig__metadata": {f"key-{number}": "x" * 16_000 for number in range(20)}},
            f"{METADATA_BYTES} are",
        ),
        ({"bootstrapKubernetes": {}}, "spec.bootstrapKubernetes.controlPlaneIP: Field required"),
        ({"instanceConfig": None}, "spec: one of instanceConfig and instanceTemplateURI is required"),
        ({"instanceTemplateURI": TEMPLATE}, "and they exclude each other"),
        ({"instanceConfig": "x"}, "spec.instanceConfig: Input should be"),
    ],
)
def test_what_is_not_as_in_the_api_is_an_error_that_names_the_field(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        group_of(changed(two_hosts(), **changes))


def test_an_object_without_a_spec_is_an_error() -> None:
    with pytest.raises(ValueError, match="spec is missing"):
        group_of({"metadata": {}})


def test_it_is_over_once_its_deletion_is_asked_for() -> None:
    asked = {**two_hosts(), "metadata": {"deletionTimestamp": "2026-11-24T12:00:00Z"}}
    assert [node_groups.state_of(each) for each in (two_hosts(), asked)] == [
        WorkloadState.ACTIVE,
        WorkloadState.DELETED,
    ]


@pytest.mark.parametrize("name", SAMPLES)
def test_it_is_a_workload_that_declares_one_slice(name: str) -> None:
    reader = reader_of(SAMPLES[name])
    assert reader is READERS[OwnerKind.TPU_NODE_GROUP]
    assert reader.asks_for_tpu(SAMPLES[name])
    assert reader.declared(SAMPLES[name]) == group_of(SAMPLES[name])
    assert reader.ref(as_stored(SAMPLES[name])) == WorkloadRef(
        owner=Owner(
            kind=OwnerKind.TPU_NODE_GROUP,
            namespace="default",
            name=SAMPLES[name]["metadata"]["name"],
            uid=WorkloadUid("uid-1"),
        ),
        generation=1,
        resource_version="7",
    )


def as_stored(group: Json) -> Json:
    return {**group, "metadata": {**group["metadata"], "uid": "uid-1", "generation": 1, "resourceVersion": "7"}}
