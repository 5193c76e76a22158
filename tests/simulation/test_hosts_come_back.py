"""Hosts that Google brings back, for a day, on whatever pools are struck: each slice is bought once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation.drawn import a_plot, a_story
from tests.simulation.played import Watched, played
from tpu_slices.domain.model.observations import Refused
from tpu_slices.domain.model.reasons import Reason
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.simulation import Simulation
from tpu_slices_simulator.story import Fault, Kind, Story

AWAY = {
    Kind.POOLS_UPGRADED: Reason.GKE_UPGRADES,
    Kind.POOLS_REPAIRED: Reason.GKE_REPAIRS,
    Kind.HOSTS_PREEMPTED: Reason.PREEMPTED,
    Kind.HOSTS_MAINTAINED: Reason.UNDER_MAINTENANCE,
}
"""What takes hosts away that come back, and the reason that tells it."""
DAY = 24 * 60


def of(kind: Kind, seed: int, *, minutes: int = DAY) -> Story:
    """Return a story of five JobSets under one kind of fault; those whose hosts are preempted are spot."""
    jobsets = tuple(a_plot(f"job-{number}", number, spot=kind is Kind.HOSTS_PREEMPTED) for number in range(5))
    fault = Fault(kind=kind, at=10, lasts=minutes, share=0.003)
    return a_story(seed=seed, minutes=minutes, operations=5, jobsets=jobsets, faults=(fault,))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", AWAY, ids=str)
def test_what_comes_back_is_neither_given_away_nor_bought_again(kind: Kind, seed: int) -> None:
    story = of(kind, seed)
    simulation = Simulation(story)
    simulation.until(story.minutes)
    assert simulation.struck[kind] >= 5
    assert len(simulation.backend.ordered(Verb.CREATE)) == len(story.jobsets)
    assert simulation.backend.ordered(Verb.DELETE) == []
    told = {each.reason for record in simulation.records.values() for each in record.transitions}
    assert AWAY[kind] in told
    assert Reason.HOSTS_NOT_USABLE not in told


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", AWAY, ids=str)
def test_every_promise_holds_when_jobsets_end_and_are_suspended_meanwhile(kind: Kind, seed: int) -> None:
    story = of(kind, seed, minutes=300)
    jobsets = tuple(
        replace(plot, ends=120 + 20 * number, deleted=number % 2 == 0, suspended=((60, 90),))
        for number, plot in enumerate(story.jobsets)
    )
    done = played(replace(story, jobsets=jobsets, faults=tuple(replace(each, share=0.02) for each in story.faults)))
    assert done.promise is None, done.seen


def test_a_deletion_that_gke_refuses_for_its_work_is_asked_for_each_hour_at_most() -> None:
    story = of(Kind.POOLS_UPGRADED, 0, minutes=300)
    plots = tuple(replace(plot, ends=40) for plot in story.jobsets)
    fault = Fault(kind=Kind.POOLS_UPGRADED, at=30, lasts=1)
    simulation = Watched(replace(story, jobsets=plots, faults=(fault,)))
    simulation.until(300)
    refused = [call for call in simulation.backend.calls if isinstance(call.outcome, Refused)]
    assert simulation.struck[Kind.POOLS_UPGRADED] == 5
    assert 5 <= len(refused) <= 20
    assert simulation.pools == []
