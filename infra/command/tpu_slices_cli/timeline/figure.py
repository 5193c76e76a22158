"""The chart of a timeline, by plotly: chips over time as areas, and below them a row of bars per slice. Pure.

Plotly interprets text as markup (`<b>`, `<a>`, entities), so all texts of tenants are escaped.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Any

import plotly.graph_objects as go

from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.reporting.timeline import Course, Span
from tpu_slices_cli.timeline.colours import DARK, LIGHT, PATTERNS, Theme
from tpu_slices_cli.timeline.story import Story, beginning, chips, good_for, message_of, place, state, times

ROW, CHIPS, AXIS, TITLE = 40, 160, 46, 30  # heights in pixels
_LABEL_ABOVE, _NAME_ABOVE = 0.44, 0.1  # rows: a slice's name above the middle of its bar, a JobSet's below its row's
_LABEL_LENGTH = 40
_HOVER_WIDTH, _HOVER_LENGTH = 44, 400  # characters; a phone shows 44 per line
_FONT = {"family": "system-ui, sans-serif", "size": 13}


@dataclass(frozen=True, slots=True)
class Row:
    """A slice, and its position on the vertical axis."""

    at: float
    course: Course


def figure(story: Story) -> dict[str, Any]:
    """Return `data` and `layout` for plotly.js, and `themes`: the colours to set in them for light and dark."""
    rows, labels = _rows(story)
    traces = [*_areas(story), *_bars(rows, story), *_markers(rows, story)]
    chart = go.Figure(data=traces, layout=_layout(story, labels)).to_plotly_json()
    themes = {"light": _theme(chart["data"], LIGHT), "dark": _theme(chart["data"], DARK)}
    return {**chart, "themes": themes}


def _rows(story: Story) -> tuple[list[Row], dict[float, str]]:
    """Return a row per slice, and the labels by position; the name of a JobSet has a row of its own."""
    rows: list[Row] = []
    labels: dict[float, str] = {}
    down = 0
    for family in story.shown:
        labels[down + _NAME_ABOVE] = f"<b>{escape(_short(family.title))}</b>"
        for number, each in enumerate(family.courses, start=down + 1):
            rows.append(Row(number, each))
            labels[number - _LABEL_ABOVE] = escape(_short(f"{place(each)}: {each.spans[-1].transition.phase}"))
        down += 1 + len(family.courses)
    return rows, labels


def _short(text: str) -> str:
    return text if len(text) <= _LABEL_LENGTH else f"{text[: _LABEL_LENGTH - 1]}…"


def _areas(story: Story) -> Iterator[go.Scatter]:
    """Yield the held chips, in front of them the useful ones, and the waiting ones as a line."""
    levels = [level for level in story.levels if level.at < story.window.until]
    ends = [*levels, *levels[-1:]]
    at = [*(_date(level.at) for level in levels), *([_date(story.window.until)] if levels else [])]
    hover_texts = [
        f"<b>{story.time(level.at)}</b><br>{chips(level.held)} held<br>{chips(level.useful)} useful"
        f"<br>{chips(level.waiting)} waiting"
        for level in ends
    ]
    stairs: dict[str, Any] = {"x": at, "mode": "lines", "hovertext": hover_texts, "hoverinfo": "text"}
    for name, phase, counts, fill in (
        ("held", Phase.PROVISIONING, [level.held for level in ends], PATTERNS[Phase.PROVISIONING]),
        ("useful", Phase.READY, [level.useful for level in ends], PATTERNS[Phase.READY]),
    ):
        yield go.Scatter(
            **stairs,
            y=counts,
            name=name,
            meta=phase.value,
            line={"shape": "hv", "width": 2},
            fill="tozeroy",
            fillpattern={"shape": fill, "size": 8, "fillmode": "overlay"},
        )
    waiting = [level.waiting for level in ends]
    line = {"shape": "hv", "width": 2, "dash": "dot"}
    yield go.Scatter(**stairs, y=waiting, name="waiting", line=line)


def _bars(rows: list[Row], story: Story) -> Iterator[go.Bar]:
    for phase, pattern in PATTERNS.items():
        drawn = [(row, span) for row in rows for span in row.course.spans if span.transition.phase is phase]
        if drawn:
            yield go.Bar(
                name=phase.value,
                meta=phase.value,
                orientation="h",
                xaxis="x2",
                yaxis="y2",
                base=[_date(span.start) for _, span in drawn],
                x=[(span.end - span.start).total_seconds() * 1000 for _, span in drawn],
                y=[row.at for row, _ in drawn],
                width=0.42,
                hovertext=[_hover(row.course, span, story) for row, span in drawn],
                hoverinfo="text",
                textposition="none",
                marker={"pattern": {"shape": pattern, "size": 7, "fillmode": "overlay"}, "line": {"width": 0}},
            )


def _markers(rows: list[Row], story: Story) -> Iterator[go.Scatter]:
    """Yield the markers: transitions, the end of a slice (GONE), and the beginning of a truncated history."""
    begun = [(row, span) for row in rows for span in row.course.spans if span.begins_inside]
    changed = [(row, span) for row, span in begun if span.transition.phase is not Phase.GONE]
    ends = [(row, span) for row, span in begun if span.transition.phase is Phase.GONE]
    cut = [(row, row.course.spans[0]) for row in rows if row.course.forgotten]
    for name, symbol, size, marked in (
        ("transition", "circle", 6, changed),
        ("gone", "x-thin", 9, ends),
        ("history truncated", "triangle-left", 13, cut),
    ):
        hover_texts = [
            _wrapped(beginning(row.course, story)) if marked is cut else _hover(row.course, span, story)
            for row, span in marked
        ]
        yield go.Scatter(
            name=name,
            mode="markers",
            xaxis="x2",
            yaxis="y2",
            x=[_date(span.start) for _, span in marked],
            y=[row.at for row, _ in marked],
            hovertext=hover_texts,
            hoverinfo="text",
            cliponaxis=False,
            marker={"symbol": symbol, "size": size, "line": {"width": 2}},
        )


def _hover(each: Course, span: Span, story: Story) -> str:
    job = each.record.job
    lines = (times(span, story), message_of(span)[:_HOVER_LENGTH], good_for(span))
    return "<br>".join(
        (
            f"<b>{_wrapped(f'{job.owner.namespace}/{job.job_name}')}</b>",
            f"<b>{escape(state(span))}</b>",
            *map(_wrapped, lines),
        )
    )


def _wrapped(text: str) -> str:
    return "<br>".join(escape(line) for line in textwrap.wrap(text, _HOVER_WIDTH))


def _date(at: datetime) -> str:
    """Return a time in UTC as plotly expects it, without a time zone."""
    return at.replace(tzinfo=None).isoformat(timespec="milliseconds")


def _layout(story: Story, labels: dict[float, str]) -> go.Layout:
    rows = sum(1 + len(family.courses) for family in story.shown)
    below = rows * ROW
    height = TITLE + CHIPS + AXIS + TITLE + below + AXIS
    inside = height - TITLE - AXIS
    x = {"type": "date", "range": [_date(story.begins), _date(story.window.until)], "automargin": False, "tickangle": 0}
    title = {"xref": "paper", "x": 0, "xanchor": "left", "yref": "paper", "yanchor": "bottom", "showarrow": False}
    return go.Layout(
        template="none",
        height=height,
        margin={"l": 44, "r": 10, "t": TITLE, "b": AXIS},
        font=_FONT,
        showlegend=False,
        barmode="overlay",
        hovermode="closest",
        hoverlabel={"align": "left", "namelength": 0, "font": _FONT},
        dragmode="zoom",
        uirevision="kept",
        xaxis={**x, "anchor": "y"},
        xaxis2={**x, "anchor": "y2", "matches": "x"},
        yaxis={"domain": [1 - CHIPS / inside, 1], "rangemode": "tozero", "fixedrange": True, "nticks": 5},
        yaxis2={
            "domain": [0, below / inside],
            "anchor": "x2",
            "range": [rows - 0.4, -0.4],
            "fixedrange": True,
            "tickmode": "array",
            "tickvals": list(labels),
            "ticktext": list(labels.values()),
            "ticklabelposition": "inside",
            "ticks": "",
            "showgrid": False,
            "zeroline": False,
        },
        annotations=[
            {**title, "y": 1, "text": "<b>Chips</b>"},
            {**title, "y": below / inside, "text": "<b>Slices</b>"},
        ],
    )


def _theme(data: list[dict[str, Any]], theme: Theme) -> dict[str, Any]:
    """Return the colours of a theme by path, for each trace and for the layout."""
    return {"data": [_trace_colours(trace, theme) for trace in data], "layout": _layout_colours(theme)}


def _trace_colours(trace: dict[str, Any], theme: Theme) -> dict[str, str]:
    own = theme.phases[Phase(trace["meta"])] if "meta" in trace else None
    if trace["type"] == "bar":
        return {"marker.color": own or theme.ink, "marker.pattern.fgcolor": theme.page}
    if trace["mode"] == "markers":
        return {"marker.color": theme.page, "marker.line.color": theme.ink}
    if own is None:
        return {"line.color": theme.ink}
    return {"line.color": own, "fillcolor": own, "fillpattern.fgcolor": theme.page}


def _layout_colours(theme: Theme) -> dict[str, str]:
    axis = {
        **dict.fromkeys(("gridcolor", "linecolor", "zerolinecolor", "tickcolor"), theme.line),
        "tickfont.color": theme.ink,
    }
    axes = ("xaxis", "xaxis2", "yaxis", "yaxis2")
    return {
        "paper_bgcolor": theme.page,
        "plot_bgcolor": theme.page,
        "font.color": theme.ink,
        "modebar.color": theme.quiet,
        "modebar.activecolor": theme.accent,
        "modebar.bgcolor": theme.page,
        "hoverlabel.bgcolor": theme.panel,
        "hoverlabel.bordercolor": theme.ink,
        "hoverlabel.font.color": theme.ink,
        **{f"{name}.{key}": colour for name in axes for key, colour in axis.items()},
    }
