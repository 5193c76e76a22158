"""What holds for the report on any slices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import NOW, a_job, a_jobset, a_record
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.records.workloads import Wait
from tpu_slices.domain.reporting.reports import NotRead, report
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
    of_each = {why: [each for each in slices if (each.phase, each.reason) == why] for why in course}
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
    some = [each for why in {*course} for each in [it for it in slices if (it.phase, it.reason) == why][:20]]
    more = Counter(course) - Counter((each.phase, each.reason) for each in some)
    made = report(a_jobset(groups=groups), some, QueueState(), NOW, NotRead(alike=more))
    assert (made.requested, made.ready) == (min(groups, ready + waits), ready)
    assert sum(counts(made.waits).values()) == made.requested - made.ready


def counts(waits: Sequence[Wait]) -> Mapping[Reason, int]:
    """Return how many slices wait for each reason."""
    found = Counter[Reason]()
    for wait in waits:
        found[wait.reason] += wait.count
    return found
