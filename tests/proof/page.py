"""docs/proof.md: what became of the parts, and the figures of what they left in .local.

Figures are those of the commit with the most simulated hours. The mutants of the promises are tried here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.simulation.commit import FOLDER
from tests.simulation.mutants import MUTANTS, found_by
from tests.simulation.total import Total, total_in

PAGE = Path("docs") / "proof.md"
SCORES = Path(".local") / "mutants"


@dataclass(frozen=True, slots=True)
class Measured:
    commit: str
    total: Total
    crashes: Mapping[str, Any] | None
    """Of the same commit; None: not tried."""
    caught: Mapping[str, int | None]
    """By mutant of a promise, the seed by which it was caught."""
    scores: Mapping[str, tuple[int, int]]
    """By module, how many of its mutants the tests notice, and how many there are."""


def measured() -> Measured:
    """Return what is in .local. Raise SystemExit if nothing was simulated."""
    totals = {
        file.stem: total_in(file)
        for file in FOLDER.glob("*.json")
        if not file.name.endswith((".crashes.json", "-dirty.json"))
    }
    if not totals:
        raise SystemExit(f"{FOLDER} has no results: run `make simulate` on a commit first")
    commit = max(totals, key=lambda each: totals[each].hours)
    crashes = FOLDER / f"{commit}.crashes.json"
    scores = {file.stem: json.loads(file.read_text()) for file in sorted(SCORES.glob("*.json"))}
    return Measured(
        commit=commit,
        total=totals[commit],
        crashes=json.loads(crashes.read_text()) if crashes.is_file() else None,
        caught={mutant.name: found_by(mutant) for mutant in MUTANTS},
        scores={name: (each["killed"], each["mutants"]) for name, each in scores.items()},
    )


def figures(found: Measured) -> str:
    """Return the figures as Markdown."""
    return "\n".join(_lines(found))


def _lines(found: Measured) -> Iterator[str]:
    total = found.total
    caught = sum(seed is not None for seed in found.caught.values())
    yield "| measure | figure | command |"
    yield "|---|---|---|"
    yield f"| stories, each of its own seed | {total.seeds:,} on commit {found.commit} | `make simulate` |"
    yield f"| simulated hours | {total.hours:,.0f}, {total.hours / total.core_seconds:.1f} per core-second | the same |"
    yield f"| faults that had an effect | {sum(total.faults.values()):,} | the same |"
    yield f"| promises broken | {len(total.broken)} | the same |"
    if found.crashes is not None:
        points, stories, broken = (found.crashes[name] for name in ("crash_points", "stories", "broken"))
        yield (
            f"| processes killed after a side effect | {points:,}, after each one of {stories} stories | "
            "`make crashes` |"
        )
        yield f"| of which were not recovered from | {len(broken)} | the same |"
    yield f"| mutants of the promises that are caught | {caught} of {len(found.caught)} | `make proof` |"
    for name, (killed, mutants) in found.scores.items():
        noticed = f"{killed} of {mutants}, {killed / mutants:.0%}"
        yield f"| small changes of `{name}` that tests notice | {noticed} | `make mutants` |"
    yield ""
    yield "| fault | effects |"
    yield "|---|---|"
    yield from (f"| {kind} | {count:,} |" for kind, count in total.faults.items())
    yield ""


def written(page: str, mark: str, text: str) -> str:
    """Return the page with this text between a mark and its end."""
    place = re.compile(rf"(?<=<!-- {mark} -->\n).*(?=<!-- end of {mark} -->)", re.DOTALL)
    assert place.search(page), f"the page has no place for {mark}"
    return place.sub(lambda _: f"{text}\n", page)
