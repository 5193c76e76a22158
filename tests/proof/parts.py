"""What is proved, each by a command of its own, and what became of it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

PYTEST = (
    *("-m", "pytest", "--numprocesses", "auto", "--dist", "loadfile", "--no-loadscope-reorder"),
    *("--suite=proof", "--timeout=14400"),  # for what hangs: 64 slices take long on a small machine
)
SEEDS, CONTENTIONS = 5_000, 10_000


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    arguments: tuple[str, ...]
    """Of Python."""


PARTS = (
    Part("64 slices while processes are killed, every example on both control planes, more cases of laws", PYTEST),
    Part("every crash point", ("-m", "tests.simulation.crash_points")),
    Part(f"the stories of {SEEDS:,} more seeds", ("-m", "tests.simulation", "--seeds", str(SEEDS))),
    Part(
        f"fifty gangs that contend for what there is, {CONTENTIONS:,} times",
        ("-m", "tests.domain.gangs.contended", "--seeds", str(CONTENTIONS)),
    ),
    Part("small changes of the core that tests notice", ("-m", "tests.mutants")),
)


@dataclass(frozen=True, slots=True)
class Result:
    name: str
    passed: bool
    minutes: float


def tried(parts: Iterable[Part], run: Callable[[Part], int], clock: Callable[[], float]) -> Iterator[Result]:
    """Run all parts, also after one that failed, and yield what became of each."""
    for part in parts:
        began = clock()
        code = run(part)
        yield Result(part.name, code == 0, (clock() - began) / 60)


def run(part: Part) -> int:
    """Run a part, with its output on this terminal; return its exit code."""
    return subprocess.run([sys.executable, *part.arguments], check=False).returncode


@dataclass(frozen=True, slots=True)
class Record:
    """What became of all parts, in one run."""

    commit: str
    day: str
    results: tuple[Result, ...]


def told(record: Record) -> str:
    """Return what became of the parts as Markdown."""
    rows = (f"| {each.name} | {'holds' if each.passed else 'FAILED'} | {each.minutes:.0f} |" for each in record.results)
    return "\n".join(
        [f"Commit {record.commit}, {record.day}.", "", "| part | result | minutes |", "|---|---|---|", *rows]
    )


clock = time.monotonic
