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
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path

from tests.simulation.commit import FOLDER, commit
from tests.simulation.drawn import story_of, to_yaml
from tests.simulation.played import Played, played, shrunk
from tests.simulation.total import Total
from tpu_slices_simulator.story import Story

CHUNK = 10
SECONDS_BETWEEN_LINES = 10.0


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
