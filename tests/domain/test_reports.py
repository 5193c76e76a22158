"""Why a JobSet waits: the report on it, case by case and by laws."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import MINUTE, NOW, a_job, a_jobset, a_record
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.reasons import Reason, ReportReason
from tpu_slices.domain.model.records import Phase, SliceRecord
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.domain.reporting.reports import (
    MOST_NAMED,
    MOST_WAITS,
    REFRESH_AFTER,
    RENEW,
    SOON,
    QueueState,
    called_for,
    is_news,
    next_report,
    report,
)

LATER = NOW + 5 * MINUTE


def a_slice(index: int, phase: Phase, reason: Reason, **changes: Any) -> SliceRecord:
    return a_record(job=a_job(job_index=index), phase=phase, reason=reason, message="Said.", **changes)


def ready(index: int) -> SliceRecord:
    return a_slice(index, Phase.READY, Reason.READY)


def out_of_stock(index: int, **changes: Any) -> SliceRecord:
    return a_slice(index, Phase.WAITING, Reason.STOCKOUT, **{"retry_at": NOW + 3 * MINUTE, **changes})


def test_the_sentence_counts_what_is_ready_and_says_what_the_rest_waits_for_and_until_when() -> None:
    made = report(a_jobset(), [ready(0), ready(1), out_of_stock(2), ready(3)], QueueState(), NOW)
    assert made.message == (
        "3 of 4 slices ready; llama-slice-2 since 12:00 UTC: us-central2-b is out of tpu-v5-lite-podslice 4x4, "
        "next try 12:03:00 UTC. "
        "It is tried again by itself. Another zone, a smaller topology, spot or a reservation may be had sooner."
    )
    assert (made.reason, made.wanted, made.ready) == (ReportReason.WAITING, 4, 3)


def test_slices_that_wait_for_the_same_are_one_wait_since_the_first_and_until_the_next_try() -> None:
    slices = [out_of_stock(i, created_at=NOW - i * MINUTE, retry_at=NOW + i * MINUTE) for i in range(1, 31)]
    (wait,) = report(a_jobset(), slices, QueueState(), NOW).waits
    assert (wait.count, len(wait.jobs)) == (30, MOST_NAMED)
    assert (wait.since, wait.until) == (NOW - 30 * MINUTE, NOW + MINUTE)
    message = report(a_jobset(), slices, QueueState(), NOW).message
    assert "llama-slice-1, llama-slice-2, llama-slice-3 and 27 more since 11:30 UTC: us-central2-b is out of" in message


def test_a_slice_waits_since_it_last_served_however_often_it_was_tried_meanwhile() -> None:
    transition_count = [
        (Phase.PROVISIONING, Reason.CREATING),
        (Phase.READY, Reason.READY),
        (Phase.PROVISIONING, Reason.HOSTS_LOST),
        (Phase.WAITING, Reason.STOCKOUT),
        (Phase.PROVISIONING, Reason.CREATING),
        (Phase.WAITING, Reason.STOCKOUT),
    ]
    record = a_record()
    for minute, (phase, reason) in enumerate(transition_count):
        record = record.transitioned(NOW + minute * MINUTE, phase, reason, "Said.")
    (wait,) = report(a_jobset(), [record], QueueState(), NOW + timedelta(days=1)).waits
    assert wait.since == NOW + 2 * MINUTE
    assert (
        " since 2026-03-01 12:02 UTC: " in report(a_jobset(), [record], QueueState(), NOW + timedelta(days=1)).message
    )


def test_the_worst_comes_first() -> None:
    slices = [
        a_slice(0, Phase.PROVISIONING, Reason.CREATING),
        out_of_stock(1),
        a_slice(2, Phase.REFUSED, Reason.DOES_NOT_FIT),
        a_slice(3, Phase.BLOCKED, Reason.CONFIGURATION),
    ]
    made = report(a_jobset(), slices, QueueState(), NOW)
    assert [wait.phase for wait in made.waits] == [Phase.BLOCKED, Phase.REFUSED, Phase.WAITING, Phase.PROVISIONING]
    assert "; 1 more wait for other things." in made.message


def test_who_is_in_line_is_told_which_number() -> None:
    first, second = (a_slice(index, Phase.QUEUED, Reason.OPERATION_LIMIT) for index in (0, 1))
    made = report(a_jobset(), [first, second], QueueState({first.id: 7}, running=5), NOW)
    (wait,) = made.waits
    said = "GKE takes only so many operations on a cluster at once: in line for its creation"
    assert (wait.message, wait.count) == (f"{said} as number 7, while 5 run", 2)
    (behind,) = report(a_jobset(), [second], QueueState({first.id: 7}, running=5), NOW).waits
    assert behind.message == f"{said} after 1 others"


@pytest.mark.parametrize(
    ("slices", "reason"),
    [
        ([], ReportReason.NOT_WANTED),
        ([ready(0)], ReportReason.READY),
        ([ready(0), a_slice(1, Phase.READY, Reason.SPEC_DRIFTED)], ReportReason.READY),
        ([ready(0), a_slice(1, Phase.PROVISIONING, Reason.HOSTS_JOINING)], ReportReason.COMING),
        ([a_slice(0, Phase.QUEUED, Reason.OPERATION_LIMIT)], ReportReason.COMING),
        ([a_slice(0, Phase.PROVISIONING, Reason.HOSTS_LOST)], ReportReason.WAITING),
        ([a_slice(0, Phase.READY, Reason.LEADER_STILL_WAITING)], ReportReason.WAITING),
        ([ready(0), a_slice(1, Phase.QUEUED, Reason.DEMAND_STALE)], ReportReason.READY),
        ([a_slice(0, Phase.QUEUED, Reason.DEMAND_STALE)], ReportReason.NOT_WANTED),
        ([out_of_stock(0, hold=True)], ReportReason.STUCK),
        ([a_slice(0, Phase.REFUSED, Reason.NO_CHIPS_LEFT)], ReportReason.WAITING),
        ([out_of_stock(0), a_slice(1, Phase.REFUSED, Reason.NOT_ALLOWED)], ReportReason.STUCK),
        ([out_of_stock(0), a_slice(1, Phase.BLOCKED, Reason.HELD)], ReportReason.STUCK),
    ],
)
def test_the_outlook_is_that_of_the_slice_that_is_worst_off(slices: list[SliceRecord], reason: ReportReason) -> None:
    assert report(a_jobset(), slices, QueueState(), NOW).reason is reason


@pytest.mark.parametrize(
    ("state", "phase", "reason", "message"),
    [
        (
            WorkloadState.SUSPENDED,
            Phase.GONE,
            ReportReason.NOT_WANTED,
            (
                'It is suspended by Kueue, in the queue "team-a": see `kubectl describe workloads -n research`; '
                "slices are bought once it is resumed."
            ),
        ),
        (
            WorkloadState.SUSPENDED,
            Phase.RELEASING,
            ReportReason.RETURNING,
            (
                'It is suspended by Kueue, in the queue "team-a": see `kubectl describe workloads -n research`; '
                "1 of 1 slices are being given back; slices are bought once it is resumed."
            ),
        ),
        (
            WorkloadState.COMPLETED,
            Phase.RELEASING,
            ReportReason.RETURNING,
            "It completed; 1 of 1 slices are being given back.",
        ),
        (WorkloadState.DELETED, Phase.GONE, ReportReason.RETURNED, "It was deleted; nothing of it is left."),
    ],
)
def test_a_jobset_that_wants_nothing_is_told_what_is_left_of_it(
    state: WorkloadState, phase: Phase, reason: ReportReason, message: str
) -> None:
    jobset = a_jobset(state=state, queue="team-a")
    made = report(jobset, [a_slice(0, phase, Reason.DELETION_STARTED)], QueueState(), NOW)
    assert (made.reason, made.message) == (reason, message)


def test_what_is_worse_than_coming_is_not_lost_among_many_that_come() -> None:
    many = [a_slice(i, Phase.QUEUED, Reason.OPERATION_LIMIT) for i in range(30)]
    failed = [a_slice(i, Phase.WAITING, Reason.CREATION_FAILED) for i in range(30, 60)]
    failed = [replace(record, message=f"GKE said {record.job.job_index}.") for record in failed]
    made = report(a_jobset(), [*many, *failed, a_slice(60, Phase.PROVISIONING, Reason.HOSTS_LOST)], QueueState(), NOW)
    assert (made.reason, len(made.waits)) == (ReportReason.WAITING, MOST_WAITS)
    assert made.waits[0].reason is Reason.CREATION_FAILED
    assert "; 58 more wait for other things." in made.message


def test_a_pause_or_a_hold_is_told_before_what_was_found_out_earlier() -> None:
    held, paused = out_of_stock(0, hold=True), QueueState(paused="upgrade until noon.")
    (wait,) = report(a_jobset(), [held], QueueState(), NOW).waits
    assert (wait.reason, wait.until) == (Reason.HELD, None)
    (wait,) = report(a_jobset(), [out_of_stock(0)], paused, NOW).waits
    assert (wait.reason, wait.message, wait.until) == (Reason.PAUSED, "the cluster is paused: upgrade until noon", None)


def test_a_try_that_is_past_is_no_next_try() -> None:
    (wait,) = report(a_jobset(), [out_of_stock(0, retry_at=NOW - MINUTE)], QueueState(), NOW).waits
    assert wait.until is None


def test_a_jobset_that_cannot_be_read_is_told_what_is_wrong_with_it() -> None:
    made = report(a_jobset(template_error="spec.replicatedJobs: 501 are too many"), [], QueueState(), NOW)
    assert (made.reason, made.message) == (
        ReportReason.STUCK,
        ("No slice can be made for it: spec.replicatedJobs: 501 are too many. Change the JobSet and create it again."),
    )
    assert is_news(made, a_jobset(), NOW)


def test_who_was_told_of_a_suspension_is_told_of_its_end_though_nothing_is_wanted() -> None:
    suspended = a_jobset(state=WorkloadState.SUSPENDED)
    told = a_jobset(report=report(suspended, [], QueueState(), NOW), announced_at=NOW)
    assert is_news(report(told, [], QueueState(), LATER), told, LATER)


def test_an_outlook_that_lasts_keeps_its_beginning() -> None:
    first = report(a_jobset(), [out_of_stock(0)], QueueState(), NOW)
    told = a_jobset(report=first)
    assert report(told, [out_of_stock(0), out_of_stock(1)], QueueState(), LATER).since == NOW
    assert (
        report(told, [a_slice(0, Phase.PROVISIONING, Reason.CREATING, since=LATER)], QueueState(), LATER).since == NOW
    )
    assert report(told, [ready(0)], QueueState(), LATER).since == LATER


@pytest.mark.parametrize(
    ("slices", "again"),
    [
        ([ready(0)], None),
        ([], None),
        ([a_slice(0, Phase.PROVISIONING, Reason.CREATING)], REFRESH_AFTER),
        ([out_of_stock(0)], REFRESH_AFTER),
        ([a_slice(0, Phase.REFUSED, Reason.NOT_ALLOWED)], RENEW),
    ],
)
def test_a_report_is_made_again_while_something_lasts(slices: list[SliceRecord], again: timedelta | None) -> None:
    due = next_report(report(a_jobset(), slices, QueueState(), NOW), NOW)
    assert due == (NOW + again if again else None)


def test_what_still_holds_is_said_again_every_now_and_then_and_what_is_new_at_once() -> None:
    waiting = report(a_jobset(), [out_of_stock(0)], QueueState(), NOW)
    told = a_jobset(report=waiting, announced_at=NOW)
    assert is_news(waiting, a_jobset(), NOW)
    assert not is_news(waiting, told, NOW + RENEW - MINUTE)
    assert is_news(waiting, told, NOW + RENEW)
    assert is_news(report(told, [ready(0)], QueueState(), NOW), told, NOW)


def test_what_is_well_is_said_once() -> None:
    well = report(a_jobset(), [ready(0)], QueueState(), NOW)
    assert not is_news(well, a_jobset(report=well, announced_at=NOW), NOW + 10 * RENEW)


def test_a_jobset_that_asks_for_nothing_of_ours_is_left_in_peace() -> None:
    assert not is_news(report(a_jobset(), [], QueueState(), NOW), a_jobset(), NOW)
    suspended = a_jobset(state=WorkloadState.SUSPENDED)
    assert is_news(report(suspended, [], QueueState(), NOW), suspended, NOW)


def test_a_slice_that_turns_brings_the_report_forward_unless_one_is_due_soon() -> None:
    called = called_for(a_jobset(next_report_at=None), NOW)
    assert called is not None
    assert called.next_report_at == NOW
    assert called_for(a_jobset(next_report_at=NOW + RENEW), NOW) == called
    assert called_for(a_jobset(next_report_at=NOW + SOON), NOW) is None


transition_count = st.tuples(st.sampled_from(Phase), st.sampled_from(Reason))


@given(st.lists(transition_count, max_size=60), st.sampled_from(WorkloadState))
def test_every_slice_is_ready_or_waited_for_and_no_report_is_without_end(
    transitioned: list[tuple[Phase, Reason]], state: WorkloadState
) -> None:
    slices = [a_slice(index, *turn) for index, turn in enumerate(transitioned)]
    jobset = a_jobset(state=state, uid=WorkloadUid("uid-law"))
    made = report(jobset, slices, QueueState(), NOW)
    assert made.message.endswith(".")
    assert len(made.waits) <= MOST_WAITS
    assert len(made.message) < 2_000
    stale = sum(record.reason is Reason.DEMAND_STALE for record in slices) if state is WorkloadState.ACTIVE else 0
    assert made.wanted == len(slices) - stale
    if state is WorkloadState.ACTIVE and len({(record.phase, record.reason) for record in slices}) <= MOST_WAITS:
        served = sum(record.reason in {Reason.READY, Reason.SPEC_DRIFTED, Reason.ADOPTED} for record in slices)
        assert served + sum(wait.count for wait in made.waits) == made.wanted
    assert report(replace(jobset, report=made), slices, QueueState(), LATER).since == NOW
