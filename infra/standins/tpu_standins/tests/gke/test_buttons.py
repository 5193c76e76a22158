"""Faults and repairs, injected through the buttons."""

import json
from typing import Any

import pytest
from google.cloud import container_v1 as gke

from tpu_standins.cloud.loopback import as_json
from tpu_standins.gke.buttons import press
from tpu_standins.gke.codes import Code
from tpu_standins.gke.rules import Refusal
from tpu_standins.testing.gke import DEMO, Policy, World, a_pool, of_flex_start, pool_path

Status = gke.NodePool.Status


def _press(world: World, button: str, **body: Any) -> dict[str, Any]:
    method, path = button.split()
    answered = as_json(*press(world.plane, method, path, json.dumps(body).encode()))
    reply: dict[str, Any] = json.loads(answered.body)
    assert answered.status == 200, reply
    return reply


def _refused(world: World, button: str, **body: Any) -> tuple[int, str]:
    method, path = button.split()
    status, reply = press(world.plane, method, path, json.dumps(body).encode())
    return status, reply["error"]


def _running() -> World:
    world = World()
    world.create()
    world.after(10)
    return world


@pytest.mark.parametrize(
    ("kind", "code", "text"),
    [
        ("permission", Code.PERMISSION_DENIED, f'Required "container.clusters.update" permission(s) for "{DEMO}".'),
        ("unavailable", Code.UNAVAILABLE, "The service is currently unavailable."),
        ("internal", Code.INTERNAL, "Internal error encountered."),
        ("reservation", Code.RESOURCE_EXHAUSTED, "Reservation does not have enough resources for the request"),
    ],
)
def test_a_fault_refuses_one_call_and_is_then_used_up(kind: str, code: Code, text: str) -> None:
    world = World()
    _press(world, "POST /faults", kind=kind)
    refused = world.create_refused()
    assert (refused.code, refused.message[: len(text)]) == (code, text)
    world.create()


def test_a_fault_that_lasts_meets_every_call_until_its_time_is_over() -> None:
    world = World()
    (fault,) = _press(world, "POST /faults", kind="unavailable", **{"for": 60})["faults"]
    assert fault["times"] is None
    for _ in range(3):
        world.create_refused()
    world.after(59)
    world.create_refused()
    world.after(1)
    world.create()
    assert _press(world, "GET /faults")["faults"] == []


def test_a_fault_of_a_share_meets_that_share_of_the_calls() -> None:
    world = World()
    _press(world, "POST /faults", kind="unavailable", method="GetNodePool", times=None, share=0.25)
    world.create()
    assert [_is_refused(world) for _ in range(8)] == [False, False, False, True] * 2


def _is_refused(world: World) -> bool:
    return isinstance(world.ask("GetNodePool", gke.GetNodePoolRequest(name=pool_path("pool"))), Refusal)


def test_a_fault_of_several_times_is_counted_down() -> None:
    world = World()
    _press(world, "POST /faults", kind="unavailable", times=2)
    world.create_refused()
    assert _press(world, "GET /faults")["faults"][0]["times"] == 1
    world.create_refused()
    world.create()


def test_a_fault_without_end_is_there_until_it_is_forgotten() -> None:
    world = World()
    _press(world, "POST /faults", kind="unavailable", times=None)
    for _ in range(3):
        world.create_refused()
    _press(world, "DELETE /faults")
    world.create()


@pytest.mark.parametrize(
    "other", [{"pools": "other-.*"}, {"zone": "us-central2-a"}, {"method": "DeleteNodePool"}], ids=str
)
def test_a_fault_for_others_is_not_met(other: dict[str, str]) -> None:
    world = World()
    _press(world, "POST /faults", kind="unavailable", **other)
    world.create()


def test_reads_meet_faults_meant_for_any_method() -> None:
    world = _running()
    _press(world, "POST /faults", kind="permission", method="*", times=3)
    read = gke.GetNodePoolRequest(name=pool_path())
    assert '"container.clusters.get"' in world.refused("GetNodePool", read).message
    location = "projects/demo-project/locations/us-central2"
    assert world.refused("ListOperations", gke.ListOperationsRequest(parent=location)).code == Code.PERMISSION_DENIED
    missing = gke.GetOperationRequest(name=f"{location}/operations/operation-1")
    assert world.refused("GetOperation", missing).code == Code.PERMISSION_DENIED


def test_an_answer_may_be_lost_although_the_call_was_taken() -> None:
    world = World()
    _press(world, "POST /faults", kind="lost_answer")
    assert world.create_refused().code == Code.UNAVAILABLE
    assert world.pool().status == Status.PROVISIONING


def test_faults_with_a_pattern_are_forgotten_and_others_stay() -> None:
    world = World()
    for pools in ("one", "two"):
        _press(world, "POST /faults", kind="unavailable", pools=pools)
    assert [each["pools"] for each in _press(world, "DELETE /faults", pools="one")["faults"]] == ["two"]
    assert _refused(world, "DELETE /faults", groups="two") == (400, "a fault has no groups")


def test_a_held_creation_lasts_until_it_is_let_go() -> None:
    world = World()
    _press(world, "POST /faults", kind="held")
    world.create()
    world.after(600)
    assert (world.pool().status, world.nodes.nodes) == (Status.PROVISIONING, {})
    _press(world, "POST /releases")
    world.after(10)
    assert (world.pool().status, world.chips()) == (Status.RUNNING, ["4", "4"])


def test_a_held_deletion_lasts_until_it_is_let_go() -> None:
    world = _running()
    _press(world, "POST /faults", kind="held", method="DeleteNodePool")
    name = world.delete().name
    world.after(600)
    assert (world.pool().status, world.operation(name).status) == (Status.STOPPING, gke.Operation.Status.RUNNING)
    _press(world, "POST /releases")
    world.after(10)
    assert world.operation(name).status == gke.Operation.Status.DONE


def test_a_held_pool_of_flex_start_is_filled_after_it_is_let_go() -> None:
    world = World()
    _press(world, "POST /faults", kind="held")
    world.create(of_flex_start())
    world.after(60)
    assert world.nodes.nodes == {}
    _press(world, "POST /releases")
    world.after(10)
    assert len(world.nodes.nodes) == 4


def test_only_what_is_named_is_let_go_and_what_comes_later_is_not_held() -> None:
    world = World()
    _press(world, "POST /faults", kind="held", times=None)
    for name in ("one", "two"):
        world.create(a_pool(name))
    _press(world, "POST /releases", pools="one")
    world.create(a_pool("three"))
    world.after(10)
    states = {name: world.pool(name).status for name in ("one", "two", "three")}
    assert states == {"one": Status.RUNNING, "two": Status.PROVISIONING, "three": Status.RUNNING}


@pytest.mark.parametrize("kind", ["stockout", "quota"])
def test_a_failure_may_be_named_in_the_conditions_of_the_operation_only(kind: str) -> None:
    world = World()
    _press(world, "POST /faults", kind=kind, conditions_only=True)
    name = world.create().name
    world.after(10)
    ended = world.operation(name)
    assert (ended.status, ended.error.code, ended.status_message) == (gke.Operation.Status.DONE, 0, "")
    assert ended.nodepool_conditions[0].canonical_code == Code.RESOURCE_EXHAUSTED
    assert world.pool().status == Status.ERROR


def test_a_refused_create_does_not_use_up_a_stockout() -> None:
    world = World()
    _press(world, "POST /faults", kind="stockout")
    world.create_refused(a_pool(initial_node_count=1))
    assert len(_press(world, "GET /faults")["faults"]) == 1


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "flood"},
        {},
        {"kind": "quota", "speed": 3},
        {"kind": "quota", "times": "often"},
        {"kind": "quota", "pools": "("},
    ],
    ids=str,
)
def test_an_unknown_fault_is_refused(body: dict[str, Any]) -> None:
    status, error = _refused(World(), "POST /faults", **body)
    assert status == 400
    assert "stockout" in error


def test_a_broken_host_is_not_ready_until_it_is_healed() -> None:
    world = _running()
    _press(world, "POST /hosts/break", pool="pool")
    world.after(0)
    assert sorted(world.conditions().values()) == ["False", "True"]
    _press(world, "POST /hosts/heal", pool="pool")
    world.after(0)
    assert list(world.conditions().values()) == ["True", "True"]


def test_a_host_is_broken_by_name() -> None:
    world = _running()
    name = max(world.nodes.nodes)
    _press(world, "POST /hosts/break", pool="pool", host=name)
    world.after(0)
    assert world.conditions()[name] == "False"


def test_a_repair_recreates_the_whole_set_and_the_pool_is_reconciling() -> None:
    world = _running()
    _press(world, "POST /hosts/break", pool="pool")
    _press(world, "POST /hosts/repair", pool="pool")
    world.after(1)
    assert world.pool().status == Status.RECONCILING
    assert world.nodes.nodes == {}
    assert world.delete_refused().code == Code.FAILED_PRECONDITION
    world.after(10)
    assert world.pool().status == Status.RUNNING
    assert list(world.conditions().values()) == ["True", "True"]


def test_an_upgrade_lasts_as_long_as_is_asked_and_the_hosts_come_back_under_new_names() -> None:
    world = _running()
    before = set(world.nodes.nodes)
    _press(world, "POST /hosts/upgrade", **{"pool": "pool", "for": 7200})
    world.after(7100)
    assert world.pool().status == Status.RECONCILING
    assert world.nodes.nodes == {}
    assert world.delete_refused().code == Code.FAILED_PRECONDITION
    running = [each for each in _press(world, "GET /operations")["operations"] if each["ended"] is None]
    assert [each["type"] for each in running] == ["UPGRADE_NODES"]
    world.after(200)
    assert world.pool().status == Status.RUNNING
    assert list(world.conditions().values()) == ["True", "True"]
    assert not before & set(world.nodes.nodes)


def test_a_second_upgrade_gives_the_hosts_other_names_again() -> None:
    world = _running()
    names = [set(world.nodes.nodes)]
    for _ in range(2):
        _press(world, "POST /hosts/upgrade", pool="pool")
        world.after(60)
        names.append(set(world.nodes.nodes))
    assert not names[0] & names[1]
    assert not names[1] & names[2]


def test_a_repair_may_last_a_day() -> None:
    world = _running()
    _press(world, "POST /hosts/repair", **{"pool": "pool", "for": 86_400})
    world.after(86_000)
    assert world.pool().status == Status.RECONCILING
    world.after(500)
    assert world.pool().status == Status.RUNNING


def test_a_master_upgrade_excludes_node_pool_operations_while_it_lasts() -> None:
    world = World()
    (upgrade,) = _press(world, "POST /operations", cluster=DEMO, kind="UPGRADE_MASTER", seconds=20)["operations"]
    refused = world.create_refused()
    assert refused.message == f"Cluster is running incompatible operation {upgrade['name']}."
    world.after(21)
    world.create()


@pytest.mark.parametrize(
    ("button", "body"),
    [
        ("POST /hosts/break", {"pool": "other"}),
        ("POST /hosts/break", {"pool": "pool", "host": "other"}),
        ("POST /operations", {"cluster": "other"}),
        ("POST /policies", {"cluster": "other", "name": "mine", "topology": "2x2x2"}),
        ("POST /policies", {"cluster": DEMO, "name": "mine", "topology": "large"}),
        ("POST /policies", {"cluster": DEMO, "topology": "2x2x2"}),
        ("DELETE /policies", {"cluster": DEMO}),
        ("POST /operations", {"cluster": DEMO, "kind": "CREATE_NODE_POOL"}),
    ],
)
def test_a_button_for_what_is_not_there_is_refused(button: str, body: dict[str, Any]) -> None:
    assert _refused(_running(), button, **body)[0] == 400


def _wired(name: str) -> gke.NodePool:
    return a_pool(placement_policy=Policy(policy_name=name), config={"machine_type": "tpu7x-standard-4t"})


def test_a_workload_policy_is_there_once_it_is_made() -> None:
    world = World()
    missing = world.create_refused(_wired("mine"))
    path = "projects/demo-project/regions/us-central2/resourcePolicies/mine"
    assert (missing.rule, missing.message) == ("policy-unknown", f"The resource '{path}' was not found")
    made = _press(world, "POST /policies", cluster=DEMO, name="mine", topology="2x2x2")
    assert made == {"beginnings": {DEMO: "tpu-provisioner-"}, "exceptions": {path: "2x2x2"}}
    world.create(_wired("mine"))


def test_a_workload_policy_that_was_removed_is_there_no_more_and_the_others_are() -> None:
    world = World()
    _press(world, "DELETE /policies", cluster=DEMO, name="tpu-provisioner-2x2x2")
    assert world.create_refused(_wired("tpu-provisioner-2x2x2")).rule == "policy-unknown"
    assert world.create_refused(_wired("tpu-provisioner-2x2x4")).rule == "size-is-not-the-slice"


def test_a_repair_is_refused_while_the_pool_is_under_an_operation() -> None:
    world = World()
    world.create()
    assert "has a running operation: operation-" in _refused(world, "POST /hosts/repair", pool="pool")[1]


@pytest.mark.parametrize("body", [b"[]", b"{", b'"pool"'])
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    assert press(World().plane, "POST", "/faults", body)[0] == 400


def test_an_unknown_button_lists_the_buttons() -> None:
    status, reply = press(World().plane, "GET", "/", b"")
    assert status == 404
    assert "POST /faults" in reply["buttons"]


def test_pools_hosts_and_calls_can_be_looked_at() -> None:
    world = _running()
    world.create_refused()
    (pool,) = _press(world, "GET /pools")["pools"]
    assert (pool["name"], pool["status"], len(pool["hosts"])) == ("pool", "RUNNING", 2)
    hosts = _press(world, "GET /hosts")["hosts"]
    assert [host["shows"]["chips"] for host in hosts] == [True, True]
    calls = _press(world, "GET /calls")["calls"]
    assert [(call["method"], call["pool"], call["code"]) for call in calls] == [
        ("CreateNodePool", "pool", "OK"),
        ("CreateNodePool", "pool", "ALREADY_EXISTS"),
    ]
    assert calls[0]["at"] < calls[1]["at"]
    assert calls[0]["monotonic"] <= calls[1]["monotonic"]
