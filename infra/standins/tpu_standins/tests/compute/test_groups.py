"""What becomes of groups: made at once or one by one, waiting for capacity, deleted, recreated."""

import pytest
from google.cloud import compute_v1 as gce

from tpu_standins.compute.state import Pace
from tpu_standins.testing.compute import (
    HERE,
    OTHER_ZONE,
    PROJECT,
    REGIONAL,
    World,
    a_group,
    a_policy,
    a_state,
    a_template,
    alone,
    of_reservation,
    refused,
)

DONE = gce.Operation.Status.DONE
RUNNING = ("NONE", "RUNNING")
ABSENT = ("CREATING", "")
STOCKOUT = "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"


@pytest.fixture
def world() -> World:
    return World()


def test_a_policy_is_creating_then_ready(world: World) -> None:
    operation = world.make_policy()
    seen = world.policies.get(resource_policy="slice", **REGIONAL)
    assert (seen.status, seen.workload_policy.accelerator_topology) == ("CREATING", "2x2x2")
    world.after(1)
    assert world.policies.get(resource_policy="slice", **REGIONAL).status == "READY"
    assert world.operation(operation).status == DONE
    assert operation.target_link == seen.self_link


def test_a_policy_is_deleting_then_gone(world: World) -> None:
    world.make_policy()
    world.after(1)
    world.policies.delete_unary(resource_policy="slice", **REGIONAL)
    assert world.policies.get(resource_policy="slice", **REGIONAL).status == "DELETING"
    world.after(1)
    assert refused(lambda: world.policies.get(resource_policy="slice", **REGIONAL)).code == 404


def test_a_template_is_seen_once_its_operation_ended(world: World) -> None:
    operation = world.make_template()
    assert refused(lambda: world.templates.get(instance_template="slice", project=PROJECT)).reason == "notFound"
    world.after(1)
    seen = world.templates.get(instance_template="slice", project=PROJECT)
    assert (seen.self_link, seen.id) == (operation.target_link, operation.target_id)
    assert (seen.properties.scheduling.provisioning_model, seen.properties.scheduling.automatic_restart) == (
        "STANDARD",
        True,
    )


def test_a_bulk_group_creates_all_its_hosts_at_once(world: World) -> None:
    operation = world.make_slice()
    assert (operation.status, operation.operation_type) == (gce.Operation.Status.PENDING, "insert")
    world.after(1)
    assert world.operation(operation).status == DONE
    assert world.statuses() == [("CREATING", "PROVISIONING")] * 2
    assert not world.group().status.is_stable
    world.after(5)
    assert world.statuses() == [("CREATING", "STAGING")] * 2
    world.after(5)
    assert world.statuses() == [RUNNING] * 2
    seen = world.group()
    assert seen.status.is_stable
    assert seen.current_actions.none == 2
    assert seen.status.current_instance_statuses.running == 2
    assert [each.state for each in seen.status.applied_accelerator_topologies] == ["ACTIVE"]
    assert not seen.status.bulk_instance_operation.in_progress


def test_instances_are_named_after_their_group_with_four_characters_more(world: World) -> None:
    world.make_slice()
    world.after(1)
    names = [member.name for member in world.members()]
    assert all(name.startswith("slice-") and len(name) == len("slice-") + 4 for name in names)
    assert len(set(names)) == 2
    assert world.members()[0].instance.endswith(f"projects/{PROJECT}/zones/us-central1-c/instances/{names[0]}")


def test_the_base_instance_name_is_chosen_by_the_caller(world: World) -> None:
    world.make_slice(a_group(base_instance_name="host"))
    world.after(1)
    assert all(member.name.startswith("host-") for member in world.members())


def test_an_instance_is_not_found_before_it_has_a_vm(world: World) -> None:
    world.shortage()
    world.make_slice()
    world.after(1)
    assert refused(world.instance).code == 404


def test_a_bulk_group_waits_for_capacity_and_says_so_where_compute_does(world: World) -> None:
    world.shortage(hosts=1)
    operation = world.make_slice()
    world.after(60)
    assert world.operation(operation).status == DONE
    assert not world.operation(operation).error.errors
    assert world.statuses() == [ABSENT] * 2
    bulk = world.group().status.bulk_instance_operation
    assert bulk.in_progress
    assert [error.code for error in bulk.last_progress_check.error.errors] == [STOCKOUT]
    errors = world.members()[0].last_attempt.errors.errors
    assert [error.code for error in errors] == [STOCKOUT]
    assert f"'projects/{PROJECT}/zones/us-central1-c' does not have enough resources" in errors[0].message
    world.press("DELETE", "/faults")
    world.after(5 + 10)
    assert world.statuses() == [RUNNING] * 2
    assert not world.members()[0].last_attempt.errors.errors
    assert not world.group().status.bulk_instance_operation.in_progress


@pytest.mark.parametrize(("told", "in_group", "on_instances"), [("group", 1, 0), ("instances", 0, 1), ("both", 1, 1)])
def test_where_a_bulk_group_tells_its_errors_can_be_chosen(told: str, in_group: int, on_instances: int) -> None:
    world = World()
    world.shortage(told=told)
    world.make_slice()
    world.after(1)
    check = world.group().status.bulk_instance_operation.last_progress_check
    assert len(check.error.errors) == in_group
    assert len(world.members()[0].last_attempt.errors.errors) == on_instances


def test_an_individual_group_creates_the_hosts_that_there_are(world: World) -> None:
    world.shortage(hosts=1)
    world.make_slice(alone(size=3))
    world.after(11)
    assert sorted(world.statuses()) == sorted([RUNNING, ABSENT, ABSENT])
    world.press("DELETE", "/faults")
    world.after(20)
    assert world.statuses() == [RUNNING] * 3


def test_a_shortage_of_some_attempts_passes_by_itself(world: World) -> None:
    world.shortage(times=2)
    world.make_slice()
    world.after(1 + 5)
    assert world.statuses() == [ABSENT] * 2
    world.after(5 + 10)
    assert world.statuses() == [RUNNING] * 2


def test_a_shortage_can_be_that_of_a_zone_and_of_names(world: World) -> None:
    world.shortage(zone=OTHER_ZONE)
    world.shortage(names="other")
    world.make_slice()
    world.after(11)
    assert world.statuses() == [RUNNING] * 2


def test_a_shortage_lasts_as_long_as_it_was_ordered_to(world: World) -> None:
    world.shortage(**{"for": 20})
    world.make_slice()
    world.after(19)
    assert world.statuses() == [ABSENT] * 2
    world.after(16)
    assert world.statuses() == [RUNNING] * 2


def test_exhausted_quota_is_told_by_its_name(world: World) -> None:
    world.shortage(kind="quota")
    world.make_slice()
    world.after(1)
    (error,) = world.members()[0].last_attempt.errors.errors
    assert (error.code, error.message.split(".")[0]) == ("QUOTA_EXCEEDED", "Quota 'TPUS_PER_TPU_FAMILY' exceeded")


def test_a_creation_can_fail_with_any_error(world: World) -> None:
    world.shortage(kind="create_fails", code="PERMISSIONS_ERROR", message="Required 'compute.images.useReadOnly'")
    world.make_slice()
    world.after(1)
    assert [error.code for error in world.members()[0].last_attempt.errors.errors] == ["PERMISSIONS_ERROR"]


def test_errors_are_listed_newest_first_and_in_pages(world: World) -> None:
    world.shortage(kind="quota", times=1)
    world.shortage(times=1)
    world.make_slice()
    world.after(1 + 5)
    request = {"instance_group_manager": "slice", "max_results": 3, **HERE}
    listed = list(world.groups.list_errors(request))
    assert [each.error.code for each in listed] == [STOCKOUT] * 2 + ["QUOTA_EXCEEDED"] * 2
    assert listed[0].instance_action_details.action == "CREATING"


@pytest.mark.parametrize(
    ("policy", "size", "why"),
    [
        ("2x2x4", 2, "Target size should be 4 for given accelerator topology but was 2."),
        ("2x3x2", 3, "Accelerator topology 2x3x2 is not supported by machine type tpu7x-standard-4t."),
        ("4x4", 4, "Accelerator topology 4x4 is not supported by machine type tpu7x-standard-4t."),
    ],
)
def test_a_group_that_is_no_slice_fails_in_its_operation_and_is_gone(policy: str, size: int, why: str) -> None:
    world = World()
    world.make_policy(a_policy(topology=policy))
    world.make_template()
    world.after(1)
    operation = world.make_group(a_group(size=size))
    world.after(1)
    ended = world.operation(operation)
    assert (ended.status, ended.http_error_status_code, ended.http_error_message) == (DONE, 400, "BAD REQUEST")
    assert ended.error.errors[0].message == f"Invalid value for field 'operation': ''. {why}"
    assert refused(world.group).code == 404


def test_deleting_a_group_ends_its_vms_first(world: World) -> None:
    world.make_slice()
    world.after(11)
    operation = world.groups.delete_unary(instance_group_manager="slice", **HERE)
    world.after(2)
    assert world.statuses() == [("DELETING", "STOPPING")] * 2
    assert world.group().current_actions.deleting == 2
    assert world.operation(operation).status == gce.Operation.Status.RUNNING
    world.after(2)
    assert world.operation(operation).status == DONE
    assert refused(world.group).code == 404


def test_a_group_that_waits_for_capacity_is_deleted_like_any_other(world: World) -> None:
    world.shortage()
    world.make_slice()
    world.after(1)
    world.groups.delete_unary(instance_group_manager="slice", **HERE)
    world.after(1)
    assert refused(world.group).code == 404


def test_what_a_group_uses_is_deleted_after_it(world: World) -> None:
    world.make_slice()
    world.after(11)
    in_use = refused(lambda: world.templates.delete_unary(instance_template="slice", project=PROJECT))
    assert (in_use.code, in_use.reason) == (400, "resourceInUseByAnotherResource")
    assert in_use.message == (
        f"The instance_template resource 'projects/{PROJECT}/global/instanceTemplates/slice' is already being used by "
        f"'projects/{PROJECT}/zones/us-central1-c/instanceGroupManagers/slice'"
    )
    assert refused(lambda: world.policies.delete_unary(resource_policy="slice", **REGIONAL)).reason == in_use.reason
    world.groups.delete_unary(instance_group_manager="slice", **HERE)
    world.after(4)
    world.templates.delete_unary(instance_template="slice", project=PROJECT)
    world.policies.delete_unary(resource_policy="slice", **REGIONAL)
    world.after(1)
    assert refused(lambda: world.templates.get(instance_template="slice", project=PROJECT)).code == 404
    assert refused(lambda: world.policies.get(resource_policy="slice", **REGIONAL)).code == 404


def test_a_name_can_be_used_again_and_is_another_resource_then(world: World) -> None:
    world.make_policy()
    world.after(1)
    first = world.policies.get(resource_policy="slice", **REGIONAL).id
    world.policies.delete_unary(resource_policy="slice", **REGIONAL)
    world.after(1)
    world.make_policy()
    assert world.policies.get(resource_policy="slice", **REGIONAL).id != first


def test_a_reservation_is_consumed_and_given_back(world: World) -> None:
    reservations = world.client(gce.ReservationsClient)
    world.press("POST", "/reservations", **HERE, name="mine", machine_type="tpu7x-standard-4t", count=3)
    world.make_slice(**of_reservation())
    world.after(11)
    seen = reservations.get(reservation="mine", **HERE)
    assert (seen.specific_reservation.count, seen.specific_reservation.in_use_count) == (3, 2)
    world.groups.delete_unary(instance_group_manager="slice", **HERE)
    world.after(5)
    assert reservations.get(reservation="mine", **HERE).specific_reservation.in_use_count == 0


@pytest.mark.parametrize(
    ("count", "machine", "why"),
    [
        (1, "tpu7x-standard-4t", "Specified reservation 'mine' does not have available resources for the request."),
        (9, "ct6e-standard-4t", "No available resources in specified reservations 'mine'"),
        (0, "", "Specified reservations [mine] do not exist."),
    ],
)
def test_what_a_reservation_cannot_give_is_told_on_the_instances(count: int, machine: str, why: str) -> None:
    world = World()
    if machine:
        world.press("POST", "/reservations", **HERE, name="mine", machine_type=machine, count=count)
    world.make_slice(**of_reservation())
    world.after(11)
    assert world.statuses() == [ABSENT] * 2
    (error,) = world.members()[0].last_attempt.errors.errors
    assert (error.code, error.message) == ("CONDITION_NOT_MET", why)


def test_a_reservation_of_another_project_is_named_by_its_path(world: World) -> None:
    world.press(
        "POST", "/reservations", project="library", zone="us-central1-c", name="mine", machine_type="tpu7x-standard-4t",
        count=2,
    )  # fmt: skip
    world.make_slice(**of_reservation("projects/library/reservations/mine"))
    world.after(11)
    assert world.statuses() == [RUNNING] * 2


def test_an_empty_group_is_stable(world: World) -> None:
    world.make_slice(alone(size=0))
    world.after(1)
    assert world.group().status.is_stable


def test_a_regional_template_serves_groups_of_its_region(world: World) -> None:
    regional = world.client(gce.RegionInstanceTemplatesClient)
    regional.insert_unary(instance_template_resource=a_template("brought"), **REGIONAL)
    world.after(1)
    assert regional.get(instance_template="brought", **REGIONAL).region.endswith("regions/us-central1")
    world.make_group(alone(instance_template=f"projects/{PROJECT}/regions/us-central1/instanceTemplates/brought"))
    world.after(11)
    assert world.statuses() == [RUNNING]


def test_a_template_of_another_project_is_named_by_its_path(world: World) -> None:
    world.templates.insert_unary(instance_template_resource=a_template("shared"), project="library")
    world.after(1)
    world.make_group(alone(instance_template="projects/library/global/instanceTemplates/shared"))
    world.after(11)
    assert world.statuses() == [RUNNING]


def test_a_machine_type_may_have_computes_own_name(world: World) -> None:
    world.make_slice(machine_type="tpu7x-standard-4t-tpu")
    world.after(11)
    assert world.statuses() == [RUNNING] * 2
    assert world.instance().machine_type.endswith("/machineTypes/tpu7x-standard-4t-tpu")


def test_a_pace_of_zero_makes_a_slice_at_once() -> None:
    world = World(a_state(pace=Pace(**dict.fromkeys(("pending", "insert", "create"), 0.0))))
    world.make_slice()
    world.after(0)
    assert world.statuses() == [RUNNING] * 2
