"""What holds for the report on any slices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import NOW, a_job, a_jobset, a_record
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import ClaimId, claim_id
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import Wait
from tpu_slices.domain.reporting.reports import report
from tpu_slices.domain.reporting.unread import NotRead
from tpu_slices.domain.reporting.waits import QueueState

steps = st.tuples(st.sampled_from(Phase), st.sampled_from(Reason)).map(lambda step: (step[1].phase or step[0], step[1]))


@given(st.lists(steps, max_size=60), st.integers(1, 3))
def test_a_report_on_some_slices_of_each_reason_and_their_number_counts_as_one_on_all_of_them(
    course: list[tuple[Phase, Reason]], sample: int
) -> None:
    slices = [
        a_record(job=a_job(job_index=index), phase=phase, reason=reason, message="Said.")
        for index, (phase, reason) in enumerate(course)
    ]
    of_each = {why: _of(slices, why) for why in course}
    some = [record for alike in of_each.values() for record in alike[:sample]]
    others = {why: len(alike) - sample for why, alike in of_each.items() if len(alike) > sample}
    whole = report(a_jobset(), slices, QueueState(), NOW)
    made = report(a_jobset(), some, QueueState(), NOW, NotRead(alike=others))
    assert (made.reason, made.requested, made.ready) == (whole.reason, whole.requested, whole.ready)
    assert counts(made.waits) == counts(whole.waits)


@given(ready=st.integers(0, 30), waits=st.integers(0, 90))
def test_slices_of_groups_that_are_scaled_away_do_not_count_though_their_records_are_not_read(
    ready: int, waits: int
) -> None:
    """Twenty of each reason are read, of the first groups; READY ones of groups that are gone are released soon."""
    limited, groups = (Phase.REFUSED, Reason.CHIP_LIMIT_REACHED), 30
    course = [(Phase.READY, Reason.READY)] * ready + [limited] * waits
    slices = [
        a_record(job=a_job(job_index=index), phase=phase, reason=reason, message="Said.", demand_confirmed_at=NOW)
        for index, (phase, reason) in enumerate(course)
    ]
    some = [each for why in {*course} for each in _of(slices, why)[:20]]
    more = Counter(course) - Counter((each.phase, each.reason) for each in some)
    made = report(a_jobset(groups=groups), some, QueueState(), NOW, NotRead(alike=more))
    assert (made.requested, made.ready) == (min(groups, ready + waits), ready)
    assert sum(counts(made.waits).values()) == made.requested - made.ready


@given(
    ready=st.integers(0, 60),
    queued=st.integers(0, 60),
    led=st.integers(1, 60),
    gone=st.integers(0, 60),
    over=st.integers(0, 60),
)
def test_refused_slices_of_jobs_whose_leaders_are_gone_do_not_count_though_their_records_are_not_read(
    ready: int, queued: int, led: int, gone: int, over: int
) -> None:
    """Twenty of each reason are read, of the first Jobs; of those that are refused, the first has a leader."""
    limited = (Phase.REFUSED, Reason.CHIP_LIMIT_REACHED)
    course = [((Phase.READY, Reason.READY), False)] * ready + [((Phase.QUEUED, Reason.OPERATION_LIMIT), True)] * queued
    course += [(limited, True)] * led + [(limited, False)] * gone
    slices = [
        a_record(job=a_job(job_index=index), phase=phase, reason=reason, message="Said.", demand_confirmed_at=NOW)
        for index, ((phase, reason), _) in enumerate(course)
    ]
    demand: dict[ClaimId, datetime | None] = {
        each.last_claim: NOW if waits else None for each, (_, waits) in zip(slices, course, strict=True)
    }
    demand |= {claim_id(a_job(job_index=1000 + index)): None for index in range(over)}  # ended, and without a slice
    some = [each for why in {why for why, _ in course} for each in _of(slices, why)[:20]]
    more = Counter(why for why, _ in course) - Counter((each.phase, each.reason) for each in some)
    whole = report(a_jobset(demand=demand), slices, QueueState(), NOW)
    made = report(a_jobset(demand=demand), some, QueueState(), NOW, NotRead(alike=more))
    assert (made.reason, made.requested, made.ready) == (whole.reason, whole.requested, whole.ready)
    assert counts(made.waits) == counts(whole.waits)


def _of(slices: Sequence[SliceRecord], why: tuple[Phase, Reason]) -> list[SliceRecord]:
    return [each for each in slices if (each.phase, each.reason) == why]


def counts(waits: Sequence[Wait]) -> Mapping[Reason, int]:
    """Return how many slices wait for each reason."""
    found = Counter[Reason]()
    for wait in waits:
        found[wait.reason] += wait.count
    return found
