"""Which questions follow from heartbeats, and what the inventory check finds in JobSets, records and pools."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from tests.builders import CLUSTER, MINUTE, NOW, a_job, a_jobset, a_record
from tpu_slices.domain.model.facts import Heartbeat, Question, WorkloadState
from tpu_slices.domain.model.observations import PoolSeen
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.records import SliceRecord, TerminatingAttempt
from tpu_slices.domain.model.slices import Owner, OwnerKind, WorkloadUid, pool_name
from tpu_slices.domain.model.workloads import WorkloadRecord
from tpu_slices.domain.reconciling.deletion import SILENT_AFTER
from tpu_slices.domain.reconciling.inventory import (
    InventoryFindings,
    Records,
    RelayHeartbeat,
    check_inventory,
    digest_of,
    hosts_to_be_listed,
    silent_since,
    suspicions,
    with_heartbeat,
)

OURS = a_jobset(last_seen_at=NOW - 60 * MINUTE)
OTHER = WorkloadUid("uid-other")
SERVING = {"phase": Phase.READY, "create_requested_at": NOW, "next_reconcile_at": None}


def a_heartbeat(**changes: object) -> RelayHeartbeat:
    fields = {"cluster": CLUSTER, "received_at": NOW, "count": 1, "digest": digest_of([OTHER])}
    return RelayHeartbeat(**{**fields, **changes})  # type: ignore[arg-type]  # the test names its fields


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


@pytest.mark.parametrize(
    ("heartbeat", "questions"),
    [
        pytest.param(None, (), id="never received: no question"),
        pytest.param(RelayHeartbeat(cluster=CLUSTER), (), id="checked before it was ever received: no question"),
        pytest.param(a_heartbeat(received_at=NOW - 4 * MINUTE), (), id="silent: no question"),
        pytest.param(a_heartbeat(digest=digest_of([OURS.owner.uid])), (), id="same digest: no question"),
        pytest.param(a_heartbeat(), (Question(),), id="another digest: ask for the list"),
        pytest.param(
            a_heartbeat(uids=(OTHER,), uids_received_at=NOW - 6 * MINUTE), (Question(),), id="old list: ask for another"
        ),
        pytest.param(a_heartbeat(uids=(OURS.owner.uid, OTHER), uids_received_at=NOW), (), id="listed: no question"),
        pytest.param(
            a_heartbeat(uids=(OTHER,), uids_received_at=NOW),
            (Question(owner=Owner(kind=OwnerKind.JOBSET, namespace="research", name="llama", uid=OURS.owner.uid)),),
            id="not listed: ask about the JobSet",
        ),
        pytest.param(
            a_heartbeat(uids=(), digest=digest_of([]), uids_received_at=NOW),
            (Question(owner=Owner(kind=OwnerKind.JOBSET, namespace="research", name="llama", uid=OURS.owner.uid)),),
            id="empty list: ask about the JobSet",
        ),
    ],
)
def test_a_heartbeat_that_lacks_a_jobset_leads_to_questions_only(
    heartbeat: RelayHeartbeat | None, questions: tuple[Question, ...]
) -> None:
    assert suspicions([OURS], heartbeat, NOW) == questions


@pytest.mark.parametrize(
    ("heartbeat", "since"),
    [
        pytest.param(None, None, id="no sweep yet"),
        pytest.param(RelayHeartbeat(cluster=CLUSTER), None, id="not expected yet"),
        pytest.param(a_heartbeat(received_at=NOW - SILENT_AFTER), None, id="heard"),
        pytest.param(a_heartbeat(received_at=NOW - 4 * MINUTE), NOW - 4 * MINUTE, id="silent"),
        pytest.param(a_heartbeat(received_at=None, expected_since=NOW - 3 * MINUTE), None, id="expected"),
        pytest.param(a_heartbeat(received_at=None, expected_since=NOW - 9 * MINUTE), NOW - 9 * MINUTE, id="never"),
        pytest.param(
            a_heartbeat(received_at=NOW - MINUTE, expected_since=NOW - 9 * MINUTE), None, id="heard since it started"
        ),
    ],
)
def test_a_relay_is_silent_without_a_heartbeat_for_3_minutes(
    heartbeat: RelayHeartbeat | None, since: datetime | None
) -> None:
    assert silent_since(heartbeat, NOW) == since


def test_a_jobset_seen_after_the_list_was_made_is_not_asked_about() -> None:
    newer = a_jobset(last_seen_at=NOW)
    assert suspicions([newer], a_heartbeat(uids=(), uids_received_at=NOW - MINUTE), NOW) == ()


def test_equal_sets_have_equal_digests_whatever_their_order() -> None:
    assert digest_of([OURS.owner.uid, OTHER]) == digest_of([OTHER, OURS.owner.uid])
    assert digest_of([OURS.owner.uid]) != digest_of([OTHER])


def test_a_heartbeat_makes_the_inventory_check_due_only_with_the_list() -> None:
    known = a_heartbeat(next_inventory_check_at=NOW + 9 * MINUTE)
    beat = Heartbeat(count=1, digest="d", hosts_digest=0)
    assert with_heartbeat(known, beat, 0, NOW).next_inventory_check_at == NOW + 9 * MINUTE
    listed = with_heartbeat(known, replace(beat, uids=(OTHER,)), 0, NOW)
    assert (listed.next_inventory_check_at, listed.uids, listed.uids_received_at) == (None, (OTHER,), NOW)
    assert with_heartbeat(listed, beat, 0, NOW).uids == (OTHER,)


@pytest.mark.parametrize(("recorded", "confirmed_at"), [(7, NOW), (8, NOW - MINUTE)])
def test_a_heartbeat_confirms_the_hosts_on_record_if_their_digests_agree(recorded: int, confirmed_at: datetime) -> None:
    known = a_heartbeat(hosts_confirmed_at=NOW - MINUTE)
    after = with_heartbeat(known, Heartbeat(count=1, digest="d", hosts_digest=7), recorded, NOW)
    assert after.hosts_confirmed_at == confirmed_at


@pytest.mark.parametrize(
    ("last", "since"),
    [
        pytest.param(NOW - MINUTE, NOW - 60 * MINUTE, id="without a gap"),
        pytest.param(NOW - 4 * MINUTE, NOW, id="after a silence"),
        pytest.param(None, NOW, id="the first heartbeat"),
    ],
)
def test_a_silence_is_remembered(last: datetime | None, since: datetime) -> None:
    known = a_heartbeat(received_at=last, uninterrupted_since=NOW - 60 * MINUTE)
    after = with_heartbeat(known, Heartbeat(count=1, digest="d", hosts_digest=0), 0, NOW)
    assert after.uninterrupted_since == since


@pytest.mark.parametrize(
    ("changes", "asked"),
    [
        pytest.param({"hosts_confirmed_at": NOW - 2 * MINUTE}, False, id="they agreed lately"),
        pytest.param({"hosts_confirmed_at": NOW - 4 * MINUTE}, True, id="they differ"),
        pytest.param({"uninterrupted_since": NOW - 4 * MINUTE}, True, id="they never agreed"),
        pytest.param(
            {"hosts_confirmed_at": NOW - 9 * MINUTE, "hosts_asked_at": NOW - MINUTE}, False, id="asked moments ago"
        ),
        pytest.param(
            {"hosts_confirmed_at": NOW - 9 * MINUTE, "received_at": NOW - 4 * MINUTE}, False, id="the relay is silent"
        ),
    ],
)
def test_the_relay_is_asked_for_all_hosts_if_they_differ_for_a_while(
    changes: dict[str, object], *, asked: bool
) -> None:
    assert hosts_to_be_listed(a_heartbeat(**changes), NOW) is asked


def test_consistent_jobsets_records_and_pools_give_no_findings() -> None:
    serving = a_record(**SERVING)
    assert findings_of(records=[serving], pools=[a_pool(serving)]) == InventoryFindings()


def test_an_orphan_is_adopted_with_its_attempt_and_a_placeholder_for_its_jobset() -> None:
    lost = a_record(job=a_job(uid=OTHER))
    findings = findings_of(records=[], pools=[a_pool(lost, 3)])
    (adopted,) = findings.adopted
    (placeholder,) = findings.placeholders
    assert (adopted.id, adopted.attempt, adopted.spec, adopted.next_reconcile_at) == (lost.id, 3, None, NOW)
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
    assert (findings.adopted, findings.mended) == ((), ())


def test_a_jobset_whose_record_cannot_be_read_needs_no_placeholder() -> None:
    serving = a_record(**SERVING)
    on_record = Records(workloads={}, slices={serving.id: serving}, unreadable=frozenset({serving.owner.uid}))
    assert check_inventory(on_record, [a_pool(serving)], NOW) == InventoryFindings()


def test_a_pool_whose_record_cannot_be_read_is_left_alone() -> None:
    serving = a_record(**SERVING)
    on_record = Records(workloads={}, slices={}, unreadable=frozenset({serving.id}))
    assert check_inventory(on_record, [a_pool(serving)], NOW) == InventoryFindings()


def test_an_orphan_of_a_known_jobset_needs_no_placeholder() -> None:
    lost = a_record()
    findings = findings_of(records=[], pools=[a_pool(lost)])
    assert (len(findings.adopted), findings.placeholders) == (1, ())


def test_a_pool_of_an_attempt_missing_from_its_record_becomes_terminating() -> None:
    serving = a_record(**SERVING, attempt=3, terminating=(TerminatingAttempt(attempt=2),))
    findings = findings_of(records=[serving], pools=[a_pool(serving, 3), a_pool(serving, 2), a_pool(serving, 1)])
    ((_, after),) = findings.mended
    assert [each.attempt for each in after.terminating] == [2, 1]
    assert after.next_reconcile_at == NOW


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
    assert (len(findings.adopted), findings.left_out) == (10, 4)


@pytest.mark.parametrize("phase", [Phase.GONE, Phase.WAITING, Phase.QUEUED, Phase.BLOCKED])
def test_a_pool_that_its_record_counts_as_never_requested_is_reconciled_again(phase: Phase) -> None:
    """The answer to a creation was lost and the next one refused: the pool of the first is there all the same."""
    record = a_record(phase=phase, create_requested_at=None, next_reconcile_at=None)
    findings = findings_of(
        records=[record], pools=[a_pool(record)], workloads=[a_jobset(state=WorkloadState.COMPLETED)]
    )
    ((_, after),) = findings.mended
    assert (after.create_requested_at, after.next_reconcile_at, after.terminating) == (NOW, NOW, ())


def test_a_release_requested_in_the_record_alone_is_found() -> None:
    record = a_record(**SERVING, release_requested=True)
    ((_, after),) = findings_of(records=[record], pools=[a_pool(record)]).mended
    assert after.next_reconcile_at == NOW


def test_two_pools_of_one_unknown_slice_become_one_record_of_the_later_attempt() -> None:
    lost = a_record()
    findings = findings_of(records=[], pools=[a_pool(lost, 2), a_pool(lost, 1)])
    assert [adopted.attempt for adopted in findings.adopted] == [2]


def test_the_limit_of_orphans_grows_with_a_fifth_of_the_ready_slices() -> None:
    serving = [a_record(**SERVING, job=a_job(job_index=index)) for index in range(60)]
    lost = [a_record(job=a_job(uid=WorkloadUid(f"uid-{number}"))) for number in range(14)]
    findings = findings_of(records=serving, pools=[a_pool(record) for record in [*serving, *lost]])
    assert (len(findings.adopted), findings.left_out) == (12, 2)
