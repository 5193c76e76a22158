"""Fifty gangs that contend for capacity that comes and goes: each starts in the end, and none holds for ever."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta

import pytest

from tests.domain.gangs.contention import CHIPS, LIMITS, MINUTE, SHORT_UNTIL, Contention, a_contention
from tpu_slices.domain.gangs import deciding

SEEDS, MORE_SEEDS = range(6), range(6, 206)
SLACK = 3
"""Minutes by which a decision may be late."""
MOST_OFTEN = 12
"""How often a gang lets slices go that stood before it starts, at most."""
OVER_WITHIN = 24 * 60
"""In how many minutes all gangs have started once all capacity is there."""


class Broken(AssertionError):
    """A promise was broken."""


def minutes(time: timedelta) -> int:
    return time // MINUTE


def played(seed: int) -> Contention:
    """Return a contention after its end; raise Broken for what may not happen meanwhile."""
    world = a_contention(seed)
    while not world.over:
        world.plays_a_minute()
        _look(world, f"seed {seed}, minute {world.minute}")
    return world


def _look(world: Contention, when: str) -> None:
    if world.minute > SHORT_UNTIL + OVER_WITHIN:
        waiting = [each.name for each in world.gangs if each.started is None and not each.never_fits]
        raise Broken(f"{when}: {waiting} have not started")
    for each in world.gangs:
        held = world.minute - each.lacked_since if each.lacked_since is not None else 0
        if held > minutes(LIMITS.gang_hold_at_most) + SLACK:
            raise Broken(f"{when}: {each.name} has held {each.standing} of {each.size} slices for {held} minutes")
        if each.gave_back > MOST_OFTEN:
            raise Broken(f"{when}: {each.name} has let slices go {each.gave_back} times")
    for first, second, both in world.halves():
        if both > minutes(LIMITS.gang_yield_after) + SLACK:
            raise Broken(f"{when}: {first} and {second} have waited for each other for {both} minutes")


def starts_or_never_fits(seed: int) -> None:
    world = played(seed)
    limit = world.policy.chips_per_cluster
    too_large = {each.name for each in world.gangs if limit is not None and CHIPS * each.size > limit}
    assert {each.name for each in world.gangs if each.never_fits} == too_large
    assert {*world.starts} == {each.name for each in world.gangs} - too_large


def all_start(seeds: Iterable[int]) -> None:
    for seed in seeds:
        starts_or_never_fits(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_gang_starts_or_is_too_large_and_no_two_wait_for_each_other(seed: int) -> None:
    starts_or_never_fits(seed)


@pytest.mark.proof
@pytest.mark.parametrize("seed", MORE_SEEDS)
def test_each_gang_starts_or_is_too_large_in_many_more_contentions(seed: int) -> None:
    starts_or_never_fits(seed)


SABOTEURS: dict[str, tuple[str, Callable[..., object]]] = {
    "nobody is before another in line": ("_before", lambda _case, _pools: None),
    "nobody gives way to who waits longer": ("_yields_to", lambda _gang, _case: None),
    "slices are held without end": ("_is_held_too_long", lambda _gang, _case: False),
}


@pytest.mark.parametrize(("name", "instead"), SABOTEURS.values(), ids=SABOTEURS)
def test_a_contention_shows_when(name: str, instead: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deciding, name, instead)
    with pytest.raises(Broken):
        all_start(SEEDS)
