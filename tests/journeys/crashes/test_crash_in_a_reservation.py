"""A process may crash after any side effect while slices wait for a reservation: all is as if it had not."""

from __future__ import annotations

import pytest

from tests.builders import CLUSTER, MINUTE, NOW
from tests.journeys.crashes.moments import moments
from tests.journeys.reservations.waiting import HALL, HOSTS, HOUR, appear, creations
from tests.world import World
from tpu_slices.domain.model.reasons import Phase
from tpu_slices_simulator.fakes.reservations import FakeReservation
from tpu_slices_simulator.fuse import Fuse

BEGINS = NOW + 4 * MINUTE


def live_through_a_booking(fuse: Fuse) -> World:
    """Three JobSets wait for a booking that has hosts for two; the third is served once one has ended."""
    world = World(fuse)
    world.reservations.has(FakeReservation(name=HALL, hosts=2 * HOSTS, starts_at=BEGINS, ends_at=NOW + 2 * HOUR))
    jobsets = appear(world, 3)
    world.settle(minutes=30, until=lambda: sum(bool(jobset.bound) for jobset in jobsets) == 2)
    served = [jobset for jobset in jobsets if jobset.bound]
    assert len(served) == 2
    world.ends(served[0])
    world.settle(minutes=40, until=lambda: all(jobset.bound for jobset in jobsets if jobset is not served[0]))
    for jobset in jobsets:
        if jobset is not served[0]:
            assert jobset.bound
            world.ends(jobset)
    world.settle(minutes=30, until=lambda: not world.pools)
    world.settle(minutes=5)
    return world


def side_effects() -> int:
    fuse = Fuse()
    live_through_a_booking(fuse)
    return fuse.burnt


@pytest.mark.parametrize("last", moments(side_effects(), first=0))
def test_a_crash_after_any_side_effect_asks_for_nothing_in_vain_and_leaves_nothing(last: int) -> None:
    world = live_through_a_booking(Fuse(blows_after=last))
    assert world.crashes == (1 if last else 0)
    assert min(call.at for call in creations(world)) >= BEGINS
    assert len(creations(world)) <= 3 + 1
    assert world.pools == []
    assert world.store.slots(CLUSTER) == ()
    assert {record.phase for record in world.records.values()} == {Phase.GONE}
    limiter = world.store.limiter(CLUSTER)
    assert limiter is not None
    assert [each.place.name for each in limiter.value.reservations.values()] == [HALL]
