"""A process may be killed after any side effect of a story: what is left recovers, and every promise holds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings as profile

from tests.simulation.crash_points import LENGTH, STORIES, crashed, effects
from tests.simulation.drawn import a_plot, a_story
from tests.simulation.played import played
from tpu_slices_simulator.fuse import Fuse
from tpu_slices_simulator.story import Story

pytestmark = pytest.mark.slow

EVERY = max(1, 20_000 // max(1, profile().max_examples))
"""With --hypothesis-profile=deep, more of them; `make crashes` tries all."""


@pytest.mark.parametrize("name", STORIES)
def test_a_crash_after_any_side_effect_is_recovered_from(name: str) -> None:
    for after in range(1, effects(STORIES[name]) + 1, EVERY):
        done = crashed(name, after)
        assert done.promise is None, f"killed after side effect {after}: {done.seen}"


def test_a_system_that_gives_up_no_slot_that_a_crash_left_does_not_recover(monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps every promise until it is killed."""
    story = a_story(seed=12, minutes=LENGTH, operations=1, jobsets=(a_plot("one", 1, slices=2, ends=30),))
    monkeypatch.setattr("tpu_slices.flows.slots.is_left", lambda *_: False)
    assert played(story).promise is None
    assert any(played(story, Fuse(blows_after=after)).promise for after in points_of(story))


def points_of(story: Story) -> Iterator[int]:
    """Yield after which side effects to kill: first one that has told before."""
    yield 24
    yield from range(1, effects(story) + 1)
