"""Pools of flex-start on the local GKE: empty, filled, emptied at the end of their hosts' time, and filled again."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from google.cloud import container_v1 as gke

from tpu_standins.gke.buttons import press
from tpu_standins.testing.gke import PACE, World, a_pool, a_state, of_flex_start

Status = gke.NodePool.Status
CREATED = PACE.create + PACE.pending + 1
FILLED = PACE.fill + PACE.join + PACE.ready + PACE.chips


def created(**changes: Any) -> World:
    world = World(a_state(pace=replace(PACE, **changes)))
    world.create(of_flex_start())
    return world


def pressed(world: World, button: str, **body: Any) -> int:
    return press(world.plane, "POST", button, json.dumps({"pool": "pool", **body}).encode())[0]


def test_a_pool_is_created_empty() -> None:
    world = created(fill=1_000)
    world.after(CREATED)
    assert (world.pool().status, world.pool().initial_node_count, world.nodes.nodes) == (Status.RUNNING, 0, {})


def test_all_its_hosts_come_later_with_the_label_of_flex_start() -> None:
    world = created()
    world.after(CREATED + FILLED)
    assert world.chips() == ["4"] * 4
    labels = [node["metadata"]["labels"] for node in world.nodes.nodes.values()]
    assert {each["cloud.google.com/gke-flex-start"] for each in labels} == {"true"}


def test_a_button_fills_an_empty_pool_and_no_other() -> None:
    world = created(fill=1_000)
    world.after(CREATED)
    assert pressed(world, "/hosts/fill") == 200
    world.after(FILLED)
    assert len(world.nodes.nodes) == 4
    assert pressed(world, "/hosts/fill") == 400


@pytest.mark.parametrize("run", [20, 1_000_000])
def test_hosts_are_taken_back_at_the_end_of_their_time_and_the_pool_is_not_broken(run: float) -> None:
    world = created(run=run)
    world.after(CREATED + FILLED)
    world.after(min(run, 3_600))
    assert (world.pool().status, len(world.pool().conditions)) == (Status.RUNNING, 0)
    lives = {host.life for host in world.plane.look()[0].hosts.values()}
    assert lives == {2}


def test_a_button_takes_the_hosts_back_after_a_notice() -> None:
    world = created()
    world.after(CREATED + FILLED)
    assert pressed(world, "/hosts/end") == 200
    world.after(PACE.shutdown + 0.1)
    assert world.nodes.nodes == {}
    world.after(FILLED)
    assert len(world.nodes.nodes) == 4


def test_an_empty_pool_can_be_deleted() -> None:
    world = created(fill=1_000)
    world.after(CREATED)
    world.delete()
    world.after(PACE.delete + 1)
    assert world.plane.look()[0].pools == {}


def test_other_pools_have_no_such_buttons() -> None:
    world = World()
    world.create(a_pool())
    world.after(CREATED + 5)
    assert (pressed(world, "/hosts/fill"), pressed(world, "/hosts/end")) == (400, 400)
