"""Chip limits hold although several slices are created at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import (
    CLUSTER,
    MINUTE,
    NOW,
    a_job,
    a_jobset,
    a_record,
    a_spec,
    an_occupant,
    heard,
    settings,
    some_hosts,
    unclaimed,
    with_fields,
)
from tests.world import World
from tpu_slices.domain.model.clusters import Allowed, ClusterSettings, Policy
from tpu_slices.domain.model.observations import Absent, Failure, FailureKind, Observed, Running
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.records.claims import Refusal
from tpu_slices.domain.records.slices import Desire, SliceRecord
from tpu_slices.flows.reconcile import reconcile

SLICE = 16  # chips of the world's slices


def at_most(chips: int) -> ClusterSettings:
    return settings(policy=Policy(everyone=Allowed(chips_per_namespace=chips)))


def a_world_with(chips: int, slices: int) -> World:
    world = World()
    world.store.put_settings(at_most(chips))
    world.jobset_appears(slices=slices)
    return world


def test_a_namespace_gets_its_chips_and_slices_beyond_are_refused_with_the_count() -> None:
    world = a_world_with(2 * SLICE + 8, slices=3)
    world.settle(minutes=10)
    assert len(world.pools) == 2
    refused = [record for record in world.records.values() if record.phase is Phase.REFUSED]
    assert [record.reason for record in refused] == [Reason.CHIP_LIMIT_REACHED]
    assert "the namespace research holds 32 of 40" in refused[0].message


def test_released_chips_go_to_a_refused_slice() -> None:
    world = World()
    world.store.put_settings(at_most(SLICE))
    first = world.jobset_appears("first")
    world.settle(minutes=10)
    second = world.jobset_appears("second")
    world.settle(minutes=10)
    assert world.record(second).reason is Reason.CHIP_LIMIT_REACHED
    world.ends(first)
    world.settle(minutes=20, until=lambda: second.bound == {0})
    assert second.bound == {0}


def test_two_concurrent_decisions_do_not_both_take_the_last_chips() -> None:
    world = World()
    world.store.put_settings(at_most(SLICE))
    first, second = a_record(), a_record(job=a_job(job_index=1))
    world.store.put(a_jobset(demand=dict.fromkeys((first.maker, second.maker), NOW)), first, second)
    world.store.meanwhile(lambda: reconcile(CLUSTER, second.name, world.deps))
    reconcile(CLUSTER, first.name, world.deps)
    assert world.pools == [second.pool]
    assert world.records[first.name].reason is Reason.CHIP_LIMIT_REACHED


def standing(**changes: Any) -> SliceRecord:
    """Return a slice that is not needed any more, and whose pool stands."""
    job = a_job(name="ended", uid=WorkloadUid("uid-ended"))
    made = {"create_requested_at": NOW - 60 * MINUTE, "ordered": a_spec(), "phase": Phase.RELEASING}
    return a_record(job=job, desire=Desire.ABSENT, **made, **changes)


@pytest.mark.parametrize("whose", [lambda record: record, unclaimed], ids=["a claim's", "no claim's"])
@pytest.mark.parametrize(
    "changes",
    [{"refused": "no permission"}, {"hosts": some_hosts()}, {"hosts": some_hosts(occupants=(an_occupant("ended"),))}],
    ids=["refused", "closing", "occupied"],
)
def test_a_pool_that_is_to_be_deleted_counts_as_long_as_it_stands(
    changes: dict[str, Any], whose: Callable[[SliceRecord], SliceRecord]
) -> None:
    world = World()
    world.store.put_settings(at_most(SLICE))
    ended, next_ = whose(standing(**changes)), a_record()
    world.store.put(ended, next_, a_jobset(demand={next_.maker: NOW}))
    reconcile(CLUSTER, next_.name, world.deps)
    assert world.records[next_.name].reason is Reason.CHIP_LIMIT_REACHED
    world.store.put(with_fields(ended, phase=Phase.GONE))
    reconcile(CLUSTER, next_.name, world.deps)
    assert world.pools == [next_.pool]


def test_no_more_chips_stand_than_allowed_while_gke_refuses_deletions() -> None:
    world = World()
    world.store.put_settings(at_most(SLICE))
    world.backend.refuses_deletions = Failure(FailureKind.CONFIGURATION, "no permission")
    for number in range(3):
        jobset = world.jobset_appears(f"job-{number}")
        world.settle(minutes=5)
        world.ends(jobset)
        world.settle(minutes=5)
    assert len(world.pools) == 1
    world.backend.refuses_deletions = None
    last = world.jobset_appears("last")
    world.settle(minutes=20, until=lambda: last.bound == {0})
    assert world.pools == [world.record(last).pool]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"demand_confirmed_at": NOW - 20 * MINUTE}, Reason.DEMAND_STALE),
        ({"refusal": Refusal(reason=Reason.IMPOSSIBLE_SHAPE, message="3x5x7")}, Reason.IMPOSSIBLE_SHAPE),
        ({"retry_at": NOW + MINUTE, "phase": Phase.WAITING, "reason": Reason.STOCKOUT}, Reason.STOCKOUT),
        ({}, Reason.OPERATION_LIMIT),
    ],
)
def test_an_order_that_led_to_no_pool_does_not_count(changes: dict[str, Any], reason: Reason) -> None:
    ordered = a_record(create_requested_at=NOW - 5 * MINUTE, **changes)
    assert ordered.chips_bought == SLICE
    after = decide(ordered, Observed(Absent()), NOW, settings(), heard()).record
    assert (after.reason, after.chips_bought) == (reason, 0)


def test_a_pool_whose_hosts_never_became_usable_counts_until_it_is_deleted() -> None:
    record = a_record(
        create_requested_at=NOW - 60 * MINUTE,
        phase=Phase.PROVISIONING,
        reason=Reason.HOSTS_JOINING,
        hosts_awaited_since=NOW - 40 * MINUTE,
    )
    decision = decide(record, Observed(Running(a_spec().fingerprint)), NOW, settings(), heard())
    after, let_go = decision.record, decision.let_go
    assert let_go is not None
    assert (after.reason, after.chips_bought, let_go.chips_bought) == (Reason.HOSTS_NOT_USABLE, 0, SLICE)


def test_without_a_chip_limit_no_budget_is_kept() -> None:
    world = World()
    world.jobset_appears()
    world.settle(minutes=10)
    assert world.store.budget(CLUSTER) is None


def test_a_refused_slice_is_created_after_the_limit_is_raised() -> None:
    world = a_world_with(SLICE, slices=2)
    world.settle(minutes=10)
    assert len(world.pools) == 1
    world.store.put_settings(at_most(2 * SLICE))
    world.settle(minutes=5)
    assert len(world.pools) == 2
