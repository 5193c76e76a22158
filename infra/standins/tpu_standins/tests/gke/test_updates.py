"""UpdateNodePool replaces the labels of a pool and of its Nodes, whose hosts go on."""

from __future__ import annotations

from typing import Any

import pytest
from google.cloud import container_v1 as gke

from tpu_standins.gke.codes import Code
from tpu_standins.gke.state import Kind
from tpu_standins.testing.gke import World, a_pool, a_world_with

OURS = {"google.com/tpu-slice-id": "tpu-llama-0-aaaaaaaaaaaaa", "team": "a"}
THEIRS = gke.NodeLabels(labels={"team": "b"})
Status = gke.NodePool.Status


def serving() -> World:
    world = World()
    world.create(a_pool(config={"labels": OURS}))
    world.after(60)
    return world


def labels_of_nodes(world: World) -> list[dict[str, str]]:
    return [each["metadata"]["labels"] for each in world.nodes.nodes.values()]


def test_labels_are_replaced_as_a_whole_by_an_operation() -> None:
    world = serving()
    update = world.update(labels=THEIRS)
    assert update.operation_type == gke.Operation.Type.UPGRADE_NODES
    assert world.pool().status == Status.RECONCILING
    world.after(5)
    assert world.pool().status == Status.RUNNING
    assert dict(world.pool().config.labels) == {"team": "b"}
    assert world.operation(update.name).status == gke.Operation.Status.DONE


def test_those_of_the_nodes_follow_and_no_host_is_made_anew() -> None:
    world = serving()
    before = {name: node["metadata"].get("uid") for name, node in world.nodes.nodes.items()}
    world.nodes.said.clear()
    world.update(labels=THEIRS)
    world.after(5)
    assert {name: node["metadata"].get("uid") for name, node in world.nodes.nodes.items()} == before
    assert all("google.com/tpu-slice-id" not in labels and labels["team"] == "b" for labels in labels_of_nodes(world))
    assert all(labels["cloud.google.com/gke-nodepool"] == "pool" for labels in labels_of_nodes(world))
    assert {said.partition(" ")[0] for said in world.nodes.said} == {"update"}


def test_labels_of_machines_are_not_those_of_nodes() -> None:
    world = serving()
    world.update(resource_labels=gke.ResourceLabels(labels={"team": "b"}))
    world.after(5)
    assert world.pool().config.resource_labels["team"] == "b"
    assert dict(world.pool().config.labels) == OURS


def test_an_etag_that_is_not_that_of_the_pool_is_refused() -> None:
    world = serving()
    before = world.pool().etag
    world.update(labels=THEIRS, etag=before)
    world.after(5)
    refused = world.update_refused(labels=THEIRS, etag=before)
    assert (refused.code, refused.rule) == (Code.ABORTED, "update-outdated")
    assert world.pool().etag != before
    world.update(labels=THEIRS, etag=world.pool().etag)


@pytest.mark.parametrize("doing", ["creation", "update", "deletion"])
def test_nothing_is_updated_while_another_operation_runs_on_the_pool(doing: str) -> None:
    world = World() if doing == "creation" else serving()
    {"creation": world.create, "update": lambda: world.update(labels=THEIRS), "deletion": world.delete}[doing]()
    refused = world.update_refused(labels=THEIRS)
    assert (refused.code, refused.rule) == (Code.FAILED_PRECONDITION, "pool-busy")


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({}, "update-of-nothing"),
        ({"node_version": "-"}, "update-not-covered"),
        ({"labels": THEIRS, "resource_labels": gke.ResourceLabels(labels={"team": "b"})}, "update-of-two"),
        ({"labels": gke.NodeLabels(labels={"cloud.google.com/gke-nodepool": "x"})}, "label-set-by-gke"),
        ({"labels": gke.NodeLabels(labels={"team": "x" * 64})}, "label-syntax"),
        ({"labels": gke.NodeLabels(labels={f"key-{number}": "x" * 60 for number in range(20)})}, "labels-too-long"),
    ],
)
def test_what_gke_would_not_take_is_refused(changes: dict[str, Any], rule: str) -> None:
    assert serving().update_refused(**changes).rule == rule


def test_a_pool_that_is_not_there_is_not_found() -> None:
    assert serving().update_refused("other", labels=THEIRS).code is Code.NOT_FOUND


def test_faults_are_those_of_other_calls() -> None:
    world = a_world_with(Kind.PERMISSION, method="UpdateNodePool")
    world.create()
    world.after(60)
    refused = world.update_refused(labels=THEIRS)
    assert refused.code is Code.PERMISSION_DENIED
    assert "container.clusters.update" in refused.message


def test_its_end_is_logged_as_that_of_the_call() -> None:
    world = serving()
    world.update(labels=THEIRS)
    world.after(5)
    last = world.published[-1]
    assert last["protoPayload"]["methodName"] == "google.container.v1.ClusterManager.UpdateNodePool"
    assert last["operation"]["last"] is True
