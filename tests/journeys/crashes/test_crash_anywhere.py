"""A process may crash after any side effect: redelivery and the sweep lead to the same outcome."""

from __future__ import annotations

import pytest

from tests.builders import MINUTE
from tests.journeys.crashes.moments import moments
from tests.world import World
from tpu_slices.domain.model.observations import Creating, Failure, FailureKind
from tpu_slices.domain.model.reasons import Phase
from tpu_slices_simulator.fuse import Fuse

STOCKOUT = Failure(FailureKind.STOCKOUT, "[GCE_STOCKOUT] us-central2-b has not enough resources")


def live_through_a_jobset(fuse: Fuse) -> World:
    """Two slices, of which the first meets a stockout; both serve; the JobSet completes; nothing is left."""
    world = World(fuse)
    jobset = world.jobset_appears(slices=2)
    world.cluster_lives()
    world.deliver()
    if not world.backend.pools:  # its request was not sent: the sweep finds it
        world.clock.advance(MINUTE)
        world.sweeps()
    if isinstance(getattr(world.backend.pools.get(world.record(jobset).pool), "seen", None), Creating):
        world.backend.fail(world.record(jobset).pool, STOCKOUT)
    world.settle(minutes=30, until=lambda: len(jobset.bound) == 2)
    assert len(jobset.bound) == 2, "both leaders are bound"
    world.settle(minutes=3)
    world.ends(jobset)
    world.settle(minutes=40)
    return world


def test_without_a_crash_everything_is_served_and_nothing_is_left() -> None:
    world = live_through_a_jobset(Fuse())
    assert_nothing_is_left(world)
    creates = [call for call in world.backend.calls if call.verb == "CREATE"]
    assert len(creates) == 3, "one per slice, and one more after the stockout"


def assert_nothing_is_left(world: World) -> None:
    assert world.pools == []
    assert {record.phase for record in world.records.values()} == {Phase.GONE}
    announced = {(update.slice_id, update.transition_number) for update in world.publisher.updates}
    for record in world.records.values():
        assert record.next_reconcile_at is None
        assert announced >= {(record.name, number) for number in range(1, record.transition_count + 1)}
    assert world.store.slots(next(iter(world.records.values())).job.cluster) == ()


def side_effects() -> int:
    fuse = Fuse()
    live_through_a_jobset(fuse)
    return fuse.burnt


@pytest.mark.parametrize("last", moments(side_effects()))
def test_a_crash_after_any_side_effect_leads_to_the_same_outcome(last: int) -> None:
    world = live_through_a_jobset(Fuse(blows_after=last))
    assert world.crashes == 1
    assert_nothing_is_left(world)
    names = [call.pool for call in world.backend.calls if call.verb == "CREATE" and "Started" in repr(call.outcome)]
    assert len(names) == len(set(names)) == 3, "no pool is created twice"
