"""However many slices are kept warm that do not serve a claim, it gets the one that does."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from tests.builders import settings
from tests.journeys.serving import reason
from tests.journeys.warm.test_kept_warm import orders
from tests.world import World
from tpu_slices.domain.model.capacity import Warm
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.flows.unclaimed import MOST_ASKED
from tpu_slices_simulator.fakes.backend import Verb


def test_a_claim_gets_the_only_warm_slice_that_is_as_it_asks_behind_many_that_are_not() -> None:
    """Those that became warm before are in another zone, that of the settings then."""
    world = World(of_cluster=settings(warm=Warm(lasts=timedelta(hours=2)), limits=Limits(operations=10)))
    before = [world.jobset_appears(f"before-{number}") for number in range(MOST_ASKED)]
    world.settle(minutes=10, until=lambda: all(each.served for each in before))
    world.store.put_settings(replace(world.settings, version="settings-2", zone="us-central2-a"))
    after = world.jobset_appears("after")
    world.settle(minutes=10, until=lambda: after.served)
    for each in (*before, after):
        world.ends(each)
        world.settle(minutes=2)
    assert {reason(world, each) for each in (*before, after)} == {Reason.WARM}
    made = orders(world).count(Verb.CREATE)
    following = world.jobset_appears("following")
    world.settle(minutes=3, until=lambda: following.served)
    assert orders(world).count(Verb.CREATE) == made
    assert world.record(following).pool == f"{world.record(after).maker}-1"
