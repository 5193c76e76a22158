"""docs/event.svg has the names of the code: topics, functions, collections and calls, and the steps of the page.

docs/training.svg has the steps of its page.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from infra.local import messaging
from tests.house.sources import ROOT
from tpu_slices.wire.documents import COLLECTIONS

SVG = "{http://www.w3.org/2000/svg}"
SOURCE = (ROOT / "docs" / "event.svg").read_text()
MESSAGING = messaging.read()


def drawn(kind: str, source: str = SOURCE) -> list[str]:
    """Return the texts of a class, in the order of the file."""
    texts = ET.fromstring(source).iter(f"{SVG}text")
    return ["".join(text.itertext()) for text in texts if kind in text.get("class", "").split()]


def snake_case(call: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", call).lower()


def test_every_function_is_drawn_and_no_other() -> None:
    assert sorted(drawn("function")) == sorted(MESSAGING.functions)


def test_every_topic_is_drawn_but_that_of_messages_that_were_given_up() -> None:
    topics = {topic.replace("{cluster}", "CLUSTER") for topic in MESSAGING.topics}
    assert sorted(drawn("topic")) == sorted(topics - {"dead-letters"})


def test_the_collections_that_are_drawn_are_firestores() -> None:
    assert {name.rstrip("/") for name in drawn("collection")} <= set(COLLECTIONS.values())


def test_the_calls_that_are_drawn_are_the_adapters() -> None:
    adapter = (ROOT / "shared" / "tpu_slices" / "adapters" / "gke" / "backend.py").read_text()
    assert {f"self._client.{snake_case(call)}(" in adapter for call in drawn("call")} == {True}


def test_the_numbers_are_the_rows_of_the_way_of_an_event() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text().partition("## How an event travels")[2].partition("\n## ")[0]
    assert drawn("number") == re.findall(r"^\| (\d) \|", page, re.MULTILINE)


def test_the_numbers_of_training_are_the_rows_of_its_page() -> None:
    numbers = drawn("number", (ROOT / "docs" / "training.svg").read_text())
    assert sorted(numbers) == re.findall(r"^\| (\d) \|", (ROOT / "docs" / "training.md").read_text(), re.MULTILINE)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_colour_of_a_text_differs_clearly_from_its_ground(scheme: str) -> None:
    light, _, dark = re.sub(r"</style>.*", "", SOURCE, flags=re.DOTALL).partition("@media (prefers-color-scheme: dark)")
    rules = _fills(light) | (_fills(dark) if scheme == "dark" else {})
    for text, grounds in {"text": {".box", ".pill"}, ".note": {".box", ".panel"}, ".number": {".step"}}.items():
        assert min(_contrast(rules[text], rules[ground]) for ground in grounds) >= 4.5, text


def _fills(css: str) -> dict[str, str]:
    """Return the fill of each selector."""
    rules = re.findall(r"([.\w, ]+?) *\{[^{}]*?fill: (#\w{6})", css)
    return {selector.strip(): colour for selectors, colour in rules for selector in selectors.split(",")}


def _contrast(one: str, other: str) -> float:
    """Return the contrast of two colours (WCAG 2.2, "contrast ratio")."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    shares = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
