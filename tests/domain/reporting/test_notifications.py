"""Laws of notifications: each target is notified of one thing once, in time, and not too often."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import MINUTE, NOW, a_jobset, a_record, settings
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.notifications import Notification, NotificationRule, Notified, Occasion
from tpu_slices.domain.model.reasons import Reason, ReportReason
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import Report, WorkloadRecord
from tpu_slices.domain.reporting.notifications import AGAIN, LATE, notifications, told_as

RULES = {"early": NotificationRule(waiting_after=5 * MINUTE), "late": NotificationRule(waiting_after=60 * MINUTE)}
OF_CLUSTER = settings(notifications={"research": RULES})
REASONS = [
    ReportReason.READY,
    ReportReason.WAITING,
    ReportReason.BLOCKED,
    ReportReason.NOT_RUNNING,
    ReportReason.IDLE,
]


def a_report(reason: ReportReason, since: datetime) -> Report:
    return Report(reason=reason, message="", requested=1, ready=0, since=since)


@dataclass(frozen=True)
class Step:
    """What is so from now on, and for how long."""

    reason: ReportReason
    lasts: timedelta
    interrupted: bool
    noted: bool
    """Whether the process lives to note that it published."""


STEPS = st.lists(
    st.builds(
        Step,
        reason=st.sampled_from(REASONS),
        lasts=st.integers(1, 90).map(lambda minutes: minutes * MINUTE),
        interrupted=st.booleans(),
        noted=st.booleans(),
    ),
    max_size=8,
)


def lived(steps: Sequence[Step]) -> Iterator[tuple[datetime, Notification]]:
    """Yield what is published as a workload lives through this, looked at each minute, with when, and ends."""
    workload, record, now = a_jobset(), a_record().transitioned(NOW, Reason.READY, ""), NOW
    for step in steps:
        since, until = now, now + step.lasts
        record = record.transitioned(now, Reason.HOSTS_LOST if step.interrupted else Reason.READY, "")
        while now < until:
            workload, sent = looked_at(workload, a_report(step.reason, since), record, now, noted=step.noted)
            yield from ((now, each) for each in sent)
            now += MINUTE
    ended = replace(workload, state=WorkloadState.COMPLETED, state_since=now)
    for _ in range(3):
        ended, sent = looked_at(ended, a_report(ReportReason.RELEASING, now), record, now, noted=True)
        yield from ((now, each) for each in sent)


def looked_at(
    workload: WorkloadRecord, made: Report, record: SliceRecord, now: datetime, *, noted: bool
) -> tuple[WorkloadRecord, Sequence[Notification]]:
    made_now = notifications(workload, made, [record], OF_CLUSTER, now)
    after = made_now.noted(workload, now)
    if made_now.to_send:
        assert after.next_report_at == now, "it is due until it is noted as sent"
    return (made_now.sent(after, None, now) if noted else after), made_now.to_send


@given(STEPS)
def test_one_thing_is_told_once_and_what_may_be_lost_again_with_the_same_id(steps: list[Step]) -> None:
    sent = [*lived(steps)]
    whole = [each for _, each in lived([replace(step, noted=True) for step in steps])]
    assert len({each.id for each in whole}) == len(whole)
    assert {each.id for _, each in sent} == {each.id for each in whole}


@given(STEPS)
def test_one_occasion_is_told_to_a_target_once_in_half_an_hour_at_most(steps: list[Step]) -> None:
    last: dict[tuple[str, Occasion], datetime] = {}
    for at, each in lived([replace(step, noted=True) for step in steps]):
        key = (each.target, each.occasion)
        assert key not in last or at - last[key] >= AGAIN
        last[key] = at


@given(STEPS)
def test_a_wait_is_never_told_early_and_every_end_is_told(steps: list[Step]) -> None:
    sent = [*lived([replace(step, noted=True) for step in steps])]
    for at, each in sent:
        if each.occasion is Occasion.WAITING:
            assert at - each.since >= RULES[each.target].waiting_after
    assert [each.target for _, each in sent if each.occasion is Occasion.ENDED] == ["early", "late"]


@pytest.mark.parametrize(("after", "at"), [(5, None), (60, 55)])
def test_the_next_look_is_when_the_wait_is_long_enough(after: int, at: int | None) -> None:
    of_cluster = settings(notifications={"research": {"slack": NotificationRule(waiting_after=after * MINUTE)}})
    made = a_report(ReportReason.WAITING, NOW - 5 * MINUTE)
    found = notifications(a_jobset(), made, [], of_cluster, NOW)
    assert (len(found.to_send), found.next_at) == (0 if at else 1, at and NOW + at * MINUTE)
    due = found.noted(a_jobset(next_report_at=NOW + 10 * MINUTE), NOW).next_report_at
    assert due == (NOW if at is None else NOW + 10 * MINUTE), "whatever comes first"


def test_a_workload_that_a_queue_of_kueue_has_waits_and_one_that_is_suspended_does_not() -> None:
    made = a_report(ReportReason.NOT_REQUESTED, NOW - 2 * MINUTE)
    suspended = a_jobset(state=WorkloadState.SUSPENDED, state_since=NOW - 70 * MINUTE)
    assert not notifications(suspended, made, [], OF_CLUSTER, NOW).to_send
    queued = notifications(replace(suspended, queue="team-a"), made, [], OF_CLUSTER, NOW).to_send
    assert [(each.target, each.occasion) for each in queued] == [("early", "waiting"), ("late", "waiting")]
    assert 'has waited for Kueue to admit it (queue "team-a") for 1 h 10 min.' in queued[0].text


def test_what_happened_more_than_an_hour_ago_is_not_told() -> None:
    ended = a_jobset(state=WorkloadState.FAILED, state_since=NOW - LATE - MINUTE)
    lost = a_record().transitioned(NOW, Reason.READY, "").transitioned(NOW - LATE - MINUTE, Reason.PREEMPTED, "")
    assert not notifications(ended, a_report(ReportReason.RELEASING, NOW), [], OF_CLUSTER, NOW).to_send
    assert not notifications(a_jobset(), a_report(ReportReason.READY, NOW), [lost], OF_CLUSTER, NOW).to_send


def test_what_was_noted_of_a_target_goes_with_the_target() -> None:
    known = {each: Notified(since=NOW, at=NOW) for each in ("early/waiting", "gone/waiting")}
    found = notifications(a_jobset(notified=known), a_report(ReportReason.READY, NOW), [], OF_CLUSTER, NOW)
    assert {*found.notified} == {"early/waiting"}


def test_a_rule_is_read_as_a_line() -> None:
    rules = {
        "slack": NotificationRule(when=(Occasion.WAITING, Occasion.IDLE, Occasion.ENDED)),
        "pager": NotificationRule(),
    }
    assert told_as(rules, "slack") == (
        "slack is notified when it waits for more than 30 min, leaves a slice idle or has ended",
    )
