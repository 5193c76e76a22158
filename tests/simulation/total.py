"""What was played on one commit, added up: by several runs too, one after another or at a time, each seed once."""

from __future__ import annotations

import fcntl
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import count, islice
from pathlib import Path

from tests.simulation.played import Played


@dataclass
class Total:
    """What was played on one commit."""

    played: list[list[int]] = field(default_factory=list)
    """The seeds, as ranges in order, each from its first up to before its last number."""
    hours: float = 0.0
    """Simulated."""
    core_seconds: float = 0.0
    faults: dict[str, int] = field(default_factory=dict)
    """By kind, how often one had an effect."""
    broken: list[str] = field(default_factory=list)

    @property
    def seeds(self) -> int:
        return sum(end - first for first, end in self.played)

    def has(self, seed: int) -> bool:
        return any(first <= seed < end for first, end in self.played)

    def left(self, most: int, first: int | None = None) -> Iterator[int]:
        """Yield seeds that were not played: so many, or, from a first one on, those among so many."""
        if first is None:
            return islice((seed for seed in count() if not self.has(seed)), most)
        return (seed for seed in range(first, first + most) if not self.has(seed))

    def add(self, done: Played, seconds: float) -> None:
        """Add a story, unless its seed was added before."""
        if self.has(done.seed):
            return
        self.played = _joined([*self.played, [done.seed, done.seed + 1]])
        struck = Counter(self.faults) + done.struck
        self.faults = {str(kind): times for kind, times in sorted(struck.items())}
        self.hours += done.hours
        self.core_seconds += seconds
        self.broken += [f"seed {done.seed}: {done.seen}"] if done.promise is not None else []

    def __str__(self) -> str:
        rate = self.hours / self.core_seconds if self.core_seconds else 0.0
        return (
            f"{self.seeds} seeds, {self.hours:.0f} simulated hours at {rate:.1f} per core-second, "
            f"{sum(self.faults.values())} faults, {len(self.broken)} promises broken"
        )


def _joined(ranges: list[list[int]]) -> list[list[int]]:
    joined: list[list[int]] = []
    for first, end in sorted(ranges):
        if joined and first <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([first, end])
    return joined


def total_in(file: Path) -> Total:
    """Return what a file has added up; nothing, if there is no such file, or it does not say which seeds."""
    fields = json.loads(file.read_text()) if file.is_file() else {}
    return Total(**fields) if "played" in fields else Total()


def added(file: Path, done: Played, seconds: float) -> Total:
    """Add a story to a file, and return what it has then; whoever else adds to it waits meanwhile."""
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        total = total_in(file)
        total.add(done, seconds)
        new = file.with_suffix(".new")
        new.write_text(json.dumps(asdict(total), indent=1))
        new.replace(file)  # so that nobody reads half of it
        return total
