"""What is proved: all of it is tried, and what became of it is told."""

from __future__ import annotations

from tests.infra.sources import ROOT
from tests.proof.page import PAGE, written
from tests.proof.parts import PARTS, Part, Record, Result, told, tried

GOOD, BAD = Part("good", ("-c", "pass")), Part("bad", ("-c", "raise SystemExit(1)"))


def test_a_part_that_fails_keeps_no_other_from_being_tried() -> None:
    minutes = iter(range(0, 600, 60))
    results = list(tried([BAD, GOOD], lambda part: int(part is BAD), lambda: next(minutes)))
    assert results == [Result("bad", passed=False, minutes=1), Result("good", passed=True, minutes=1)]


def test_the_page_tells_each_part_with_its_commit_and_day() -> None:
    record = Record(
        "c0ffee", "1 May 2026", (Result("good", passed=True, minutes=2.4), Result("bad", passed=False, minutes=90))
    )
    page = written((ROOT / PAGE).read_text(), "parts", told(record))
    for line in ("Commit c0ffee, 1 May 2026.", "| good | holds | 2 |", "| bad | FAILED | 90 |"):
        assert f"\n{line}\n" in page


def test_every_part_is_a_module_that_there_is() -> None:
    modules = {part.arguments[1].replace(".", "/") for part in PARTS} - {"pytest"}
    assert [each for each in modules if not list(ROOT.glob(f"{each}*"))] == []
