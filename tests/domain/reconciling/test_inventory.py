"""What the inventory check finds in JobSets, records and pools."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import MINUTE, NOW, a_job, a_jobset, a_record, an_attempt, an_occupant, some_hosts
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.observations import PoolSeen
from tpu_slices.domain.model.reasons import Phase, Reason, ReportReason
from tpu_slices.domain.model.slices import WorkloadUid, pool_name
from tpu_slices.domain.reconciling.binding import given_up
from tpu_slices.domain.reconciling.inventory import (
    MISREPORTED,
    OWNERLESS_AFTER,
    SPARED_FOR,
    InventoryFindings,
    Records,
    check_inventory,
)
from tpu_slices.domain.records.slices import RunsOn, SliceRecord
from tpu_slices.domain.records.workloads import Report, WorkloadRecord

OURS = a_jobset(last_seen_at=NOW - 60 * MINUTE)
OTHER = WorkloadUid("uid-other")
SERVING = {"phase": Phase.READY, "reason": Reason.READY, "create_requested_at": NOW, "next_reconcile_at": None}


def told(reason: ReportReason, requested: int) -> Report:
    return Report(reason=reason, message="", requested=requested, ready=requested, since=NOW)


def a_pool(record: SliceRecord, attempt: int = 1) -> PoolSeen:
    return PoolSeen(name=pool_name(record.id, attempt), slice_id=record.id, attempt=attempt, job=record.job)


def findings_of(
    *, records: list[SliceRecord], pools: list[PoolSeen], workloads: list[WorkloadRecord] | None = None
) -> InventoryFindings:
    known = [OURS] if workloads is None else workloads
    on_record = Records(
        workloads={jobset.owner.uid: jobset for jobset in known}, slices={record.id: record for record in records}
    )
    return check_inventory(on_record, pools, NOW)


def test_consistent_jobsets_records_and_pools_give_no_findings() -> None:
    serving = a_record(**SERVING)
    assert findings_of(records=[serving], pools=[a_pool(serving)]) == InventoryFindings()


def test_a_job_on_hosts_of_anothers_slice_is_looked_for_unless_the_record_of_its_own_has_it() -> None:
    host = a_record(**SERVING, hosts=some_hosts(occupants=(an_occupant("gemma"),)))
    own = a_record(job=a_job(name="gemma", uid=WorkloadUid("uid-gemma")), next_reconcile_at=None)
    there = RunsOn(slice_id=host.id, attempt=1, pod_uid="pod-gemma-0", chips=16, since=NOW)
    for records, unplaced in (([host, own], True), ([host, replace(own, runs_on=there)], False), ([host], False)):
        found = findings_of(records=records, pools=[a_pool(host)], workloads=[OURS, a_jobset(owner=own.owner)])
        assert found.unplaced is unplaced


@pytest.mark.parametrize(
    ("changes", "unserved"),
    [
        (None, True),
        ({"phase": Phase.GONE, "reason": Reason.RELEASED, "next_reconcile_at": None}, True),
        ({"phase": Phase.GONE, "reason": Reason.RELEASED, "next_reconcile_at": NOW}, False),
        ({"phase": Phase.REFUSED, "reason": Reason.NOT_ALLOWED, "next_reconcile_at": None}, False),
    ],
    ids=["no record", "settled as GONE", "due", "refused"],
)
def test_demand_for_a_slice_that_nobody_will_look_at_is_found(changes: dict[str, Any] | None, unserved: bool) -> None:
    records = [a_record(**changes)] if changes else []
    for told_at in (NOW, None):
        jobset = a_jobset(demand={a_record().id: told_at})
        found = findings_of(records=records, pools=[], workloads=[jobset])
        assert (found.unserved == (jobset.owner.uid,)) is (unserved and told_at is not None)


@pytest.mark.parametrize(
    ("changes", "misreported"),
    [
        ({}, True),
        ({"state": WorkloadState.SUSPENDED}, False),
        ({"next_report_at": NOW}, False),
        ({"report": None}, False),
        ({"report": told(ReportReason.BLOCKED, 2)}, False),
        ({"report": told(ReportReason.READY, 1)}, False),
    ],
    ids=["", "suspended", "a report is due", "never reported on", "told to be blocked", "told to have what it has"],
)
def test_a_jobset_that_was_told_to_have_more_than_it_has_is_found(
    changes: dict[str, Any], *, misreported: bool
) -> None:
    first, second = a_record(**SERVING), a_record(job=a_job(job_index=1))
    demand = {first.id: None, second.id: None}
    jobset = a_jobset(**{"demand": demand, "report": told(ReportReason.READY, 2), **changes})
    found = findings_of(records=[first, second], pools=[a_pool(first)], workloads=[jobset])
    assert (found.misreported == (first.owner.uid,)) is misreported


def test_a_slice_whose_leader_does_not_come_to_its_hosts_is_not_what_its_jobset_was_told_to_have() -> None:
    record = a_record(**{**SERVING, "reason": Reason.LEADER_STILL_WAITING})
    jobset = a_jobset(demand={record.id: None}, report=told(ReportReason.READY, 1))
    assert findings_of(records=[record], pools=[a_pool(record)], workloads=[jobset]).misreported


def test_a_slice_that_its_jobset_does_not_need_stands_for_none_that_it_lost() -> None:
    lost, spare = a_record(), a_record(job=a_job(job_index=1), **SERVING)
    jobset = a_jobset(demand={lost.id: None}, report=told(ReportReason.READY, 1))
    assert findings_of(records=[lost, spare], pools=[a_pool(spare)], workloads=[jobset]).misreported


def test_one_check_finds_no_more_jobsets_to_report_on_than_a_sweep_can() -> None:
    records = [a_record(job=a_job(uid=WorkloadUid(f"uid-{n}"))) for n in range(MISREPORTED + 1)]
    jobsets = [
        a_jobset(uid=each.owner.uid, demand={each.id: None}, report=told(ReportReason.READY, 1)) for each in records
    ]
    assert len(findings_of(records=records, pools=[], workloads=jobsets).misreported) == MISREPORTED


def test_an_orphan_is_adopted_with_its_attempt_and_a_placeholder_for_its_jobset() -> None:
    lost = a_record(job=a_job(uid=OTHER))
    findings = findings_of(records=[], pools=[a_pool(lost, 3)])
    (recovered,) = findings.recovered
    (placeholder,) = findings.placeholders
    assert (recovered.id, recovered.attempt, recovered.spec, recovered.next_reconcile_at) == (lost.id, 3, None, NOW)
    assert (recovered.current.create_requested_at, recovered.current.spared_until) == (NOW, NOW + SPARED_FOR)
    assert given_up(recovered, fits=True).attempt == 4
    assert (placeholder.owner.uid, placeholder.state, placeholder.demand) == (
        OTHER,
        WorkloadState.ACTIVE,
        {lost.id: None},
    )


def test_slices_whose_jobset_has_no_record_get_one_in_which_nothing_is_confirmed() -> None:
    first, second = (a_record(**SERVING, job=a_job(job_index=index)) for index in range(2))
    gone = a_record(job=a_job(job_index=2), phase=Phase.GONE)
    pools = [a_pool(first), a_pool(second)]
    findings = findings_of(records=[first, second, gone], pools=pools, workloads=[])
    (placeholder,) = findings.placeholders
    assert (placeholder.owner, placeholder.state) == (first.owner, WorkloadState.ACTIVE)
    assert placeholder.demand == {first.id: None, second.id: None}
    assert (findings.recovered, findings.mended) == ((), ())


def test_a_jobset_whose_record_cannot_be_read_needs_no_placeholder() -> None:
    serving = a_record(**SERVING)
    on_record = Records(workloads={}, slices={serving.id: serving}, unreadable=frozenset({serving.owner.uid}))
    assert check_inventory(on_record, [a_pool(serving)], NOW) == InventoryFindings()


def test_a_pool_whose_record_cannot_be_read_is_left_alone() -> None:
    serving = a_record(**SERVING)
    on_record = Records(workloads={}, slices={}, unreadable=frozenset({serving.id}))
    assert check_inventory(on_record, [a_pool(serving)], NOW) == InventoryFindings()


@pytest.mark.parametrize("state", [state for state in WorkloadState if state is not WorkloadState.ACTIVE])
def test_an_orphan_whose_jobset_is_not_active_is_terminating_and_spared(state: WorkloadState) -> None:
    (recovered,) = findings_of(records=[], pools=[a_pool(a_record(), 3)], workloads=[a_jobset(state=state)]).recovered
    (orphan,) = recovered.terminating
    assert (orphan.number, orphan.spared_until, orphan.fits) == (3, NOW + SPARED_FOR, True)
    assert (recovered.attempt, recovered.current.create_requested_at) == (4, None)


def test_an_orphan_of_a_known_jobset_needs_no_placeholder() -> None:
    lost = a_record()
    findings = findings_of(records=[], pools=[a_pool(lost)])
    assert (len(findings.recovered), findings.placeholders) == (1, ())


def test_a_pool_of_an_attempt_missing_from_its_record_becomes_terminating() -> None:
    serving = a_record(**SERVING, attempt=3, terminating=(an_attempt(2),))
    findings = findings_of(records=[serving], pools=[a_pool(serving, 3), a_pool(serving, 2), a_pool(serving, 1)])
    ((_, after),) = findings.mended
    assert [each.number for each in after.terminating] == [2, 1]
    assert after.next_reconcile_at == NOW
    found = after.terminating[1]
    assert (found.create_requested_at, found.spared_until, found.chips) == (NOW, NOW + SPARED_FOR, 16)


def test_the_number_of_a_pool_that_is_missing_from_its_record_is_not_used_again() -> None:
    serving = a_record(**SERVING)
    ((_, after),) = findings_of(records=[serving], pools=[a_pool(serving), a_pool(serving, 4)]).mended
    assert given_up(after, fits=True).attempt == 5


@pytest.mark.parametrize(
    ("record", "with_pool", "state"),
    [
        pytest.param(a_record(**SERVING), False, WorkloadState.ACTIVE, id="ready without its pool"),
        pytest.param(a_record(**SERVING), True, WorkloadState.COMPLETED, id="ready though its JobSet completed"),
        pytest.param(a_record(**SERVING), True, WorkloadState.SUSPENDED, id="ready though its JobSet is suspended"),
        pytest.param(
            a_record(**{**SERVING, "phase": Phase.GONE}),
            True,
            WorkloadState.COMPLETED,
            id="gone though its pool is there",
        ),
    ],
)
def test_a_record_that_contradicts_jobset_or_pool_is_reconciled_again(
    record: SliceRecord, with_pool: bool, state: WorkloadState
) -> None:
    pools = [a_pool(record)] if with_pool else []
    findings = findings_of(records=[record], pools=pools, workloads=[a_jobset(state=state)])
    ((before, after),) = findings.mended
    assert (before, after.next_reconcile_at) == (record, NOW)


def test_orphans_beyond_the_limit_of_one_inventory_check_are_left_out() -> None:
    lost = [a_record(job=a_job(uid=WorkloadUid(f"uid-{number}"))) for number in range(14)]
    findings = findings_of(records=[], pools=[a_pool(record) for record in lost])
    assert (len(findings.recovered), findings.left_out) == (10, 4)


@pytest.mark.parametrize("phase", [Phase.GONE, Phase.WAITING, Phase.QUEUED, Phase.BLOCKED])
def test_a_pool_that_its_record_counts_as_never_requested_is_reconciled_again(phase: Phase) -> None:
    """The answer to a creation was lost and the next one refused: the pool of the first is there all the same."""
    record = a_record(phase=phase, create_requested_at=None, next_reconcile_at=None)
    findings = findings_of(
        records=[record], pools=[a_pool(record)], workloads=[a_jobset(state=WorkloadState.COMPLETED)]
    )
    ((_, after),) = findings.mended
    assert (after.current.create_requested_at, after.next_reconcile_at, after.terminating) == (NOW, NOW, ())


def test_a_release_requested_in_the_record_alone_is_found() -> None:
    record = a_record(**SERVING, release_requested=True)
    ((_, after),) = findings_of(records=[record], pools=[a_pool(record)]).mended
    assert after.next_reconcile_at == NOW


def test_two_pools_of_one_unknown_slice_become_one_record_of_the_later_attempt() -> None:
    lost = a_record()
    findings = findings_of(records=[], pools=[a_pool(lost, 2), a_pool(lost, 1)])
    assert [recovered.attempt for recovered in findings.recovered] == [2]


def test_the_limit_of_orphans_grows_with_a_fifth_of_the_ready_slices() -> None:
    serving = [a_record(**SERVING, job=a_job(job_index=index)) for index in range(60)]
    lost = [a_record(job=a_job(uid=WorkloadUid(f"uid-{number}"))) for number in range(14)]
    findings = findings_of(records=serving, pools=[a_pool(record) for record in [*serving, *lost]])
    assert (len(findings.recovered), findings.left_out) == (12, 2)


LONG_AGO = NOW - OWNERLESS_AFTER - MINUTE


@pytest.mark.parametrize("state", [state for state in WorkloadState if state is not WorkloadState.ACTIVE])
def test_a_pool_is_ownerless_some_time_after_its_jobset_ended(state: WorkloadState) -> None:
    serving = a_record(**SERVING)
    for since, ownerless in ((NOW - OWNERLESS_AFTER, 0), (LONG_AGO, 1)):
        ended = a_jobset(state=state, state_since=since)
        assert findings_of(records=[serving], pools=[a_pool(serving)], workloads=[ended]).ownerless == ownerless


@pytest.mark.parametrize("phase", Phase)
def test_a_pool_that_is_being_deleted_or_was_told_of_is_not_ownerless(phase: Phase) -> None:
    record = a_record(**{**SERVING, "phase": phase})
    ended = a_jobset(state=WorkloadState.COMPLETED, state_since=LONG_AGO)
    expected = 0 if phase in {Phase.RELEASING, Phase.BLOCKED} else 1
    assert findings_of(records=[record], pools=[a_pool(record)], workloads=[ended]).ownerless == expected


def test_orphans_are_counted_with_those_that_are_left_out_and_are_not_ownerless_yet() -> None:
    lost = [a_record(job=a_job(uid=OTHER, job_index=index)) for index in range(13)]
    findings = findings_of(records=[], pools=[a_pool(each) for each in lost])
    assert (findings.orphans, findings.ownerless) == (13, 0)
