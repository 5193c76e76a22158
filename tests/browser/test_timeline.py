"""The page of `slices timeline`, as a browser shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.chromium import Browser
from tests.browser.conftest import Pages
from tests.browser.stories import HOSTILE, READY, an_afternoon, hostile, unbroken, with_history
from tests.cli.reading import a_story
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices_cli.timeline.colours import DARK, LIGHT
from tpu_slices_cli.timeline.page import page

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

PHONE = 360
SHOWN = pytest.mark.parametrize(
    ("records", "width"),
    [
        pytest.param(an_afternoon(), 1200, id="wide"),
        pytest.param(an_afternoon(), PHONE, id="phone"),
        pytest.param(hostile(), PHONE, id="hostile"),
        pytest.param(unbroken(), PHONE, id="unbroken"),
        pytest.param([], PHONE, id="empty"),
    ],
)
LIGHT_AND_DARK = pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])

BARS = "[...document.querySelectorAll('#chart .barlayer .point path')].map(bar => bar.getBoundingClientRect())"
OPEN_ALL = "document.querySelectorAll('details').forEach(each => { each.open = true; })"
# Every visible text whose contrast to its background is below 4.5 to 1 (WCAG 2.2, 1.4.3).
TOO_FAINT = """(() => {
  const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = colour => numbers(colour).slice(0, 3).map(part => part / 255)
    .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, place) => sum + part * [0.2126, 0.7152, 0.0722][place], 0);
  const behind = element => {
    for (let each = element; each; each = each.parentElement) {
      const background = getComputedStyle(each).backgroundColor;
      if ((numbers(background)[3] ?? 1) > 0) return background;
    }
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const faint = [];
  let seen = 0;
  for (let node; (node = walker.nextNode());) {
    const element = node.parentElement;
    if (!node.data.trim() || !element.getClientRects().length || element.closest("script")) continue;
    const style = getComputedStyle(element);
    const [one, other] = [light(element.closest("svg") ? style.fill : style.color), light(behind(element))];
    seen += 1;
    if ((Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05) < 4.5) faint.push(node.data);
  }
  return { seen, faint };
})()"""
BEYOND = """[...document.querySelectorAll("body *")].filter(each => !each.closest("svg, .skip, thead"))
  .filter(each => each.getBoundingClientRect().right > innerWidth + 0.5).map(each => each.outerHTML.slice(0, 200))"""


def hovered(browser: Browser, number: int) -> str:
    """Point at a bar; return the text of its tooltip."""
    browser.get("document.getElementById('chart').scrollIntoView()")
    bar = browser.get(f"(({BARS})[{number}]).toJSON()")
    x, y = bar["x"] + 0.7 * bar["width"], bar["y"] + bar["height"] / 2
    for step in (2, 0):
        browser.point(x - step, y)
    browser.wait_for("document.querySelector('#chart .hovertext')")
    text: str = browser.get(
        "[...document.querySelectorAll('#chart .hovertext tspan')].map(e => e.textContent).join(' ')"
    )
    return text


@LIGHT_AND_DARK
@SHOWN
def test_a_page_loads_only_itself_logs_no_error_fits_its_screen_and_can_be_read(
    browser: Browser, pages: Pages, records: list[SliceRecord], width: int, dark: bool
) -> None:
    path = pages(records)
    browser.open(path, width=width, dark=dark, touch=width == PHONE)
    assert (browser.requests, browser.complaints) == ([path.as_uri()], [])
    browser.get(OPEN_ALL)
    assert (browser.get("innerWidth"), browser.get("document.documentElement.scrollWidth")) == (width, width)
    assert browser.get(BEYOND) == []
    found = browser.get(TOO_FAINT)
    assert found["faint"] == []
    assert found["seen"] > (100 if len(records) > 1 else 0)


def test_the_page_may_not_call_any_server(browser: Browser, pages: Pages) -> None:
    browser.open(pages(an_afternoon()))
    browser.get("fetch('http://127.0.0.1:9/').catch(() => 0)")
    browser.wait_for_complaint("Content Security Policy")
    assert len(browser.requests) == 1
    buttons = browser.get("[...document.querySelectorAll('.modebar-btn')].map(each => each.ariaLabel)")
    assert buttons == ["Zoom in", "Zoom out", "Reset axes", "Download plot as a PNG"]


def test_each_span_is_a_bar_and_each_transition_a_marker(browser: Browser, pages: Pages) -> None:
    browser.open(pages(an_afternoon()))
    bars = browser.get(f"({BARS}).map(each => each.toJSON())")
    assert (
        len(bars) == sum(each.transition_count for each in an_afternoon()) - 1 - 7
    )  # one is gone, seven are not on record
    assert all(bar["width"] > 0 and bar["height"] > 10 for bar in bars)
    assert browser.get("document.querySelectorAll('#chart .scatterlayer .points path').length") == len(bars) + 1 + 1
    labels = browser.get("[...document.querySelectorAll('#chart .ytick2, #chart .y2tick')].map(e => e.textContent)")
    assert "research/llama" in labels
    assert "slice-0: PROVISIONING" in labels


def test_a_bars_tooltip_has_reason_message_and_times(browser: Browser, pages: Pages) -> None:
    browser.open(pages([with_history("llama", 0, [(60, *READY)])]))
    text = hovered(browser, 0)
    assert "READY, Ready" in text
    assert "from 11:00:00 UTC until now (1 h)" in text
    assert "All 4 hosts are ready and offer their chips." in text
    assert "16 chips, useful: 16.0 chip-hours" in text


def test_the_totals_are_shown(browser: Browser, pages: Pages) -> None:
    browser.open(pages([with_history("llama", 0, [(60, *READY)])]))
    figures = browser.get("[...document.querySelectorAll('.figures div')].map(each => each.innerText.split('\\n'))")
    assert ["Useful", "16.0", "chip-hours, 100% of those held"] in [[part for part in each if part] for each in figures]


def background(browser: Browser) -> tuple[str, str]:
    """Return the background colours of the page and of the chart."""
    page, chart = (
        browser.get(f"getComputedStyle(document.querySelector('{what}')).backgroundColor")
        for what in ("body", "#chart .main-svg")
    )
    return page, chart


def rgb(colour: str) -> str:
    return f"rgb({', '.join(str(int(colour[place : place + 2], 16)) for place in (1, 3, 5))})"


def test_page_and_chart_follow_the_systems_colours_and_then_the_readers_choice(browser: Browser, pages: Pages) -> None:
    light, dark = rgb(LIGHT.page), rgb(DARK.page)
    browser.open(pages(an_afternoon()))
    assert background(browser) == (light, light)
    browser.prefers(dark=True)
    browser.wait_for("document.getElementById('chart').dataset.drawn === 'dark'")
    assert background(browser) == (dark, dark)
    choose = "(each => { each.value = 'light'; each.dispatchEvent(new Event('change')); })"
    browser.get(f"{choose}(document.getElementById('colours'))")
    browser.wait_for("document.getElementById('chart').dataset.drawn === 'light'")
    assert background(browser) == (light, light)


def test_a_slice_can_be_reached_and_opened_by_keyboard(browser: Browser, pages: Pages) -> None:
    browser.open(pages([with_history("llama", 0, [(60, *READY)])]))
    focused = []
    for _ in range(20):
        browser.press("Tab")
        focused.append(browser.get("document.activeElement.innerText || document.activeElement.ariaLabel"))
        if str(focused[-1]).startswith("slice-0"):
            break
    assert focused[0] == "Skip to the lists"
    assert "Zoom in" in focused
    browser.press("Enter")
    assert "16 chips, useful: 16.0 chip-hours" in browser.get(
        "document.querySelector('#histories details[open]').innerText"
    )
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert browser.get(outline) == "solid"


def test_screen_readers_get_names_headings_and_landmarks(browser: Browser, pages: Pages) -> None:
    browser.open(pages(an_afternoon()))
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    exposed = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]]
    assert {"banner", "main", "contentinfo", "table", "figure"} <= {role for role, _ in exposed}
    headings = {name for role, name in exposed if role == "heading"}
    assert {"Slices over time: all clusters", "Chart", "Chip-hours by JobSet", "research/llama"} <= headings
    assert [
        role for role, name in exposed if role in {"button", "combobox", "link", "DisclosureTriangle"} and not name
    ] == []
    assert ("group", "Chart") in exposed
    assert browser.get("document.documentElement.lang") == "en"


def test_tenants_texts_are_not_executed(browser: Browser, tmp_path: Path) -> None:
    """The page is made of records that no store would return: their names are hostile, too."""
    path = tmp_path / "hostile.html"
    path.write_text(page(a_story(hostile())), encoding="utf-8")
    browser.open(path)
    browser.get(OPEN_ALL)
    assert "</script>" in hovered(browser, 1)
    assert browser.get("document.title") == "Slices over time: all clusters"
    assert browser.get("document.querySelectorAll('img, h1 h1, #chart a').length") == 0
    assert browser.get("document.querySelector('h3').textContent").startswith(HOSTILE)
    assert browser.complaints == []


def test_the_page_works_without_a_slice(browser: Browser, pages: Pages) -> None:
    path = pages([])
    browser.open(path)
    assert "No slices found: all clusters." in browser.get("document.body.innerText")
    assert (browser.requests, browser.complaints) == ([path.as_uri()], [])
