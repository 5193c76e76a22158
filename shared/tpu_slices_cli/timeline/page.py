"""The page of a timeline: one HTML document that needs nothing but itself. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from importlib.resources import files
from xml.etree.ElementTree import Element

from plotly.offline import get_plotlyjs

from tpu_slices.domain.model.records import HISTORY, Phase
from tpu_slices.domain.reporting.timeline import Totals, Use, held
from tpu_slices_cli.timeline.colours import DARK, LIGHT, PATTERNS, Theme
from tpu_slices_cli.timeline.figure import figure
from tpu_slices_cli.timeline.lists import histories, over_time
from tpu_slices_cli.timeline.markup import data, document, policy, script, tag
from tpu_slices_cli.timeline.story import USES, Story, chip_hours, lasting, slices, useful_share
from tpu_slices_cli.timeline.swatches import drawn, swatch


def page(story: Story) -> str:
    """Give the whole document. Texts of tenants are in it as text only."""
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
    options = (("system", "as the system"), ("light", "light"), ("dark", "dark"))
    choice = tag("select", *(tag("option", text, value=value) for value, text in options), id="colours")
    skip = tag("a", "Skip to the lists", href="#histories", class_="skip")
    top = [tag("h1", f"Slices over time: {story.whose}")]
    if story.courses:
        top.append(tag("p", tag("label", "Colours ", choice)))
    return tag("header", skip, tag("div", *top, class_="top"), about)


def _time(at: datetime) -> Element:
    return tag("time", f"{at:%Y-%m-%d %H:%M:%S} UTC", datetime=at.isoformat())


def _nothing(story: Story) -> Iterator[Element]:
    yield tag("p", f"There was no slice in this time: {story.whose}.", id="histories")
    yield tag(
        "p", "A longer time, another cluster or another namespace may have some; ", tag("code", "slices list --all")
    )


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
        ("Useful", chip_hours(sums[Use.USEFUL]), f"chip-hours, {useful_share(sums)} of what was held"),
        ("Getting ready", chip_hours(sums[Use.STARTING]), "chip-hours"),
        ("In vain", chip_hours(sums[Use.VAIN]), "chip-hours"),
        ("Waiting", chip_hours(sums[Use.WAITING]), "chip-hours asked for"),
        ("Stopped", chip_hours(sums[Use.STOPPED]), "chip-hours asked for"),
    ]
    numbers = (tag("div", tag("dt", name), tag("dd", value, tag("small", unit))) for name, value, unit in shown)
    return tag("section", tag("h2", "In short"), tag("dl", *numbers, class_="figures"))


def _warnings(story: Story) -> Iterator[Element]:
    if story.omitted:
        text = (
            f"{story.omitted:,} more slices are in the sums and in the chips, but not drawn or listed one by one: "
            "those shown changed last. Name a JobSet, a namespace or a shorter time to see others."
        )
        yield tag("p", text, class_="note")
    if story.cut_off:
        text = (
            f"The beginning of {slices(story.cut_off)} is cut off: a record keeps the last {HISTORY} changes. "
            "What was before is in no sum; the chart marks the place, and the lists name it."
        )
        yield tag("p", text, class_="note")
    if story.unknown_chips:
        yield tag("p", f"The chips of {slices(story.unknown_chips)} are not known: none are counted.", class_="note")


def _chart() -> Element:
    note = "With a mouse: drag across it for a shorter time, double-click for the whole. The lists below say the same."
    missing = tag("noscript", "The chart needs scripts. The lists below say the same in words.")
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
        (drawn("M0 7H32", dashes="3 3"), "waited for"),
    )
    slices = (
        *((swatch(phase), phase.value) for phase in PATTERNS),
        (drawn("M16 7m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", fill="var(--page)"), "a change"),
        (drawn("M11 2L21 12M21 2L11 12"), "gone"),
        (drawn("M20 1V13L9 7Z", fill="var(--page)"), "beginning cut off"),
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
    foot = tag("tfoot", _row("All", len(story.courses), story.totals, titles), role="rowgroup")
    left = len(story.families) - len(story.largest)
    rest = f" {left:,} JobSets with less than these are in the sum only." if left else ""
    caption = tag("caption", f"Chips times hours, by what the chips were good for.{rest}")
    table = tag("table", caption, head, tag("tbody", *rows, role="rowgroup"), foot, class_="stacked", role="table")
    meanings = (part for name, meaning in USES.values() for part in (tag("dt", name), tag("dd", f"{meaning}.")))
    explained = tag("details", tag("summary", "What is counted as what"), tag("dl", *meanings, class_="uses"))
    return tag("section", tag("h2", "Chip-hours by JobSet"), table, explained)


def _row(title: str, slices: int, sums: Totals, titles: Iterable[str]) -> Element:
    cells = (f"{slices:,}", *(chip_hours(sums[use]) for use in USES), chip_hours(held(sums)), useful_share(sums))
    _, *names = titles
    named = (tag("td", cell, data_title=name, role="cell") for cell, name in zip(cells, names, strict=True))
    return tag("tr", tag("th", title, scope="row", role="rowheader"), *named, role="row")


def _footer(story: Story) -> Element:
    made = tag(
        "p", "Made by ", tag("code", "slices timeline"), " at ", _time(story.window.until), "; all times are UTC."
    )
    counted = (
        "Chips are counted as each slice asks for them now. A pool of an earlier attempt that is being deleted while "
        "its slice already waits again is not counted."
    )
    return (
        tag("footer", tag("h2", "How to read this"), tag("p", counted), made) if story.courses else tag("footer", made)
    )
