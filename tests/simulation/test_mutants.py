"""Each promise is broken by a system that is broken for it."""

from __future__ import annotations

import pytest

from tests.simulation.drawn import story_of
from tests.simulation.mutants import MUTANTS, Mutant
from tests.simulation.played import played
from tests.simulation.promises import Promise

pytestmark = pytest.mark.slow

MOST_SEEDS = 60
"""Within which a mutant is found: most are in the first few."""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_broken_system_breaks_its_promise(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.breaks(monkeypatch)
    assert any(
        played(mutant.played(story_of(seed))).promise is mutant.promise for seed in (mutant.seed, *range(MOST_SEEDS))
    )


def test_every_promise_has_a_mutant() -> None:
    assert {mutant.promise for mutant in MUTANTS} == set(Promise)
