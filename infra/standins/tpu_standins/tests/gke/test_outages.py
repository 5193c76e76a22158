"""Failures of hosts as their Nodes show them: broken hosts and repair, termination notices, maintenance, removal."""

import json
from typing import Any

import pytest
from google.cloud import container_v1 as gke

from tpu_standins.cloud.hosts import TERMINATION, Manifest
from tpu_standins.gke.buttons import press
from tpu_standins.gke.state import Pace
from tpu_standins.testing.gke import PACE, World, a_cluster, a_pool, a_state

Status = gke.NodePool.Status
_SCHEDULED = "cloud.google.com/scheduled-maintenance-time"
_ONGOING = "cloud.google.com/active-node-maintenance"


def _running(world: World | None = None, **changes: Any) -> World:
    world = world or World()
    world.create(a_pool(**changes))
    world.after(10)
    return world


def _press(world: World, button: str, **body: Any) -> None:
    status, reply = _answer(world, button, body)
    assert status == 200, reply
    world.after(0)


def _refused(world: World, button: str, **body: Any) -> str:
    status, reply = _answer(world, button, body)
    assert status == 400, reply
    error: str = reply["error"]
    return error


def _answer(world: World, button: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    return press(world.plane, "POST", f"/hosts/{button}", json.dumps({"pool": "pool"} | body).encode())


def _nodes(world: World) -> list[Manifest]:
    return list(world.nodes.nodes.values())


def _ready(node: Manifest) -> Manifest:
    condition: Manifest = node["status"]["conditions"][0]
    return condition


def _is_told(node: Manifest) -> bool:
    return {"key": TERMINATION, "effect": "NoSchedule"} in node["spec"]["taints"]


def _repairs(world: World) -> list[gke.Operation]:
    parent = "projects/demo-project/locations/us-central2"
    listed = world.ask("ListOperations", gke.ListOperationsRequest(parent=parent)).operations
    return [each for each in listed if each.operation_type == gke.Operation.Type.AUTO_REPAIR_NODES]


def test_a_silent_host_is_unknown_as_the_node_controller_has_it() -> None:
    world = _running()
    _press(world, "break", how="silent")
    assert _ready(_nodes(world)[0]) == {
        "type": "Ready",
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
    }
    _press(world, "heal")
    assert _ready(_nodes(world)[0])["status"] == "True"


def test_a_preempted_slice_is_told_first_then_gone_then_other_vms_come_under_the_same_names() -> None:
    world = _running()
    names = sorted(world.nodes.nodes)
    _press(world, "preempt")
    assert [_ready(node)["message"] for node in _nodes(world)] == ["node is shutting down"] * 2
    assert all(map(_is_told, _nodes(world)))
    world.after(PACE.shutdown - 0.1)
    assert sorted(world.nodes.nodes) == names
    world.after(0.2)
    assert (world.nodes.nodes, world.pool().status) == ({}, Status.RUNNING)
    world.after(10)
    assert sorted(world.nodes.nodes) == names
    assert world.chips() == ["4", "4"]
    assert not any(map(_is_told, _nodes(world)))
    assert world.nodes.said.count(f"register {names[0]}") == 2, "the Node is another one, with another UID"


@pytest.mark.parametrize(("back", "nodes"), [(None, 0), (20, 2)], ids=["never", "late"])
def test_a_button_says_when_other_vms_come(back: float | None, nodes: int) -> None:
    world = _running()
    _press(world, "preempt", back=back)
    world.after(15)
    assert world.nodes.nodes == {}
    world.after(20)
    assert len(world.nodes.nodes) == nodes


def test_a_second_notice_changes_nothing() -> None:
    world = _running()
    _press(world, "preempt")
    world.after(1)
    _press(world, "preempt", back=None)
    world.after(20)
    assert world.chips() == ["4", "4"]


def test_a_pool_without_its_vms_can_be_deleted() -> None:
    world = _running()
    _press(world, "preempt", back=None)
    world.after(5)
    world.delete()
    world.after(5)
    assert world.plane.look()[0].pools == {}


def test_maintenance_is_announced_then_goes_on_and_leaves_no_trace() -> None:
    world = _running()
    due = int(world.clock.now) + 30
    _press(world, "maintain", **{"in": 30})
    assert [node["metadata"]["labels"].get(_SCHEDULED) for node in _nodes(world)] == [str(due)] * 2
    assert [node["metadata"]["labels"].get(_ONGOING) for node in _nodes(world)] == [None] * 2
    assert [_ready(node)["status"] for node in _nodes(world)] == ["True"] * 2
    world.after(30.5)
    assert [node["metadata"]["labels"].get(_ONGOING) for node in _nodes(world)] == ["ONGOING"] * 2
    assert all(map(_is_told, _nodes(world)))
    world.after(20)
    assert world.chips() == ["4", "4"]
    assert not any({_SCHEDULED, _ONGOING} & node["metadata"]["labels"].keys() for node in _nodes(world))


def test_a_pool_with_a_host_that_stays_ill_is_repaired_by_gke() -> None:
    world = _running()
    _press(world, "break")
    world.after(PACE.unhealthy - 1)
    assert _repairs(world) == []
    world.after(2)
    assert (world.pool().status, world.nodes.nodes) == (Status.RECONCILING, {})
    world.after(10)
    (repair,) = _repairs(world)
    assert repair.status == gke.Operation.Status.DONE
    assert (world.pool().status, world.chips()) == (Status.RUNNING, ["4", "4"])
    world.after(200)
    assert len(_repairs(world)) == 1


def test_a_host_that_recovers_in_time_is_not_repaired() -> None:
    world = _running()
    _press(world, "break")
    world.after(PACE.unhealthy - 1)
    _press(world, "heal")
    world.after(100)
    assert _repairs(world) == []


def test_a_pool_without_auto_repair_stays_as_it_is() -> None:
    management = gke.NodeManagement(auto_upgrade=True, auto_repair=False)
    world = _running(World(a_state(a_cluster(release_channel=None))), management=management)
    _press(world, "break")
    world.after(200)
    assert _repairs(world) == []


def test_a_pool_under_an_operation_is_not_repaired() -> None:
    world = World(a_state(pace=Pace(unhealthy=1, delete=20)))
    _running(world)
    _press(world, "break")
    world.delete()
    world.after(10)
    assert _repairs(world) == []


def test_a_pool_that_is_deleted_is_drained_before_it_goes() -> None:
    world = _running()
    world.delete()
    world.after(0.5)
    assert [said for said in world.nodes.said if said.startswith("drain")] == [
        f"drain {name}" for name in world.nodes.nodes
    ]
    world.after(5)
    assert world.nodes.nodes == {}


def test_a_pool_whose_deletion_nobody_saw_begin_is_drained_all_the_same() -> None:
    world = _running()
    names = sorted(world.nodes.nodes)
    world.delete()
    world.clock.now += 5
    world.after(1)
    assert sorted(each for each in world.nodes.said if each.startswith("drain")) == [f"drain {each}" for each in names]
    assert world.nodes.nodes == {}


def test_a_drain_that_fails_is_tried_again() -> None:
    world = _running()
    world.nodes.down = True
    world.delete()
    world.after(0.1)
    world.nodes.down = False
    world.after(0.5)
    assert {f"drain {name}" for name in world.nodes.nodes} <= set(world.nodes.said)


def test_operations_are_forgotten_a_day_after_they_ended() -> None:
    world = _running()
    world.clock.now += 86_000
    assert len(world.plane.look()[0].operations) == 1
    world.after(500)
    assert world.plane.look()[0].operations == {}


@pytest.mark.parametrize(
    ("button", "body"),
    [
        ("preempt", {"pool": "other"}),
        ("maintain", {"pool": "other"}),
        ("maintain", {"in": "soon"}),
        ("maintain", {"in": -1}),
        ("preempt", {"back": float("inf")}),
        ("break", {"how": "loudly"}),
    ],
)
def test_a_button_for_what_cannot_befall_is_refused(button: str, body: dict[str, Any]) -> None:
    assert _refused(_running(), button, **body)


def test_what_befalls_a_pool_waits_for_its_operation() -> None:
    world = World()
    world.create()
    for button in ("break", "heal", "repair", "preempt", "maintain"):
        assert "has a running operation: operation-" in _refused(world, button)
