"""Why a JobSet waits: the report on it, by examples and by properties."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import MINUTE, NOW, a_job, a_jobset, a_record, a_spec
from tpu_slices.domain.model.facts import Pinning, WorkloadState
from tpu_slices.domain.model.reasons import SERVED, Phase, Reason, ReportReason
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.domain.reporting.reason_texts import PINNED_TEXTS, PODS_REFUSED
from tpu_slices.domain.reporting.reports import (
    MOST_WAITS,
    RENEW,
    SOON,
    called_for,
    goes_without_saying,
    is_news,
    next_report,
    report,
)
from tpu_slices.domain.reporting.waits import MOST_NAMED, QueueState

LATER = NOW + 5 * MINUTE


def a_slice(index: int, phase: Phase, reason: Reason, **changes: Any) -> SliceRecord:
    return a_record(job=a_job(job_index=index), phase=phase, reason=reason, message="Said.", **changes)


def ready(index: int) -> SliceRecord:
    return a_slice(index, Phase.READY, Reason.READY)


def out_of_stock(index: int, **changes: Any) -> SliceRecord:
    return a_slice(index, Phase.WAITING, Reason.STOCKOUT, **{"retry_at": NOW + 3 * MINUTE, **changes})


def test_the_message_counts_ready_slices_and_says_what_the_others_wait_for() -> None:
    made = report(a_jobset(), [ready(0), ready(1), out_of_stock(2), ready(3)], QueueState(), NOW)
    assert made.message == (
        "3 of 4 slices ready; llama-slice-2 since 12:00 UTC: us-central2-b is out of tpu-v6e-slice 4x4, "
        "next attempt at 12:03:00 UTC. "
        "It is retried automatically. Another zone, a smaller topology, spot or a reservation may be available sooner."
    )
    assert (made.reason, made.requested, made.ready) == (ReportReason.WAITING, 4, 3)


def test_a_caveat_of_the_slices_is_told_beside_what_they_wait_for_and_once_they_are_ready() -> None:
    caveat = "replicatedJob slice: parallelism, completions: the Job has 1 and 1"
    for slices in ([out_of_stock(0, spec=a_spec(caveat=caveat))], [replace(ready(0), spec=a_spec(caveat=caveat))]):
        assert report(a_jobset(), slices, QueueState(), NOW).message.endswith(f" Warning: {caveat}.")


@pytest.mark.parametrize(
    ("pinning", "slices", "told"),
    [
        (None, [ready(0)], "1 of 1 slices ready."),
        (Pinning.POLICY, [ready(0)], "1 of 1 slices ready."),
        (Pinning.WEBHOOK, [ready(0)], "1 of 1 slices ready."),
        (Pinning.NOTHING, [ready(0)], f"1 of 1 slices ready. {PINNED_TEXTS[Pinning.NOTHING]}"),
        (Pinning.REFUSED, [ready(0)], f"1 of 1 slices ready. {PODS_REFUSED}"),
        (Pinning.REFUSED, [a_slice(0, Phase.QUEUED, Reason.REQUESTED)], f"No action needed. {PODS_REFUSED}"),
        (Pinning.NOTHING, [a_slice(0, Phase.QUEUED, Reason.REQUESTED)], "not reconciled yet. No action needed."),
    ],
)
def test_by_what_pods_are_pinned_is_in_the_report_and_its_message_says_so_where_it_endangers_them(
    pinning: Pinning | None, slices: list[SliceRecord], told: str
) -> None:
    made = report(a_jobset(), slices, QueueState(pinning=pinning), NOW)
    assert made.pinning is pinning
    assert made.message.endswith(told)


def test_the_report_of_a_jobset_without_pods_does_not_say_by_what_they_are_pinned() -> None:
    ended = a_jobset(state=WorkloadState.COMPLETED)
    assert report(ended, [ready(0)], QueueState(pinning=Pinning.POLICY), NOW).pinning is None


def test_slices_with_the_same_reason_are_one_wait_from_the_first_to_the_next_attempt() -> None:
    slices = [out_of_stock(i, waits_since=NOW - i * MINUTE, retry_at=NOW + i * MINUTE) for i in range(1, 31)]
    (wait,) = report(a_jobset(), slices, QueueState(), NOW).waits
    assert (wait.count, len(wait.jobs)) == (30, MOST_NAMED)
    assert (wait.since, wait.retry_at) == (NOW - 30 * MINUTE, NOW + MINUTE)
    message = report(a_jobset(), slices, QueueState(), NOW).message
    assert "llama-slice-1, llama-slice-2, llama-slice-3 and 27 more since 11:30 UTC: us-central2-b is out of" in message


def test_a_slice_waits_since_it_was_last_ready_however_many_attempts_failed() -> None:
    transitions = [
        Reason.CREATING,
        Reason.READY,
        Reason.HOSTS_LOST,
        Reason.STOCKOUT,
        Reason.CREATING,
        Reason.STOCKOUT,
    ]
    record = a_record()
    for minute, reason in enumerate(transitions):
        record = record.transitioned(NOW + minute * MINUTE, reason, "Said.")
    (wait,) = report(a_jobset(), [record], QueueState(), NOW + timedelta(days=1)).waits
    assert wait.since == NOW + 2 * MINUTE
    assert (
        " since 2026-03-01 12:02 UTC: " in report(a_jobset(), [record], QueueState(), NOW + timedelta(days=1)).message
    )


def test_the_worst_wait_comes_first() -> None:
    slices = [
        a_slice(0, Phase.PROVISIONING, Reason.CREATING),
        out_of_stock(1),
        a_slice(2, Phase.REFUSED, Reason.DOES_NOT_FIT),
        a_slice(3, Phase.BLOCKED, Reason.INVALID_CONFIGURATION),
    ]
    made = report(a_jobset(), slices, QueueState(), NOW)
    assert [wait.phase for wait in made.waits] == [Phase.BLOCKED, Phase.REFUSED, Phase.WAITING, Phase.PROVISIONING]
    assert "; 1 more wait for other reasons." in made.message


def test_a_queued_slices_wait_has_its_queue_position() -> None:
    first, second = (a_slice(index, Phase.QUEUED, Reason.OPERATION_LIMIT) for index in (0, 1))
    made = report(a_jobset(), [first, second], QueueState({first.id: 7}, running=5), NOW)
    (wait,) = made.waits
    text = "queued, because GKE limits the concurrent operations on a cluster"
    assert (wait.message, wait.count) == (f"{text} (queue position 7, 5 running)", 2)
    (behind,) = report(a_jobset(), [second], QueueState({first.id: 7}, running=5), NOW).waits
    assert behind.message == f"{text} (queue position above 1)"


@pytest.mark.parametrize(
    ("slices", "reason"),
    [
        ([], ReportReason.NOT_REQUESTED),
        ([ready(0)], ReportReason.READY),
        ([ready(0), a_slice(1, Phase.READY, Reason.SPEC_DRIFTED)], ReportReason.READY),
        ([ready(0), a_slice(1, Phase.PROVISIONING, Reason.HOSTS_JOINING)], ReportReason.PROVISIONING),
        ([a_slice(0, Phase.QUEUED, Reason.OPERATION_LIMIT)], ReportReason.PROVISIONING),
        ([a_slice(0, Phase.PROVISIONING, Reason.HOSTS_LOST)], ReportReason.WAITING),
        ([a_slice(0, Phase.READY, Reason.LEADER_STILL_WAITING)], ReportReason.NOT_RUNNING),
        ([ready(0), a_slice(1, Phase.READY, Reason.PODS_NOT_RUNNING)], ReportReason.NOT_RUNNING),
        ([ready(0), a_slice(1, Phase.READY, Reason.PODS_APART)], ReportReason.NOT_RUNNING),
        ([ready(0), a_slice(1, Phase.READY, Reason.IDLE)], ReportReason.IDLE),
        ([a_slice(0, Phase.READY, Reason.IDLE), a_slice(1, Phase.READY, Reason.PODS_APART)], ReportReason.NOT_RUNNING),
        (
            [a_slice(0, Phase.READY, Reason.IDLE), a_slice(1, Phase.QUEUED, Reason.OPERATION_LIMIT)],
            ReportReason.WAITING,
        ),
        ([ready(0), a_slice(1, Phase.READY, Reason.USED_BY_OTHERS)], ReportReason.READY),
        ([a_slice(0, Phase.WAITING, Reason.HOSTS_NOT_USABLE)], ReportReason.WAITING),
        ([a_slice(0, Phase.REFUSED, Reason.LEADER_UNSCHEDULABLE)], ReportReason.BLOCKED),
        ([ready(0), a_slice(1, Phase.QUEUED, Reason.DEMAND_STALE)], ReportReason.READY),
        ([a_slice(0, Phase.QUEUED, Reason.DEMAND_STALE)], ReportReason.NOT_REQUESTED),
        ([out_of_stock(0, hold=True)], ReportReason.BLOCKED),
        ([a_slice(0, Phase.REFUSED, Reason.CHIP_LIMIT_REACHED)], ReportReason.WAITING),
        ([out_of_stock(0), a_slice(1, Phase.REFUSED, Reason.NOT_ALLOWED)], ReportReason.BLOCKED),
        ([out_of_stock(0), a_slice(1, Phase.BLOCKED, Reason.HELD)], ReportReason.BLOCKED),
    ],
)
def test_the_reason_is_that_of_the_slice_that_is_worst_off(slices: list[SliceRecord], reason: ReportReason) -> None:
    assert report(a_jobset(), slices, QueueState(), NOW).reason is reason


@pytest.mark.parametrize(
    ("state", "phase", "reason", "message"),
    [
        (
            WorkloadState.SUSPENDED,
            Phase.GONE,
            ReportReason.NOT_REQUESTED,
            (
                'The JobSet is suspended by Kueue in queue "team-a" (see `kubectl describe workloads -n research`); '
                "slices are created when it is resumed."
            ),
        ),
        (
            WorkloadState.SUSPENDED,
            Phase.RELEASING,
            ReportReason.RELEASING,
            (
                'The JobSet is suspended by Kueue in queue "team-a" (see `kubectl describe workloads -n research`); '
                "1 of 1 slices are being released; slices are created when it is resumed."
            ),
        ),
        (
            WorkloadState.COMPLETED,
            Phase.RELEASING,
            ReportReason.RELEASING,
            "The JobSet completed; 1 of 1 slices are being released.",
        ),
        (WorkloadState.DELETED, Phase.GONE, ReportReason.RELEASED, "The JobSet was deleted; no slices are left."),
    ],
)
def test_a_jobset_without_demand_is_reported_with_the_slices_that_are_left(
    state: WorkloadState, phase: Phase, reason: ReportReason, message: str
) -> None:
    jobset = a_jobset(state=state, queue="team-a")
    made = report(jobset, [a_slice(0, phase, Reason.DELETION_STARTED)], QueueState(), NOW)
    assert (made.reason, made.message) == (reason, message)


def test_a_failed_slice_is_not_hidden_among_many_that_are_provisioning() -> None:
    queued = [a_slice(i, Phase.QUEUED, Reason.OPERATION_LIMIT) for i in range(30)]
    failed = [a_slice(i, Phase.WAITING, Reason.CREATION_FAILED) for i in range(30, 60)]
    failed = [replace(record, message=f"GKE said {record.job.job_index}.") for record in failed]
    made = report(a_jobset(), [*queued, *failed, a_slice(60, Phase.PROVISIONING, Reason.HOSTS_LOST)], QueueState(), NOW)
    assert (made.reason, len(made.waits)) == (ReportReason.WAITING, MOST_WAITS)
    assert made.waits[0].reason is Reason.CREATION_FAILED
    assert "; 58 more wait for other reasons." in made.message


def test_a_pause_or_a_hold_takes_precedence_over_an_earlier_reason() -> None:
    held, paused = out_of_stock(0, hold=True), QueueState(paused="upgrade until noon.")
    (wait,) = report(a_jobset(), [held], QueueState(), NOW).waits
    assert (wait.reason, wait.retry_at) == (Reason.HELD, None)
    (wait,) = report(a_jobset(), [out_of_stock(0)], paused, NOW).waits
    assert (wait.reason, wait.retry_at) == (Reason.PAUSED, None)
    assert wait.message == "the cluster is paused: upgrade until noon"


def test_a_retry_time_that_has_passed_is_not_shown() -> None:
    (wait,) = report(a_jobset(), [out_of_stock(0, retry_at=NOW - MINUTE)], QueueState(), NOW).waits
    assert wait.retry_at is None


def test_an_unparseable_template_is_reported_with_its_error() -> None:
    made = report(a_jobset(template_error="spec.replicatedJobs: 501 are too many"), [], QueueState(), NOW)
    assert (made.reason, made.message) == (
        ReportReason.BLOCKED,
        ("No slices can be created: spec.replicatedJobs: 501 are too many. Change the JobSet and create it again."),
    )
    assert is_news(made, a_jobset(), NOW)


def test_the_end_of_a_suspension_is_announced_even_without_demand() -> None:
    suspended = a_jobset(state=WorkloadState.SUSPENDED)
    announced = a_jobset(report=report(suspended, [], QueueState(), NOW), announced_at=NOW)
    assert is_news(report(announced, [], QueueState(), LATER), announced, LATER)


def test_a_lasting_reason_keeps_its_since() -> None:
    first = report(a_jobset(), [out_of_stock(0)], QueueState(), NOW)
    announced = a_jobset(report=first)
    assert report(announced, [out_of_stock(0), out_of_stock(1)], QueueState(), LATER).since == NOW
    assert (
        report(announced, [a_slice(0, Phase.PROVISIONING, Reason.CREATING, since=LATER)], QueueState(), LATER).since
        == NOW
    )
    served = [ready(0), a_slice(1, Phase.READY, Reason.READY, since=LATER)]
    assert report(announced, served, QueueState(), LATER + MINUTE).since == LATER


@pytest.mark.parametrize(
    ("slices", "again"),
    [
        ([ready(0)], None),
        ([], None),
        ([a_slice(0, Phase.PROVISIONING, Reason.CREATING)], RENEW),
        ([out_of_stock(0)], RENEW),
        ([a_slice(0, Phase.REFUSED, Reason.NOT_ALLOWED)], RENEW),
    ],
)
def test_a_report_is_due_again_while_something_is_not_ready(slices: list[SliceRecord], again: timedelta | None) -> None:
    due = next_report(report(a_jobset(), slices, QueueState(), NOW), a_jobset(), NOW)
    assert due == (NOW + again if again else None)


def test_an_unchanged_report_is_renewed_at_intervals_and_a_new_one_announced_at_once() -> None:
    waiting = report(a_jobset(), [out_of_stock(0)], QueueState(), NOW)
    announced = a_jobset(report=waiting, announced_at=NOW)
    assert is_news(waiting, a_jobset(), NOW)
    assert not is_news(waiting, announced, NOW + RENEW - MINUTE)
    assert is_news(waiting, announced, NOW + RENEW)
    assert is_news(report(announced, [ready(0)], QueueState(), NOW), announced, NOW)


def test_that_slices_are_released_after_a_jobsets_end_is_told_only_if_it_takes_long_or_is_hindered() -> None:
    ended, suspended = a_jobset(state=WorkloadState.COMPLETED), a_jobset(state=WorkloadState.SUSPENDED)

    def not_reported(jobset: WorkloadRecord, reason: Reason, minutes: int = 0) -> bool:
        now = NOW + minutes * MINUTE
        made = report(jobset, [a_slice(0, Phase.RELEASING, reason)], QueueState(), now)
        return goes_without_saying(made, jobset, now)

    assert not_reported(ended, Reason.CLOSING_HOSTS)
    assert not_reported(ended, Reason.DELETION_QUEUED, minutes=9)
    assert not not_reported(ended, Reason.DELETION_STARTED, minutes=10)
    assert not not_reported(ended, Reason.RELEASES_STOPPED)
    assert not not_reported(suspended, Reason.CLOSING_HOSTS)
    assert not goes_without_saying(report(ended, [], QueueState(), NOW), ended, NOW)


def test_a_report_of_ready_slices_is_announced_once() -> None:
    all_ready = report(a_jobset(), [ready(0)], QueueState(), NOW)
    assert not is_news(all_ready, a_jobset(report=all_ready, announced_at=NOW), NOW + 10 * RENEW)


def test_slices_that_became_ready_again_are_announced_though_the_report_on_record_says_so() -> None:
    """What came in between may have been announced by a process that ended before it recorded that."""
    announced = a_jobset(report=report(a_jobset(), [ready(0)], QueueState(), NOW), announced_at=NOW)
    again = report(announced, [a_slice(0, Phase.READY, Reason.READY, since=LATER)], QueueState(), LATER)
    assert is_news(again, announced, LATER)
    assert not is_news(again, replace(announced, report=again, announced_at=LATER), LATER + MINUTE)


def test_a_jobset_without_slices_gets_no_report_unless_it_is_suspended() -> None:
    assert not is_news(report(a_jobset(), [], QueueState(), NOW), a_jobset(), NOW)
    suspended = a_jobset(state=WorkloadState.SUSPENDED)
    assert is_news(report(suspended, [], QueueState(), NOW), suspended, NOW)


def test_a_transition_brings_the_report_forward_unless_one_is_due_soon() -> None:
    called = called_for(a_jobset(next_report_at=None), NOW)
    assert called is not None
    assert called.next_report_at == NOW
    assert called_for(a_jobset(next_report_at=NOW + RENEW), NOW) == called
    assert called_for(a_jobset(next_report_at=NOW + SOON), NOW) is None


steps = st.tuples(st.sampled_from(Phase), st.sampled_from(Reason)).map(lambda step: (step[1].phase or step[0], step[1]))


@given(st.lists(steps, max_size=60), st.sampled_from(WorkloadState))
def test_every_slice_is_ready_or_in_a_wait_and_no_report_is_too_long(
    course: list[tuple[Phase, Reason]], state: WorkloadState
) -> None:
    slices = [a_slice(index, *step) for index, step in enumerate(course)]
    demand = dict.fromkeys((record.last_claim for record in slices), NOW)
    jobset = a_jobset(state=state, uid=WorkloadUid("uid-law"), demand=demand)
    made = report(jobset, slices, QueueState(), NOW)
    assert made.message.endswith(".")
    assert len(made.waits) <= MOST_WAITS
    assert len(made.message) < 2_000
    stale = sum(record.reason is Reason.DEMAND_STALE for record in slices) if state is WorkloadState.ACTIVE else 0
    assert made.requested == len(slices) - stale
    if state is WorkloadState.ACTIVE and len({(record.phase, record.reason) for record in slices}) <= MOST_WAITS:
        served = sum(record.reason in SERVED for record in slices)
        assert served + sum(wait.count for wait in made.waits) == made.requested
    assert report(replace(jobset, report=made), slices, QueueState(), LATER).since == NOW
