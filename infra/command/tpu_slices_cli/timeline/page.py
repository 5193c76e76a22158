"""The page of a timeline: a self-contained HTML document. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from importlib.resources import files
from xml.etree.ElementTree import Element

from tpu_slices.domain.records.transitions import HISTORY
from tpu_slices.domain.records.usage import MOST_USAGES, Use
from tpu_slices.domain.reporting.timeline import Course, Totals, held
from tpu_slices_cli.timeline.chart import areas, definitions
from tpu_slices_cli.timeline.colours import DARK, LIGHT, PATTERNS, Theme
from tpu_slices_cli.timeline.lists import MOST_OPEN, over_time, runs
from tpu_slices_cli.timeline.marks import Mark, counted
from tpu_slices_cli.timeline.markup import document, policy, script, tag
from tpu_slices_cli.timeline.story import USES, Story, chip_hours, chips, lasting, marks_counted, slices, useful_share
from tpu_slices_cli.timeline.swatches import swatch


def page(story: Story) -> str:
    """Return the HTML document. Texts of tenants are escaped."""
    scripts = [script(_file("page.js"))] if story.courses else []
    style = tag("style", f"{_variables()}\n{_file('page.css')}")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        policy(style, *scripts),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"Slices over time: {story.whose}"),
        style,
    )
    told = (tag("p", line, class_="note") for line in story.silent_relays)
    main = [*told, *(_content(story) if story.courses else _nothing(story))]
    drawn = [definitions()] if story.courses else []
    body = tag("body", *drawn, _header(story), tag("main", *main, id="main"), _footer(story), *scripts)
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
    since, until = story.axis.begins, story.axis.until
    asked = story.window.until - story.window.since
    before = "" if since == story.window.since else f" Nothing happened earlier in the {lasting(asked)} asked for."
    about = tag(
        "p", "From ", _time(since), " to ", _time(until), f" ({lasting(until - since)}).{before}", class_="quiet"
    )
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
    yield _chart(story)
    yield runs(story)
    yield _by_workload(story)
    yield over_time(story)


def _figures(story: Story) -> Element:
    sums = story.totals
    of = "of 1 workload" if len(story.families) == 1 else f"of {len(story.families):,} workloads"
    wrong = counted(story.courses)
    cost, *beside = str(story.cost(story.courses)).split("; ")
    shown = [
        ("Slices", f"{len(story.courses):,}", of),
        ("Cost", cost, "; ".join(("by list price, for what was held", *beside))),
        ("Held", chip_hours(held(sums)), "chip-hours"),
        ("Useful", chip_hours(sums[Use.USEFUL]), f"chip-hours, {useful_share(sums)} of those held"),
        ("Starting", chip_hours(sums[Use.STARTING]), "chip-hours"),
        ("Idle", chip_hours(sums[Use.IDLE]), "chip-hours"),
        ("Warm", chip_hours(sums[Use.WARM]), "chip-hours"),
        ("Waiting", chip_hours(sums[Use.WAITING]), "chip-hours requested"),
        ("Stopped", chip_hours(sums[Use.STOPPED]), "chip-hours requested"),
        ("Failures", f"{wrong[Mark.FAILURE]:,}", f"and {marks_counted(Mark.RESTART, wrong[Mark.RESTART])}"),
    ]
    numbers = (tag("div", tag("dt", name), tag("dd", value, tag("small", unit))) for name, value, unit in shown)
    return tag("section", tag("h2", "Summary"), tag("dl", *numbers, class_="figures"))


def _warnings(story: Story) -> Iterator[Element]:
    if story.cut_off:
        text = (
            f"The history of {slices(story.cut_off)} is truncated: a record keeps the last {HISTORY} transitions. "
            "The chart and the lists show where the history begins."
        )
        yield tag("p", text, class_="note")
    if story.uncounted:
        text = (
            f"The chip-hours of {slices(story.uncounted)} are not whole: a record keeps how its chips were used the "
            f"last {MOST_USAGES} times that this changed. Earlier chip-hours are in no total."
        )
        yield tag("p", text, class_="note")
    if story.unknown_chips:
        yield tag("p", f"The chips of {slices(story.unknown_chips)} are unknown and counted as 0.", class_="note")


def _chart(story: Story) -> Element:
    most_held = max((level.held for level in story.levels), default=0)
    most_waiting = max((level.waiting for level in story.levels), default=0)
    note = (
        f"At most {chips(most_held)} held and {chips(most_waiting)} waiting at a time. All of it is in the lists below."
    )
    drawing = tag("figure", areas(story.levels, (), story.axis, 120), story.axis.drawn(), tag("figcaption", note))
    return tag("section", tag("h2", "Chips over time", id="chart"), *_legends(), drawing)


def _legends() -> Iterator[Element]:
    of_chips = (
        (_area("useful"), "useful"),
        (_area("held"), "held, not useful"),
        (tag("svg", tag("path", d="M0 7H32", class_="line"), viewBox="0 0 32 14", aria_hidden="true"), "waiting"),
    )
    of_slices = (
        *((swatch(phase), phase.value) for phase in PATTERNS),
        *((_symbol(mark), mark.value) for mark in Mark),
    )
    for name, entries in (("Chips", of_chips), ("Slices", of_slices)):
        listed = (tag("li", symbol, text) for symbol, text in entries)
        yield tag("ul", tag("li", tag("strong", f"{name}:")), *listed, class_="legend", aria_label=f"Legend: {name}")


def _area(name: str) -> Element:
    return tag("svg", tag("rect", width="32", height="14", class_=name), viewBox="0 0 32 14", aria_hidden="true")


def _symbol(mark: Mark) -> Element:
    use = tag("use", href=f"#m-{mark.name.lower()}", x="16", y="7")
    return tag("svg", use, viewBox="0 0 32 14", aria_hidden="true")


def _by_workload(story: Story) -> Element:
    titles = ("workload", "slices", *(USES[use][0] for use in USES), "held", "useful share", "list price")
    head = tag(
        "thead",
        tag("tr", *(tag("th", each, scope="col", role="columnheader") for each in titles), role="row"),
        role="rowgroup",
    )
    rows = [_row(each.title, each.courses, each.totals, titles, story) for each in story.largest]
    foot = tag("tfoot", _row("Total", story.courses, story.totals, titles, story), role="rowgroup")
    left = len(story.families) - len(story.largest)
    rest = f" {left:,} smaller workloads are in the total only." if left else ""
    caption = tag("caption", f"Chips x hours, by use.{rest}")
    table = tag("table", caption, head, tag("tbody", *rows, role="rowgroup"), foot, class_="stacked", role="table")
    meanings = (part for name, meaning in USES.values() for part in (tag("dt", name), tag("dd", f"{meaning}.")))
    if len(rows) > MOST_OPEN:
        table = tag("details", tag("summary", f"All {len(rows):,} workloads"), table)
    explained = tag("details", tag("summary", "Definitions"), tag("dl", *meanings, class_="uses"))
    return tag("section", tag("h2", "Chip-hours by workload"), table, explained)


def _row(title: str, courses: Sequence[Course], sums: Totals, titles: Iterable[str], story: Story) -> Element:
    uses = (chip_hours(sums[use]) for use in USES)
    cells = (f"{len(courses):,}", *uses, chip_hours(held(sums)), useful_share(sums), str(story.cost(courses)))
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
        "Chips are held from when hosts are seen until there are none: Google bills no creation that finds none. Their "
        "price is that of lists, without discounts. A slice that its Job has no more is shown until its node pool is "
        "deleted; its chip-hours stay with the Job. A failure is an attempt that ended without a slice, or a slice "
        "that lost hosts; a restart is another attempt, or that the hosts came back."
    )
    return (
        tag("footer", tag("h2", "Notes"), tag("p", counted), generated) if story.courses else tag("footer", generated)
    )
