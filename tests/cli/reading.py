"""A parser for the page of `slices timeline`, and the stories that pages are made of."""

from __future__ import annotations

from datetime import timedelta
from html.parser import HTMLParser

from tests.builders import CLUSTER, NOW
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.reporting.timeline import Window, course
from tpu_slices_cli.timeline.story import Story, families


class Reader(HTMLParser):
    """Reads a page as a browser does: its elements, its text, and the JobSets and rows that it lists."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.text = ""
        self.jobsets: list[str] = []
        self.rows: list[list[str]] = []
        self._within: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not any(name.startswith("on") or name in {"src", "style"} for name, _ in attrs), (tag, attrs)
        self.elements.append(tag)
        self._within.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag: str) -> None:
        while self._within and self._within.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        inside = self._within[-1:]
        if inside in (["script"], ["style"]):
            return
        self.text += data
        if inside == ["h3"]:
            self.jobsets.append(data)
        if inside in (["th"], ["td"]):
            self.rows[-1].append(data)


def a_story(records: list[SliceRecord], hours: int = 6) -> Story:
    window = Window(NOW - timedelta(hours=hours), NOW)
    courses = [found for record in records if (found := course(record, window)) is not None]
    return Story(whose="all clusters", window=window, families=families(courses, [CLUSTER]))
