"""`make simulate SEEDS=10000 [FROM=0]`: plays the story of each seed on all processors, until one breaks a promise.

What was played is added up by commit in .local/simulation/COMMIT.json; without FROM, it goes on where it ended.
A story that breaks a promise is shrunk, and left beside that file. Exit codes: 0, or 1 for a broken promise.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.simulation.commit import FOLDER, commit
from tests.simulation.drawn import story_of, to_yaml
from tests.simulation.played import Played, played, shrunk
from tpu_slices_simulator.story import Story

CHUNK = 10
SECONDS_BETWEEN_LINES = 10.0


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


def _play(seeds: Sequence[int]) -> tuple[list[Played], float]:
    begun = time.process_time()
    return [played(story_of(seed)) for seed in seeds], time.process_time() - begun


def _chunks(first: int, count: int) -> Iterator[range]:
    for start in range(first, first + count, CHUNK):
        yield range(start, min(start + CHUNK, first + count))


def _told(broken: Played, folder: Path) -> None:
    """Write the shortest story that breaks the same promise, and say where it is."""
    print(f"seed {broken.seed} breaks a promise: {broken.seen}. Its story is being shrunk.")

    def breaks(story: Story) -> bool:
        return played(story).promise is broken.promise

    story = shrunk(story_of(broken.seed), breaks)
    file = folder / f"{broken.seed}.yaml"
    file.write_text(to_yaml(story))
    again = played(story)
    print(to_yaml(story), *again.timeline, again.seen, f"The story is in {file}.", sep="\n")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make simulate", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=1000, help="how many")
    parser.add_argument("--from", dest="first", type=int, help="the first one")
    asked = parser.parse_args(arguments)
    FOLDER.mkdir(parents=True, exist_ok=True)
    file = FOLDER / f"{commit()}.json"
    total = Total(**json.loads(file.read_text())) if file.is_file() else Total()
    first = total.next_seed if asked.first is None else asked.first
    said = time.monotonic()
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        for done, seconds in processes.map(_play, _chunks(first, asked.seeds)):
            total.add(done, seconds)
            file.write_text(json.dumps(asdict(total), indent=1))
            if time.monotonic() - said >= SECONDS_BETWEEN_LINES:
                said = time.monotonic()
                print(f"up to seed {total.next_seed - 1}: {total}", flush=True)
            broken = next((each for each in done if each.promise is not None), None)
            if broken is not None:
                processes.shutdown(cancel_futures=True)
                _told(broken, FOLDER)
                return 1
    print(f"{file}: {total}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
