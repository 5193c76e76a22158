"""A process may crash after any side effect: no spare is made twice, and none is left."""

from __future__ import annotations

import pytest

from tests.journeys.crashes.moments import moments
from tests.journeys.spares.test_spares import ONE, changed, reasons, spares, with_spares
from tests.world import World
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.fuse import Fuse


def live_through_a_spare(fuse: Fuse) -> World:
    """A spare is made, a JobSet gets it, another is made; the JobSet ends, and the settings ask for none."""
    world = World(fuse, with_spares(ONE))
    world.settle(minutes=30, until=lambda: reasons(world) == [Reason.SPARE])
    first = spares(world)[0].id
    llama = world.jobset_appears("llama")
    world.settle(minutes=20, until=lambda: llama.bound == {0})
    assert world.record(llama).id == first, "the claim has the spare"
    world.settle(minutes=30, until=lambda: reasons(world) == [Reason.SPARE])
    assert len(world.pools) == 2, "another one is made"
    world.ends(llama)
    changed(world)
    world.settle(minutes=40)
    return world


def assert_nothing_is_left(world: World) -> None:
    assert world.pools == []
    assert {record.phase for record in world.records.values()} == {Phase.GONE}
    assert all(record.next_reconcile_at is None for record in world.records.values())
    assert world.store.slots(world.settings.cluster) == ()
    names = [call.pool for call in world.backend.calls if call.verb == Verb.CREATE and "Started" in repr(call.outcome)]
    assert len(names) == len(set(names)) == 2, "each is made once"


def side_effects() -> int:
    fuse = Fuse()
    live_through_a_spare(fuse)
    return fuse.burnt


def test_without_a_crash_one_is_made_for_the_claim_and_one_after_it() -> None:
    assert_nothing_is_left(live_through_a_spare(Fuse()))


@pytest.mark.parametrize("last", moments(side_effects()))
def test_a_crash_after_any_side_effect_leads_to_the_same_outcome(last: int) -> None:
    world = live_through_a_spare(Fuse(blows_after=last))
    assert world.crashes == 1
    assert_nothing_is_left(world)
