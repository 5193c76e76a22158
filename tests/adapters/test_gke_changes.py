"""Which calls are made to GKE, with which timeouts, and what its refusals become."""

from __future__ import annotations

from dataclasses import replace

import pytest
from google.api_core import exceptions as google
from google.cloud import container_v1 as gke

from tests.adapters.recordings import (
    LINK,
    NOTED,
    ORDER,
    POOL,
    Answer,
    Ends,
    Recording,
    Status,
    a_creation,
    a_pool,
    an_error,
    backend,
    failed,
    listed,
)
from tests.builders import settings
from tpu_slices.domain.model.observations import Failure, FailureKind, OperationSeen, Refused, Started
from tpu_slices.ports.errors import Temporary


def test_an_unowned_pool_is_not_deleted() -> None:
    unowned = Recording({"get_node_pool": a_pool(Status.RUNNING, config=gke.NodeConfig())})
    assert backend(unowned).delete(ORDER) == Started(None)
    assert unowned.methods == ["get_node_pool"]


def test_a_pool_that_was_just_seen_to_be_ours_is_deleted_in_one_call() -> None:
    recording = Recording({"delete_node_pool": gke.Operation(name="operation-2")})
    assert backend(recording).delete(replace(ORDER, seen_ours=True)) == Started("operation-2")


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (gke.Operation(name="operation-2"), Started("operation-2")),
        (an_error(google.NotFound, "gone meanwhile"), Started(None)),
        (an_error(google.FailedPrecondition, "wait"), Refused(Failure(FailureKind.BUSY, "wait"))),
        (an_error(google.PermissionDenied, "no"), Refused(Failure(FailureKind.CONFIGURATION, "no"))),
    ],
    ids=["taken", "gone", "busy", "forbidden"],
)
def test_the_outcome_of_a_deletion_follows_from_gkes_answer(answer: Answer, outcome: object) -> None:
    recording = Recording({"get_node_pool": a_pool(Status.ERROR), "delete_node_pool": answer})
    assert backend(recording).delete(ORDER) == outcome


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (None, Started("operation-1")),
        (an_error(google.NotFound, "forgotten meanwhile"), Started(None)),
        (
            an_error(google.InvalidArgument, "Only node upgrade operations can be cancelled."),
            Refused(Failure(FailureKind.BUSY, "Only node upgrade operations can be cancelled.")),
        ),
        (an_error(google.FailedPrecondition, "ended"), Refused(Failure(FailureKind.BUSY, "ended"))),
        (an_error(google.MethodNotImplemented, "never"), Refused(Failure(FailureKind.BUSY, "never"))),
        (an_error(google.PermissionDenied, "no"), Refused(Failure(FailureKind.CONFIGURATION, "no"))),
        (an_error(google.ResourceExhausted, "slow down"), Refused(Failure(FailureKind.RATE, "slow down"))),
    ],
    ids=["taken", "forgotten", "of-another-type", "ended", "not-implemented", "forbidden", "rate"],
)
def test_the_outcome_of_a_cancellation_follows_from_gkes_answer(answer: Answer, outcome: object) -> None:
    running = a_creation(Ends.RUNNING)
    answers = {"get_node_pool": a_pool(Status.PROVISIONING), "get_operation": running, "cancel_operation": answer}
    recording = Recording(answers)
    assert backend(recording).cancel(NOTED) == outcome
    assert recording.calls[-1][1]["name"] == "projects/demo-project/locations/us-central2/operations/operation-1"


@pytest.mark.parametrize(
    "operation",
    [
        a_creation(Ends.DONE),
        a_creation(Ends.ABORTING),
        a_creation(Ends.RUNNING, target_link=f"{LINK}0"),
        a_creation(Ends.RUNNING, operation_type=gke.Operation.Type.DELETE_NODE_POOL),
        an_error(google.NotFound, "operation"),
    ],
    ids=["ended", "aborting", "of-another-pool", "of-another-type", "forgotten"],
)
def test_only_a_running_creation_of_this_pool_is_cancelled(operation: Answer) -> None:
    recording = Recording({"get_node_pool": a_pool(Status.PROVISIONING), "get_operation": operation})
    assert backend(recording).cancel(NOTED) == Started(None)


def test_a_noted_creation_is_cancelled_although_its_pool_is_not_there() -> None:
    missing = an_error(google.NotFound, "pool")
    answers = {"get_node_pool": missing, "get_operation": a_creation(Ends.PENDING), "cancel_operation": None}
    assert backend(Recording(answers)).cancel(NOTED) == Started("operation-1")
    assert backend(Recording({"get_node_pool": missing})).cancel(ORDER) == Started(None)


def test_a_busy_cluster_without_a_pool_of_that_name_is_busy() -> None:
    busy = an_error(google.FailedPrecondition, "Cluster is running incompatible operation operation-9.")
    recording = Recording({"create_node_pool": busy, "get_node_pool": an_error(google.NotFound, "pool")})
    assert backend(recording).create(ORDER) == Refused(Failure(FailureKind.BUSY, busy.message))
    blind = Recording({"create_node_pool": busy, "get_node_pool": an_error(google.ServiceUnavailable, "no")})
    assert backend(blind).create(ORDER) == Refused(Failure(FailureKind.BUSY, busy.message))


@pytest.mark.parametrize(
    "error", [an_error(google.InternalServerError, "?"), an_error(google.DeadlineExceeded, "?")], ids=repr
)
def test_a_change_whose_outcome_is_unknown_is_temporary(error: Exception) -> None:
    answers = {"get_node_pool": a_pool(Status.ERROR), "create_node_pool": error, "delete_node_pool": error}
    with pytest.raises(Temporary):
        backend(Recording(answers)).create(ORDER)
    with pytest.raises(Temporary):
        backend(Recording(answers)).delete(ORDER)


def test_the_inventory_leaves_out_unowned_pools() -> None:
    theirs = gke.NodeConfig(labels={"google.com/nodepool-manager": "tpu-provisioner"})
    pools = [a_pool(Status.ERROR), a_pool(Status.RUNNING, name="theirs", config=theirs), gke.NodePool(name="plain")]
    recording = Recording({"list_node_pools": gke.ListNodePoolsResponse(node_pools=pools)})
    assert [pool.name for pool in backend(recording).inventory(settings())] == [POOL]


def test_the_operations_on_pools_of_this_cluster_are_listed_and_no_others() -> None:
    kinds = gke.Operation.Type
    cluster_link = LINK.partition("/nodePools/")[0]
    operations = listed(
        failed(target_link=f"{cluster_link}/nodePools/failed"),
        a_creation(Ends.RUNNING, target_link=f"{cluster_link}/nodePools/running"),
        a_creation(Ends.ABORTING, target_link=f"{cluster_link}/nodePools/aborting"),
        a_creation(target_link=f"{cluster_link}/nodePools/gone", operation_type=kinds.DELETE_NODE_POOL),
        a_creation(target_link=f"{cluster_link}/nodePools/repaired", operation_type=kinds.AUTO_REPAIR_NODES),
        a_creation(target_link=cluster_link),
        a_creation(target_link=f"{cluster_link}-2/nodePools/elsewhere"),
    )
    recording = Recording({"list_operations": operations})
    assert backend(recording).pool_operations(settings()) == {
        OperationSeen(pool="failed", creates=True, ended=True),
        OperationSeen(pool="running", creates=True, ended=False),
        OperationSeen(pool="aborting", creates=True, ended=False),
        OperationSeen(pool="gone", creates=False, ended=True),
    }
    assert recording.calls[0][1]["parent"] == "projects/demo-project/locations/us-central2"


GONE = {"get_node_pool": an_error(google.NotFound, "pool"), "get_cluster": gke.Cluster(), "get_operation": a_creation()}
BROKEN = {"get_node_pool": a_pool(Status.ERROR), "list_operations": listed()}
BUSY = {"create_node_pool": an_error(google.FailedPrecondition, "busy"), "get_node_pool": a_pool(Status.PROVISIONING)}
TAKEN = {"get_node_pool": a_pool(Status.ERROR), "delete_node_pool": gke.Operation(name="operation-2")}
RUNNING = {
    "get_node_pool": a_pool(Status.PROVISIONING),
    "list_operations": listed(a_creation(Ends.RUNNING)),
    "cancel_operation": None,
}


@pytest.mark.parametrize(
    ("verb", "answers"),
    [("look", GONE), ("look", BROKEN), ("create", BUSY), ("delete", TAKEN), ("cancel", RUNNING)],
    ids=["look-gone", "look-broken", "create", "delete", "cancel"],
)
def test_every_call_ends_within_a_minute_and_changes_are_never_repeated(verb: str, answers: dict[str, Answer]) -> None:
    recording = Recording(answers)
    getattr(backend(recording), verb)(NOTED if verb == "look" and answers is GONE else ORDER)
    longest = 0.0
    for method, arguments in recording.calls:
        changes = method.startswith(("create", "delete", "cancel"))
        assert (arguments["retry"] is None) is changes
        longest += arguments["timeout"] if changes else 2 * arguments["timeout"]
    assert longest <= 60
