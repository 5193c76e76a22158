"""What the functions say of a TPUNodeGroup becomes its status and its Events, and in the end lets it go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from relay.node_groups.writer import NodeGroupWriter
from tests.builders import MINUTE, NOW
from tests.domain.reporting.test_node_groups import at, hosts
from tests.relay.node_groups.objects import OWNER, SLICE, FakeGroups, group, update
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.node_groups import FINALIZER
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.domain.planning.tpu_operator import FINALIZERS
from tpu_slices.ports.errors import Temporary

CREATING = at(Reason.CREATION_STARTED)
JOINING = at(Reason.HOSTS_JOINING, hosts=hosts(0))
HALF = at(Reason.HOSTS_JOINING, hosts=hosts(1))
READY = at(Reason.READY, hosts=hosts(2))
LOST = at(Reason.HOSTS_LOST, hosts=hosts(1, 1))
STOCKOUT = at(Reason.STOCKOUT)
GOING = at(Reason.CLOSING_HOSTS, hosts=hosts(2))
GONE = at(Reason.RELEASED)
OVER: dict[str, Any] = {"state": WorkloadState.DELETED, "generation": 2}


@pytest.fixture
def groups() -> FakeGroups:
    return FakeGroups()


@pytest.fixture
def writer(groups: FakeGroups) -> NodeGroupWriter:
    return NodeGroupWriter(groups, lambda _: groups.lack_chips)


def test_the_status_has_conditions_counts_and_the_generation(groups: FakeGroups, writer: NodeGroupWriter) -> None:
    writer.write(update(HALF))
    assert groups.stored is not None
    assert groups.stored["status"]["nodeSummary"] == {"ready": 1, "reconciling": 1, "failed": 0}
    assert groups.stored["status"]["observedGeneration"] == 1
    assert groups.conditions["Ready"] == {
        "type": "Ready",
        "status": "False",
        "reason": "AwaitingNodeJoin",
        "message": "what it says",
        "lastTransitionTime": "2026-03-01T12:00:00Z",
        "observedGeneration": 1,
    }


def test_what_is_there_already_is_not_written_again(groups: FakeGroups, writer: NodeGroupWriter) -> None:
    for minutes in range(3):
        writer.write(update(HALF, at=NOW + minutes * MINUTE))
    assert groups.written == 1


def test_a_condition_keeps_its_time_until_its_status_changes(groups: FakeGroups, writer: NodeGroupWriter) -> None:
    writer.write(update(CREATING))
    writer.write(update(STOCKOUT, at=NOW + MINUTE))
    assert groups.conditions["Ready"]["lastTransitionTime"] == "2026-03-01T12:00:00Z"
    writer.write(update(READY, at=NOW + 2 * MINUTE))
    assert groups.conditions["Ready"]["lastTransitionTime"] == "2026-03-01T12:02:00Z"


def test_conditions_of_others_stay(groups: FakeGroups, writer: NodeGroupWriter) -> None:
    theirs = {"type": "Billed", "status": "True", "reason": "Paid", "message": "", "lastTransitionTime": "2026-01-01"}
    groups.stored = group(status={"conditions": [theirs]})
    writer.write(update(READY))
    assert groups.conditions["Billed"] == theirs


def test_the_events_are_tpu_operators_and_come_once(groups: FakeGroups, writer: NodeGroupWriter) -> None:
    for minutes, record in enumerate((CREATING, CREATING, JOINING, HALF, HALF, READY, READY)):
        writer.write(update(record, at=NOW + minutes * MINUTE))
    assert groups.reasons == ["ChildResourcesProvisioned", "NodesJoining", "Provisioned"]


def test_a_ready_count_that_falls_or_is_complete_is_no_joining(groups: FakeGroups, writer: NodeGroupWriter) -> None:
    writer.write(update(READY))
    writer.write(update(LOST, at=NOW + MINUTE))
    assert "NodesJoining" not in groups.reasons


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (Reason.STOCKOUT, "InstancesCreationFailed"),
        (Reason.NOT_ALLOWED, "RequestRejected"),
        (Reason.CREATION_FAILED, "OperationFailed"),
        (Reason.CLUSTER_BUSY, "Failed"),
        (Reason.POOL_BROKEN, "VMGone"),
    ],
)
def test_a_failure_is_a_warning_when_it_begins(
    groups: FakeGroups, writer: NodeGroupWriter, reason: Reason, told: str
) -> None:
    for minutes in range(3):
        writer.write(update(at(reason), at=NOW + minutes * MINUTE))
    [event] = [each for each in groups.events.values() if each["reason"] == told]
    assert (event["type"], event["message"]) == ("Warning", "what it says")


def test_a_lost_host_is_a_warning(groups: FakeGroups, writer: NodeGroupWriter) -> None:
    writer.write(update(READY))
    writer.write(update(LOST, at=NOW + MINUTE))
    assert groups.reasons[-1] == "NodeLost"
    assert groups.conditions["Ready"]["status"] == "False"


def test_a_host_that_is_ready_without_its_chips_is_unhealthy(groups: FakeGroups, writer: NodeGroupWriter) -> None:
    writer.write(update(READY))
    groups.lack_chips = True
    writer.write(update(at(Reason.HOSTS_LOST, hosts=hosts(1, 2)), at=NOW + MINUTE))
    assert groups.reasons[-1] == "TPUUnhealthy"
    writer.write(update(LOST, at=NOW + 2 * MINUTE))
    assert groups.conditions["Ready"]["reason"] == "NodeLost"


def test_an_update_that_is_delivered_twice_is_one_event(groups: FakeGroups, writer: NodeGroupWriter) -> None:
    writer.write(update(READY))
    groups.stored = group()
    NodeGroupWriter(groups, lambda _: False).write(update(READY))
    assert groups.reasons == ["ChildResourcesProvisioned", "Provisioned"]


def test_an_older_update_changes_nothing(groups: FakeGroups, writer: NodeGroupWriter) -> None:
    writer.write(update(READY, at=NOW + MINUTE))
    writer.write(update(CREATING, at=NOW))
    assert groups.conditions["Ready"]["reason"] == "Ready"


def test_the_observed_generation_never_goes_back(groups: FakeGroups, writer: NodeGroupWriter) -> None:
    writer.write(update(READY, generation=3))
    writer.write(update(LOST, at=NOW + MINUTE, generation=2))
    assert groups.stored is not None
    assert groups.stored["status"]["observedGeneration"] == 3


def test_an_object_of_another_uid_is_left_alone(groups: FakeGroups, writer: NodeGroupWriter) -> None:
    writer.write(replace(update(READY), owner=replace(OWNER, uid=WorkloadUid("earlier"))))
    assert (groups.written, groups.events) == (0, {})


def test_what_tpu_operator_holds_is_written_once_we_hold_it_too(groups: FakeGroups, writer: NodeGroupWriter) -> None:
    groups.stored = group(metadata={"finalizers": [*FINALIZERS]})
    writer.write(update(READY))
    assert (groups.written, groups.events) == (0, {})
    groups.stored = group(metadata={"finalizers": [*FINALIZERS, FINALIZER]})
    writer.write(update(READY))
    assert groups.written == 1


def test_an_object_that_is_gone_is_no_error(groups: FakeGroups, writer: NodeGroupWriter) -> None:
    groups.stored = None
    writer.write(update(READY))
    assert groups.events == {}


def test_a_deletion_is_told_once_and_says_what_it_waits_for(groups: FakeGroups, writer: NodeGroupWriter) -> None:
    writer.write(update(READY))
    groups.stored = {**group(8, deleted=True), "status": groups.stored["status"]} if groups.stored else None
    for minutes, record in enumerate((GOING, at(Reason.DELETION_REFUSED), at(Reason.DELETION_STARTED)), start=1):
        writer.write(update(record, at=NOW + minutes * MINUTE, **OVER))
    assert groups.reasons[2:] == ["Cleanup"]
    assert groups.conditions["Ready"]["reason"] == "DeletingMIG"
    assert groups.conditions["ManagedInstanceGroupReady"]["status"] == "True"


def test_what_is_gone_takes_its_nodes_and_its_object_with_it(groups: FakeGroups, writer: NodeGroupWriter) -> None:
    groups.stored, groups.nodes = group(deleted=True), [f"{SLICE}-1-ab12", "others-node"]
    writer.write(update(GONE, **OVER))
    assert groups.nodes == ["others-node"]
    assert groups.workload(OWNER) is None


def test_a_finalizer_of_others_stays(groups: FakeGroups, writer: NodeGroupWriter) -> None:
    groups.stored = group(deleted=True, metadata={"finalizers": ["example.com/theirs", FINALIZER]})
    writer.write(update(GONE, **OVER))
    writer.write(update(GONE, at=NOW + MINUTE, **OVER))
    assert groups.stored is not None
    assert groups.stored["metadata"]["finalizers"] == ["example.com/theirs"]
    assert groups.written == 1


def test_an_object_that_nobody_deleted_is_never_let_go(groups: FakeGroups, writer: NodeGroupWriter) -> None:
    writer.write(update(GONE, **OVER))
    assert groups.stored is not None
    assert groups.stored["metadata"]["finalizers"] == [FINALIZER]


def test_nothing_is_let_go_while_a_node_cannot_be_deleted(groups: FakeGroups, writer: NodeGroupWriter) -> None:
    groups.stored, groups.nodes = group(deleted=True), [f"{SLICE}-1-ab12"]
    groups.keeps_nodes = True
    with pytest.raises(Temporary):
        writer.write(update(GONE, **OVER))
    assert groups.stored is not None


def test_what_fails_comes_again(groups: FakeGroups, writer: NodeGroupWriter) -> None:
    groups.error = Temporary("the API server does not answer")
    with pytest.raises(Temporary):
        writer.write(update(READY))
    groups.error = None
    writer.write(update(READY))
    assert groups.conditions["Ready"]["reason"] == "Ready"
