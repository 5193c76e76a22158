"""A gang that goes on from waiting takes what is kept warm before anything is created for it."""

from __future__ import annotations

from datetime import timedelta

from tests.builders import a_request
from tests.journeys.gangs.test_gangs import gang_of, has_capacity_for
from tests.journeys.serving import reason
from tests.journeys.warm.test_kept_warm import orders, warm_world
from tpu_slices.domain.model.capacity import Warm
from tpu_slices.domain.model.reasons import Reason
from tpu_slices_simulator.fakes.backend import Verb


def test_a_gang_that_forms_after_it_waited_takes_warm_slices_and_creates_none() -> None:
    world = warm_world(Warm(lasts=timedelta(hours=1)))
    others = [world.jobset_appears(name) for name in ("first", "second")]
    world.settle(minutes=10, until=lambda: all(each.served for each in others))
    has_capacity_for(world, 3)
    gang = world.jobset_appears("gemma", 2, a_request(gang="all", gang_hold_for=10 * 60))
    world.settle(minutes=30, until=lambda: gang_of(world, gang).reason is Reason.LET_GO_WITH_GANG)
    for each in others:
        world.ends(each)
    world.settle(minutes=2)
    assert ({reason(world, each) for each in others}, gang_of(world, gang).waits) == ({Reason.WARM}, True)
    has_capacity_for(world, 5)
    before = orders(world).count(Verb.CREATE)
    world.settle(minutes=15, until=lambda: gang.served)
    assert (gang.served, orders(world).count(Verb.CREATE)) == (True, before)
