"""Shortages of a capacity in a zone: which node pools meet them, from what size on, and when they end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.cloud import container_v1 as gke

from tpu_standins.gke.buttons import press
from tpu_standins.testing.gke import PACE, World, a_cluster, a_pool, a_single_host, a_state, of_flex_start

Status = gke.NodePool.Status
OWN = gke.ReservationAffinity(
    consume_reservation_type=gke.ReservationAffinity.Type.SPECIFIC_RESERVATION,
    key="compute.googleapis.com/reservation-name",
    values=["mine"],
)
NONE = gke.ReservationAffinity(consume_reservation_type=gke.ReservationAffinity.Type.NO_RESERVATION)
CONFIGS: dict[str, dict[str, Any]] = {
    "on-demand": {},
    "spot": {"spot": True, "reservation_affinity": NONE},
    "reservation": {"reservation_affinity": OWN},
}


def short(world: World, **fault: Any) -> int:
    return press(world.plane, "POST", "/faults", json.dumps({"kind": "stockout", **fault}).encode())[0]


@pytest.mark.parametrize("capacity", CONFIGS)
def test_a_shortage_of_one_capacity_is_met_by_no_other(capacity: str) -> None:
    world = World()
    short(world, capacity=capacity, **{"for": 60})
    for name, config in CONFIGS.items():
        world.create(a_pool(name, config=config))
    world.after(10)
    ended = {name: world.pool(name).status for name in CONFIGS}
    assert ended == {name: Status.ERROR if name == capacity else Status.RUNNING for name in CONFIGS}


def test_fewer_hosts_than_are_short_are_given() -> None:
    world = World()
    short(world, at_least=2, times=None)
    world.create(a_single_host("one"))
    world.create(a_pool("two"))
    world.after(10)
    assert (world.pool("one").status, world.pool("two").status) == (Status.RUNNING, Status.ERROR)


def test_hosts_are_counted_in_all_zones_of_a_pool() -> None:
    zones = ("us-central2-a", "us-central2-b")
    world = World(a_state(a_cluster(zones=zones)))
    short(world, at_least=2)
    world.create(a_single_host(locations=list(zones)))
    world.after(10)
    assert world.pool().status == Status.ERROR


def test_a_shortage_ends_at_its_time_and_the_next_pool_is_made() -> None:
    world = World()
    short(world, zone="us-central2-b", **{"for": 30})
    world.create(a_pool("first"))
    world.after(31)
    world.create(a_pool("next"))
    world.after(10)
    assert (world.pool("first").status, world.pool("next").status) == (Status.ERROR, Status.RUNNING)


def test_a_stockout_may_say_which_zones_have_stock() -> None:
    world = World()
    short(world, available=["us-central2-a", "us-central2-c"])
    name = world.create().name
    world.after(10)
    said = world.operation(name).error.message
    assert "[GCE_STOCKOUT]" in said
    assert "currently unavailable in the us-central2-b zone" in said
    assert "in the us-central2-a, us-central2-c zone(s), which currently has capacity" in said


def test_a_pool_of_flex_start_is_made_during_a_shortage_and_filled_after_it() -> None:
    world = World()
    short(world, capacity="flex-start", **{"for": 100})
    world.create(of_flex_start())
    world.after(99)
    assert (world.pool().status, world.nodes.nodes) == (Status.RUNNING, {})
    world.after(1 + PACE.join + PACE.ready + PACE.chips)
    assert world.chips() == ["4"] * 4


def test_a_pool_of_flex_start_does_not_use_up_a_shortage_of_the_next_creation() -> None:
    world = World()
    short(world, times=1)
    world.create(of_flex_start("flex"))
    world.create(a_pool("next"))
    world.after(20)
    assert (world.chips(), world.pool("next").status) == (["4"] * 4, Status.ERROR)


@pytest.mark.parametrize(
    "body",
    [{"capacity": "gold"}, {"at_least": "many"}, {"kind": "quota", "available": ["us-central2-a"]}],
    ids=str,
)
def test_a_shortage_of_nothing_that_there_is_is_refused(body: dict[str, Any]) -> None:
    assert short(World(), **body) == 400
