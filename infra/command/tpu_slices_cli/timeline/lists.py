"""The data of the chart as lists and a table: for screen readers, and for copying."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.reporting.timeline import Course, Level, Span
from tpu_slices_cli.text import plain
from tpu_slices_cli.timeline.markup import tag
from tpu_slices_cli.timeline.story import (
    MOST_LEVELS,
    Story,
    asked,
    beginning,
    good_for,
    lasting,
    message_of,
    place,
    times,
)
from tpu_slices_cli.timeline.swatches import swatch


def histories(story: Story) -> Element:
    """Return a section per JobSet with a collapsible history of each slice."""
    listed = (
        tag("section", tag("h3", family.title), *(_slice(each, story) for each in family.courses))
        for family in story.shown
    )
    return tag("section", tag("h2", "Slice histories"), *listed, id="histories")


def _slice(each: Course, story: Story) -> Element:
    last = each.spans[-1]
    now = f" for {lasting(last.end - last.transition.at)}: {message_of(last)}"
    head = tag("summary", f"{place(each)}: ", _phase(last.transition.phase), now)
    about = tag("p", f"{each.record.name}, {asked(each)}. {_note(each)}".strip(), class_="quiet")
    items = [tag("li", beginning(each, story))] if each.forgotten else []
    items += [_transition(span, story) for span in each.spans]
    return tag("details", head, about, tag("ol", *items, class_="transitions"))


def _note(each: Course) -> str:
    return f"Note: {plain(each.record.note)}" if each.record.note else ""


def _transition(span: Span, story: Story) -> Element:
    when = tag("div", f"{times(span, story)}; {good_for(span)}", class_="quiet")
    return tag("li", _phase(span.transition.phase), f", {span.transition.reason}: {message_of(span)}", when)


def _phase(phase: Phase) -> Element:
    return tag("span", swatch(phase), phase.value, class_="phase")


def over_time(story: Story) -> Element:
    """Return the chips over time as a table of the newest MOST_LEVELS levels."""
    inside = tuple(level for level in story.levels if level.at < story.window.until)
    levels = inside[-MOST_LEVELS:]
    titles = ("from", "held", "useful", "waiting")
    head = tag("thead", tag("tr", *(tag("th", each, scope="col") for each in titles)))
    table = tag("table", tag("caption", _caption(len(inside) - len(levels))), head, tag("tbody", *_rows(levels, story)))
    return tag(
        "section",
        tag("h2", "Chips over time"),
        tag("details", tag("summary", f"All {len(levels):,} levels"), table),
    )


def _caption(left: int) -> str:
    omitted = f" {left:,} earlier levels are omitted." if left else ""
    return f"The number of chips from each time on.{omitted}"


def _rows(levels: tuple[Level, ...], story: Story) -> Iterator[Element]:
    for level in levels:
        counts = (tag("td", f"{count:,}") for count in (level.held, level.useful, level.waiting))
        yield tag("tr", tag("th", story.time(level.at), scope="row"), *counts)
