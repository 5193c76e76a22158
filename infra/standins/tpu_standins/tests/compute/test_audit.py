"""The audit log's entries, and which of them pass the log sink."""

from typing import Any

import pytest

from tpu_standins.cloud.timed import Entry
from tpu_standins.compute.audit import passes_sink
from tpu_standins.testing.compute import HERE, PROJECT, REGIONAL, World, a_group, a_policy

SINK: dict[str, Any] = {
    "resource": {"type": "gce_instance_group_manager"},
    "protoPayload": {
        "serviceName": "compute.googleapis.com",
        "methodName": "v1.compute.instanceGroupManagers.insert",
        "resourceName": f"projects/{PROJECT}/zones/us-central1-c/instanceGroupManagers/tpu-a",
    },
    "operation": {"last": True},
}


def ends(world: World) -> dict[str, Entry]:
    """Return what was published, by method."""
    return {entry["protoPayload"]["methodName"].removeprefix("v1.compute."): entry for entry in world.published}


def test_the_ends_of_what_slices_need_are_published() -> None:
    world = World()
    world.make_slice()
    world.after(12)
    world.groups.delete_unary(instance_group_manager="slice", **HERE)
    world.after(5)
    world.templates.delete_unary(instance_template="slice", project=PROJECT)
    world.policies.delete_unary(resource_policy="slice", **REGIONAL)
    world.after(2)
    kinds = ("instanceGroupManagers", "instanceTemplates", "resourcePolicies")
    assert set(ends(world)) == {f"{kind}.{verb}" for kind in kinds for verb in ("insert", "delete")}
    assert len(world.published) == 6


def test_an_entry_names_operation_resource_and_labels() -> None:
    world = World()
    world.make_policy()
    world.make_template()
    world.after(1)
    operation = world.make_group()
    world.after(2)
    entry = ends(world)["instanceGroupManagers.insert"]
    assert entry["operation"] == {"id": operation.name, "producer": "compute.googleapis.com", "last": True}
    assert entry["severity"] == "NOTICE"
    assert entry["protoPayload"]["resourceName"] == (
        f"projects/{PROJECT}/zones/us-central1-c/instanceGroupManagers/slice"
    )
    assert entry["resource"] == {
        "type": "gce_instance_group_manager",
        "labels": {
            "project_id": PROJECT,
            "instance_group_manager_id": str(operation.target_id),
            "instance_group_manager_name": "slice",
            "location": "us-central1-c",
        },
    }
    assert ends(world)["resourcePolicies.insert"]["resource"]["labels"]["region"] == "us-central1"
    assert ends(world)["instanceTemplates.insert"]["resource"]["labels"]["instance_template_name"] == "slice"


def test_an_entry_comes_after_the_logs_delay() -> None:
    world = World()
    world.make_policy()
    world.after(1.1)
    assert not world.published
    world.after(0.2)
    assert len(world.published) == 1


def test_a_failed_operation_is_an_error_with_its_code() -> None:
    world = World()
    world.make_policy(a_policy(topology="2x2x4"))
    world.make_template()
    world.after(1)
    world.make_group(a_group(size=2))
    world.after(2)
    entry = ends(world)["instanceGroupManagers.insert"]
    assert (entry["severity"], entry["protoPayload"]["status"]["message"]) == ("ERROR", "INVALID_FIELD_VALUE")
    errors = entry["protoPayload"]["response"]["error"]["errors"]
    assert [error["code"] for error in errors] == ["INVALID_FIELD_VALUE"]


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("resource", {"type": "gke_nodepool"}),
        ("operation", {"first": True, "last": False}),
        ("protoPayload", {"serviceName": "container.googleapis.com"}),
        ("protoPayload", {"methodName": "v1.compute.instances.setMetadata"}),
        ("protoPayload", {"methodName": "v1.compute.instanceGroupManagers.recreateInstances"}),
        ("protoPayload", {"methodName": "v1.compute.regionInstanceGroupManagers.insert"}),
    ],
)
def test_other_entries_do_not_pass(part: str, change: dict[str, Any]) -> None:
    assert passes_sink(SINK)
    assert not passes_sink({**SINK, part: {**SINK[part], **change}})


def test_a_sink_can_be_for_names_with_a_prefix() -> None:
    assert passes_sink(SINK, names="tpu-")
    assert not passes_sink(SINK, names="gpu-")
