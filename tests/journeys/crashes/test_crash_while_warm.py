"""A process may crash after any side effect while slices go from Job to Job, warm in between: none is made twice."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from tests.builders import CLUSTER, settings
from tests.journeys.crashes.moments import moments
from tests.journeys.warm.test_kept_warm import QUARTER
from tests.world import World
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.fuse import Fuse
from tpu_slices_simulator.live import LiveWorkload

SLICES = 2


def all_run(jobsets: list[LiveWorkload]) -> bool:
    return all(each.bound == {0} for each in jobsets)


def live_through_a_queue(fuse: Fuse) -> World:
    """Four Jobs, two at a time, go through two slices, which are warm for some minutes in between and at the end."""
    world = World(fuse, settings(warm=QUARTER))
    for pair in range(2):
        jobsets = [world.jobset_appears(f"job-{pair}-{number}") for number in range(SLICES)]
        world.settle(minutes=30, until=partial(all_run, jobsets))
        assert all_run(jobsets)
        for each in jobsets:
            world.ends(each)
        world.settle(minutes=3)
        assert Reason.WARM in {record.reason for record in world.records.values()}
    world.settle(minutes=45, until=lambda: not world.pools)
    world.settle(minutes=5)
    return world


def side_effects() -> int:
    fuse = Fuse()
    live_through_a_queue(fuse)
    return fuse.burnt


@pytest.mark.parametrize("last", moments(side_effects(), first=0))
def test_a_crash_after_any_side_effect_makes_no_slice_twice_and_leaves_none(last: int) -> None:
    world = live_through_a_queue(Fuse(blows_after=last))
    assert world.crashes == (1 if last else 0)
    made = Counter(call.pool for call in world.backend.calls if call.verb is Verb.CREATE and call.spec is not None)
    assert len(made) == SLICES, "each of them served two Jobs"
    assert world.pools == []
    assert world.store.slots(CLUSTER) == ()
    assert {record.phase for record in world.records.values()} == {Phase.GONE}
