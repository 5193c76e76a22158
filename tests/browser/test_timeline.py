"""The page of `slices timeline`, as a browser shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.chromium import Browser
from tests.browser.conftest import Pages
from tests.browser.stories import HOSTILE, LOST, READY, an_afternoon, hostile, served, unbroken, with_history
from tests.cli.reading import a_story
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices_cli.timeline.colours import DARK, LIGHT
from tpu_slices_cli.timeline.page import page

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

PHONE = 390
SHOWN = pytest.mark.parametrize(
    ("records", "width"),
    [
        pytest.param(an_afternoon(), 1200, id="wide"),
        pytest.param(an_afternoon(), PHONE, id="phone"),
        pytest.param(hostile(), PHONE, id="hostile"),
        pytest.param(unbroken(), PHONE, id="unbroken"),
        pytest.param(unbroken(), 1200, id="unbroken and wide"),
        pytest.param([served(f"run-{n // 9}", n % 9, 40 + n) for n in range(300)], PHONE, id="many"),
        pytest.param([], PHONE, id="empty"),
    ],
)
LIGHT_AND_DARK = pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])

BARS = "[...document.querySelectorAll('.strip rect')].map(bar => bar.getBoundingClientRect())"
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


def test_each_span_is_a_bar_within_the_page(browser: Browser, pages: Pages) -> None:
    browser.open(pages(an_afternoon()))
    bars = browser.get(f"({BARS}).map(each => each.toJSON())")
    assert (
        len(bars) == sum(each.transition_count for each in an_afternoon()) - 1 - 7
    )  # one is gone, seven are not on record
    assert all(bar["width"] > 0 and bar["height"] > 10 and bar["right"] <= 1200 for bar in bars)
    hint = browser.get("document.querySelector('.strip rect title').textContent")
    assert hint == "PROVISIONING, HostsLost: 09:42:00 to 09:48:00 UTC"


def test_210_slices_fit_a_few_screens_until_they_are_opened(browser: Browser, pages: Pages) -> None:
    browser.open(pages([served(f"run-{n // 30}", n % 30, 40 + n) for n in range(210)]))
    assert browser.get("document.documentElement.scrollHeight") < 4_000
    assert browser.get("document.querySelectorAll('#histories .slice').length") == 210
    titles = browser.get("[...document.querySelectorAll('#histories h3')].map(each => each.textContent)")
    assert titles == [f"research/run-{n}" for n in range(7)]


def test_failures_and_restarts_are_seen_where_they_happened(browser: Browser, pages: Pages) -> None:
    browser.open(pages([with_history("llama", 0, [(300, *READY), (150, *LOST), (75, *READY)])]), width=PHONE)
    strip = browser.get("document.querySelector('.strip').getBoundingClientRect().toJSON()")
    places = browser.get(
        "[...document.querySelectorAll('.strip use')].map(each => each.getBoundingClientRect().toJSON())"
    )
    shares = [(each["x"] + each["width"] / 2 - strip["x"]) / strip["width"] for each in places]
    assert shares == [pytest.approx(0.5, abs=0.02), pytest.approx(0.75, abs=0.02)]


def test_the_totals_are_shown(browser: Browser, pages: Pages) -> None:
    browser.open(pages([with_history("llama", 0, [(60, *READY)])]))
    figures = browser.get("[...document.querySelectorAll('.figures div')].map(each => each.innerText.split('\\n'))")
    assert ["Useful", "16.0", "chip-hours, 100% of those held"] in [[part for part in each if part] for each in figures]


def background(browser: Browser) -> tuple[str, str]:
    """Return the background colour of the page, and the colour of READY in its charts."""
    page = browser.get("getComputedStyle(document.body).backgroundColor")
    return page, browser.get("getComputedStyle(document.querySelector('rect.ready')).fill")


def rgb(colour: str) -> str:
    return f"rgb({', '.join(str(int(colour[place : place + 2], 16)) for place in (1, 3, 5))})"


def test_page_and_chart_follow_the_systems_colours_and_then_the_readers_choice(browser: Browser, pages: Pages) -> None:
    light, dark = ((rgb(theme.page), rgb(theme.phases[Phase.READY])) for theme in (LIGHT, DARK))
    browser.open(pages(an_afternoon()))
    assert background(browser) == light
    browser.prefers(dark=True)
    assert background(browser) == dark
    choose = "(each => { each.value = 'light'; each.dispatchEvent(new Event('change')); })"
    browser.get(f"{choose}(document.getElementById('colours'))")
    assert background(browser) == light


def test_a_slice_can_be_reached_and_opened_by_keyboard(browser: Browser, pages: Pages) -> None:
    browser.open(pages([with_history("llama", 0, [(60, *READY)])]))
    focused = []
    for _ in range(20):
        browser.press("Tab")
        focused.append(browser.get("document.activeElement.innerText || document.activeElement.ariaLabel"))
        if "slice-0" in str(focused[-1]):
            break
    assert focused[0] == "Skip to the lists"
    browser.press("Enter")
    assert "chip-hours: 16.0 useful" in browser.get("document.querySelector('#histories .slice[open]').innerText")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert browser.get(outline) == "solid"


def test_screen_readers_get_names_headings_and_landmarks(browser: Browser, pages: Pages) -> None:
    browser.open(pages(an_afternoon()))
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    exposed = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]]
    assert {"banner", "main", "contentinfo", "table", "figure"} <= {role for role, _ in exposed}
    headings = {name for role, name in exposed if role == "heading"}
    assert {"Slices over time: all clusters", "Chips over time", "Chip-hours by workload", "research/llama"} <= headings
    assert [
        role for role, name in exposed if role in {"button", "combobox", "link", "DisclosureTriangle"} and not name
    ] == []
    assert browser.get("document.documentElement.lang") == "en"


def test_tenants_texts_are_not_executed(browser: Browser, tmp_path: Path) -> None:
    """The page is made of records that no store would return: their names are hostile, too."""
    path = tmp_path / "hostile.html"
    path.write_text(page(a_story(hostile())), encoding="utf-8")
    browser.open(path)
    browser.get(OPEN_ALL)
    assert browser.get("document.title") == "Slices over time: all clusters"
    assert browser.get("document.querySelectorAll('img, h1 h1, figure a').length") == 0
    assert browser.get("document.querySelector('h3').textContent").startswith(HOSTILE)
    assert browser.complaints == []


def test_the_page_works_without_a_slice(browser: Browser, pages: Pages) -> None:
    path = pages([])
    browser.open(path)
    assert "No slices found: all clusters." in browser.get("document.body.innerText")
    assert (browser.requests, browser.complaints) == ([path.as_uri()], [])
