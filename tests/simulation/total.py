"""What was played on one commit, added up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.simulation.played import Played


@dataclass
class Total:
    """What was played on one commit."""

    seeds: int = 0
    next_seed: int = 0
    hours: float = 0.0
    """Simulated."""
    core_seconds: float = 0.0
    faults: dict[str, int] = field(default_factory=dict)
    """By kind, how often one had an effect."""
    broken: list[str] = field(default_factory=list)

    def add(self, done: Sequence[Played], seconds: float) -> None:
        struck = sum((each.struck for each in done), Counter(self.faults))
        self.faults = {str(kind): count for kind, count in sorted(struck.items()) if count}
        self.seeds += len(done)
        self.next_seed = max(self.next_seed, *(each.seed + 1 for each in done))
        self.hours += sum(each.hours for each in done)
        self.core_seconds += seconds
        self.broken += [f"seed {each.seed}: {each.seen}" for each in done if each.promise is not None]

    def __str__(self) -> str:
        rate = self.hours / self.core_seconds if self.core_seconds else 0.0
        return (
            f"{self.seeds} seeds, {self.hours:.0f} simulated hours at {rate:.1f} per core-second, "
            f"{sum(self.faults.values())} faults, {len(self.broken)} promises broken"
        )
