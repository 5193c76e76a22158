"""The status of a TPUNodeGroup, as TPU operator's users know it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import CLUSTER, NOW, a_jobset, a_record, an_owner, some_hosts, with_fields
from tests.domain.planning.test_node_groups import JOB, planned
from tests.node_groups import changed, of_a_template, one_host, two_hosts
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.node_groups import NodeGroupStatus
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.domain.records.hosts import Hosts
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.domain.reporting.node_groups import reason_of, status_of

POLICY, TEMPLATE, GROUP, READY = (
    "WorkloadPolicyReady",
    "InstanceTemplateReady",
    "ManagedInstanceGroupReady",
    "Ready",
)


SPOT = changed(one_host(), instanceConfig__provisioningModel="SPOT")


def a_group_record(**changes: Any) -> SliceRecord:
    """Return the slice of two hosts of a TPUNodeGroup, nothing done about it yet."""
    return a_record(**{"job": JOB, "spec": planned(two_hosts()), **changes})


def a_group(**changes: Any) -> WorkloadRecord:
    owner = an_owner("my-group", kind=OwnerKind.TPU_NODE_GROUP)
    return replace(a_jobset(), **{"owner": owner, "cluster": CLUSTER, **changes})


def hosts(usable: int, joined: int | None = None) -> Hosts:
    return some_hosts(usable=usable, joined=usable if joined is None else joined)


def at(reason: Reason, record: SliceRecord | None = None, **changes: Any) -> SliceRecord:
    return with_fields((record or a_group_record()).transitioned(NOW, reason, "what it says"), **changes)


def shown(status: NodeGroupStatus) -> dict[str, str]:
    return {each.type.value: f"{'' if each.status else '!'}{each.reason}" for each in status.conditions}


def test_a_ready_slice_is_ready_in_every_part() -> None:
    status = status_of(at(Reason.READY, hosts=hosts(2)), a_group())
    assert shown(status) == dict.fromkeys((POLICY, TEMPLATE, GROUP, READY), "Ready")
    assert (status.ready, status.reconciling, status.failed, status.gone) == (2, 0, 0, False)


def test_the_generation_is_that_of_the_object_that_is_on_record() -> None:
    assert status_of(at(Reason.READY), a_group(generation=7)).generation == 7
    assert status_of(at(Reason.READY), None).generation == 0


@pytest.mark.parametrize(
    ("operation", "stand"),
    [
        (None, (False, False, False)),
        ("regions/us-central1/operations/o-1", (False, False, False)),
        ("global/operations/o-2", (True, False, False)),
        ("zones/us-central1-c/operations/o-3", (True, True, False)),
    ],
)
def test_while_it_is_created_the_operation_tells_which_parts_stand(
    operation: str | None, stand: tuple[bool, bool, bool]
) -> None:
    status = status_of(at(Reason.CREATING, operation=operation), a_group())
    assert tuple(each.status for each in status.conditions) == (*stand, False)
    assert shown(status)[READY] == "!Provisioning"


def test_a_single_host_has_no_condition_for_a_policy() -> None:
    record = a_group_record(spec=planned(one_host()))
    assert POLICY not in shown(status_of(at(Reason.CREATING, record), a_group()))


@pytest.mark.parametrize(
    ("reason", "expected"), [(Reason.CREATING, "ExternalTemplate"), (Reason.INVALID_CONFIGURATION, "!InvalidTemplate")]
)
def test_a_template_of_the_users_is_external_unless_it_is_refused(reason: Reason, expected: str) -> None:
    record = a_group_record(spec=planned(of_a_template()))
    assert shown(status_of(at(reason, record), a_group()))[TEMPLATE] == expected


def test_missing_hosts_are_still_to_come_before_and_have_failed_after_ready() -> None:
    joining = status_of(at(Reason.HOSTS_JOINING, hosts=hosts(1)), a_group())
    assert (joining.ready, joining.reconciling, joining.failed) == (1, 1, 0)
    lost = status_of(at(Reason.HOSTS_LOST, hosts=hosts(1)), a_group())
    assert (lost.ready, lost.reconciling, lost.failed) == (1, 0, 1)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (at(Reason.HOSTS_JOINING, hosts=hosts(0)), "AwaitingNodeJoin"),
        (at(Reason.HOSTS_LOST, hosts=hosts(1, 1)), "NodeLost"),
        (at(Reason.HOSTS_LOST, hosts=hosts(1, 2)), "NodeNotReady"),
        (at(Reason.POOL_BROKEN), "VMGone"),
        (at(Reason.POOL_BROKEN, a_group_record(spec=planned(SPOT))), "Preempted"),
        (at(Reason.HOSTS_NOT_USABLE), "VMGone"),
        (at(Reason.HOSTS_NOT_USABLE, a_group_record(spec=planned(SPOT))), "Preempted"),
        (at(Reason.POOL_BUSY), "Unstable"),
        (at(Reason.STOCKOUT), "InstancesCreationFailed"),
        (at(Reason.QUOTA_EXCEEDED), "InstancesCreationFailed"),
        (at(Reason.AWAITING_CAPACITY), "AwaitingCapacity"),
        (at(Reason.CREATION_FAILED), "OperationFailed"),
        (at(Reason.NOT_ALLOWED), "RequestRejected"),
        (at(Reason.INVALID_CONFIGURATION), "RequestRejected"),
        (at(Reason.HELD), "Held"),
        (at(Reason.CLOSING_HOSTS), "ClosingHosts"),
        (at(Reason.DELETION_STARTED), "DeletingMIG"),
        (at(Reason.RELAY_SILENT), "RelaySilent"),
    ],
)
def test_the_reason_is_tpu_operators_where_it_has_one(record: SliceRecord, reason: str) -> None:
    assert reason_of(record) == reason


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_is_one_that_a_condition_may_have(reason: Reason) -> None:
    assert reason_of(at(reason)).isalnum()


def test_what_waits_says_why_in_every_part_that_does_not_stand() -> None:
    status = status_of(at(Reason.STOCKOUT), a_group())
    assert shown(status) == dict.fromkeys((POLICY, TEMPLATE, GROUP, READY), "!InstancesCreationFailed")
    assert {each.message for each in status.conditions} == {"what it says"}


@pytest.mark.parametrize("reason", [Reason.CLOSING_HOSTS, Reason.DELETION_STARTED, Reason.RELEASED])
def test_while_it_goes_only_ready_changes(reason: Reason) -> None:
    status = status_of(at(reason, hosts=hosts(2)), a_group(state=WorkloadState.DELETED))
    assert [each.type for each in status.conditions] == [READY]
    assert not status.conditions[0].status
    assert status.ready == 0


@pytest.mark.parametrize(
    ("reason", "state", "gone"),
    [
        (Reason.RELEASED, WorkloadState.DELETED, True),
        (Reason.NEVER_CREATED, WorkloadState.MISSING, True),
        (Reason.RELEASED, WorkloadState.ACTIVE, False),
        (Reason.DELETION_STARTED, WorkloadState.DELETED, False),
    ],
)
def test_an_object_may_go_once_nothing_is_left_and_it_is_over(reason: Reason, state: WorkloadState, gone: bool) -> None:
    assert status_of(at(reason), a_group(state=state)).gone is gone


def test_a_group_that_cannot_be_planned_says_so_of_every_part() -> None:
    status = status_of(at(Reason.DOES_NOT_FIT, spec=None), a_group())
    assert shown(status) == dict.fromkeys((TEMPLATE, GROUP, READY), "!RequestRejected")
    assert (status.ready, status.reconciling, status.failed) == (0, 0, 0)


def test_parts_that_stood_still_stand_while_the_group_cannot_be_read() -> None:
    unread = at(Reason.POOL_UNREADABLE, at(Reason.HOSTS_LOST), hosts=hosts(1))
    status = status_of(unread, a_group())
    assert shown(status) == {**dict.fromkeys((POLICY, TEMPLATE, GROUP), "Ready"), READY: "!ReconcileError"}
    assert (status.ready, status.reconciling, status.failed) == (1, 0, 1)
