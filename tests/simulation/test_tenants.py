"""What one tenant does costs others next to nothing: the stories of it keep every promise, and theirs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation.drawn import a_story
from tests.simulation.played import Watched
from tests.simulation.tenants import STORIES, anew, flips, refused
from tests.simulation.test_promises import proven
from tpu_slices.domain.model.reasons import Reason
from tpu_slices_simulator.story import Story

pytestmark = pytest.mark.slow


def after(minutes: int, story: Callable[[Story], Story], seed: int = 1) -> Watched:
    world = Watched(story(a_story(seed=seed, minutes=0)))
    world.until(minutes)
    return world


@pytest.mark.parametrize("seed", proven(range(1, 6), beyond=2))
@pytest.mark.parametrize("story", STORIES)
def test_a_tenant_who_asks_for_too_much_costs_nobody_else_anything(story: Callable[[Story], Story], seed: int) -> None:
    after(0, story, seed).play()


def test_the_jobset_that_flips_does_so_each_second() -> None:
    before, later = (after(minute, flips).users.workloads["research/flips"] for minute in (15, 16))
    assert later.ref.generation - before.ref.generation == 60


def test_the_jobset_that_is_made_anew_is_another_every_45_seconds() -> None:
    world = after(13, anew)
    assert len({uid for uid, each in world.workloads.items() if each.ref.owner.name == "anew"}) == 1 + 3 * 60 // 45


def test_what_the_limit_refuses_is_far_more_than_what_it_lets_run() -> None:
    records = after(30, refused).records.values()
    refusals = [record for record in records if record.reason is Reason.CHIP_LIMIT_REACHED]
    assert len(refusals) > 150
