"""The workloads with their charts and histories, and the chips over time as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.reporting.timeline import Course, Level, Span, held, levels
from tpu_slices_cli.text import plain
from tpu_slices_cli.timeline.chart import areas, strip
from tpu_slices_cli.timeline.marks import counted
from tpu_slices_cli.timeline.markup import tag
from tpu_slices_cli.timeline.story import (
    MOST_LEVELS,
    Family,
    Run,
    Story,
    beginning,
    chip_hours,
    good_for,
    lasting,
    marks_counted,
    message_of,
    place,
    slices,
    times,
    useful_share,
)
from tpu_slices_cli.timeline.swatches import swatch
from tpu_slices_cli.words import shape

MOST_OPEN = 30
"""The most workloads that are not folded, and the most slices of a page on which these are open at first."""
MOST_PLACES = 3


def runs(story: Story) -> Element:
    """Return each workload with its chart, and below that a history of each of its slices, both to be opened.

    The MOST_OPEN workloads that changed last come first, and the others are folded.
    """
    few = sum(len(run.listed) for run in story.runs) <= MOST_OPEN
    first, others = story.newest(MOST_OPEN)
    drawn = [_run(run, story, opened=few) for run in first]
    if others:
        head = tag("summary", f"{len(others):,} workloads that changed earlier")
        drawn.append(tag("details", head, *(_run(run, story, opened=False) for run in others)))
    if left := len(story.families) - len(story.runs):
        drawn.append(tag("p", f"{left:,} workloads that changed before these are in the totals only.", class_="note"))
    return tag("section", tag("h2", "Workloads and their slices"), story.axis.drawn(), *drawn, id="histories")


def _run(run: Run, story: Story, *, opened: bool) -> Element:
    family, alone = run.family, len(run.family.courses) == 1
    found = levels(family.courses)
    drawn = strip(family.courses[0], story.axis) if alone else areas(found, family.courses, story.axis)
    chart = [drawn] if alone or found else []  # what held and awaited no chips has no areas
    head = tag("summary", tag("span", _about(family, story), class_="quiet"), *chart)
    slices_ = [_slice(each, story, alone=alone) for each in run.listed]
    if run.omitted:
        text = f"{slices(run.omitted)} that changed earlier: in the chart and in the numbers above, but not listed."
        slices_.append(tag("p", text, class_="quiet"))
    details = tag("details", head, *slices_, **({"open": "open"} if opened else {}))
    return tag("section", tag("h3", family.title), details, class_="run")


def _about(family: Family, story: Story) -> str:
    """Return the slices of a workload by phase, its failures, what it held and cost, and where."""
    phases = Counter(each.spans[-1].transition.phase for each in family.courses)
    now = ", ".join(f"{count:,} {phase}" for phase, count in phases.items())
    wrong = counted(family.courses)
    numbers = (
        f"{slices(len(family.courses))}: {now}",
        *(marks_counted(mark, count) for mark, count in wrong.items() if count),
        *_held(family, story),
        *_places(family),
    )
    return plain(" \u00b7 ".join(numbers))


def _held(family: Family, story: Story) -> Iterator[str]:
    """Yield what a workload's slices held and what that cost."""
    if not held(family.totals):
        yield "nothing held"
        return
    yield f"{chip_hours(held(family.totals))} chip-hours held, {useful_share(family.totals)} useful"
    yield str(story.cost(family.courses))


def _places(family: Family) -> Iterator[str]:
    """Yield the shapes of a workload's slices and where they are, the most frequent first, at most MOST_PLACES."""
    found = Counter(shape(each.record) for each in family.courses)
    for text, count in found.most_common(MOST_PLACES):
        yield f"{count:,} x {text}" if len(found) > 1 else text
    if len(found) > MOST_PLACES:
        yield f"{len(found) - MOST_PLACES:,} other shapes"


def _slice(each: Course, story: Story, *, alone: bool) -> Element:
    """Return the history of a slice, with its chart unless that is its workload's."""
    last = each.spans[-1]
    now = f" for {lasting(last.end - last.transition.at)}: {message_of(last)}"
    drawn = [] if alone else [strip(each, story.axis)]
    head = tag("summary", tag("span", f"{place(each)}: ", _phase(last.transition.phase), now), *drawn)
    about = tag("p", f"{each.record.name}, {shape(each.record)}. {_note(each)}".strip(), class_="quiet")
    items = [tag("li", beginning(each, story))] if each.forgotten else []
    items += [_transition(each, span, story) for span in each.spans]
    return tag("details", head, about, tag("ol", *items, class_="transitions"), class_="slice")


def _note(each: Course) -> str:
    return f"Note: {plain(each.record.note)}" if each.record.note else ""


def _transition(each: Course, span: Span, story: Story) -> Element:
    when = tag("div", f"{times(span, story)}; {good_for(each, span)}", class_="quiet")
    return tag("li", _phase(span.transition.phase), f", {span.transition.reason}: {message_of(span)}", when)


def _phase(phase: Phase) -> Element:
    return tag("span", swatch(phase), phase.value, class_="phase")


def over_time(story: Story) -> Element:
    """Return the chips over time as a table of the newest MOST_LEVELS levels."""
    inside = tuple(level for level in story.levels if level.at < story.window.until)
    newest = inside[-MOST_LEVELS:]
    titles = ("from", "held", "useful", "waiting")
    head = tag("thead", tag("tr", *(tag("th", each, scope="col") for each in titles)))
    table = tag("table", tag("caption", _caption(len(inside) - len(newest))), head, tag("tbody", *_rows(newest, story)))
    return tag(
        "section",
        tag("h2", "Chips over time as a table"),
        tag("details", tag("summary", f"All {len(newest):,} levels"), table),
    )


def _caption(left: int) -> str:
    omitted = f" {left:,} earlier levels are omitted." if left else ""
    return f"The number of chips from each time on.{omitted}"


def _rows(newest: tuple[Level, ...], story: Story) -> Iterator[Element]:
    for level in newest:
        counts = (tag("td", f"{count:,}") for count in (level.held, level.useful, level.waiting))
        yield tag("tr", tag("th", story.time(level.at), scope="row"), *counts)
