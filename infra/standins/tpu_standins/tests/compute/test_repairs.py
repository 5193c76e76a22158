"""What becomes of instances that run: recreated, deleted, preempted, failed, repaired."""

import pytest
from google.cloud import compute_v1 as gce

from tpu_standins.testing.compute import HERE, OTHER_ZONE, World, alone, of_spot

DONE = gce.Operation.Status.DONE
RUNNING = ("NONE", "RUNNING")


@pytest.fixture
def world() -> World:
    return World()


def test_recreating_an_instance_ends_its_vm_and_makes_another_of_its_name(world: World) -> None:
    world.make_slice()
    world.after(11)
    chosen, other = world.members()
    before = world.instance(chosen.name).id
    resource = {"instances": [chosen.instance]}
    operation = world.groups.recreate_instances_unary(
        instance_group_manager="slice",
        instance_group_managers_recreate_instances_request_resource=resource,
        **HERE,
    )
    world.after(1)
    assert world.operation(operation).status == DONE
    assert dict(zip((chosen.name, other.name), world.statuses(), strict=True)) == {
        chosen.name: ("RECREATING", "STOPPING"),
        other.name: RUNNING,
    }
    world.after(3 + 10)
    assert world.statuses() == [RUNNING] * 2
    assert world.instance(chosen.name).id != before


def test_recreating_an_instance_that_waits_does_not_part_it_from_its_slice(world: World) -> None:
    world.shortage(hosts=1)
    world.make_slice()
    world.after(1)
    world.groups.recreate_instances_unary(
        instance_group_manager="slice",
        instance_group_managers_recreate_instances_request_resource={"instances": [world.members()[0].instance]},
        **HERE,
    )
    world.after(60)
    assert [status for _, status in world.statuses()] == ["", ""]


def test_a_deleted_instance_makes_its_group_smaller(world: World) -> None:
    world.make_slice(alone(size=2))
    world.after(11)
    gone = world.members()[0]
    world.groups.delete_instances_unary(
        instance_group_manager="slice",
        instance_group_managers_delete_instances_request_resource={"instances": [gone.instance]},
        **HERE,
    )
    world.after(5)
    assert gone.name not in [member.name for member in world.members()]
    assert (world.group().target_size, world.group().status.is_stable) == (1, True)


def test_an_instance_of_another_group_fails_the_operation(world: World) -> None:
    world.make_slice()
    world.after(11)
    operation = world.groups.recreate_instances_unary(
        instance_group_manager="slice",
        instance_group_managers_recreate_instances_request_resource={"instances": [f"zones/{OTHER_ZONE}/instances/a"]},
        **HERE,
    )
    world.after(1)
    assert "is not a member" in world.operation(operation).error.errors[0].message
    assert world.statuses() == [RUNNING] * 2


def test_a_preempted_spot_slice_stops_and_does_not_come_back(world: World) -> None:
    world.make_slice(**of_spot())
    world.after(11)
    world.press("POST", "/instances/preempt", group="slice")
    assert world.statuses() == [("NONE", "STOPPING")] * 2
    world.after(3)
    assert world.statuses() == [("NONE", "TERMINATED")] * 2
    world.after(600)
    assert world.statuses() == [("NONE", "TERMINATED")] * 2
    assert world.instance().last_stop_timestamp


def test_a_preempted_spot_vm_that_is_to_be_deleted_leaves_an_instance_without_a_vm(world: World) -> None:
    world.make_slice(**of_spot(instance_termination_action="DELETE"))
    world.after(11)
    world.press("POST", "/instances/preempt", instance=world.members()[0].name)
    world.after(3)
    assert sorted(world.statuses()) == sorted([("NONE", ""), RUNNING])


def test_only_spot_vms_are_preempted(world: World) -> None:
    world.make_slice()
    world.after(11)
    with pytest.raises(AssertionError, match="is no spot VM"):
        world.press("POST", "/instances/preempt", group="slice")


def test_a_standard_vm_whose_host_fails_is_restarted_by_compute(world: World) -> None:
    world.make_slice()
    world.after(11)
    name, before = world.members()[0].name, world.instance().id
    world.press("POST", "/instances/kill", instance=name)
    assert world.instance(name).status == "TERMINATED"
    world.after(6 + 5)
    assert (world.instance(name).status, world.instance(name).id) == ("RUNNING", before)


def test_a_vm_that_fails_for_good_stays_so_in_a_group_that_does_nothing(world: World) -> None:
    world.make_slice()
    world.after(11)
    assert world.group().status.is_stable
    world.press("POST", "/instances/kill", instance=world.members()[0].name, for_good=True)
    world.after(600)
    assert not world.group().status.is_stable
    assert sorted(world.statuses()) == sorted([("NONE", "TERMINATED"), RUNNING])


def test_a_group_that_repairs_recreates_a_vm_that_failed(world: World) -> None:
    world.make_slice(alone(instance_lifecycle_policy={"default_action_on_failure": "REPAIR"}))
    world.after(11)
    before = world.instance().id
    world.press("POST", "/instances/kill", group="slice", for_good=True)
    world.after(6)
    assert world.statuses() == [("RECREATING", "TERMINATED")]
    world.after(4 + 10)
    assert world.statuses() == [RUNNING]
    assert world.instance().id != before


def test_the_default_is_to_repair(world: World) -> None:
    world.make_slice(alone(instance_lifecycle_policy=None))
    world.after(1)
    assert world.group().instance_lifecycle_policy.default_action_on_failure == "REPAIR"
