"""The decision records are numbered, dated and listed."""

from __future__ import annotations

import re

from tests.house.sources import ROOT

FOLDER = ROOT / "docs" / "adr"
DATE_AND_STATUS = r"Date: \d{4}-\d\d-\d\d\nStatus: (accepted|superseded by \d{4})"
RECORDS = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")


def test_records_are_numbered_without_a_gap() -> None:
    assert [int(path.name.partition("-")[0]) for path in RECORDS] == list(range(1, len(RECORDS) + 1))


def test_a_record_has_number_date_status_and_its_three_sections() -> None:
    for path in RECORDS:
        text = path.read_text()
        assert re.match(rf"# {int(path.name[:4])}\. \S.*\n\n{DATE_AND_STATUS}\n", text), path.name
        assert re.findall(r"^## (\w+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"], path.name


def test_the_index_lists_every_record_with_its_title_and_date() -> None:
    listed = re.findall(
        r"^\| \[(\d{4})\]\((\S+)\) \| (.+) \| (\S+) \|$", (FOLDER / "README.md").read_text(), re.MULTILINE
    )
    expected = []
    for path in RECORDS:
        title, _, date = path.read_text().splitlines()[:3]
        expected.append((path.name[:4], path.name, title.partition(". ")[2], date.removeprefix("Date: ")))
    assert listed == expected
