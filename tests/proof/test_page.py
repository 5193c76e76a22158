"""docs/proof.md: its figures come from what was measured. docs/reliability.md knows every promise."""

from __future__ import annotations

import re

from tests.infra.sources import ROOT
from tests.proof.page import PAGE, Measured, figures, written
from tests.simulation.mutants import MUTANTS
from tests.simulation.promises import Promise
from tests.simulation.total import Total
from tpu_slices_simulator.story import Kind

TEXT = (ROOT / PAGE).read_text()
RELIABILITY = (ROOT / "docs" / "reliability.md").read_text()
TOTAL = Total(played=[[0, 1_500]], hours=9_000.0, core_seconds=1_000.0, faults={"stockout": 2_000})
MEASURED = Measured(
    commit="c0ffee",
    total=TOTAL,
    crashes={"crash_points": 4_000, "stories": 10, "broken": []},
    caught={mutant.name: 3 for mutant in MUTANTS},
    scores={"decide": (95, 100)},
)


def test_figures_are_written_between_their_marks_and_nothing_else_is_changed() -> None:
    page = written(TEXT, "figures", figures(MEASURED))
    for told in (
        "| stories, each of its own seed | 1,500 on commit c0ffee |",
        "| simulated hours | 9,000, 9.0 per core-second |",
        "| processes killed after a side effect | 4,000, after each one of 10 stories |",
        f"| mutants of the promises that are caught | {len(MUTANTS)} of {len(MUTANTS)} |",
        "| small changes of `decide` that tests notice | 95 of 100, 95% |",
        "| stockout | 2,000 |",
    ):
        assert told in page
    assert written(page, "figures", figures(MEASURED)) == page
    assert page.partition("<!-- figures -->")[0] == TEXT.partition("<!-- figures -->")[0]
    assert page.partition("<!-- end of figures -->")[2] == TEXT.partition("<!-- end of figures -->")[2]


def test_the_page_knows_every_promise() -> None:
    assert set(re.findall(r"^\| ([a-z ]+) \|", RELIABILITY.partition("## What is simulated")[0], re.MULTILINE)) - {
        "promise"
    } == set(Promise)


def test_the_page_tells_of_no_broken_promise_and_of_faults_of_every_kind() -> None:
    assert "| promises broken | 0 |" in TEXT
    assert "| of which were not recovered from | 0 |" in TEXT
    told = set(re.findall(r"^\| ([A-Za-z ]+) \| [\d,]+ \|$", TEXT, re.MULTILINE))
    assert {str(kind) for kind in Kind} <= told
