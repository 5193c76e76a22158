"""The charts of a timeline, as SVG: the axis, a strip for each slice, and chips over time as areas. Pure.

Widths are percentages, so that a chart fits each screen without a script.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from xml.etree.ElementTree import Element

from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.reporting.timeline import Course, Level
from tpu_slices_cli.timeline.colours import PATTERNS, STROKES
from tpu_slices_cli.timeline.marks import Mark, Marked, marks
from tpu_slices_cli.timeline.markup import tag

HEIGHT = 14
"""Of a strip, in pixels: that of the patterns."""
_MOST_TICKS = 5
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_STEPS = (
    *(1, 2, 5, 10, 30),
    *(each * _MINUTE for each in (1, 2, 5, 10, 15, 30)),
    *(each * _HOUR for each in (1, 2, 3, 6, 12)),
    *(each * _DAY for each in (1, 2, 7, 14, 30, 90, 180, 365, 3_650)),
)
_LEAST = 0.25
"""Percent of the width: what lasts shorter can be seen, too."""
_STEPS_OF_AREAS = 1_000
SYMBOLS = {
    Mark.FAILURE: "M-4-4L4 4M4-4L-4 4",
    Mark.RESTART: "M-4-5L5 0L-4 5Z",
    Mark.CUT: "M4-6V6L-5 0Z",
}


@dataclass(frozen=True, slots=True)
class Axis:
    """The time that is shown."""

    begins: datetime
    until: datetime

    def share(self, at: datetime) -> float:
        """Return where a time is, from 0 to 1."""
        return min(1.0, max(0.0, (at - self.begins) / max(self.until - self.begins, timedelta(seconds=1))))

    def percent(self, at: datetime) -> str:
        return f"{100 * self.share(at):.4g}%"

    def ticks(self) -> Iterator[tuple[datetime, str]]:
        """Yield round times that are not at the edges, at most five, and their labels."""
        length = (self.until - self.begins).total_seconds()
        step = next((each for each in _STEPS if length / each <= _MOST_TICKS), _STEPS[-1])
        first = -(-int(self.begins.timestamp()) // step) * step
        for seconds in range(first, int(self.until.timestamp()) + 1, step):
            at = datetime.fromtimestamp(seconds, UTC)
            if 0.06 <= self.share(at) <= 0.94:
                yield at, _label(at, step)

    def drawn(self) -> Element:
        """Return the labels of the axis and a line at each."""
        parts = (
            part
            for at, label in self.ticks()
            for part in (
                tag("line", x1=self.percent(at), x2=self.percent(at), y1="14", y2="20", class_="tick"),
                tag("text", label, x=self.percent(at), y="11", class_="label"),
            )
        )
        return tag("svg", *parts, class_="axis", width="100%", height="20", aria_hidden="true")


def _label(at: datetime, step: int) -> str:
    if step >= _DAY or (at.hour, at.minute, at.second) == (0, 0, 0):
        return f"{at.day} {at:%b}"
    return f"{at:%H:%M:%S}" if step < _MINUTE else f"{at:%H:%M}"


def definitions() -> Element:
    """Return the patterns of the phases and the symbols of the marks, to which the charts refer."""
    patterns = (_pattern(phase, strokes) for phase, strokes in PATTERNS.items())
    symbols = (tag("path", d=path, id=_id(mark), class_=f"mark {_id(mark)}") for mark, path in SYMBOLS.items())
    return tag("svg", tag("defs", *patterns, *symbols), width="0", height="0", class_="defs", aria_hidden="true")


def _pattern(phase: Phase, strokes: str) -> Element:
    width = "30" if strokes in {"/", "\\", "x"} else "32"  # a multiple of the distance of its lines
    ground = tag("rect", width=width, height=str(HEIGHT), class_=phase.lower())
    lines = tag("path", d=STROKES[strokes], class_="strokes")
    size = {"width": width, "height": str(HEIGHT), "patternUnits": "userSpaceOnUse"}
    pattern = tag("pattern", ground, lines, id=f"p-{phase.lower()}")
    pattern.attrib.update(size)
    return pattern


def _id(mark: Mark) -> str:
    return f"m-{mark.name.lower()}"


def strip(each: Course, axis: Axis) -> Element:
    """Return a bar for each span of a slice, and its marks."""
    bars = []
    for span in each.spans:
        phase = span.transition.phase
        if phase in PATTERNS:
            start, width = axis.share(span.start), axis.share(span.end) - axis.share(span.start)
            text = tag("title", f"{phase}, {span.transition.reason}: {span.start:%H:%M:%S} to {span.end:%H:%M:%S} UTC")
            size = {"x": f"{100 * start:.4g}%", "width": f"{max(_LEAST, 100 * width):.4g}%", "height": str(HEIGHT)}
            bars.append(tag("rect", text, **size, fill=f"url(#p-{phase.lower()})"))
    return _svg(*bars, *_marks(marks(each), axis), class_="strip")


def areas(levels: Sequence[Level], courses: Iterable[Course], axis: Axis, height: int = 28) -> Element:
    """Return the held chips as an area, in front of them the useful ones, the waiting ones as a line, and all marks."""
    most = max((max(level.held, level.waiting) for level in levels), default=0) or 1
    held = tag("path", d=_area(_heights([(level.at, level.held) for level in levels], most, axis)), class_="held")
    useful = tag("path", d=_area(_heights([(level.at, level.useful) for level in levels], most, axis)), class_="useful")
    waiting = tag("path", d=_line(_heights([(level.at, level.waiting) for level in levels], most, axis)), class_="line")
    drawn = tag("svg", held, useful, waiting, width="100%", height=str(height))
    drawn.attrib.update({"viewBox": f"0 0 {_STEPS_OF_AREAS} 100", "preserveAspectRatio": "none"})
    found = (each for course in courses for each in marks(course))
    chart = _svg(drawn, *_marks(found, axis, height), class_="areas")
    chart.attrib["height"] = str(height)
    return chart


def _marks(found: Iterable[Marked], axis: Axis, height: int = HEIGHT) -> Iterator[Element]:
    """Yield the symbols of marks, of those at one place and of one kind one."""
    for percent, mark in dict.fromkeys((f"{100 * axis.share(each.at):.1f}%", each.mark) for each in found):
        yield tag("use", href=f"#{_id(mark)}", x=percent, y=str(height // 2))


def _svg(*children: Element, class_: str) -> Element:
    return tag("svg", *children, class_=class_, width="100%", height=str(HEIGHT), aria_hidden="true")


def _heights(counts: Iterable[tuple[datetime, int]], most: int, axis: Axis) -> dict[int, int]:
    """Return how far below the top each count is, by its place; of those at one place the last."""
    return {round(_STEPS_OF_AREAS * axis.share(at)): 100 - round(100 * count / most) for at, count in counts}


def _area(heights: dict[int, int]) -> str:
    steps = "".join(f"H{place}V{height}" for place, height in heights.items())
    return f"M0 100{steps}H{_STEPS_OF_AREAS}V100Z"


def _line(heights: dict[int, int]) -> str:
    """Return a line at each height above the ground."""
    places = pairwise([*heights.items(), (_STEPS_OF_AREAS, 100)])
    return "".join(f"M{begin} {height}H{end}" for (begin, height), (end, _) in places if height < 100)
