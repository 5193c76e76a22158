"""Slices that wait cost nothing: they are looked at when something about them may have changed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import CLUSTER, MINUTE, NOW, a_record, a_request, leaders_wait
from tests.world import World
from tpu_slices.domain.model.observations import Failure, FailureKind
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.reconciling.demand import in_progress
from tpu_slices.domain.records.slices import Desire
from tpu_slices_simulator.fakes.backend import Verb


def slices_wait(world: World, slices: int) -> int:
    """Let the relay report a JobSet whose leaders all wait; return how many reconciles that causes."""
    before = len(world.publisher.requests)
    world.publish(leaders_wait(*range(slices), requests=(a_request(replicas=slices),)))
    world.deliver()
    return len(world.publisher.requests) - before


def test_repeated_demand_of_slices_that_wait_for_a_slot_or_their_pool_causes_no_reconcile() -> None:
    world = World()
    assert slices_wait(world, 12) == 12
    assert slices_wait(world, 12) <= 5  # of those whose creation has just been ordered
    assert slices_wait(world, 12) == 0
    (workload,) = world.store.jobset_records(CLUSTER)
    assert {*workload.demand} == {*world.records}


def test_repeated_demand_of_slices_that_are_out_of_stock_causes_no_reconcile() -> None:
    world = World()
    world.backend.refuse_next_create(Failure(FailureKind.STOCKOUT, "[GCE_STOCKOUT] none left."))
    slices_wait(world, 1)
    assert slices_wait(world, 1) == 0


def test_repeated_demand_makes_up_for_the_lost_requests_of_new_slices() -> None:
    world = World()
    world.publisher.fail_next()
    slices_wait(world, 2)
    assert world.backend.calls == []
    slices_wait(world, 2)
    assert world.backend.calls == [], "they may be under way"
    world.clock.advance(MINUTE / 2)
    slices_wait(world, 2)
    assert len(world.backend.ordered(Verb.CREATE)) == 2


def test_the_sweep_makes_up_for_the_lost_requests_of_new_slices_within_a_minute() -> None:
    world = World()
    world.publisher.fail_next()
    slices_wait(world, 2)
    world.settle(minutes=1)
    assert len(world.backend.ordered(Verb.CREATE)) == 2


def test_a_slice_that_waits_for_a_slot_is_not_due_by_itself() -> None:
    world = World()
    slices_wait(world, 6)
    (queued,) = [record for record in world.records.values() if record.phase is Phase.QUEUED]
    assert queued.next_reconcile_at is None


@pytest.mark.parametrize(
    ("changes", "waits"),
    [
        ({"reason": Reason.OPERATION_LIMIT}, True),
        ({"reason": Reason.CREATING, "phase": Phase.PROVISIONING}, True),
        ({"reason": Reason.STOCKOUT, "phase": Phase.WAITING}, True),
        ({"reason": Reason.OPERATION_LIMIT, "next_reconcile_at": None}, True),
        ({"reason": Reason.STOCKOUT, "phase": Phase.WAITING, "next_reconcile_at": None}, False),
        ({"reason": Reason.OPERATION_LIMIT, "desire": Desire.ABSENT}, False),
        ({"reason": Reason.REQUESTED}, False),
        ({"reason": Reason.DEMAND_STALE}, False),
        ({"reason": Reason.READY, "phase": Phase.READY}, False),
        ({"reason": Reason.NOT_ALLOWED, "phase": Phase.REFUSED}, False),
        ({"reason": Reason.OCCUPIED, "phase": Phase.RELEASING}, False),
    ],
)
def test_confirmed_demand_may_change_every_slice_but_those_in_progress(changes: dict[str, Any], *, waits: bool) -> None:
    assert in_progress(a_record(**changes), NOW + MINUTE) is waits
