"""What follows from silence (questions only) and what the audit finds in three books."""

from __future__ import annotations

import pytest

from tests.builders import CLUSTER, MINUTE, NOW, a_job, a_jobset, a_record
from tpu_slices.domain.model.facts import Heartbeat, Question, WorkloadState
from tpu_slices.domain.model.observations import PoolSeen
from tpu_slices.domain.model.records import Phase, SliceRecord, TerminatingAttempt
from tpu_slices.domain.model.slices import Owner, OwnerKind, WorkloadUid, pool_name
from tpu_slices.domain.model.workloads import WorkloadRecord
from tpu_slices.domain.reconciling.inventory import (
    InventoryFindings,
    RelayHeartbeat,
    check_inventory,
    digest_of,
    suspicions,
    with_heartbeat,
)

OURS = a_jobset(last_seen_at=NOW - 60 * MINUTE)
OTHER = WorkloadUid("uid-other")
SERVING = {"phase": Phase.READY, "create_requested_at": NOW, "next_reconcile_at": None}


def a_watch(**changes: object) -> RelayHeartbeat:
    fields = {"cluster": CLUSTER, "received_at": NOW, "count": 1, "digest": digest_of([OTHER])}
    return RelayHeartbeat(**{**fields, **changes})  # type: ignore[arg-type]  # the test names fields of RelayHeartbeat


def a_pool(record: SliceRecord, attempt: int = 1) -> PoolSeen:
    return PoolSeen(name=pool_name(record.id, attempt), slice_id=record.id, attempt=attempt, job=record.job)


def audited(
    *, records: list[SliceRecord], pools: list[PoolSeen], workloads: list[WorkloadRecord] | None = None
) -> InventoryFindings:
    known = [OURS] if workloads is None else workloads
    return check_inventory(
        {jobset.owner.uid: jobset for jobset in known}, {record.id: record for record in records}, pools, NOW
    )


@pytest.mark.parametrize(
    ("heartbeat", "questions"),
    [
        pytest.param(None, (), id="never heard: nothing follows"),
        pytest.param(RelayHeartbeat(cluster=CLUSTER), (), id="audited before it was ever heard: nothing follows"),
        pytest.param(a_watch(received_at=NOW - 4 * MINUTE), (), id="silent: nothing follows"),
        pytest.param(a_watch(digest=digest_of([OURS.owner.uid])), (), id="same digest: nothing to ask"),
        pytest.param(a_watch(), (Question(),), id="another digest: ask for the list"),
        pytest.param(
            a_watch(uids=(OTHER,), uids_received_at=NOW - 6 * MINUTE), (Question(),), id="old list: ask for another"
        ),
        pytest.param(a_watch(uids=(OURS.owner.uid, OTHER), uids_received_at=NOW), (), id="listed: lives"),
        pytest.param(
            a_watch(uids=(OTHER,), uids_received_at=NOW),
            (Question(owner=Owner(kind=OwnerKind.JOBSET, namespace="research", name="llama", uid=OURS.owner.uid)),),
            id="not listed: ask whether it lives",
        ),
        pytest.param(
            a_watch(uids=(), digest=digest_of([]), uids_received_at=NOW),
            (Question(owner=Owner(kind=OwnerKind.JOBSET, namespace="research", name="llama", uid=OURS.owner.uid)),),
            id="empty list: ask whether it lives",
        ),
    ],
)
def test_from_silence_follow_questions_only(heartbeat: RelayHeartbeat | None, questions: tuple[Question, ...]) -> None:
    assert suspicions([OURS], heartbeat, NOW) == questions


def test_a_jobset_that_was_heard_of_after_the_list_was_made_is_not_suspected() -> None:
    newer = a_jobset(last_seen_at=NOW)
    assert suspicions([newer], a_watch(uids=(), uids_received_at=NOW - MINUTE), NOW) == ()


def test_equal_sets_have_equal_digests_whatever_their_order() -> None:
    assert digest_of([OURS.owner.uid, OTHER]) == digest_of([OTHER, OURS.owner.uid])
    assert digest_of([OURS.owner.uid]) != digest_of([OTHER])


def test_a_heartbeat_with_the_list_makes_the_audit_due_and_one_without_does_not() -> None:
    audited_later = a_watch(next_inventory_check_at=NOW + 9 * MINUTE)
    beat = Heartbeat(count=1, digest="d")
    assert with_heartbeat(audited_later, beat, CLUSTER, NOW).next_inventory_check_at == NOW + 9 * MINUTE
    listed = with_heartbeat(audited_later, Heartbeat(count=1, digest="d", uids=(OTHER,)), CLUSTER, NOW)
    assert (listed.next_inventory_check_at, listed.uids, listed.uids_received_at) == (None, (OTHER,), NOW)
    assert with_heartbeat(listed, beat, CLUSTER, NOW).uids == (OTHER,)


def test_books_that_agree_give_no_findings() -> None:
    serving = a_record(**SERVING)
    assert audited(records=[serving], pools=[a_pool(serving)]) == InventoryFindings()


def test_an_orphan_is_adopted_with_its_attempt_and_its_jobset_to_ask_by() -> None:
    lost = a_record(job=a_job(uid=OTHER))
    findings = audited(records=[], pools=[a_pool(lost, 3)])
    (adopted,) = findings.adopted
    (placeholder,) = findings.placeholders
    assert (adopted.id, adopted.attempt, adopted.spec, adopted.next_reconcile_at) == (lost.id, 3, None, NOW)
    assert (placeholder.owner.uid, placeholder.state, placeholder.demand) == (
        OTHER,
        WorkloadState.ACTIVE,
        {lost.id: None},
    )


def test_an_orphan_of_a_known_jobset_needs_no_guardian() -> None:
    lost = a_record()
    findings = audited(records=[], pools=[a_pool(lost)])
    assert (len(findings.adopted), findings.placeholders) == (1, ())


def test_a_pool_of_an_attempt_that_its_record_does_not_know_is_gone_after() -> None:
    serving = a_record(**SERVING, attempt=3, terminating=(TerminatingAttempt(attempt=2),))
    findings = audited(records=[serving], pools=[a_pool(serving, 3), a_pool(serving, 2), a_pool(serving, 1)])
    ((_, after),) = findings.mended
    assert [left.attempt for left in after.terminating] == [2, 1]
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
def test_a_record_that_contradicts_the_other_books_is_looked_at_again(
    record: SliceRecord, with_pool: bool, state: WorkloadState
) -> None:
    pools = [a_pool(record)] if with_pool else []
    findings = audited(records=[record], pools=pools, workloads=[a_jobset(state=state)])
    ((before, after),) = findings.mended
    assert (before, after.next_reconcile_at) == (record, NOW)


def test_more_orphans_than_one_audit_takes_on_are_left_to_a_person() -> None:
    lost = [a_record(job=a_job(uid=WorkloadUid(f"uid-{number}"))) for number in range(14)]
    findings = audited(records=[], pools=[a_pool(record) for record in lost])
    assert (len(findings.adopted), findings.left_out) == (10, 4)


@pytest.mark.parametrize("phase", [Phase.GONE, Phase.WAITING, Phase.QUEUED, Phase.BLOCKED])
def test_a_pool_that_its_record_believes_was_never_ordered_will_be_looked_at(phase: Phase) -> None:
    """An order was never heard of again, the next one refused: the pool of the first is there all the same."""
    record = a_record(phase=phase, create_requested_at=None, next_reconcile_at=None)
    findings = audited(records=[record], pools=[a_pool(record)], workloads=[a_jobset(state=WorkloadState.COMPLETED)])
    ((_, after),) = findings.mended
    assert (after.create_requested_at, after.next_reconcile_at, after.terminating) == (NOW, NOW, ())


def test_a_release_that_a_person_asked_for_in_the_record_alone_is_found() -> None:
    record = a_record(**SERVING, release_requested=True)
    ((_, after),) = audited(records=[record], pools=[a_pool(record)]).mended
    assert after.next_reconcile_at == NOW


def test_two_pools_of_one_lost_slice_are_one_record_of_the_later_attempt() -> None:
    lost = a_record()
    findings = audited(records=[], pools=[a_pool(lost, 2), a_pool(lost, 1)])
    assert [adopted.attempt for adopted in findings.adopted] == [2]


def test_the_cap_on_orphans_grows_with_a_fifth_of_what_is_ready() -> None:
    serving = [a_record(**SERVING, job=a_job(job_index=index)) for index in range(60)]
    lost = [a_record(job=a_job(uid=WorkloadUid(f"uid-{number}"))) for number in range(14)]
    findings = audited(records=serving, pools=[a_pool(record) for record in [*serving, *lost]])
    assert (len(findings.adopted), findings.left_out) == (12, 2)
