"""Every promise holds in whatever story a seed draws; and what is said of stories and seeds is so."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings as profile

from tests.infra.sources import ROOT
from tests.simulation.drawn import FIRST_OF_GANGS, a_plot, a_story, from_yaml, in_gangs, level, story_of, to_yaml
from tests.simulation.played import played, shrunk
from tests.simulation.stocked import with_spares
from tests.simulation.warm import in_warm, queued
from tpu_slices_simulator.chance import Chance
from tpu_slices_simulator.simulation import Simulation
from tpu_slices_simulator.story import Fault, Kind, Story

pytestmark = pytest.mark.slow

SEEDS = range(max(1, profile().max_examples // 2))
"""With --hypothesis-profile=deep, more."""
GATE, GATE_OF_THE_SWEEP = 10, 3
"""So many of them for each change; the others are proof."""


def proven(seeds: Iterable[int], beyond: int) -> list[Any]:
    """Return seeds as parameters, those from a number on as proof."""
    return [pytest.param(seed, marks=[pytest.mark.proof] if seed >= beyond else []) for seed in seeds]


@pytest.mark.parametrize("seed", proven(SEEDS, GATE))
def test_every_promise_holds(seed: int) -> None:
    done = played(story_of(seed))
    assert done.promise is None, done.seen


@pytest.mark.parametrize("seed", proven(SEEDS[: max(1, len(SEEDS) // 5)], GATE_OF_THE_SWEEP))
def test_gangs_keep_every_promise(seed: int) -> None:
    done = played(in_gangs(story_of(seed)))
    assert done.promise is None, done.seen


@pytest.mark.parametrize("seed", proven(SEEDS[: max(1, len(SEEDS) // 5)], GATE_OF_THE_SWEEP))
def test_slices_that_are_kept_warm_keep_every_promise(seed: int) -> None:
    done = played(in_warm(story_of(seed)))
    assert done.promise is None, done.seen


@pytest.mark.parametrize("seed", proven(SEEDS[: max(1, len(SEEDS) // 5)], GATE_OF_THE_SWEEP))
def test_spares_keep_every_promise(seed: int) -> None:
    done = played(with_spares(story_of(seed)))
    assert done.promise is None, done.seen


@pytest.mark.parametrize("seed", proven(SEEDS[: max(1, len(SEEDS) // 5)], GATE_OF_THE_SWEEP))
def test_slices_that_go_from_job_to_job_keep_every_promise(seed: int) -> None:
    done = played(queued(story_of(seed)))
    assert done.promise is None, done.seen


@pytest.mark.parametrize("seed", proven(SEEDS[: max(1, len(SEEDS) // 5)], GATE_OF_THE_SWEEP))
def test_repetition_and_the_sweep_alone_keep_every_promise(seed: int) -> None:
    done = played(level(story_of(seed)))
    assert done.promise is None, done.seen
    assert done.struck[Kind.NEWS_LOST]


def test_the_database_is_what_it_was_ten_minutes_before_in_the_minute_in_which_a_story_says_so() -> None:
    story = replace(story_of(1), set_back=40, operated=False, faults=())
    simulation, backups = Simulation(story), {}
    for minute in range(1, 41):
        backups[minute] = simulation.store.backup()
        simulation.until(minute)
    assert backups[31] != simulation.store.backup()
    simulation._sets_the_scene(40)
    assert simulation.was_set_back_at == 40
    assert simulation.store.backup() == backups[31]


def test_a_story_is_the_same_as_yaml() -> None:
    for seed in (*range(20), *range(FIRST_OF_GANGS, FIRST_OF_GANGS + 20)):
        assert from_yaml(to_yaml(story_of(seed))) == story_of(seed)


TOLD = """
import sys
from tests.simulation.drawn import story_of
from tests.simulation.played import Watched
simulation = Watched(story_of(int(sys.argv[1])))
simulation.play()
print(simulation.struck, *simulation.store.commits, sep="\\n")
"""


def told(seed: int, hashes: int) -> str:
    """Return what a process that hashes in a way of its own tells of a story."""
    return subprocess.run(
        [sys.executable, "-c", TOLD, str(seed)],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": str(hashes), "PYTHONPATH": f"{ROOT}:{ROOT / 'shared'}"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.parametrize("seed", [5, *(pytest.param(each, marks=pytest.mark.proof) for each in (1, 8, 1006))])
def test_a_story_is_played_alike_by_every_process(seed: int) -> None:
    said = told(seed, hashes=1)
    assert "Counter" in said
    assert told(seed, hashes=2) == said


def test_what_is_drawn_for_one_thing_does_not_depend_on_others() -> None:
    chance = Chance(1)
    first = chance.of("a", 1)
    assert [chance.of("b", 1), chance.of("a", 1)] != [first, first]
    assert chance.of("a", 1) == first
    assert {Chance(seed).pick("abc", 1) for seed in range(30)} == set("abc")
    assert {Chance(seed).between(2, 4, 1) for seed in range(30)} == {2, 3, 4}


def test_a_story_is_shrunk_to_what_matters() -> None:
    faults = tuple(Fault(kind=kind, at=3, lasts=8) for kind in Kind)
    jobsets = tuple(a_plot(f"job-{number}", number, slices=2, ends=50) for number in range(6))
    story = a_story(seed=1, minutes=90, chips=64, crosses=True, faults=faults, jobsets=jobsets)

    def breaks(each: Story) -> bool:
        needed = [fault for fault in each.faults if fault.kind is Kind.STOCKOUT and fault.is_on(5)]
        return bool(needed) and any(plot.name == "job-3" and plot.slices == 2 for plot in each.jobsets)

    assert shrunk(story, breaks) == a_story(
        seed=1,
        minutes=6,
        faults=(Fault(kind=Kind.STOCKOUT, at=5, lasts=1),),
        jobsets=(a_plot("job-3", 3, slices=2),),
    )
