"""Shortages of a capacity: which groups meet them, from what size on, and which zones Compute Engine then names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tpu_standins.compute.buttons import press
from tpu_standins.testing.compute import World, a_template, alone, of_spot


def made(world: World, name: str) -> int:
    """Return how many VMs of a group run."""
    return [status for _, status in world.statuses(name)].count("RUNNING")


def test_a_shortage_of_spot_leaves_other_groups_alone() -> None:
    world = World()
    world.shortage(capacity="spot")
    for name, more in (("spot", of_spot()), ("list", {})):
        world.make_template(a_template(name, **more))
        world.after(1)
        world.make_group(alone(name))
    world.after(12)
    assert (made(world, "spot"), made(world, "list")) == (0, 1)


def test_fewer_hosts_than_are_short_are_given() -> None:
    world = World()
    world.shortage(at_least=2)
    world.make_slice()
    world.make_group(alone("one", instance_template="global/instanceTemplates/slice"))
    world.after(12)
    assert (made(world, "slice"), made(world, "one")) == (0, 1)


def test_a_shortage_that_ends_is_over_for_the_group_that_waits() -> None:
    world = World()
    world.shortage(at_least=2, **{"for": 30})
    world.make_slice()
    world.after(42)
    assert made(world, "slice") == 2


def test_a_stockout_says_which_zones_have_stock() -> None:
    world = World()
    world.shortage(available=["us-central1-a", "us-central1-f"])
    world.make_slice()
    world.after(11)
    (error,) = world.members()[0].last_attempt.errors.errors
    (told,) = world.group().status.bulk_instance_operation.last_progress_check.error.errors
    assert told == error
    assert error.code == "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
    (info,) = (each.error_info for each in error.error_details)
    assert info.metadatas["zonesAvailable"] == "us-central1-a,us-central1-f"
    assert "in the us-central1-a, us-central1-f zone(s), which currently has capacity" in error.message


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "stockout", "capacity": "gold"},
        {"kind": "unavailable", "capacity": "spot"},
        {"kind": "unavailable", "at_least": 4},
        {"kind": "create_fails", "available": ["us-central1-a"]},
    ],
    ids=str,
)
def test_a_shortage_of_nothing_that_there_is_is_refused(body: dict[str, Any]) -> None:
    assert press(World().plane, "POST", "/faults", json.dumps(body).encode())[0] == 400
