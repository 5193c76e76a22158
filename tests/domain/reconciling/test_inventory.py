"""What the inventory check finds in JobSets, records and pools."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tests.builders import (
    CLUSTER,
    MINUTE,
    NOW,
    a_job,
    a_jobset,
    a_record,
    an_occupant,
    had,
    some_hosts,
    unclaimed,
    with_fields,
)
from tpu_slices.domain.model.facts import Occupant, WorkloadState
from tpu_slices.domain.model.observations import PoolSeen
from tpu_slices.domain.model.reasons import Phase, Reason, ReportReason
from tpu_slices.domain.model.slices import ClaimId, SliceId, WorkloadUid, pool_name, slice_id
from tpu_slices.domain.reconciling.inventory import (
    CHECK_AGAIN_AFTER,
    MISREPORTED,
    OWNERLESS_AFTER,
    SPARED_FOR,
    InventoryFindings,
    Records,
    check_inventory,
)
from tpu_slices.domain.records.hosts import key_of
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import Report, WorkloadRecord

OURS = a_jobset(last_seen_at=NOW - 60 * MINUTE)
OTHER = WorkloadUid("uid-other")
SERVING = {"phase": Phase.READY, "reason": Reason.READY, "create_requested_at": NOW, "next_reconcile_at": None}


def told(reason: ReportReason, requested: int) -> Report:
    return Report(reason=reason, message="", requested=requested, ready=requested, since=NOW)


def a_pool(record: SliceRecord, attempt: int = 1) -> PoolSeen:
    return PoolSeen(name=pool_name(record.maker, attempt), slice_id=record.maker, attempt=attempt, job=record.job)


def going(attempt: int = 1, **changes: Any) -> SliceRecord:
    """Return a slice that its claim has no more."""
    fields = {"create_requested_at": NOW, "ours_since": NOW, "phase": Phase.RELEASING, "reason": Reason.CLOSING_HOSTS}
    return unclaimed(a_record(**{**fields, "attempt": attempt, **changes}))


def findings_of(
    *,
    records: list[SliceRecord],
    pools: list[PoolSeen],
    workloads: list[WorkloadRecord] | None = None,
    unreadable: ClaimId | SliceId | None = None,
) -> InventoryFindings:
    known = [OURS] if workloads is None else workloads
    on_record = Records(
        workloads={jobset.owner.uid: jobset for jobset in known},
        slices={record.id: record for record in records},
        unreadable=frozenset() if unreadable is None else frozenset({unreadable}),
    )
    return check_inventory(on_record, pools, NOW)


def test_consistent_jobsets_records_and_pools_give_no_findings() -> None:
    serving = a_record(**SERVING)
    assert findings_of(records=[serving], pools=[a_pool(serving)]) == InventoryFindings()
    claim, before = a_record(**SERVING, attempt=2, earlier=(1,)), going()
    found = findings_of(records=[claim, before], pools=[a_pool(claim, 2), a_pool(claim, 1)])
    assert found == InventoryFindings()


GEMMA = an_occupant("gemma")
GEMMAS = a_record(job=GEMMA.workload_job(CLUSTER), next_reconcile_at=None)


@pytest.mark.parametrize(
    ("occupants", "guests", "unplaced"),
    [
        pytest.param((GEMMA,), [GEMMAS], True, id="its claim has another slice"),
        pytest.param((GEMMA,), [], True, id="its claim has no record"),
        pytest.param((GEMMA,), [with_fields(GEMMAS, hosts=some_hosts(occupants=(GEMMA,)))], False, id="it is there"),
        pytest.param((GEMMA, an_occupant()), [GEMMAS], False, id="the Job whose claim has the slice is on it, too"),
        pytest.param((), [GEMMAS], False, id="nobody is on it"),
    ],
)
@pytest.mark.parametrize("claimed", [True, False], ids=["of a slice that a claim has", "of one that none has"])
def test_a_job_on_a_slice_that_its_claim_does_not_have_is_looked_for(
    occupants: tuple[Occupant, ...], guests: list[SliceRecord], *, unplaced: bool, claimed: bool
) -> None:
    hosts = some_hosts(occupants=occupants)
    host = a_record(**SERVING, hosts=hosts) if claimed else going(hosts=hosts)
    found = findings_of(records=[host, *guests], pools=[a_pool(host)], workloads=[OURS, a_jobset(owner=GEMMAS.owner)])
    assert found.unplaced == ((key_of(host.maker, 1),) if unplaced else ())


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
        jobset = a_jobset(demand={a_record().maker: told_at})
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
    demand = {first.maker: None, second.maker: None}
    jobset = a_jobset(**{"demand": demand, "report": told(ReportReason.READY, 2), **changes})
    found = findings_of(records=[first, second], pools=[a_pool(first)], workloads=[jobset])
    assert (found.misreported == (first.owner.uid,)) is misreported


def test_a_slice_whose_leader_does_not_come_to_its_hosts_is_not_what_its_jobset_was_told_to_have() -> None:
    record = a_record(**{**SERVING, "reason": Reason.LEADER_STILL_WAITING})
    jobset = a_jobset(demand={record.maker: None}, report=told(ReportReason.READY, 1))
    assert findings_of(records=[record], pools=[a_pool(record)], workloads=[jobset]).misreported


def test_a_slice_that_its_jobset_does_not_need_stands_for_none_that_it_lost() -> None:
    lost, spare = a_record(), a_record(job=a_job(job_index=1), **SERVING)
    jobset = a_jobset(demand={lost.maker: None}, report=told(ReportReason.READY, 1))
    assert findings_of(records=[lost, spare], pools=[a_pool(spare)], workloads=[jobset]).misreported


def test_one_check_finds_no_more_jobsets_to_report_on_than_a_sweep_can() -> None:
    records = [a_record(job=a_job(uid=WorkloadUid(f"uid-{n}"))) for n in range(MISREPORTED + 1)]
    jobsets = [
        a_jobset(uid=each.owner.uid, demand={each.maker: None}, report=told(ReportReason.READY, 1)) for each in records
    ]
    assert len(findings_of(records=records, pools=[], workloads=jobsets).misreported) == MISREPORTED


def test_an_orphan_is_adopted_with_its_attempt_and_a_placeholder_for_its_jobset() -> None:
    lost = a_record(job=a_job(uid=OTHER))
    findings = findings_of(records=[], pools=[a_pool(lost, 3)])
    (recovered,) = findings.recovered
    (placeholder,) = findings.placeholders
    assert (recovered.name, recovered.attempt, recovered.spec, recovered.next_reconcile_at) == (
        lost.maker,
        3,
        None,
        NOW,
    )
    assert (recovered.current.create_requested_at, recovered.current.spared_until) == (NOW, NOW + SPARED_FOR)
    assert recovered.with_next(None).attempt == 4
    assert (placeholder.owner.uid, placeholder.state, placeholder.demand) == (
        OTHER,
        WorkloadState.ACTIVE,
        {lost.maker: None},
    )


def test_slices_whose_jobset_has_no_record_get_one_in_which_nothing_is_confirmed() -> None:
    first, second = (a_record(**SERVING, job=a_job(job_index=index)) for index in range(2))
    gone = a_record(job=a_job(job_index=2), phase=Phase.GONE)
    pools = [a_pool(first), a_pool(second)]
    findings = findings_of(records=[first, second, gone], pools=pools, workloads=[])
    (placeholder,) = findings.placeholders
    assert (placeholder.owner, placeholder.state) == (first.owner, WorkloadState.ACTIVE)
    assert placeholder.demand == {first.maker: None, second.maker: None}
    assert (findings.recovered, findings.mended) == ((), ())


def test_a_placeholder_has_the_claims_of_slices_that_none_has() -> None:
    claim, before = a_record(**SERVING, attempt=2, earlier=(1,)), going()
    for records in ([claim, before], [before]):
        (placeholder,) = findings_of(records=records, pools=[], workloads=[]).placeholders
        assert placeholder.demand == {claim.maker: None}


def test_a_jobset_whose_record_cannot_be_read_needs_no_placeholder() -> None:
    serving = a_record(**SERVING)
    on_record = Records(workloads={}, slices={serving.id: serving}, unreadable=frozenset({serving.owner.uid}))
    assert check_inventory(on_record, [a_pool(serving)], NOW) == InventoryFindings()


def test_a_pool_whose_record_cannot_be_read_is_left_alone() -> None:
    serving = a_record(**SERVING)
    on_record = Records(workloads={}, slices={}, unreadable=frozenset({serving.id}))
    assert check_inventory(on_record, [a_pool(serving)], NOW) == InventoryFindings()


@pytest.mark.parametrize("state", WorkloadState)
def test_an_orphan_is_its_claims_slice_and_spared_whatever_its_jobset_does(state: WorkloadState) -> None:
    (recovered,) = findings_of(records=[], pools=[a_pool(a_record(), 3)], workloads=[a_jobset(state=state)]).recovered
    assert (recovered.attempt, recovered.claim.tried, recovered.unclaimed) == (3, 3, False)
    assert recovered.current.spared_until == NOW + SPARED_FOR


def test_an_orphan_of_a_known_jobset_needs_no_placeholder() -> None:
    lost = a_record()
    findings = findings_of(records=[], pools=[a_pool(lost)])
    assert (len(findings.recovered), findings.placeholders) == (1, ())


# slices that a claim had before


HAD_BEFORE: dict[str, Any] = {**SERVING, "attempt": 3, "earlier": (2,)}


def test_a_pool_without_a_record_of_a_claim_that_has_another_slice_becomes_a_slice_that_no_claim_has() -> None:
    claim = a_record(**HAD_BEFORE)
    pools = [a_pool(claim, 3), a_pool(claim, 2), a_pool(claim, 1)]
    findings = findings_of(records=[claim, going(2)], pools=pools)
    (stray,) = findings.strays
    assert (stray.id, stray.maker, stray.attempt) == (slice_id(claim.maker, 1), claim.maker, 1)
    assert (stray.current.create_requested_at, stray.current.ours_since) == (NOW, NOW)
    assert (stray.current.spared_until, stray.next_reconcile_at) == (NOW + SPARED_FOR, NOW)
    assert (stray.goes, stray.fits, stray.phase, stray.chips_bought) == (True, False, Phase.RELEASING, 16)
    ((before, after),) = findings.mended
    assert (before, after) == (claim, with_fields(claim, earlier=(1, 2), next_reconcile_at=NOW, look_at=NOW))
    assert (findings.recovered, findings.orphans) == ((), 0)


def test_a_claim_without_a_slice_learns_of_a_pool_that_it_had_and_waits_for_its_end() -> None:
    claim = a_record(phase=Phase.GONE, reason=Reason.RELEASED, attempt=2, next_reconcile_at=None)
    findings = findings_of(records=[claim], pools=[a_pool(claim, 1)])
    assert [each.attempt for each in findings.strays] == [1]
    ((_, after),) = findings.mended
    assert (had(after), after.current, after.next_reconcile_at) == ((1,), claim.current, NOW)


def test_a_pool_with_a_record_that_its_claim_does_not_know_of_is_known_to_it_again() -> None:
    claim, before = a_record(**{**HAD_BEFORE, "earlier": ()}), going(2)
    findings = findings_of(records=[claim, before], pools=[a_pool(claim, 3), a_pool(claim, 2)])
    ((_, after),) = findings.mended
    assert (had(after), findings.strays) == ((2,), ())


def test_the_number_of_a_pool_that_is_missing_from_its_record_is_not_used_again() -> None:
    serving = a_record(**SERVING)
    findings = findings_of(records=[serving], pools=[a_pool(serving), a_pool(serving, 4)])
    ((_, after),) = findings.mended
    assert after.with_next(None).attempt == 5
    assert [each.attempt for each in findings.strays] == [4]


def test_several_pools_without_records_of_one_claim_become_a_slice_each() -> None:
    claim = a_record(**SERVING, attempt=3)
    findings = findings_of(records=[claim], pools=[a_pool(claim, number) for number in (3, 2, 1)])
    assert {each.id for each in findings.strays} == {slice_id(claim.maker, 1), slice_id(claim.maker, 2)}
    assert [had(after) for _, after in findings.mended] == [(1, 2)]


def test_an_earlier_slice_that_has_neither_a_record_nor_a_pool_is_forgotten() -> None:
    claim = a_record(**HAD_BEFORE)
    findings = findings_of(records=[claim], pools=[a_pool(claim, 3)])
    assert findings == InventoryFindings(
        mended=((claim, with_fields(claim, earlier=(), next_reconcile_at=NOW, look_at=NOW)),)
    )


@pytest.mark.parametrize("stands", [True, False], ids=["with its pool", "without it"])
def test_an_earlier_slice_that_has_a_record_stays(stands: bool) -> None:
    """Without its pool it is about to be forgotten, by its own decision: the claim is told then."""
    claim = a_record(**HAD_BEFORE)
    pools = [a_pool(claim, 3), *([a_pool(claim, 2)] if stands else [])]
    assert findings_of(records=[claim, going(2)], pools=pools) == InventoryFindings()


@pytest.mark.parametrize("stands", [True, False], ids=["with its pool", "without it"])
def test_an_earlier_slice_whose_record_cannot_be_read_stays_and_gets_no_other_record(stands: bool) -> None:
    claim = a_record(**HAD_BEFORE)
    pools = [a_pool(claim, 3), *([a_pool(claim, 2)] if stands else [])]
    found = findings_of(records=[claim], pools=pools, unreadable=slice_id(claim.maker, 2))
    assert found == InventoryFindings()


def test_a_pool_of_a_claim_whose_record_cannot_be_read_gets_none_beside_an_earlier_slice() -> None:
    before = going(1)
    found = findings_of(records=[before], pools=[a_pool(before, 1), a_pool(before, 2)], unreadable=before.maker)
    assert found == InventoryFindings()


def test_a_slice_that_no_claim_has_learns_of_no_others() -> None:
    claim, first, second = a_record(**{**HAD_BEFORE, "earlier": (1, 2)}), going(1), going(2)
    found = findings_of(records=[claim, first, second], pools=[a_pool(claim, number) for number in (1, 2, 3)])
    assert found == InventoryFindings()


@pytest.mark.parametrize("since", [NOW, NOW - OWNERLESS_AFTER - MINUTE])
@pytest.mark.parametrize("state", WorkloadState)
def test_a_slice_that_no_claim_has_is_not_ownerless_since_it_is_being_released(
    state: WorkloadState, since: datetime
) -> None:
    before, jobset = going(), a_jobset(state=state, state_since=since)
    assert findings_of(records=[before], pools=[a_pool(before)], workloads=[jobset]).ownerless == 0


# records that contradict what is seen


@pytest.mark.parametrize(
    ("record", "with_pool", "state"),
    [
        pytest.param(a_record(**SERVING), False, WorkloadState.ACTIVE, id="ready without its pool"),
        pytest.param(a_record(**SERVING), True, WorkloadState.COMPLETED, id="ready though its JobSet completed"),
        pytest.param(a_record(**SERVING), True, WorkloadState.SUSPENDED, id="ready though its JobSet is suspended"),
        pytest.param(
            a_record(**{**SERVING, "next_reconcile_at": NOW + CHECK_AGAIN_AFTER + MINUTE}),
            True,
            WorkloadState.COMPLETED,
            id="ready, and due later, though its JobSet completed",
        ),
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
    assert (after.current.create_requested_at, after.next_reconcile_at, had(after)) == (NOW, NOW, ())
    assert findings.strays == ()


def test_a_release_requested_in_the_record_alone_is_found() -> None:
    record = a_record(**SERVING, release_requested=True)
    ((_, after),) = findings_of(records=[record], pools=[a_pool(record)]).mended
    assert after.next_reconcile_at == NOW


def test_two_pools_of_one_unknown_claim_become_its_slice_the_later_one_and_a_slice_that_it_had_before() -> None:
    lost = a_record()
    findings = findings_of(records=[], pools=[a_pool(lost, 2), a_pool(lost, 1)])
    (recovered,), (stray,) = findings.recovered, findings.strays
    assert (recovered.attempt, had(recovered)) == (2, (1,))
    assert (stray.id, stray.unclaimed, stray.last_claim) == (slice_id(lost.maker, 1), True, recovered.claimed_by)


def test_the_limit_of_orphans_grows_with_a_fifth_of_the_ready_slices() -> None:
    serving = [a_record(**SERVING, job=a_job(job_index=index)) for index in range(60)]
    lost = [a_record(job=a_job(uid=WorkloadUid(f"uid-{number}"))) for number in range(14)]
    findings = findings_of(records=serving, pools=[a_pool(record) for record in [*serving, *lost]])
    assert (len(findings.recovered), findings.left_out) == (12, 2)


LONG_AGO = NOW - OWNERLESS_AFTER - MINUTE
