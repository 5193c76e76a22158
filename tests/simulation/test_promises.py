"""Every promise holds in the mean world, whatever its seed; and each is broken by a system that is broken for it."""

from __future__ import annotations

import pytest
from hypothesis import settings as profile

from tests.builders import settings
from tests.mischief import Mischief
from tests.promises.mutants import MUTANTS, Mutant
from tests.promises.promises import Broken, Promise, Watch
from tpu_slices.domain.model.clusters import Policy

SEEDS = range(max(1, profile().max_examples // 5))
"""With --hypothesis-profile=deep, more."""
LIMIT = 64
"""The chips that the cluster may hold in every other world: four slices."""
MOST_SEEDS = 40
"""Within which a mutant is found: most are in the first two."""


def lived(seed: int) -> None:
    """Let a mean world of this seed live, calm down, and end. Raise Broken."""
    mean = Mischief(seed)
    if seed % 2:
        mean.world.store.put_settings(settings(policy=Policy(chips_per_cluster=LIMIT)))
    watch = Watch(mean.world)
    mean.lives(minutes=150)
    mean.calms()
    mean.lives(minutes=120)
    watch.in_calm()
    for jobset in mean.active:
        mean.world.ends(jobset)
    mean.lives(minutes=60)
    watch.when_all_ended()


@pytest.mark.parametrize("seed", SEEDS)
def test_every_promise_holds(seed: int) -> None:
    lived(seed)


def broken(seed: int) -> Promise | None:
    try:
        lived(seed)
    except Broken as found:
        return found.promise
    return None


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_broken_system_breaks_its_promise(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.breaks(monkeypatch)
    assert any(broken(seed) is mutant.promise for seed in range(MOST_SEEDS))


def test_every_promise_has_a_mutant() -> None:
    assert {mutant.promise for mutant in MUTANTS} == set(Promise)
