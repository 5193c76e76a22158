"""A process may crash after any side effect of a TPUNodeGroup's life: in the end it was served, and nothing is left."""

from __future__ import annotations

import pytest

from tests.domain.planning.test_node_groups import self_managed
from tests.journeys.crashes.moments import moments
from tests.world import World
from tpu_slices.domain.model.reasons import Phase
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.fuse import Fuse


def live_through_a_group(fuse: Fuse) -> World:
    world = World(fuse, self_managed())
    group = world.group_appears()
    world.settle(minutes=30, until=lambda: world.reasons(group).get("Ready") == "Ready")
    assert world.reasons(group)["Ready"] == "Ready"
    world.settle(minutes=3)
    world.group_is_deleted(group)
    world.settle(minutes=40)
    assert not world.stands(group)
    return world


def side_effects() -> int:
    fuse = Fuse()
    live_through_a_group(fuse)
    return fuse.burnt


@pytest.mark.parametrize("last", moments(side_effects()))
def test_a_crash_after_any_side_effect_leads_to_the_same_outcome(last: int) -> None:
    world = live_through_a_group(Fuse(blows_after=last))
    assert world.crashes == 1
    assert (world.pools, len({*world.backend.ordered(Verb.CREATE)})) == ([], 1)
    assert {record.phase for record in world.records.values()} == {Phase.GONE}
    assert {record.next_reconcile_at for record in world.records.values()} == {None}
