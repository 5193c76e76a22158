"""A case for each row of the tables of refusals, and the messages of those that are known from Compute Engine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from google.cloud import compute_v1 as gce

from tpu_standins.cloud.rules import OURS
from tpu_standins.compute.refusals import groups, metadata, policies, templates
from tpu_standins.compute.refusals.rules import Rule
from tpu_standins.testing.compute import (
    HERE,
    PROJECT,
    REGIONAL,
    World,
    a_disk,
    a_group,
    a_policy,
    a_template,
    alone,
    of_reservation,
    of_spot,
    refused,
)

TABLES: Mapping[str, tuple[Rule, ...]] = {
    "resourcePolicies.insert": policies.INSERT,
    "resourcePolicies.delete": policies.DELETE,
    "instanceTemplates.insert": templates.INSERT,
    "instanceTemplates.delete": templates.DELETE,
    "instanceGroupManagers.insert": groups.INSERT,
    "instanceGroupManagers.delete": groups.DELETE,
    "instanceGroupManagers.recreateInstances": groups.CHANGE,
    "instances.setMetadata": metadata.SET,
}
RULES = {(method, rule.name): rule for method, table in TABLES.items() for rule in table}
LONG = "x" * 2049
PREPARED = ("group-machine", "group-policy-not-ready", "group-template-not-ready")
"""Rows whose cases do something else first."""
FRESH = {"workload_policy": "regions/us-central1/resourcePolicies/fresh"}
STANDARD = {"on_host_maintenance": "TERMINATE"}
Ask = Callable[[World], Any]


@dataclass(frozen=True)
class Case:
    method: str
    rule: str
    ask: Ask
    name: str = ""


def policy(rule: str, asked: gce.ResourcePolicy, name: str = "") -> Case:
    return Case("resourcePolicies.insert", rule, lambda world: world.make_policy(asked), name)


def template(rule: str, asked: gce.InstanceTemplate, name: str = "") -> Case:
    return Case("instanceTemplates.insert", rule, lambda world: world.make_template(asked), name)


def group(rule: str, asked: gce.InstanceGroupManager, name: str = "") -> Case:
    return Case("instanceGroupManagers.insert", rule, lambda world: world.make_group(asked), name)


def written(rule: str, name: str = "", **metadata: Any) -> Case:
    return Case("instances.setMetadata", rule, lambda world: write(world, **metadata), name)


def write(world: World, instance: str = "", **metadata: Any) -> Any:
    seen = instance or world.members()[0].name
    current = {} if instance else {"fingerprint": world.instance(seen).metadata.fingerprint}
    resource = gce.Metadata(**{**current, **metadata})
    return world.instances.set_metadata_unary(instance=seen, metadata_resource=resource, **HERE)


def delete_policy(world: World, name: str = "slice") -> Any:
    return world.policies.delete_unary(resource_policy=name, **REGIONAL)


def delete_template(world: World, name: str = "slice") -> Any:
    return world.templates.delete_unary(instance_template=name, project=PROJECT)


def delete_group(world: World, name: str = "slice") -> Any:
    return world.groups.delete_unary(instance_group_manager=name, **HERE)


def recreate(world: World, name: str = "slice") -> Any:
    resource: dict[str, Any] = {"instances": []}
    return world.groups.recreate_instances_unary(
        instance_group_manager=name, instance_group_managers_recreate_instances_request_resource=resource, **HERE
    )


def after(first: Callable[[World], object], ask: Ask) -> Ask:
    """Return what asks after something else was done."""

    def both(world: World) -> Any:
        first(world)
        return ask(world)

    return both


def spare_template(world: World) -> None:
    world.make_template(a_template("spare"))
    world.after(1)
    delete_template(world, "spare")


def fresh_policy(world: World) -> None:
    world.make_policy(a_policy("fresh"))


def in_group(machine: str) -> Ask:
    def ask(world: World) -> Any:
        world.make_template(of(machine))
        world.after(1)
        return world.make_group(alone("other"))

    return ask


def of(machine: str) -> gce.InstanceTemplate:
    return a_template("other", machine_type=machine, disks=[a_disk(disk_type="")])


def on(network: Mapping[str, Any]) -> gce.InstanceTemplate:
    return a_template("other", network_interfaces=[network])


def with_items(*pairs: tuple[str, str]) -> gce.InstanceTemplate:
    return a_template("other", metadata={"items": [{"key": key, "value": value} for key, value in pairs]})


def unnamed(**affinity: Any) -> dict[str, Any]:
    given = of_reservation()
    return {**given, "reservation_affinity": {**given["reservation_affinity"], **affinity}}


def scheduled(**scheduling: Any) -> gce.InstanceTemplate:
    return a_template("other", scheduling=scheduling)


def linked(**changes: Any) -> gce.InstanceGroupManager:
    return a_group("other", **{"instance_template": "global/instanceTemplates/slice", **changes})


CASES = (
    policy("field-not-covered", gce.ResourcePolicy(name="other", disk_consistency_group_policy={}), "disks"),
    policy("policy-not-covered", gce.ResourcePolicy(name="other")),
    policy("mode-not-covered", a_policy("other", workload_policy={"accelerator_topology_mode": "PROVISION_ONLY"})),
    policy("bad-name", a_policy("Other"), "a capital"),
    policy("bad-name", a_policy(""), "none"),
    policy("bad-name", a_policy("x" * 64), "too long"),
    policy("long-description", a_policy("other", description=LONG)),
    policy("policy-without-type", a_policy("other", workload_policy={"type_": ""})),
    policy("policy-type", a_policy("other", workload_policy={"type_": "HIGH_AVAILABILITY"})),
    policy("policy-topology", a_policy("other", topology="2 by 2")),
    policy("already-exists", a_policy()),
    Case("resourcePolicies.delete", "unknown-resource", lambda world: delete_policy(world, "other")),
    Case("resourcePolicies.delete", "in-use", delete_policy),
    Case(
        "resourcePolicies.delete",
        "not-ready",
        after(fresh_policy, lambda world: delete_policy(world, "fresh")),
    ),
    template("field-not-covered", a_template("other", guest_accelerators=[{"accelerator_count": 1}]), "accelerators"),
    template("bad-name", a_template("other_")),
    template(
        "long-description", gce.InstanceTemplate(name="other", description=LONG, properties=a_template().properties)
    ),
    template("template-machine-missing", of("")),
    template("template-machine-url", of("zones/us-central1-c/machineTypes/tpu7x-standard-4t")),
    template("template-machine-not-covered", of("n1-standard-1")),
    template("template-boot-disk", a_template("other", disks=[])),
    template("template-image", a_template("other", disks=[a_disk(source_image="")]), "none"),
    template("template-image", a_template("other", disks=[a_disk(source_image="ubuntu")]), "no URL"),
    template("template-disk", a_template("other", disks=[a_disk(disk_type="pd-balanced")]), "not of this machine"),
    template("template-disk", a_template("other", disks=[a_disk(disk_size_gb=9)]), "too small"),
    template("template-network", a_template("other", network_interfaces=[])),
    template("template-subnetwork", on({"subnetwork": "default"})),
    template("template-accounts", a_template("other", service_accounts=[{"email": "a"}, {"email": "b"}])),
    template("template-metadata", with_items(("a b", "")), "a key with a space"),
    template("template-metadata", with_items(("a", ""), ("a", "")), "a key twice"),
    template("template-metadata", with_items(("a", "x" * 262_145)), "a large value"),
    template("template-metadata", with_items(*((f"k{n}", "x" * 200_000) for n in range(3))), "too much in all"),
    template("template-labels", a_template("other", labels={"Team": "a"}), "a capital"),
    template("template-labels", a_template("other", labels={f"k{n}": "" for n in range(65)}), "too many"),
    template("template-tags", a_template("other", tags={"items": ["a b"]})),
    template("model-not-covered", scheduled(provisioning_model="FLEX_START", **STANDARD), "flex-start"),
    template("model-not-covered", scheduled(preemptible=True, **STANDARD), "preemptible"),
    template("scheduling-migrates", scheduled(on_host_maintenance="MIGRATE"), "asked to"),
    template("scheduling-migrates", scheduled(), "by default"),
    template("scheduling-standard-action", scheduled(instance_termination_action="STOP", **STANDARD)),
    template(
        "scheduling-bound-action",
        a_template(
            "other",
            **{
                **of_reservation(),
                "scheduling": {
                    "provisioning_model": "RESERVATION_BOUND",
                    "instance_termination_action": "STOP",
                    **STANDARD,
                },
            },
        ),
    ),
    template("scheduling-restart", a_template("other", **of_spot(automatic_restart=True))),
    template("reservation-bound", a_template("other", **{**of_reservation(), "reservation_affinity": None})),
    template("reservation-unnamed", a_template("other", **unnamed(key="name")), "another key"),
    template("reservation-unnamed", a_template("other", **unnamed(values=[])), "no name"),
    template("already-exists", a_template()),
    Case("instanceTemplates.delete", "unknown-resource", lambda world: delete_template(world, "other")),
    Case("instanceTemplates.delete", "in-use", delete_template),
    Case(
        "instanceTemplates.delete",
        "not-ready",
        after(spare_template, lambda world: delete_template(world, "spare")),
    ),
    group("field-not-covered", linked(auto_healing_policies=[{"initial_delay_sec": 1}])),
    group("versions-not-covered", linked(versions=[{"name": "a"}, {"name": "b"}])),
    group("bad-name", a_group("-other")),
    group("long-description", linked(description=LONG)),
    group("group-template-missing", linked(instance_template="")),
    group("group-template-link", linked(instance_template="slice"), "no URL"),
    group("group-template-link", linked(instance_template="global/images/slice"), "of an image"),
    group("group-template-link", linked(instance_template="regions/us-east5/instanceTemplates/slice"), "elsewhere"),
    group("group-template-unknown", linked(instance_template="global/instanceTemplates/other")),
    Case(
        "instanceGroupManagers.insert",
        "group-template-not-ready",
        after(spare_template, lambda world: world.make_group(alone("spare"))),
    ),
    group("group-size-missing", gce.InstanceGroupManager(name="other", instance_template=linked().instance_template)),
    group("group-size", linked(size=1001), "too many"),
    group("group-size", linked(size=-1), "negative"),
    group("numbers-not-covered", linked(base_instance_name="host-###")),
    group("group-base-name", linked(base_instance_name="x" * 59)),
    group("group-policy-link", linked(resource_policies={"workload_policy": "slice"}), "no URL"),
    group(
        "group-policy-link",
        linked(resource_policies={"workload_policy": "regions/us-central1/disks/slice"}),
        "of a disk",
    ),
    group(
        "group-policy-link",
        linked(resource_policies={"workload_policy": "regions/us-east5/resourcePolicies/slice"}),
        "elsewhere",
    ),
    group("group-policy-unknown", linked()),
    Case(
        "instanceGroupManagers.insert",
        "group-policy-not-ready",
        after(fresh_policy, lambda world: world.make_group(linked(resource_policies=FRESH))),
    ),
    *(
        Case("instanceGroupManagers.insert", "group-machine", in_group(kind), kind)
        for kind in ("ct4p-hightpu-4t", "ct5lp-hightpu-4t", "tpu7-standard-4t")
    ),
    group("already-exists", a_group()),
    Case("instanceGroupManagers.delete", "unknown-resource", lambda world: delete_group(world, "other")),
    Case("instanceGroupManagers.delete", "not-ready", after(delete_group, delete_group)),
    Case("instanceGroupManagers.recreateInstances", "unknown-resource", lambda world: recreate(world, "other")),
    Case("instanceGroupManagers.recreateInstances", "not-ready", after(recreate, recreate)),
    written("metadata-without-vm", instance="slice-none"),
    Case(
        "instances.setMetadata",
        "not-ready",
        after(write, write),
    ),
    written("metadata-fingerprint", "stale", fingerprint="AAAA"),
    written("metadata-fingerprint", "none", fingerprint=""),
    written("metadata-items", items=[{"key": "a b"}]),
)  # fmt: skip


@pytest.fixture
def world() -> World:
    """Return a world with a slice that runs."""
    world = World()
    world.make_slice()
    world.after(11)
    return world


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.method}: {case.rule} {case.name}".strip())
def test_compute_refuses(case: Case, world: World) -> None:
    told = refused(lambda: case.ask(world))
    call = world.plane.calls()[-1]
    rule = RULES[case.method, case.rule]
    assert (call.method, call.rule) == (case.method, case.rule), call.message
    assert (told.code, told.reason, told.message) == (rule.code, rule.reason, call.message)


def test_a_refused_call_changes_nothing(world: World) -> None:
    before = world.plane.look()[0]
    for case in CASES:
        if case.method.endswith("insert") and case.rule not in PREPARED:
            refused(partial(case.ask, world))
    assert world.plane.look()[0] == before


def test_every_row_has_a_case() -> None:
    covered = {(case.method, case.rule) for case in CASES}
    fields = {key for key in RULES if key[1] == "field-not-covered"}  # checked for one message of each kind
    assert RULES.keys() - covered - fields == set()


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.name)
def test_every_row_says_on_what_it_rests(rule: Rule) -> None:
    assert rule.fact
    assert rule.words == OURS or "#" in rule.words or "threads" in rule.words or "notes" in rule.words


def test_known_messages_are_computes(world: World) -> None:
    path = f"projects/{PROJECT}/zones/us-central1-c/instanceGroupManagers"
    assert refused(world.make_group).message == f"The resource '{path}/slice' already exists"
    assert refused(lambda: world.group("other")).message == f"The resource '{path}/other' was not found"
    assert refused(lambda: write(world, fingerprint="AAAA")).message == (
        "Supplied fingerprint does not match current metadata fingerprint."
    )
    image = linked(instance_template="global/images/slice")
    assert refused(lambda: world.make_group(image)).message == (
        "Invalid value for field 'resource.instanceTemplate': 'global/images/slice'. "
        "Unexpected resource collection 'images'."
    )
