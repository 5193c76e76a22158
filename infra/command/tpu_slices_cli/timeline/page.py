"""The page of a timeline: a self-contained HTML document. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from importlib.resources import files
from xml.etree.ElementTree import Element

from plotly.offline import get_plotlyjs

from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.records.transitions import HISTORY
from tpu_slices.domain.reporting.timeline import Totals, Use, held
from tpu_slices_cli.timeline.colours import DARK, LIGHT, PATTERNS, Theme
from tpu_slices_cli.timeline.figure import figure
from tpu_slices_cli.timeline.lists import histories, over_time
from tpu_slices_cli.timeline.markup import data, document, policy, script, tag
from tpu_slices_cli.timeline.story import USES, Story, chip_hours, lasting, slices, useful_share
from tpu_slices_cli.timeline.swatches import drawn, swatch


def page(story: Story) -> str:
    """Return the HTML document. Texts of tenants are escaped."""
    library, own = script(get_plotlyjs()), script(_file("page.js"))
    scripts = [library, data(figure(story), "figure"), own] if story.courses else []
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        policy(library, own),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"Slices over time: {story.whose}"),
        tag("style", f"{_variables()}\n{_file('page.css')}"),
    )
    main = _content(story) if story.courses else _nothing(story)
    body = tag("body", _header(story), tag("main", *main, id="main"), _footer(story), *scripts)
    return document(tag("html", head, body, lang="en"))


def _file(name: str) -> str:
    return files("tpu_slices_cli.timeline").joinpath(name).read_text(encoding="utf-8")


def _variables() -> str:
    dark = f"color-scheme: dark; {_of(DARK)}"
    system = f':root:not([data-theme="light"]) {{ {dark} }}'
    chosen = f':root[data-theme="dark"] {{ {dark} }}'
    return f":root {{ {_of(LIGHT)} }}\n@media (prefers-color-scheme: dark) {{ {system} }}\n{chosen}"


def _of(theme: Theme) -> str:
    named = {name: getattr(theme, name) for name in ("page", "panel", "ink", "quiet", "line", "accent")}
    phases = {phase.value.lower(): colour for phase, colour in theme.phases.items()}
    return " ".join(f"--{name}: {colour};" for name, colour in {**named, **phases}.items())


def _header(story: Story) -> Element:
    since, until = story.window.since, story.window.until
    about = tag("p", "From ", _time(since), " to ", _time(until), f" ({lasting(until - since)}).", class_="quiet")
    options = (("system", "system default"), ("light", "light"), ("dark", "dark"))
    choice = tag("select", *(tag("option", text, value=value) for value, text in options), id="colours")
    skip = tag("a", "Skip to the lists", href="#histories", class_="skip")
    top = [tag("h1", f"Slices over time: {story.whose}")]
    if story.courses:
        top.append(tag("p", tag("label", "Colours ", choice)))
    return tag("header", skip, tag("div", *top, class_="top"), about)


def _time(at: datetime) -> Element:
    return tag("time", f"{at:%Y-%m-%d %H:%M:%S} UTC", datetime=at.isoformat())


def _nothing(story: Story) -> Iterator[Element]:
    yield tag("p", f"No slices found: {story.whose}.", id="histories")
    hint = "Use a longer --since, another cluster or another namespace; "
    yield tag("p", hint, tag("code", "slices list --all"), " lists all slices on record.")


def _content(story: Story) -> Iterator[Element]:
    yield _figures(story)
    yield from _warnings(story)
    yield _chart()
    yield _by_jobset(story)
    yield histories(story)
    yield over_time(story)


def _figures(story: Story) -> Element:
    sums = story.totals
    shown = [
        (
            "Slices",
            f"{len(story.courses):,}",
            "of 1 JobSet" if len(story.families) == 1 else f"of {len(story.families):,} JobSets",
        ),
        ("Held", chip_hours(held(sums)), "chip-hours"),
        ("Useful", chip_hours(sums[Use.USEFUL]), f"chip-hours, {useful_share(sums)} of those held"),
        ("Starting", chip_hours(sums[Use.STARTING]), "chip-hours"),
        ("Idle", chip_hours(sums[Use.IDLE]), "chip-hours"),
        ("Waiting", chip_hours(sums[Use.WAITING]), "chip-hours requested"),
        ("Stopped", chip_hours(sums[Use.STOPPED]), "chip-hours requested"),
    ]
    numbers = (tag("div", tag("dt", name), tag("dd", value, tag("small", unit))) for name, value, unit in shown)
    return tag("section", tag("h2", "Summary"), tag("dl", *numbers, class_="figures"))


def _warnings(story: Story) -> Iterator[Element]:
    if story.omitted:
        text = (
            f"{story.omitted:,} more slices are in the totals and in the chart of chips, but not drawn or listed: only "
            "the slices that changed last are. Select a JobSet, a namespace or a shorter time to see others."
        )
        yield tag("p", text, class_="note")
    if story.cut_off:
        text = (
            f"The history of {slices(story.cut_off)} is truncated: a record keeps the last {HISTORY} transitions. "
            "Earlier ones are in no total; the chart and the lists show where the history begins."
        )
        yield tag("p", text, class_="note")
    if story.unknown_chips:
        yield tag("p", f"The chips of {slices(story.unknown_chips)} are unknown and counted as 0.", class_="note")


def _chart() -> Element:
    note = "Drag with the mouse to zoom in, double-click to reset. The lists below contain the same data."
    missing = tag("noscript", "The chart requires JavaScript. The lists below contain the same data.")
    drawing = tag(
        "div", missing, id="chart", role="group", aria_labelledby="chart-title", aria_describedby="chart-note"
    )
    return tag(
        "section",
        tag("h2", "Chart", id="chart-title"),
        *_legends(),
        tag("figure", drawing, tag("figcaption", note, id="chart-note", class_="quiet")),
    )


def _legends() -> Iterator[Element]:
    chips = (
        (swatch(Phase.READY), "useful"),
        (swatch(Phase.PROVISIONING), "held"),
        (drawn("M0 7H32", dashes="3 3"), "waiting"),
    )
    slices = (
        *((swatch(phase), phase.value) for phase in PATTERNS),
        (drawn("M16 7m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", fill="var(--page)"), "transition"),
        (drawn("M11 2L21 12M21 2L11 12"), "gone"),
        (drawn("M20 1V13L9 7Z", fill="var(--page)"), "history truncated"),
    )
    for name, entries in (("Chips", chips), ("Slices", slices)):
        listed = (tag("li", symbol, text) for symbol, text in entries)
        yield tag("ul", tag("li", tag("strong", f"{name}:")), *listed, class_="legend", aria_label=f"Legend: {name}")


def _by_jobset(story: Story) -> Element:
    titles = ("JobSet", "slices", *(USES[use][0] for use in USES), "held", "useful share")
    head = tag(
        "thead",
        tag("tr", *(tag("th", each, scope="col", role="columnheader") for each in titles), role="row"),
        role="rowgroup",
    )
    rows = [_row(family.title, len(family.courses), family.totals, titles) for family in story.largest]
    foot = tag("tfoot", _row("Total", len(story.courses), story.totals, titles), role="rowgroup")
    left = len(story.families) - len(story.largest)
    rest = f" {left:,} smaller JobSets are in the total only." if left else ""
    caption = tag("caption", f"Chips x hours, by use.{rest}")
    table = tag("table", caption, head, tag("tbody", *rows, role="rowgroup"), foot, class_="stacked", role="table")
    meanings = (part for name, meaning in USES.values() for part in (tag("dt", name), tag("dd", f"{meaning}.")))
    explained = tag("details", tag("summary", "Definitions"), tag("dl", *meanings, class_="uses"))
    return tag("section", tag("h2", "Chip-hours by JobSet"), table, explained)


def _row(title: str, slices: int, sums: Totals, titles: Iterable[str]) -> Element:
    cells = (f"{slices:,}", *(chip_hours(sums[use]) for use in USES), chip_hours(held(sums)), useful_share(sums))
    _, *names = titles
    named = (tag("td", cell, data_title=name, role="cell") for cell, name in zip(cells, names, strict=True))
    return tag("tr", tag("th", title, scope="row", role="rowheader"), *named, role="row")


def _footer(story: Story) -> Element:
    generated = tag(
        "p",
        "Generated by ",
        tag("code", "slices timeline"),
        " at ",
        _time(story.window.until),
        ". All times are in UTC.",
    )
    counted = (
        "The chips of a slice are those that it requests now, for all of its history. A slice that its Job has no "
        "more is shown until its node pool is deleted."
    )
    return (
        tag("footer", tag("h2", "Notes"), tag("p", counted), generated) if story.courses else tag("footer", generated)
    )
