"""The charts of a timeline: bars as long as spans, marks where they belong, and an axis with round times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from xml.etree.ElementTree import Element

import pytest

from tests.browser.stories import (
    GONE,
    LOST,
    READY,
    RELEASING,
    STARTED,
    STOCKOUT,
    PastTransition,
    flapping,
    served,
    with_history,
)
from tests.builders import NOW
from tests.cli.reading import a_story
from tpu_slices.domain.model.reasons import Reason
from tpu_slices_cli.timeline.chart import Axis, areas, strip
from tpu_slices_cli.timeline.marks import Mark, marks

HELD = (Reason.HELD, "Held by ada.")


def bars(drawn: Element) -> list[tuple[str | None, str | None, str | None]]:
    return [(each.get("fill"), each.get("x"), each.get("width")) for each in drawn.iter("rect")]


def marked(history: list[PastTransition]) -> list[tuple[Mark, int]]:
    """Return the marks of a slice, and how many minutes before now each is."""
    (each,) = a_story([with_history("llama", 0, history)]).courses
    return [(found.mark, (NOW - found.at) // timedelta(minutes=1)) for found in marks(each)]


def test_the_axis_begins_with_what_is_shown_and_a_bar_is_as_long_as_its_span() -> None:
    story = a_story([with_history("llama", 0, [(120, *STARTED), (90, *READY), (30, *RELEASING)])], hours=24)
    assert story.axis == Axis(NOW - timedelta(hours=2), NOW)
    assert bars(strip(story.courses[0], story.axis)) == [
        ("url(#p-provisioning)", "0%", "25%"),
        ("url(#p-ready)", "25%", "50%"),
        ("url(#p-releasing)", "75%", "25%"),
    ]


def test_a_slice_that_is_gone_has_no_bar_any_more() -> None:
    story = a_story([with_history("llama", 0, [(120, *READY), (60, *GONE)])])
    assert bars(strip(story.courses[0], story.axis)) == [("url(#p-ready)", "0%", "50%")]


@pytest.mark.parametrize(
    ("history", "found"),
    [
        ([(90, *STARTED), (60, *READY)], []),
        ([(90, *STARTED), (60, *STOCKOUT)], [(Mark.FAILURE, 60)]),
        ([(90, *STARTED), (60, *STOCKOUT), (30, *STARTED)], [(Mark.FAILURE, 60), (Mark.RESTART, 30)]),
        ([(90, *READY), (60, *LOST), (30, *READY)], [(Mark.FAILURE, 60), (Mark.RESTART, 30)]),
        ([(90, *READY), (60, *HELD)], []),
        ([(90, *READY), (60, *RELEASING), (30, *GONE)], []),
        ([(900, *STARTED), (800, *STOCKOUT), (30, *STARTED)], [(Mark.RESTART, 30)]),
    ],
)
def test_failures_and_restarts_are_marked(history: list[PastTransition], found: list[tuple[Mark, int]]) -> None:
    assert marked(history) == found


def test_a_history_that_is_cut_off_is_marked_where_it_begins() -> None:
    (each,) = a_story([flapping("bert", 0)]).courses
    assert next(marks(each)).mark is Mark.CUT


def test_many_marks_at_one_place_are_one() -> None:
    story = a_story([with_history("llama", index, [(90, *STARTED), (60, *STOCKOUT)]) for index in range(50)])
    drawn = areas(story.levels, story.courses, story.axis)
    assert [(each.get("href"), each.get("x")) for each in drawn.iter("use")] == [("#m-failure", "33.3%")]


def test_areas_have_at_most_a_step_for_each_pixel() -> None:
    story = a_story([served("llama", number, 20 + number) for number in range(340)])
    held, useful, _ = (each.get("d") or "" for each in areas(story.levels, (), story.axis).iter("path"))
    assert held.startswith("M0 100H0V")
    assert max(held.count("H"), useful.count("H")) <= 1_002


@pytest.mark.parametrize(
    ("length", "labels"),
    [
        (timedelta(minutes=3), ["11:58", "11:59"]),
        (timedelta(hours=5), ["08:00", "09:00", "10:00", "11:00"]),
        (timedelta(hours=24), ["18:00", "1 Mar", "06:00"]),
        (timedelta(days=6), ["24 Feb", "26 Feb", "28 Feb"]),
    ],
)
def test_an_axis_has_a_few_round_times(length: timedelta, labels: list[str]) -> None:
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert [label for _, label in Axis(now - length, now).ticks()] == labels
