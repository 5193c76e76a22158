"""Buttons: what they show, what they refuse."""

import json
from contextlib import nullcontext
from typing import Any

import pytest
from google.api_core.exceptions import ServiceUnavailable

from tpu_standins.compute.buttons import BUTTONS, press
from tpu_standins.testing.compute import HERE, PROJECT, World, a_policy, alone, of_spot


@pytest.fixture
def world() -> World:
    world = World()
    world.make_slice()
    world.after(11)
    return world


def test_what_there_is_is_shown(world: World) -> None:
    name = world.members()[0].name
    (group,) = world.press("GET", "/groups")["groups"]
    assert (group["name"], group["bulk"], group["target"], len(group["instances"])) == ("slice", True, 2, 2)
    shown = {each["name"]: each for each in world.press("GET", "/instances")["instances"]}
    assert (shown[name]["status"], shown[name]["action"], shown[name]["life"]) == ("RUNNING", "NONE", 1)
    assert shown[name]["metadata"]["startup-script"] == "#!/bin/bash"
    assert world.press("GET", "/templates")["templates"] == [f"projects/{PROJECT}/global/instanceTemplates/slice"]
    assert [each["topology"] for each in world.press("GET", "/policies")["policies"]] == ["2x2x2"]
    methods = [each["method"] for each in world.press("GET", "/operations")["operations"]]
    assert methods == ["resourcePolicies.insert", "instanceTemplates.insert", "instanceGroupManagers.insert"]


def test_a_waiting_group_shows_its_problem() -> None:
    world = World()
    world.shortage()
    world.make_slice()
    world.after(1)
    assert world.press("GET", "/groups")["groups"][0]["problem"] == "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
    assert world.press("GET", "/faults")["faults"][0]["kind"].value == "stockout"
    assert not world.press("DELETE", "/faults")["faults"]


def test_a_reservation_is_made_resized_and_deleted(world: World) -> None:
    mine = {**HERE, "name": "mine"}
    for count in (1, 2):
        (shown,) = world.press(
            "POST", "/reservations", **mine, machine_type="tpu7x-standard-4t", count=count
        )["reservations"]  # fmt: skip
        assert (shown["count"], shown["in_use"]) == (count, 0)
    assert not world.press("DELETE", "/reservations", **mine)["reservations"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/clusters", {}, 404),
        ("POST", "/groups", {}, 404),
        ("POST", "/faults", {}, 400),
        ("POST", "/faults", {"kind": "flood"}, 400),
        ("POST", "/faults", {"kind": "stockout", "names": "["}, 400),
        ("POST", "/faults", {"kind": "stockout", "told": "nobody"}, 400),
        ("POST", "/faults", {"kind": "stockout", "color": "red"}, 400),
        ("POST", "/instances/kill", {"instance": "none"}, 400),
        ("POST", "/instances/kill", {}, 400),
        ("POST", "/reservations", {"project": "p"}, 400),
    ],
)
def test_wrong_buttons_are_refused(world: World, method: str, path: str, body: dict[str, Any], status: int) -> None:
    before = world.plane.look()[0]
    got, reply = press(world.plane, method, path, json.dumps(body).encode())
    assert (got, bool(reply["error"])) == (status, True)
    assert world.plane.look()[0] == before


@pytest.mark.parametrize("body", [b"[]", b"{"])
def test_a_body_must_be_an_object(world: World, body: bytes) -> None:
    assert press(world.plane, "POST", "/faults", body)[0] == 400


def test_an_unknown_button_lists_those_that_there_are(world: World) -> None:
    assert press(world.plane, "GET", "/", b"")[1]["buttons"] == [" ".join(key) for key in BUTTONS]


def test_a_vm_is_killed_once() -> None:
    world = World()
    world.make_slice(alone(), **of_spot())
    world.after(11)
    world.press("POST", "/instances/kill", group="slice")
    with pytest.raises(AssertionError, match="no running VM"):
        world.press("POST", "/instances/preempt", group="slice")


def test_a_share_is_of_calls_and_a_shortage_has_none() -> None:
    world = World()
    world.press("POST", "/faults", kind="unavailable", share=0.5, times=None)
    for number in range(4):
        with pytest.raises(ServiceUnavailable) if number % 2 else nullcontext():
            world.make_policy(a_policy(f"policy-{number}"))
    status, reply = press(world.plane, "POST", "/faults", json.dumps({"kind": "stockout", "share": 0.5}).encode())
    assert (status, "share: of calls" in reply["error"]) == (400, True)
