"""Every side effect of a fixed set of stories: the process is killed after it, and what is left must recover.

`make crashes` tries all of them, on all processors; the gate tries a share.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import MappingProxyType

from tests.simulation.capacity.killed import of_capacity
from tests.simulation.commit import FOLDER, commit
from tests.simulation.drawn import a_plot, a_story
from tests.simulation.played import Played, played
from tpu_slices_simulator.fuse import Fuse
from tpu_slices_simulator.story import Fault, Kind, Story

LENGTH = 45
STORIES: Mapping[str, Story] = MappingProxyType(
    {
        "two slices": a_story(seed=1, minutes=LENGTH, jobsets=(a_plot("one", 1, slices=2, ends=30),)),
        "flex-start": a_story(seed=2, minutes=LENGTH, jobsets=(a_plot("flex", 1, flex_start=True, ends=40),)),
        "suspended and resumed": a_story(
            seed=3, minutes=LENGTH, jobsets=(a_plot("paused", 1, suspended=((12, 20),), ends=40),)
        ),
        "deleted while created": a_story(
            seed=4, minutes=LENGTH, creation=(6, 6), jobsets=(a_plot("brief", 1, ends=4, deleted=True, again=1),)
        ),
        "others' hosts": a_story(
            seed=5,
            minutes=LENGTH,
            crosses=True,
            jobsets=(a_plot("host", 1, ends=20), a_plot("guest", 15, ends=40)),
        ),
        "one after the other": a_story(
            seed=6,
            minutes=LENGTH,
            chips=16,
            jobsets=(a_plot("first", 1, ends=15), a_plot("second", 2, ends=40)),
        ),
        "out of stock": a_story(
            seed=7,
            minutes=LENGTH,
            jobsets=(a_plot("late", 1, ends=40),),
            faults=(Fault(kind=Kind.STOCKOUT, at=1, lasts=12),),
        ),
        "hosts that die": a_story(
            seed=8,
            minutes=LENGTH,
            jobsets=(a_plot("struck", 1, ends=40),),
            faults=(Fault(kind=Kind.HOSTS_DIE, at=14, lasts=2, share=1.0),),
        ),
        "deletions that fail": a_story(
            seed=9,
            minutes=LENGTH,
            jobsets=(a_plot("stuck", 1, ends=15),),
            faults=(Fault(kind=Kind.DELETIONS_FAIL, at=15, lasts=10, share=0.5),),
        ),
        "a pool that somebody deletes": a_story(
            seed=10,
            minutes=LENGTH,
            jobsets=(a_plot("robbed", 1, ends=40),),
            faults=(Fault(kind=Kind.POOLS_DELETED, at=14, lasts=1, share=1.0),),
        ),
        "on Compute Engine": a_story(
            seed=11,
            minutes=LENGTH,
            compute=True,
            jobsets=(a_plot("stepwise", 1, slices=2, ends=35),),
            faults=(Fault(kind=Kind.STOCKOUT, at=1, lasts=15),),
        ),
        "Jobs that share a slice": a_story(
            seed=12,
            minutes=LENGTH,
            jobsets=(a_plot("shared", 1, shared=True, suspended=((14, 18),), ends=40),),
            faults=(Fault(kind=Kind.LEADERS_EVICTED, at=10, lasts=1, share=1.0),),
        ),
        "a gang that is let go and comes back": a_story(
            seed=13,
            minutes=110,
            operations=1,
            jobsets=(a_plot("gang", 1, slices=2, gang=True, ends=100),),
            faults=(Fault(kind=Kind.STOCKOUT, at=6, lasts=55),),
        ),
        **of_capacity(LENGTH),
    }
)


def effects(story: Story) -> int:
    """Return how many side effects a story has if nothing is killed."""
    fuse = Fuse()
    undisturbed = played(story, fuse)
    assert undisturbed.promise is None, undisturbed.seen
    return fuse.burnt


def crashed(name: str, after: int) -> Played:
    """Play a story whose process is killed after one of its side effects."""
    return played(STORIES[name], Fuse(blows_after=after))


def points() -> Iterator[tuple[str, int]]:
    for name, story in STORIES.items():
        yield from ((name, after) for after in range(1, effects(story) + 1))


def main() -> int:
    tried = list(points())
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        found = list(processes.map(crashed, *zip(*tried, strict=True), chunksize=8))
    broken = [
        f"{name}, after {after}: {each.seen}" for (name, after), each in zip(tried, found, strict=True) if each.promise
    ]
    FOLDER.mkdir(parents=True, exist_ok=True)
    told = {"stories": len(STORIES), "crash_points": len(tried), "broken": broken}
    file: Path = FOLDER / f"{commit()}.crashes.json"
    file.write_text(json.dumps(told, indent=1))
    print(*broken, f"{file}: {len(tried)} crash points in {len(STORIES)} stories, {len(broken)} not survived", sep="\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
