"""A process may be killed after any side effect of a story: what is left recovers, and every promise holds."""

from __future__ import annotations

import pytest
from hypothesis import settings as profile

from tests.simulation.crash_points import STORIES, crashed, effects

pytestmark = pytest.mark.slow

EVERY = max(1, 10_000 // max(1, profile().max_examples))
"""With --hypothesis-profile=deep, more of them; `make crashes` tries all."""


@pytest.mark.parametrize("name", STORIES)
def test_a_crash_after_any_side_effect_is_recovered_from(name: str) -> None:
    for after in range(1, effects(STORIES[name]) + 1, EVERY):
        done = crashed(name, after)
        assert done.promise is None, f"killed after side effect {after}: {done.seen}"
