"""Operations, requestIds, lists with filters and pages, and injected faults of calls."""

from uuid import uuid4

import pytest
from google.cloud import compute_v1 as gce

from tpu_standins.compute import filters
from tpu_standins.compute.state import Pace
from tpu_standins.testing.compute import (
    HERE,
    PROJECT,
    REGIONAL,
    World,
    a_group,
    a_policy,
    a_state,
    a_template,
    alone,
    refused,
)

DONE = gce.Operation.Status.DONE


@pytest.fixture
def world() -> World:
    return World()


def test_an_operation_is_pending_then_running_then_done(world: World) -> None:
    operation = world.make_policy()
    seen = [world.operation(operation).status]
    for _ in range(2):
        world.after(0.5)
        seen.append(world.operation(operation).status)
    assert seen == [gce.Operation.Status.PENDING, gce.Operation.Status.RUNNING, DONE]
    assert world.operation(operation).progress == 100


def test_operations_live_in_the_scope_of_what_they_change(world: World) -> None:
    regional, global_, zonal = world.make_policy(), world.make_template(), None
    world.after(1)
    zonal = world.make_group()
    assert regional.self_link.endswith(f"projects/{PROJECT}/regions/us-central1/operations/{regional.name}")
    assert global_.self_link.endswith(f"projects/{PROJECT}/global/operations/{global_.name}")
    assert zonal.self_link.endswith(f"projects/{PROJECT}/zones/us-central1-c/operations/{zonal.name}")
    found = world.client(gce.GlobalOperationsClient).aggregated_list(project=PROJECT)
    scopes = {scope: [each.name for each in listed.operations] for scope, listed in found if listed.operations}
    assert scopes == {
        "global": [global_.name],
        "regions/us-central1": [regional.name],
        "zones/us-central1-c": [zonal.name],
    }
    assert [each.name for each in world.client(gce.ZoneOperationsClient).list(**HERE)] == [zonal.name]
    assert (
        refused(lambda: world.client(gce.GlobalOperationsClient).get(operation=zonal.name, project=PROJECT)).code == 404
    )


def test_the_same_request_id_gets_the_same_operation(world: World) -> None:
    request = str(uuid4())
    first = world.make_policy(request_id=request)
    again = world.make_policy(request_id=request)
    assert (again.name, again.client_operation_id) == (first.name, request)
    world.after(1)
    assert world.make_policy(request_id=request).status == DONE
    assert refused(lambda: world.make_policy(request_id=str(uuid4()))).reason == "alreadyExists"


def test_a_request_that_was_refused_may_come_again_with_its_id(world: World) -> None:
    request = str(uuid4())
    world.make_template()
    assert refused(lambda: world.make_group(alone(), request_id=request)).code == 404
    world.after(1)
    assert world.make_group(alone(), request_id=request).client_operation_id == request


def test_a_lost_answer_leaves_an_operation_that_its_request_id_finds(world: World) -> None:
    request = str(uuid4())
    world.press("POST", "/faults", kind="lost_answer")
    assert refused(lambda: world.make_policy(request_id=request)).code == 503
    assert world.make_policy(request_id=request).operation_type == "insert"
    assert len(world.press("GET", "/operations")["operations"]) == 1


def test_ended_operations_are_forgotten_after_a_while() -> None:
    world = World(a_state(pace=Pace(insert=1, history=60)))
    request = str(uuid4())
    operation = world.make_template(request_id=request)
    world.after(61)
    world.templates.list(project=PROJECT)
    assert refused(lambda: world.operation(operation)).code == 404
    assert refused(lambda: world.make_template(request_id=request)).reason == "alreadyExists"


@pytest.mark.parametrize(
    ("kind", "code", "reason"),
    [
        ("permission", 403, "forbidden"),
        ("rate", 403, "rateLimitExceeded"),
        ("unavailable", 503, "backendError"),
        ("internal", 500, "internalError"),
    ],
)
def test_the_next_call_can_fail(world: World, kind: str, code: int, reason: str) -> None:
    world.press("POST", "/faults", kind=kind, method="resourcePolicies.insert")
    assert not list(world.templates.list(project=PROJECT))
    told = refused(world.make_policy)
    assert (told.code, told.reason) == (code, reason)
    world.make_policy()


def test_a_missing_permission_is_named(world: World) -> None:
    world.press("POST", "/faults", kind="permission")
    told = refused(world.make_policy).message
    assert told.startswith("Required 'compute.resourcePolicies.create' permission for 'projects/demo-project/regions/")


def test_an_operation_can_take_longer(world: World) -> None:
    world.press("POST", "/faults", kind="slow", seconds=100)
    operation = world.make_template()
    world.after(100)
    assert world.operation(operation).status == gce.Operation.Status.RUNNING
    world.after(1)
    assert world.operation(operation).status == DONE


def test_a_slow_deletion_of_a_group_keeps_its_vms_longer(world: World) -> None:
    world.make_slice()
    world.after(11)
    world.press("POST", "/faults", kind="slow", seconds=100)
    world.groups.delete_unary(instance_group_manager="slice", **HERE)
    world.after(103)
    assert world.statuses() == [("DELETING", "STOPPING")] * 2
    world.after(1)
    assert refused(world.group).code == 404


def test_an_insert_can_end_in_an_error_and_leaves_nothing(world: World) -> None:
    world.press("POST", "/faults", kind="fails", code="RESOURCE_OPERATION_RATE_EXCEEDED", message="Too fast.")
    operation = world.make_policy()
    world.after(1)
    ended = world.operation(operation)
    assert (ended.error.errors[0].code, ended.error.errors[0].message) == (
        "RESOURCE_OPERATION_RATE_EXCEEDED",
        "Too fast.",
    )
    assert refused(lambda: world.policies.get(resource_policy="slice", **REGIONAL)).code == 404


def test_a_deletion_that_fails_leaves_the_group_as_it_was(world: World) -> None:
    world.make_slice()
    world.after(11)
    world.press("POST", "/faults", kind="fails", method="instanceGroupManagers.delete")
    operation = world.groups.delete_unary(instance_group_manager="slice", **HERE)
    world.after(1)
    assert world.operation(operation).error.errors[0].code == "INTERNAL_ERROR"
    assert world.statuses() == [("NONE", "RUNNING")] * 2


def test_faults_can_be_meant_for_names(world: World) -> None:
    world.press("POST", "/faults", kind="internal", names="tpu-.*")
    world.make_policy()
    assert refused(lambda: world.make_policy(a_policy("tpu-a"))).code == 500


def test_aggregated_lists_are_filtered_and_come_in_pages(world: World) -> None:
    world.make_template()
    world.after(1)
    for name in ("tpu-a", "tpu-b", "tpu-c", "other"):
        world.make_group(alone(name, instance_template="global/instanceTemplates/slice"))
    world.after(1)
    request = {"project": PROJECT, "filter": 'name eq "tpu-.*"', "max_results": 2}
    pages = [
        [each.name for _, listed in page.items.items() for each in listed.instance_group_managers]
        for page in world.groups.aggregated_list(request).pages
    ]
    assert pages == [["tpu-a", "tpu-b"], ["tpu-c"]]


def test_scopes_without_results_say_so(world: World) -> None:
    found = dict(world.policies.aggregated_list(project=PROJECT))
    assert set(found) == {"regions/us-central1", "regions/us-east5"}
    assert {listed.warning.code for listed in found.values()} == {"NO_RESULTS_ON_PAGE"}


def test_templates_are_listed_by_filter(world: World) -> None:
    for name in ("tpu-a", "tpu-b"):
        world.make_template(a_template(name, labels={"slice": name}))
    world.after(1)
    listed = world.templates.list({"project": PROJECT, "filter": "properties.labels.slice = tpu-b"})
    assert [each.name for each in listed] == ["tpu-b"]


def test_operations_are_listed_by_filter(world: World) -> None:
    world.make_policy()
    world.after(1)
    world.make_template()
    operations = world.client(gce.GlobalOperationsClient)
    running = operations.aggregated_list({"project": PROJECT, "filter": 'status != "DONE"'})
    assert [each.operation_type for _, listed in running for each in listed.operations] == ["insert"]
    of_policies = operations.aggregated_list({"project": PROJECT, "filter": "targetLink eq .*/resourcePolicies/slice"})
    assert len([each for _, listed in of_policies for each in listed.operations]) == 1


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"max_results": 501}, 400),
        ({"page_token": "mine"}, 400),
        ({"order_by": "creationTimestamp desc"}, 501),
        ({"filter": "name : tpu"}, 501),
        ({"filter": "name eq ["}, 501),
    ],
)
def test_lists_refuse_what_they_cannot_do(world: World, request_: dict[str, object], code: int) -> None:
    assert refused(lambda: world.templates.list({"project": PROJECT, **request_})).code == code


ITEM = {"name": "tpu-a", "status": "DONE", "labels": {"owner": "x"}, "on": True, "description": "it's a slice"}


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("", True),
        ("name = tpu-a", True),
        ('name = "tpu-a"', True),
        ("name=tpu-b", False),
        ("name != tpu-b", True),
        ("(name = tpu-a) (status = DONE)", True),
        ("(name = tpu-a) AND (status = RUNNING)", False),
        ("name = tpu-a AND status = DONE", True),
        ("(name = tpu-b) OR (status = DONE)", True),
        ("(name = tpu-b) OR (name = tpu-a) AND (status = RUNNING)", False),
        ("((name = tpu-b) OR (name = tpu-a)) (on = true)", True),
        ("labels.owner:*", True),
        ("labels.team:*", False),
        ("labels.owner = x", True),
        ("name eq tpu-.*", True),
        ("name eq 'tpu'", False),
        ("name ne .*b", True),
        ('(name eq "tpu-.*") (status ne RUNNING)', True),
        ('description = "it\'s a slice"', True),
        ("zone = a", False),
        ("name.first = tpu-a", False),
    ],
)
def test_filters(expression: str, holds: bool) -> None:
    assert filters.parse(expression)(ITEM) is holds


@pytest.mark.parametrize(
    "expression",
    ["name", "name =", "= a", "(name = a", "name = a)", "name = a AND", "OR name = a", "()", "name < a", "name : a",
     "name = tpu-*", "name eq (", "(name eq a) (status = b)", "NOT name = a"],
)  # fmt: skip
def test_filters_that_are_not_covered(expression: str) -> None:
    with pytest.raises(filters.NotCoveredError):
        filters.parse(expression)


def test_calls_are_listed_with_what_became_of_them(world: World) -> None:
    operation = world.make_policy()
    refused(world.make_policy)
    first, second = world.press("GET", "/calls")["calls"]
    assert (first["method"], first["code"], first["operation"]) == ("resourcePolicies.insert", 200, operation.name)
    assert first["target"] == f"projects/{PROJECT}/regions/us-central1/resourcePolicies/slice"
    assert (second["code"], second["reason"], second["rule"]) == (409, "alreadyExists", "already-exists")


def test_a_group_may_name_its_template_in_a_version(world: World) -> None:
    world.make_slice(a_group(instance_template="", versions=[{"instance_template": "global/instanceTemplates/slice"}]))
    world.after(1)
    assert world.group().instance_template.endswith("global/instanceTemplates/slice")
