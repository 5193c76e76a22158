"""CancelOperation: what GKE is documented to refuse, and what follows where creations can be cancelled all the same."""

import json
from collections.abc import Callable

import pytest
from google.cloud import container_v1 as gke

from tpu_standins.gke.buttons import press
from tpu_standins.gke.codes import Code
from tpu_standins.gke.state import Fault, Kind
from tpu_standins.testing.gke import World, a_state, a_world_with

Status = gke.NodePool.Status
Run = gke.Operation.Status


def _cancelling(world: World | None = None) -> World:
    world = world or World()
    status, reply = press(world.plane, "POST", "/cancellations", json.dumps({"creations": True}).encode())
    assert (status, reply) == (200, {"cancellable": ["CREATE_NODE_POOL", "UPGRADE_NODES"]})
    return world


def test_a_creation_is_not_cancelled_in_gkes_own_words() -> None:
    world = World()
    name = world.create().name
    refused = world.cancel_refused(name)
    assert (refused.code, refused.message) == (
        Code.INVALID_ARGUMENT,
        "Only node upgrade operations can be cancelled.",
    )
    world.after(10)
    assert world.pool().status == Status.RUNNING


def test_an_operation_that_has_ended_or_does_not_exist_is_not_cancelled() -> None:
    world = _cancelling()
    name = world.create().name
    world.after(10)
    assert world.cancel_refused(name).code == Code.FAILED_PRECONDITION
    assert world.cancel_refused("operation-9").code == Code.NOT_FOUND


def test_an_operation_of_another_location_is_not_found() -> None:
    world = _cancelling()
    path = f"projects/demo-project/locations/us-east5/operations/{world.create().name}"
    assert world.refused("CancelOperation", gke.CancelOperationRequest(name=path)).code == Code.NOT_FOUND


def _repaired(world: World) -> str:
    press(world.plane, "POST", "/hosts/repair", b'{"pool": "pool"}')
    return next(name for name, operation in world.plane.look()[0].operations.items() if operation.ended is None)


@pytest.mark.parametrize(
    "begin",
    [lambda world: world.delete().name, _repaired],
    ids=["deletion", "repair"],
)
def test_other_operations_are_not_cancelled_where_creations_are(begin: Callable[[World], str]) -> None:
    world = _cancelling()
    world.create()
    world.after(10)
    assert world.cancel_refused(begin(world)).code == Code.INVALID_ARGUMENT


def test_a_cancelled_creation_is_aborting_then_done_with_an_error_and_its_pool_stays() -> None:
    world = _cancelling()
    name = world.create().name
    world.after(2)
    world.cancel(name)
    world.cancel(name)
    assert world.operation(name).status == Run.ABORTING
    assert world.delete_refused().code == Code.FAILED_PRECONDITION
    world.after(1)
    ended = world.operation(name)
    assert (ended.status, ended.error.code, ended.error.message) == (
        Run.DONE,
        Code.CANCELLED,
        "The operation was cancelled.",
    )
    assert world.pool().status == Status.ERROR
    world.after(10)
    assert world.nodes.nodes == {}
    world.delete()


def test_a_stockout_that_is_cancelled_ends_as_cancelled() -> None:
    world = _cancelling(a_world_with(Kind.STOCKOUT))
    name = world.create().name
    world.cancel(name)
    world.after(10)
    assert world.operation(name).error.code == Code.CANCELLED


def test_a_cancellation_takes_effect_although_its_answer_is_lost() -> None:
    fault = Fault(kind=Kind.LOST_ANSWER, method="CancelOperation")
    world = _cancelling(World(a_state(faults=(fault,))))
    name = world.create().name
    assert world.cancel_refused(name).code == Code.UNAVAILABLE
    assert world.operation(name).status == Run.ABORTING


def test_a_cancellation_needs_the_permission_to_update_the_cluster() -> None:
    world = a_world_with(Kind.PERMISSION, method="CancelOperation")
    assert 'Required "container.clusters.update"' in world.cancel_refused(world.create().name).message


@pytest.mark.parametrize("path", ["operation-1", ""])
def test_a_malformed_path_is_refused(path: str) -> None:
    refused = World().refused("CancelOperation", gke.CancelOperationRequest(name=path))
    assert refused.rule == "malformed-path"
