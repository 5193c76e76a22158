"""What slices did over time: spans, levels and chip-hours, and what each phase counts as."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import MINUTE, NOW, a_job, a_record, a_spec
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import Capacity, CapacityKind
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.transitions import HISTORY, Transition
from tpu_slices.domain.records.usage import MOST_USAGES, BilledAs, Usage, Use
from tpu_slices.domain.reporting.timeline import Course, Window, course, held, levels, totals

CHIPS = a_spec().chips
HOUR = timedelta(hours=1)
ALWAYS = Window(NOW - timedelta(days=1), NOW + timedelta(days=1))

minutes = st.integers(-30, 300).map(lambda count: NOW + count * MINUTE)
windows = st.tuples(minutes, minutes).map(lambda pair: Window(min(pair), max(pair)))
transitions = st.builds(
    Transition, at=minutes, phase=st.sampled_from(Phase), reason=st.sampled_from(Reason), message=st.just("")
)

usages = st.builds(
    lambda since, lasts, use, chips: Usage(
        since=since, until=None if lasts is None else since + lasts * MINUTE, use=use, chips=chips
    ),
    minutes,
    st.none() | st.integers(1, 100),
    st.sampled_from(Use),
    st.integers(1, 64),
)


@st.composite
def histories(draw: st.DrawFn) -> SliceRecord:
    """Draw a record whose clock may have gone backwards, and whose first transitions may not be kept."""
    index = draw(st.integers(0, 10_000))
    job = a_job(job_index=index)
    kept = tuple(draw(st.lists(transitions, max_size=8)))
    count = len(kept) + (draw(st.integers(0, 3)) if kept else 0)
    spec = draw(st.sampled_from([None, a_spec(), a_spec(hosts=1)]))
    used = tuple(draw(st.lists(usages, max_size=5)))
    made = a_record(job=job, spec=spec, transitions=kept, transition_count=count, created_at=draw(minutes))
    first = kept[0].at if kept else made.created_at
    begins = first if count > len(kept) else min(first, made.created_at)
    return replace(made, usages=tuple(each for each in used if each.since >= begins))


many = st.lists(histories(), max_size=5)


def courses_of(records: list[SliceRecord], window: Window) -> list[Course]:
    return [found for record in records if (found := course(record, window)) is not None]


# properties


@given(histories(), windows)
def test_spans_follow_each_other_within_the_window(record: SliceRecord, window: Window) -> None:
    for found in courses_of([record], window):
        assert all(span.start < span.end for span in found.spans)
        assert all(one.end == other.start for one, other in pairwise(found.spans))
        assert window.since <= found.spans[0].start
        assert found.spans[-1].end == window.until


@given(many, windows)
def test_the_totals_are_the_area_under_the_levels(records: list[SliceRecord], window: Window) -> None:
    courses = courses_of(records, window)
    sums, curve = totals(courses), levels(courses)
    steps = [(one, other.at - one.at) for one, other in pairwise(curve)]
    assert sum((level.waiting * lasting for level, lasting in steps), timedelta()) == sums[Use.WAITING]
    assert sum((level.useful * lasting for level, lasting in steps), timedelta()) == sums[Use.USEFUL]
    assert sum((level.held * lasting for level, lasting in steps), timedelta()) == held(sums)
    assert all((last.waiting, last.held, last.useful) == (0, 0, 0) for last in curve[-1:])


@given(many, windows)
def test_no_more_chips_are_useful_than_are_held(records: list[SliceRecord], window: Window) -> None:
    curve = levels(courses_of(records, window))
    assert all(0 <= level.useful <= level.held and level.waiting >= 0 for level in curve)
    assert all(one.at < other.at for one, other in pairwise(curve))


@given(many, windows, minutes)
def test_the_totals_of_two_adjacent_windows_add_up(records: list[SliceRecord], window: Window, cut: datetime) -> None:
    cut = min(max(cut, window.since), window.until)
    whole = totals(courses_of(records, window))
    before = totals(courses_of(records, Window(window.since, cut)))
    after = totals(courses_of(records, Window(cut, window.until)))
    assert {use: before[use] + after[use] for use in Use} == whole


@given(many, windows)
def test_the_totals_are_the_sum_over_slices(records: list[SliceRecord], window: Window) -> None:
    courses = courses_of(records, window)
    each = [totals([one]) for one in courses]
    assert totals(courses) == {use: sum((one[use] for one in each), timedelta()) for use in Use}


@given(st.lists(transitions, min_size=1, max_size=8), windows)
def test_at_each_moment_the_last_transition_before_it_holds(transitions: list[Transition], window: Window) -> None:
    ordered = tuple(sorted(transitions, key=lambda each: each.at))
    record = a_record(transitions=ordered, transition_count=len(ordered), created_at=ordered[0].at)
    for found in courses_of([record], window):
        for span in found.spans:
            assert [each for each in ordered if each.at <= span.start][-1] == span.transition


def test_a_slice_that_its_claim_has_no_more_is_released_from_its_first_moment_on() -> None:
    failed = a_record(create_requested_at=NOW - MINUTE).with_current(ordered=a_spec())
    let_go = failed.let_go_of("it failed", NOW)
    looked_at = let_go.transitioned(NOW + MINUTE, Reason.DELETION_STARTED, "Releasing (it failed).")
    for record in (let_go, looked_at):
        (found,) = courses_of([record], Window(NOW, NOW + 2 * MINUTE))
        assert {span.transition.phase for span in found.spans} == {Phase.RELEASING}


# chip-hours


def used_by_hours(*uses: Use) -> SliceRecord:
    """Return a slice whose chips were used so, an hour each, from NOW on."""
    usages = tuple(
        Usage(since=NOW + number * HOUR, until=NOW + (number + 1) * HOUR, use=use, chips=CHIPS)
        for number, use in enumerate(uses)
    )
    return replace(a_record(), usages=usages)


def test_chip_hours_are_chips_times_hours() -> None:
    found = totals(courses_of([used_by_hours(*Use, Use.USEFUL)], ALWAYS))
    hour = CHIPS * HOUR
    assert found == {**dict.fromkeys(Use, hour), Use.USEFUL: 2 * hour}
    assert held(found) == 5 * hour, "starting, idle, warm and useful"


def test_chips_that_are_still_used_count_up_to_the_end_of_the_window() -> None:
    record = replace(a_record(), usages=(Usage(since=NOW, use=Use.USEFUL, chips=CHIPS),))
    assert totals(courses_of([record], Window(NOW, NOW + HOUR)))[Use.USEFUL] == CHIPS * HOUR


def test_what_a_claim_held_is_told_by_the_places_where_it_was_billed() -> None:
    listed = a_record().made_as
    assert listed is not None
    spot = BilledAs(capacity=CapacityKind.SPOT, zone="us-east5-a")
    times = ((None, Use.USEFUL), (spot, Use.USEFUL), (spot, Use.IDLE), (spot, Use.WAITING))
    usages = tuple(
        Usage(since=NOW + hour * HOUR, until=NOW + (hour + 1) * HOUR, use=use, chips=CHIPS, billed_as=place)
        for hour, (place, use) in enumerate(times)
    )
    (found,) = courses_of([replace(a_record(), usages=usages)], ALWAYS)
    elsewhere = replace(listed, zone="us-east5-a", capacity=Capacity(CapacityKind.SPOT))
    assert found.held_as == {listed: CHIPS * HOUR, elsewhere: 2 * CHIPS * HOUR}


def test_chip_hours_are_told_for_each_span() -> None:
    record = used_by_hours(Use.WAITING, Use.STARTING, Use.USEFUL).transitioned(NOW, Reason.CREATING, "")
    record = replace(record.transitioned(NOW + 1.5 * HOUR, Reason.READY, ""), usages=record.usages[:3])
    (found,) = courses_of([record], Window(NOW, NOW + 3 * HOUR))
    first, second = (found.totals(span) for span in found.spans)
    assert (first[Use.WAITING], first[Use.STARTING]) == (CHIPS * HOUR, CHIPS * HOUR / 2)
    assert (second[Use.STARTING], second[Use.USEFUL]) == (CHIPS * HOUR / 2, CHIPS * HOUR)


def test_a_claim_whose_slice_is_gone_is_told_for_the_chip_hours_that_it_had() -> None:
    record = replace(used_by_hours(Use.IDLE).transitioned(NOW - MINUTE, Reason.RELEASED, ""), created_at=NOW - MINUTE)
    record = replace(record, usages=used_by_hours(Use.IDLE).usages)
    (found,) = courses_of([record], Window(NOW, NOW + HOUR))
    assert totals([found])[Use.IDLE] == CHIPS * HOUR


def test_it_is_known_that_earlier_chip_hours_are_no_longer_on_record() -> None:
    record = used_by_hours(*[Use.IDLE, Use.USEFUL] * (MOST_USAGES // 2))
    begun_before = replace(record, created_at=NOW - MINUTE)
    within, after = Window(NOW - MINUTE, NOW + HOUR), Window(NOW, NOW + HOUR)
    assert [each.uncounted for each in courses_of([begun_before], within)] == [True]
    assert [each.uncounted for each in courses_of([begun_before], after)] == [False]
    assert [each.uncounted for each in courses_of([record], within)] == [False]


# the beginning and the end


def test_before_its_first_transition_a_slice_was_queued() -> None:
    record = a_record().transitioned(NOW + 5 * MINUTE, Reason.CREATION_STARTED, "")
    found = course(record, ALWAYS)
    assert found is not None
    assert [(span.start, span.transition.phase) for span in found.spans] == [
        (NOW, Phase.QUEUED),
        (NOW + 5 * MINUTE, Phase.PROVISIONING),
    ]


def test_a_slice_without_transitions_has_the_phase_of_its_record() -> None:
    found = course(a_record(), Window(NOW, NOW + MINUTE))
    assert found is not None
    assert [span.transition.phase for span in found.spans] == [Phase.QUEUED]


def a_long_history() -> SliceRecord:
    record = a_record()
    for number in range(HISTORY + 5):
        record = record.transitioned(NOW + number * MINUTE, Reason.READY if number % 2 else Reason.HOSTS_LOST, "")
    return record


def test_the_number_of_transitions_that_were_not_kept_is_known() -> None:
    found = course(a_long_history(), ALWAYS)
    assert found is not None
    assert (found.forgotten, found.spans[0].start) == (5, NOW + 5 * MINUTE)


def test_transitions_lost_before_the_window_do_not_count() -> None:
    found = course(a_long_history(), Window(NOW + 6 * MINUTE, ALWAYS.until))
    assert found is not None
    assert found.forgotten == 0


def test_a_span_that_began_before_the_window_is_cut_and_marked() -> None:
    record = a_record().transitioned(NOW, Reason.READY, "")
    found = course(record, Window(NOW + MINUTE, NOW + 2 * MINUTE))
    assert found is not None
    (span,) = found.spans
    assert (span.start, span.transition.at, span.begins_inside) == (NOW + MINUTE, NOW, False)


def test_a_slice_gone_before_the_window_has_no_course() -> None:
    record = a_record().transitioned(NOW, Reason.RELEASED, "")
    assert course(record, Window(NOW + MINUTE, NOW + 2 * MINUTE)) is None


def test_a_slice_created_after_the_window_has_no_course() -> None:
    assert course(replace(a_record(), created_at=NOW + MINUTE), Window(NOW - MINUTE, NOW)) is None


def test_without_a_spec_no_chips_are_counted() -> None:
    found = course(a_record(spec=None).transitioned(NOW, Reason.READY, ""), ALWAYS)
    assert found is not None
    assert not any(totals([found]).values())
