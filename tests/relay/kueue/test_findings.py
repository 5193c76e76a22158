"""What the check of a workload with quota is to say."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from relay.kueue.findings import KEEPS_QUOTA, NEVER, NONE_NEEDED, NOT_NOW, Progress, Told, finding
from relay.kueue.objects import CheckState
from relay.kueue.rules import Finding
from relay.objects import Workload
from tests.builders import NOW
from tests.relay.kueue.objects import read
from tests.relay.objects import OPTED_OUT, jobset, replicated_job
from tests.relay.watched import read_as
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.reasons import Phase, Reason, ReportReason
from tpu_slices.domain.records.mirror import WorkloadShown
from tpu_slices.domain.records.workloads import Report, Wait

RESERVED_AT = datetime.fromisoformat("2026-11-01T12:00:00Z")
LATER = RESERVED_AT + KEEPS_QUOTA


def seen(stand: int = 0, of: int = 2, **parts: Any) -> Progress:
    return Progress(workload=read_as(Workload, jobset(**parts)), stand=stand, of=of)


def told(reason: Reason, at: datetime = LATER, state: WorkloadState = WorkloadState.ACTIVE) -> Told:
    wait = Wait(
        phase=reason.phase or Phase.WAITING,
        reason=reason,
        jobs=("llama-workers-0",),
        count=1,
        message=f"{reason} since noon.",
        since=NOW,
        retry_at=None,
        remedy="",
    )
    report = Report(reason=ReportReason.WAITING, message="", requested=2, ready=0, waits=(wait,), since=NOW)
    owner = read_as(Workload, jobset()).ref.owner
    return Told(shown=WorkloadShown(owner=owner, state=state, report=report), at=at, heard_at=at)


def found(
    what: Progress,
    said: Told | None = None,
    now: datetime = LATER,
    *,
    others_wait: bool = False,
    admitted: bool = False,
) -> Finding | None:
    conditions = {"Admitted": "True"} if admitted else {}
    return finding(read(conditions=conditions), what, said, now, others_wait=others_wait)


def state(found: Finding | None) -> CheckState | None:
    return found.state if found is not None else None


def test_it_is_ready_once_all_slices_stand() -> None:
    assert found(seen(2)) == Finding(state=CheckState.READY, message="2 of 2 slices stand.")
    assert state(found(seen(1))) is CheckState.PENDING


def test_a_check_that_is_pending_says_what_the_slices_wait_for() -> None:
    waiting = found(seen(1), told(Reason.STOCKOUT))
    assert waiting is not None
    assert waiting.message == "1 of 2 slices stand. 1 wait: Stockout since noon."


def test_of_one_that_is_not_known_nothing_is_said() -> None:
    assert found(Progress(workload=None, stand=0, of=0)) is None


def test_one_that_needs_no_slices_is_not_held() -> None:
    assert found(seen(of=0)) == NONE_NEEDED
    managed = {"managedBy": "example.com/other", "replicatedJobs": [replicated_job()]}
    assert found(seen(spec=managed)) == NONE_NEEDED
    assert found(seen(metadata={"annotations": {OPTED_OUT: "true"}})) == NONE_NEEDED


@pytest.mark.parametrize("reason", sorted(NEVER))
def test_what_no_wait_can_mend_is_rejected(reason: Reason) -> None:
    rejected = found(seen(), told(reason))
    assert rejected == Finding(state=CheckState.REJECTED, message=f"It gets no slice: {reason} since noon.")


def test_templates_that_cannot_be_read_are_rejected_with_what_is_wrong() -> None:
    gang = {"annotations": {"tpu-provisioner.cloud.google.com/gang": "some"}}
    rejected = found(seen(metadata=gang))
    assert state(rejected) is CheckState.REJECTED
    assert rejected is not None
    assert "gang" in rejected.message


@pytest.mark.parametrize("reason", sorted(NOT_NOW))
def test_quota_goes_back_where_others_wait_for_it(reason: Reason) -> None:
    assert state(found(seen(), told(reason), others_wait=True)) is CheckState.RETRY
    assert state(found(seen(), told(reason), others_wait=False)) is CheckState.PENDING


def test_quota_that_just_came_is_kept_for_a_while() -> None:
    soon = RESERVED_AT + timedelta(seconds=10)
    let_go = told(Reason.LET_GO_WITH_GANG, at=soon)
    assert state(found(seen(), let_go, now=soon, others_wait=True)) is CheckState.PENDING


def test_one_that_runs_and_was_let_go_is_sent_back_whoever_waits() -> None:
    assert state(found(seen(1), told(Reason.LET_GO_WITH_GANG), admitted=True)) is CheckState.RETRY


@pytest.mark.parametrize("reason", [Reason.STOCKOUT, Reason.CHIP_LIMIT_REACHED, Reason.CREATING])
def test_stock_and_limits_are_waited_for(reason: Reason) -> None:
    assert state(found(seen(), told(reason), others_wait=True)) is CheckState.PENDING


def test_what_was_told_of_its_suspension_does_not_count() -> None:
    suspended = told(Reason.IMPOSSIBLE_SHAPE, state=WorkloadState.SUSPENDED)
    assert state(found(seen(), suspended)) is CheckState.PENDING
