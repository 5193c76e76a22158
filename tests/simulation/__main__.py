"""`make simulate SEEDS=10000 [FROM=0]`: plays the story of each seed on all processors, until one breaks a promise.

What was played is added up by commit in .local/simulation/COMMIT.json, each seed once, whoever plays it: a run that was
interrupted goes on where it ended, and others may run beside it. What files that differ from the commit's played is
not added to an earlier run's. A story that breaks a promise is shrunk, and left beside that file.

Exit codes: 0; 1 for a broken promise; 130 or 143 if it was interrupted, by SIGINT or SIGTERM.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path

from tests.simulation.commit import FOLDER, commit
from tests.simulation.drawn import story_of, to_yaml
from tests.simulation.played import Played, played, shrunk
from tests.simulation.total import added, total_in
from tpu_slices_simulator.story import Story

SECONDS_BETWEEN_LINES = 10.0

Done = tuple[Played, float]
"""A story, and the seconds of a processor that it took."""


class Interrupted(BaseException):
    """Somebody wants it to end; what is being played is still added."""


def _begin_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one ends the others
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _play(seed: int) -> Done:
    begun = time.process_time()
    try:
        return played(story_of(seed)), time.process_time() - begun
    except BaseException as error:
        error.add_note(f"in the story of seed {seed}")
        raise


def play_all(seeds: Collection[int], each: Callable[[Done], bool]) -> None:
    """Play the stories of seeds on all processors, and call `each` for each that has ended, until it returns False.

    Whoever interrupts it waits for the stories that are being played, seconds at most: these are passed to `each`, too.
    """
    with ProcessPoolExecutor(os.cpu_count(), initializer=_begin_worker) as processes:
        futures = [processes.submit(_play, seed) for seed in seeds]
        waiting = set(futures)
        try:
            for future in as_completed(futures):
                keeps = each(future.result())
                waiting.discard(future)
                if not keeps:
                    break
        finally:
            processes.shutdown(cancel_futures=True)
            for done in _ended(waiting):
                each(done)


def _ended(futures: Collection[Future[Done]]) -> list[Done]:
    return [each.result() for each in futures if not each.cancelled() and each.exception() is None]


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let SIGINT and SIGTERM raise Interrupted, once."""

    def interrupt(number: int, _: object) -> None:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)
        raise Interrupted(number)

    before = {each: signal.signal(each, interrupt) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


class Progress:
    """Adds to the file of a commit, and tells now and then how far it is."""

    def __init__(self, file: Path, seeds: int) -> None:
        self.broken: Played | None = None
        self._file, self._seeds, self._done = file, seeds, 0
        self._said = time.monotonic()

    def __call__(self, done: Done) -> bool:
        """Add a story; return whether it kept every promise."""
        story, seconds = done
        total = added(self._file, story, seconds)
        self._done += 1
        if time.monotonic() - self._said >= SECONDS_BETWEEN_LINES:
            self._said = time.monotonic()
            print(f"{self._done} of {self._seeds}; in all {total}", flush=True)
        if story.promise is not None:
            self.broken = self.broken or story
        return story.promise is None


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
    parser.add_argument("--from", dest="first", type=int, help="the first one; by default those that were not played")
    asked = parser.parse_args(arguments)
    FOLDER.mkdir(parents=True, exist_ok=True)
    file = FOLDER / f"{commit()}.json"
    if file.stem.endswith("-dirty"):  # what it has may be of other changes
        file.unlink(missing_ok=True)
    seeds = list(total_in(file).left(asked.seeds, asked.first))
    progress = Progress(file, len(seeds))
    try:
        with _interruptible():
            play_all(seeds, progress)
    except (Interrupted, BrokenProcessPool) as end:
        print(f"Interrupted. {file} keeps: {total_in(file)}. The same command goes on.")
        return 128 + (end.args[0] if isinstance(end, Interrupted) else signal.SIGTERM)
    if progress.broken is not None:
        _told(progress.broken, FOLDER)
    total = total_in(file)
    print(f"{file}: {total}")
    return 1 if total.broken else 0


if __name__ == "__main__":
    sys.exit(main())
