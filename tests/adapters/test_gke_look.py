"""What GKE's answers mean, where the local GKE does not show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import cast

import pytest
from google.api_core import exceptions as google
from google.cloud import container_v1 as gke
from google.rpc import status_pb2

from tests.adapters.recordings import (
    LINK,
    NOTED,
    ORDER,
    PATH,
    STOCKOUT,
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
from tpu_slices.adapters.gke.backend import GkeBackend
from tpu_slices.domain.model.observations import (
    Absent,
    Broken,
    Busy,
    Cause,
    Creating,
    Deleting,
    Failure,
    FailureKind,
    Observation,
    Running,
    Unowned,
    Unreadable,
)
from tpu_slices.ports.backend import PoolOrder


def look(order: PoolOrder = ORDER, **answers: Answer) -> Observation:
    return backend(Recording(answers)).look(order)


@pytest.mark.parametrize(
    ("pool", "seen"),
    [
        (a_pool(Status.RUNNING), Running("v1-abc")),
        (a_pool(Status.STOPPING), Deleting()),
        (a_pool(Status.RECONCILING), Busy("a repair, an upgrade or a resize.")),
        (a_pool(Status.RECONCILING, status_message="Upgrading."), Busy("Upgrading.")),
    ],
    ids=["running", "stopping", "reconciling", "reconciling-with-a-message"],
)
def test_a_status_alone_is_enough_for_these_observations(pool: gke.NodePool, seen: Observation) -> None:
    assert look(get_node_pool=pool) == seen


Type = gke.Operation.Type
ASKING = replace(ORDER, asks_work=True)
TWO = "2026-03-01T02:00:00.123456789Z"
SAYS = "a repair, an upgrade or a resize."


@pytest.mark.parametrize(
    ("operations", "seen"),
    [
        ([a_creation(Ends.RUNNING, operation_type=Type.UPGRADE_NODES)], Busy(SAYS, Cause.UPGRADE)),
        ([a_creation(Ends.RUNNING, operation_type=Type.AUTO_UPGRADE_NODES)], Busy(SAYS, Cause.UPGRADE)),
        ([a_creation(Ends.PENDING, operation_type=Type.AUTO_REPAIR_NODES)], Busy(SAYS, Cause.REPAIR)),
        ([a_creation(Ends.RUNNING, operation_type=Type.SET_NODE_POOL_SIZE)], Busy(SAYS, Cause.WORK)),
        (
            [
                a_creation(Ends.RUNNING, operation_type=Type.AUTO_REPAIR_NODES),
                a_creation(Ends.RUNNING, operation_type=Type.UPGRADE_NODES),
            ],
            Busy(SAYS, Cause.UPGRADE),
        ),
        ([a_creation(operation_type=Type.UPGRADE_NODES)], Busy(SAYS)),
        ([a_creation(Ends.RUNNING, operation_type=Type.UPGRADE_NODES, target_link=f"{LINK}0")], Busy(SAYS)),
        ([], Busy(SAYS)),
        (
            [a_creation(Ends.RUNNING, operation_type=Type.UPGRADE_NODES, start_time=TWO)],
            Busy(SAYS, Cause.UPGRADE, datetime(2026, 3, 1, 2, 0, 0, 123456, tzinfo=UTC)),
        ),
        (
            [a_creation(Ends.RUNNING, operation_type=Type.UPGRADE_NODES, start_time="at two")],
            Busy(SAYS, Cause.UPGRADE),
        ),
        (
            [a_creation(Ends.RUNNING, operation_type=Type.UPGRADE_NODES, start_time="2026-03-01T02:00:00")],
            Busy(SAYS, Cause.UPGRADE),
        ),
    ],
    ids=[
        "upgrade", "automatic-upgrade", "repair", "resize", "repair-beside-an-upgrade", "ended", "of-another-pool",
        "none", "since", "since-no-time", "since-a-time-without-zone",
    ],
)  # fmt: skip
def test_what_gke_does_to_a_pool_follows_from_the_operation_that_runs_on_it(
    operations: list[gke.Operation], seen: Busy
) -> None:
    assert look(ASKING, get_node_pool=a_pool(Status.RECONCILING), list_operations=listed(*operations)) == seen


def test_operations_are_not_listed_for_what_is_on_record_nor_for_a_pool_that_runs() -> None:
    for order, status in ((ORDER, Status.RECONCILING), (ASKING, Status.RUNNING), (ASKING, Status.STOPPING)):
        recording = Recording({"get_node_pool": a_pool(status)})
        backend(recording).look(order)
        assert recording.methods == ["get_node_pool"]


@pytest.mark.parametrize(
    ("changes", "refills"),
    [
        ({"initial_node_count": 4, "locations": ["us-central2-b"]}, True),
        ({"initial_node_count": 0, "locations": ["us-central2-b"]}, False),
        ({"initial_node_count": 4, "locations": ["us-central2-b"], "autoscaling": {"enabled": True}}, False),
    ],
    ids=["asked-for", "of-size-0", "autoscaled"],
)
@pytest.mark.parametrize("spot", [True, False], ids=["spot", "on-demand"])
def test_spot_hosts_are_still_asked_for_by_the_size_of_their_pool(
    spot: bool, changes: dict[str, object], refills: bool
) -> None:
    pool = a_pool(Status.RUNNING, **changes)
    pool.config.spot = spot
    assert look(get_node_pool=pool) == Running("v1-abc", refills=refills and spot)


def test_an_unknown_status_is_unreadable() -> None:
    assert isinstance(look(get_node_pool=a_pool(Status.STATUS_UNSPECIFIED)), Unreadable)
    with pytest.warns(UserWarning, match="Unrecognized Status enum value: 99"):
        assert isinstance(look(get_node_pool=a_pool(99)), Unreadable)


@pytest.mark.parametrize("status", list(Status), ids=lambda status: status.name)
def test_a_pool_without_our_labels_is_unowned_whatever_its_status(status: int) -> None:
    bare = a_pool(status, config=gke.NodeConfig(labels={"google.com/nodepool-manager": "tpu-provisioner"}))
    assert look(get_node_pool=bare) == Unowned("it has no label google.com/tpu-slice-id.")


@pytest.mark.parametrize(
    ("operation", "seen"),
    [
        (a_creation(Ends.PENDING), Creating()),
        (a_creation(Ends.RUNNING), Creating()),
        (a_creation(Ends.ABORTING), Creating()),
        (a_creation(Ends.DONE), Creating(operation_runs=False)),
        (failed(), Broken(Failure(FailureKind.STOCKOUT, STOCKOUT))),
        (an_error(google.NotFound, "operation"), Creating(operation_runs=False)),
    ],
    ids=["pending", "running", "aborting", "cancelled", "failed", "forgotten"],
)
def test_a_pool_in_creation_is_observed_by_its_operation(operation: Answer, seen: Observation) -> None:
    assert look(NOTED, get_node_pool=a_pool(Status.PROVISIONING), get_operation=operation) == seen


def test_progress_of_a_running_operation_is_no_failure() -> None:
    running = a_creation(Ends.RUNNING, detail="Creating instances.", status_message="Creating instances.")
    assert look(NOTED, get_node_pool=a_pool(Status.PROVISIONING), get_operation=running) == Creating()


@pytest.mark.parametrize(
    ("others", "seen"),
    [
        ((), Creating(operation_runs=False)),
        ((a_creation(Ends.RUNNING),), Creating()),
        ((failed(),), Broken(Failure(FailureKind.STOCKOUT, STOCKOUT))),
        ((failed(target_link=f"{LINK}0"),), Creating(operation_runs=False)),
        ((failed(target_link=LINK.replace("/demo/", "/other-demo/")),), Creating(operation_runs=False)),
        ((failed(operation_type=gke.Operation.Type.AUTO_REPAIR_NODES),), Creating(operation_runs=False)),
    ],
    ids=["none", "running", "failed", "of-another-pool", "of-another-cluster", "of-another-type"],
)
def test_an_operation_that_is_not_on_record_is_found_by_the_pools_name(
    others: Sequence[gke.Operation], seen: Observation
) -> None:
    assert look(get_node_pool=a_pool(Status.PROVISIONING), list_operations=listed(*others)) == seen


@pytest.mark.parametrize("status", [Status.ERROR, Status.RUNNING_WITH_ERROR], ids=lambda status: status.name)
def test_a_broken_pool_is_explained_by_the_operation_that_made_it(status: int) -> None:
    pool = a_pool(status, status_message="Something else.")
    expected = Broken(Failure(FailureKind.STOCKOUT, STOCKOUT))
    assert look(NOTED, get_node_pool=pool, get_operation=failed()) == expected
    assert look(ORDER, get_node_pool=pool, list_operations=listed(failed())) == expected


NO_STOCK = gke.StatusCondition(code=gke.StatusCondition.Code.GCE_STOCKOUT, message="None left.")
NO_QUOTA = gke.StatusCondition(code=gke.StatusCondition.Code.GCE_QUOTA_EXCEEDED, message="No more.")


@pytest.mark.parametrize(
    ("status", "condition", "kind"),
    [
        (Status.RUNNING_WITH_ERROR, NO_STOCK, None),
        (Status.RUNNING_WITH_ERROR, NO_QUOTA, FailureKind.QUOTA),
        (Status.ERROR, NO_STOCK, FailureKind.STOCKOUT),
    ],
    ids=["no capacity yet", "no quota", "not usable"],
)
def test_a_pool_of_flex_start_that_only_has_no_capacity_yet_is_not_broken(
    status: int, condition: gke.StatusCondition, kind: FailureKind | None
) -> None:
    pool = a_pool(status, conditions=[condition])
    pool.config.flex_start = True
    seen = look(NOTED, get_node_pool=pool, get_operation=a_creation())
    assert seen == (Running("v1-abc") if kind is None else Broken(Failure(kind, condition.message)))


def test_a_quota_named_only_in_the_operations_detail_is_a_quota() -> None:
    operation = a_creation(
        error=status_pb2.Status(code=8, message="Instance 'gke-demo-1' creation failed."),
        detail="Insufficient quota to satisfy the request: [GCE_QUOTA_EXCEEDED]",
    )
    seen = look(NOTED, get_node_pool=a_pool(Status.ERROR), get_operation=operation)
    assert seen == Broken(Failure(FailureKind.QUOTA, "Instance 'gke-demo-1' creation failed."))


def test_an_error_in_the_deprecated_field_alone_is_an_error() -> None:
    seen = look(NOTED, get_node_pool=a_pool(Status.ERROR), get_operation=a_creation(status_message=STOCKOUT))
    assert seen == Broken(Failure(FailureKind.STOCKOUT, STOCKOUT))


Code = gke.StatusCondition.Code


@pytest.mark.parametrize(
    ("condition", "kind", "message"),
    [
        (gke.StatusCondition(code=Code.GCE_STOCKOUT, message="None left."), FailureKind.STOCKOUT, "None left."),
        (gke.StatusCondition(code=Code.GCE_QUOTA_EXCEEDED), FailureKind.QUOTA, "GKE gives no reason."),
        (gke.StatusCondition(message=STOCKOUT), FailureKind.STOCKOUT, STOCKOUT),
        (gke.StatusCondition(canonical_code=7, message="Not you."), FailureKind.CONFIGURATION, "Not you."),
        (gke.StatusCondition(canonical_code=13), FailureKind.UNKNOWN, "GKE gives no reason."),
        (gke.StatusCondition(message="It failed."), FailureKind.UNKNOWN, "It failed."),
    ],
    ids=["stockout", "quota", "by-its-message", "by-its-canonical-code", "internal", "in-other-words"],
)
@pytest.mark.parametrize("status", [Status.PROVISIONING, Status.ERROR, Status.RUNNING_WITH_ERROR], ids=lambda s: s.name)
def test_a_creation_that_only_its_conditions_name_a_failure_has_failed(
    status: int, condition: gke.StatusCondition, kind: FailureKind, message: str
) -> None:
    ended = a_creation(nodepool_conditions=[condition])
    expected = Broken(Failure(kind, message))
    assert look(NOTED, get_node_pool=a_pool(status), get_operation=ended) == expected
    assert look(ORDER, get_node_pool=a_pool(status), list_operations=listed(ended)) == expected


@pytest.mark.parametrize(
    "condition",
    [
        gke.StatusCondition(),
        gke.StatusCondition(code=Code.CA_EXPIRING, message="Soon."),
        gke.StatusCondition(code=Code.SET_BY_OPERATOR, message="Looked into."),
        gke.StatusCondition(code=Code.NODE_SERVICE_ACCOUNT_MISSING_PERMISSIONS, message="No logs."),
    ],
    ids=["empty", "certificate", "operator", "permissions"],
)
def test_a_condition_that_only_warns_fails_no_creation(condition: gke.StatusCondition) -> None:
    ended = a_creation(nodepool_conditions=[condition])
    seen = look(NOTED, get_node_pool=a_pool(Status.PROVISIONING), get_operation=ended)
    assert seen == Creating(operation_runs=False)


def test_conditions_of_a_running_creation_are_no_failure() -> None:
    running = a_creation(Ends.RUNNING, nodepool_conditions=[gke.StatusCondition(code=Code.GCE_STOCKOUT)])
    assert look(NOTED, get_node_pool=a_pool(Status.PROVISIONING), get_operation=running) == Creating()


def test_a_pool_that_broke_is_classified_by_the_canonical_code_of_its_condition() -> None:
    pool = a_pool(Status.RUNNING_WITH_ERROR, conditions=[gke.StatusCondition(canonical_code=7, message="Not you.")])
    seen = look(NOTED, get_node_pool=pool, get_operation=a_creation())
    assert seen == Broken(Failure(FailureKind.CONFIGURATION, "Not you."))


def test_progress_of_a_running_operation_does_not_explain_a_broken_pool() -> None:
    running = a_creation(Ends.RUNNING, status_message="Creating instances.")
    pool = a_pool(Status.ERROR, status_message="It broke.")
    seen = look(NOTED, get_node_pool=pool, get_operation=running)
    assert seen == Broken(Failure(FailureKind.UNKNOWN, "It broke."))


@pytest.mark.parametrize(
    "creation", [a_creation(), an_error(google.NotFound, "operation")], ids=["ended-well", "forgotten"]
)
def test_a_pool_that_broke_later_is_explained_by_its_conditions(creation: Answer) -> None:
    condition = gke.StatusCondition(code=gke.StatusCondition.Code.GCE_STOCKOUT, message="Repair failed.")
    pool = a_pool(Status.RUNNING_WITH_ERROR, conditions=[condition], status_message="An old text.")
    seen = look(NOTED, get_node_pool=pool, get_operation=creation)
    assert seen == Broken(Failure(FailureKind.STOCKOUT, "Repair failed."))


def test_an_unknown_condition_code_is_tolerated() -> None:
    pool = a_pool(Status.ERROR, conditions=[gke.StatusCondition(code=99, message="New trouble.")])
    with pytest.warns(UserWarning, match="Unrecognized Code enum value: 99"):
        seen = look(get_node_pool=pool, list_operations=listed())
    assert seen == Broken(Failure(FailureKind.UNKNOWN, "New trouble."))


def test_a_broken_pool_without_a_message_is_broken_all_the_same() -> None:
    seen = look(get_node_pool=a_pool(Status.ERROR), list_operations=listed())
    assert seen == Broken(Failure(FailureKind.UNKNOWN, "GKE gives no reason."))


def test_a_pool_of_a_missing_cluster_is_unreadable() -> None:
    seen = look(get_node_pool=an_error(google.NotFound, "pool"), get_cluster=an_error(google.NotFound, "cluster"))
    assert seen == Unreadable(f"{PATH} does not exist.")


@pytest.mark.parametrize(
    ("on_record", "seen"),
    [
        (None, Absent()),
        ("id-1", Absent()),
        ("id-0", Unreadable(f"{PATH} is not the cluster on record: its id is id-1.")),
    ],
)
def test_a_pool_is_absent_only_from_the_cluster_on_record(on_record: str | None, seen: Observation) -> None:
    order = replace(ORDER, cluster_gke_id=on_record)
    assert look(order, get_node_pool=an_error(google.NotFound, "pool"), get_cluster=gke.Cluster(id="id-1")) == seen


@pytest.mark.parametrize("method", ["get_node_pool", "get_cluster", "get_operation"])
@pytest.mark.parametrize(
    "error",
    [an_error(google.PermissionDenied, "No."), an_error(google.ServiceUnavailable, "No.")],
    ids=repr,
)
def test_an_observation_is_unreadable_if_any_of_its_reads_fails(method: str, error: Exception) -> None:
    answers = {
        "get_node_pool": an_error(google.NotFound, "pool"),
        "get_cluster": gke.Cluster(),
        "get_operation": a_creation(),
    }
    seen = look(NOTED, **{**answers, method: error})
    assert isinstance(seen, Unreadable)
    assert "No." in seen.message


def test_operations_are_listed_only_for_broken_pools_whose_operation_is_not_on_record() -> None:
    healthy = Recording({"get_node_pool": a_pool(Status.RUNNING)})
    backend(healthy).look(ORDER)
    assert healthy.methods == ["get_node_pool"]
    noted = Recording({"get_node_pool": a_pool(Status.ERROR), "get_operation": failed()})
    backend(noted).look(NOTED)
    assert noted.methods == ["get_node_pool", "get_operation"]


def test_whether_a_cluster_is_the_one_on_record_is_asked_once_a_minute() -> None:
    seconds = [0.0]
    recording = Recording({"get_node_pool": an_error(google.NotFound, "none"), "get_cluster": gke.Cluster(id="c0ffee")})
    pools = GkeBackend(cast("gke.ClusterManagerClient", recording), seconds=lambda: seconds[0])
    ours, others = replace(ORDER, cluster_gke_id="c0ffee"), replace(ORDER, cluster_gke_id="beef")
    for at, asked in ((0.0, 1), (59.0, 1), (60.0, 2)):
        seconds[0] = at
        assert pools.look(ours) == Absent()
        assert recording.methods.count("get_cluster") == asked
    assert isinstance(pools.look(others), Unreadable)
    assert isinstance(pools.look(others), Unreadable)
    assert recording.methods.count("get_cluster") == 4
