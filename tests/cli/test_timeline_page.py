"""The page of `slices timeline`: its content, and that tenants' texts are escaped."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import combinations

import pytest

from tests.browser.stories import (
    BLOCKED,
    HOSTILE,
    HOSTILE_NAME,
    JOINING,
    LOST,
    QUEUED,
    READY,
    STARTED,
    STOCKOUT,
    an_afternoon,
    flapping,
    hostile,
    served,
    with_history,
)
from tests.builders import NOW, settings
from tests.cli.reading import Reader, a_story
from tpu_slices.domain.model.clusters import CatalogueSettings
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.reporting.timeline import Window, course
from tpu_slices_cli.text import plain
from tpu_slices_cli.timeline.colours import DARK, LIGHT, PATTERNS, STROKES, Theme
from tpu_slices_cli.timeline.lists import MOST_OPEN
from tpu_slices_cli.timeline.markup import script
from tpu_slices_cli.timeline.page import page
from tpu_slices_cli.timeline.story import MOST_LISTED, chip_hours, families, lasting, place

PRICED = settings(
    catalogue=CatalogueSettings(
        prices=(
            (
                ("accelerator", "tpu-v6e-slice"),
                ("region", "us-central2"),
                ("kind", "on_demand"),
                ("read", "2026-11-30"),
                ("source", "us"),
                ("usd_per_chip_hour", "2.7"),
            ),
        )
    )
)

# tenants' texts


def test_tenants_texts_are_escaped_in_the_page() -> None:
    harmless = Reader(page(a_story([with_history("llama", 0, [(200, *QUEUED), (100, *READY)])])))
    attacked = Reader(page(a_story(hostile())))
    assert attacked.elements == harmless.elements
    assert HOSTILE in attacked.text
    assert attacked.jobsets == [f"{HOSTILE}/{HOSTILE_NAME}"]
    assert "\u202e" not in attacked.text


@pytest.mark.parametrize("source", ["'</script>'", "'</SCRIPT'", "<!-- x", "'<script'"])
def test_a_script_that_contains_a_script_tag_is_an_error(source: str) -> None:
    with pytest.raises(ValueError, match="no script tag"):
        script(source)


def test_control_and_direction_characters_are_replaced() -> None:
    assert plain("a\u202eb\x00c\nd") == "a\ufffdb\ufffdc\nd"


# content


def test_every_span_of_the_chart_is_in_the_lists_too() -> None:
    story = a_story(an_afternoon())
    text = " ".join(Reader(page(story)).text.split())
    for each in story.courses:
        for span in each.spans:
            assert span.transition.message in text
            assert f"{span.transition.phase}, {span.transition.reason}: " in text


def test_a_cut_off_beginning_is_stated() -> None:
    text = Reader(page(a_story([flapping("bert", 0)]))).text
    assert "The history of 1 slice is truncated: a record keeps the last 20 transitions." in text
    assert "7 earlier transitions are no longer on record; the state before 09:42:00 UTC is unknown." in text


def test_chip_hours_are_summed_by_workload_and_in_all() -> None:
    failed = with_history("gemma", 0, [(180, *STARTED), (120, *STOCKOUT)])
    llama = with_history("llama", 0, [(120, *STARTED), (90, *JOINING), (60, *READY)])
    story = a_story([failed, llama])
    rows = Reader(page(replace(story, settings_of=lambda _: PRICED))).rows
    uses = ["waiting", "stopped", "starting", "idle", "warm", "useful", "held", "useful share", "list price"]
    assert rows[:4] == [
        ["workload", "slices", *uses],
        ["research/gemma", "1", "48.0", "0.0", "0.0", "0.0", "0.0", "0.0", "0.0", "none", "-"],
        ["research/llama", "1", "8.0", "0.0", "8.0", "0.0", "0.0", "16.0", "24.0", "67%", "64.80 USD"],
        ["Total", "2", "56.0", "0.0", "8.0", "0.0", "0.0", "16.0", "24.0", "67%", "64.80 USD"],
    ]
    assert Reader(page(story)).rows[2][-1] == "price unknown"


def test_chips_over_time_are_listed() -> None:
    rows = Reader(page(a_story([with_history("llama", 0, [(120, *QUEUED), (90, *JOINING), (60, *READY)])]))).rows
    assert rows[-4:] == [
        ["from", "held", "useful", "waiting"],
        ["10:00:00 UTC", "0", "0", "16"],
        ["10:30:00 UTC", "16", "0", "0"],
        ["11:00:00 UTC", "16", "16", "0"],
    ]


def test_jobsets_of_one_name_are_distinguished_by_uid() -> None:
    one, other = (with_history("llama", index, [(60, *READY)]) for index in range(2))
    reborn = with_history("llama", 0, [(30, *READY)], uid="uid-reborn")
    assert [family.title for family in a_story([one, other]).families] == ["research/llama"]
    assert [family.title for family in a_story([one, reborn]).families] == [
        "research/llama (UID uid-llama)",
        "research/llama (UID uid-reborn)",
    ]


def test_with_several_clusters_each_title_has_its_cluster() -> None:
    records = [with_history("llama", 0, [(60, *READY)], cluster=cluster) for cluster in ("east", "west")]
    window = Window(NOW - timedelta(hours=1), NOW)
    found = [each for record in records if (each := course(record, window)) is not None]
    titles = [family.title for family in families(found, [ClusterId("east"), ClusterId("west")])]
    assert titles == ["east: research/llama", "west: research/llama"]


def test_workloads_and_slices_are_in_the_natural_order_of_their_names() -> None:
    names = ["run-2", "run-10", "run-1"]
    story = a_story([served(name, index, 60) for name in names for index in (10, 2)])
    assert [family.title for family in story.families] == ["research/run-1", "research/run-2", "research/run-10"]
    assert [place(each) for each in story.families[0].courses] == ["slice-2", "slice-10"]


def test_a_workload_tells_its_phases_failures_cost_and_place() -> None:
    lost = with_history("llama", 1, [(300, *STARTED), (290, *READY), (150, *LOST), (120, *READY)])
    story = replace(a_story([served("llama", 0, 60), lost]), settings_of=lambda _: PRICED)
    text = Reader(page(story)).text
    shape = "tpu-v6e-slice 4x4: 4 x ct6e-standard-4t, 16 chips, us-central2-b, on demand"
    held = "90.4 chip-hours held, 90% useful"
    assert f"2 slices: 2 READY \u00b7 1 failure \u00b7 1 restart \u00b7 {held} \u00b7 244.08 USD \u00b7 {shape}" in text


def test_a_workload_that_held_nothing_says_so() -> None:
    text = Reader(page(a_story([with_history("mixtral", index, [(50, *BLOCKED)]) for index in range(2)]))).text
    assert "2 slices: 2 BLOCKED \u00b7 nothing held \u00b7 tpu-v6e-slice 4x4" in text


def test_of_many_workloads_those_that_changed_last_are_shown_and_the_others_folded() -> None:
    story = a_story([served(f"run-{number}", 0, 40 + number) for number in range(MOST_OPEN + 5)])
    text = Reader(page(story)).text
    assert "5 workloads that changed earlier" in text
    assert (
        text.index("research/run-29") < text.index("5 workloads that changed earlier") < text.index("research/run-30")
    )


def test_of_very_many_slices_all_are_drawn_and_counted_and_the_last_changed_listed() -> None:
    story = a_story([served("llama", number, 40 + number) for number in range(MOST_LISTED + 20)])
    (run,) = story.runs
    assert (len(run.listed), run.omitted, len(story.courses)) == (MOST_LISTED, 20, MOST_LISTED + 20)
    assert "20 slices that changed earlier: in the chart and in the numbers above" in Reader(page(story)).text


@pytest.mark.parametrize(
    ("records", "most"),
    [
        ([served("llama", number, 60 + number) for number in range(2)], 40_000),
        ([served(f"run-{number // 12}", number % 12, 40 + number % 300) for number in range(3_000)], 2_000_000),
    ],
    ids=["two slices", "three thousand"],
)
def test_a_page_is_small(records: list[SliceRecord], most: int) -> None:
    assert len(page(a_story(records)).encode()) < most


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59, "59 s"), (3_600, "1 h"), (3_900, "1 h 5 min"), (90_061, "1 d 1 h")],
)
def test_a_duration_has_at_most_two_units(seconds: int, text: str) -> None:
    assert lasting(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(("hours", "text"), [(0, "0.0"), (0.01, "< 0.1"), (0.06, "0.1"), (1234.56, "1,234.6")])
def test_chip_hours_have_one_decimal(hours: float, text: str) -> None:
    assert chip_hours(timedelta(hours=hours)) == text


# colours


def luminance(colour: str) -> float:
    """Return the relative luminance as WCAG 2.2 defines it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_have_enough_contrast_to_the_page(theme: Theme) -> None:
    for text in (theme.ink, theme.quiet, theme.accent):
        assert contrast(text, theme.page) >= 4.5
        assert contrast(text, theme.panel) >= 4.5
    assert {phase for phase, colour in theme.phases.items() if contrast(colour, theme.page) < 3} == set()


def test_phases_differ_by_colour_and_by_pattern() -> None:
    assert set(PATTERNS) == set(LIGHT.phases) == set(DARK.phases) == set(Phase) - {Phase.GONE}
    assert all(PATTERNS[one] != PATTERNS[other] for one, other in combinations(PATTERNS, 2))
    assert set(PATTERNS.values()) <= set(STROKES)
    assert all(len(set(theme.phases.values())) == len(PATTERNS) for theme in (LIGHT, DARK))
