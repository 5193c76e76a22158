"""Each promise is broken by a system that is broken for it."""

from __future__ import annotations

import pytest

from tests.simulation.mutants import MUTANTS, Mutant, broken_by
from tests.simulation.promises import Promise

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_broken_system_breaks_its_promise(mutant: Mutant) -> None:
    assert broken_by(mutant, mutant.seed) is mutant.promise, "find another seed: python -m tests.simulation.mutants"


def test_every_promise_has_a_mutant() -> None:
    assert {mutant.promise for mutant in MUTANTS} == set(Promise)
