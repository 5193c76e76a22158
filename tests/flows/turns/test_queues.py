"""Slots go round the namespaces, and within one to who waits longest where something may start."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, cast

import pytest

from tests.builders import CLUSTER, MINUTE, NOW, a_shortage, a_spec
from tests.flows.counting_store import CountingStore
from tests.flows.queueing import ends, handed_on_to, queued, running
from tests.world import ENDED, World
from tpu_slices.domain.model.slices import Capacity, CapacityKind
from tpu_slices.domain.reconciling.limiter import SHORTAGE_MEMORY, ran_out
from tpu_slices.domain.records.limiters import CapacityPool, ConcurrencyLimiter
from tpu_slices.domain.records.queues import capacity_pool_of
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows.queues.walk import AT_ONCE, MOST_NAMESPACES, MOST_POOLS
from tpu_slices.flows.reconcile import reconcile
from tpu_slices.flows.slots import MOST_TOLD, change_limiter
from tpu_slices.flows.sweep import sweep
from tpu_slices.ports.store import SliceStore

SHORT = a_spec(zone="us-a")
"""Where nothing may start."""
OF_SHORT = capacity_pool_of(SHORT)


def of_reservation(name: str) -> dict[str, Any]:
    return {"spec": a_spec(capacity=Capacity(CapacityKind.RESERVATION, name))}


def with_shortages(world: World, *pools: CapacityPool) -> None:
    """Let capacity be short, and nobody try it again soon."""
    limiter = ConcurrencyLimiter.of(CLUSTER, NOW, 5)
    for pool in pools:
        limiter = ran_out(limiter, pool, a_shortage(again_at=NOW + SHORTAGE_MEMORY))
    world.store.put(limiter)


def hands_on(world: World, busy: SliceRecord) -> CountingStore:
    """Let a creation end, and its slot be handed on; return what that read."""
    counting = CountingStore(world.store)
    world.backend.finish(world.records[busy.name].pool)
    reconcile(CLUSTER, busy.name, replace(world.deps, store=cast("SliceStore", counting)), ENDED)
    return counting


def served_in_turn(world: World, busy: list[SliceRecord], count: int) -> list[SliceRecord]:
    """Let one creation end after the other, as they began, and its slot be handed on; return to whom."""
    served: list[SliceRecord] = []
    world.publisher.take_requests()
    for number in range(count):
        assert_bounded(hands_on(world, (*busy, *served)[number]))
        ((_, slice_),) = world.publisher.take_requests()
        reconcile(CLUSTER, slice_, world.deps, ENDED)
        served.append(world.records[slice_])
        world.clock.advance(MINUTE / 60)
    return served


def assert_bounded(read: CountingStore) -> None:
    kinds = 2
    assert read.calls["creations_awaiting_slot"] <= kinds * MOST_NAMESPACES
    assert read.calls["creations_in_queue"] <= kinds * MOST_NAMESPACES * MOST_POOLS


@pytest.mark.slow
def test_a_walk_round_the_queues_is_bounded_and_reaches_every_namespace() -> None:
    world = World()
    busy = running(world)
    tenants = [f"tenant-{number:02}" for number in range(2 * MOST_NAMESPACES)]
    for number, tenant in enumerate(tenants):
        queued(world, number, namespace=tenant)
    served = served_in_turn(world, busy, len(tenants))
    assert sorted(each.owner.namespace for each in served) == tenants


@pytest.mark.slow
def test_two_namespaces_have_two_and_three_of_five_slots_whatever_number_of_capacity_pools_one_names() -> None:
    world = World()
    busy = running(world)
    for number in range(60):
        queued(world, number, namespace="hog", **of_reservation(f"r-{number:03}"))
    for number in range(100, 110):
        queued(world, number, namespace="honest")
    served = [each.owner.namespace for each in served_in_turn(world, busy, 20)]
    assert [Counter(served[:count])["honest"] for count in (5, 10, 15, 20)] == [2, 4, 6, 8]


def test_within_a_namespace_who_waits_longest_comes_first_whatever_the_capacity_pool() -> None:
    world = World()
    busy = running(world)
    waits = [queued(world, number, **of_reservation(f"r-{9 - number}")) for number in range(6)]
    assert [each.name for each in served_in_turn(world, busy, 6)] == [each.name for each in waits]


def test_who_waits_for_a_turn_hides_nobody_however_many_namespaces_they_are() -> None:
    world = World()
    busy, *_ = running(world)
    for number in range(2 * MOST_NAMESPACES):
        queued(world, number, namespace=f"tenant-{number:02}", spec=SHORT, shortage=a_shortage())
    other = queued(world, 99)
    with_shortages(world, OF_SHORT)
    read = hands_on(world, busy)
    assert handed_on_to(world, other) is not None
    assert_bounded(read)


def test_who_does_not_know_yet_that_capacity_is_short_hides_nobody_of_the_namespace_and_is_told() -> None:
    world = World()
    busy, *_ = running(world)
    unaware = [queued(world, number, spec=SHORT) for number in range(3 * AT_ONCE)]
    other = queued(world, 99)
    with_shortages(world, OF_SHORT)
    world.publisher.take_requests()
    read = hands_on(world, busy)
    assert handed_on_to(world, other) is not None
    assert read.documents < 3 * AT_ONCE + 20
    told = {slice_ for _, slice_ in world.publisher.take_requests()}
    assert {each.name for each in unaware[:AT_ONCE]} <= told <= {each.name for each in (*unaware, other)}


def test_many_namespaces_that_do_not_know_yet_that_capacity_is_short_hide_another_for_a_minute() -> None:
    world = World()
    busy, *_ = running(world)
    for number in range(MOST_NAMESPACES):
        queued(world, number, namespace=f"tenant-{number:02}", spec=SHORT)
    other = queued(world, 99)
    with_shortages(world, OF_SHORT)
    ends(world, busy)
    for _, slice_ in world.publisher.take_requests():
        reconcile(CLUSTER, slice_, world.deps)
    world.clock.advance(MINUTE)
    assert handed_on_to(world, other) is None
    sweep(CLUSTER, world.deps)
    assert handed_on_to(world, other) is not None


@pytest.mark.parametrize("told", [False, True], ids=["not told", "told"])
@pytest.mark.parametrize("able", ["a", "m", "z"])
def test_one_capacity_pool_among_many_that_are_short_is_found(able: str, *, told: bool) -> None:
    """At once, if the others say that they wait for their turn; else as slots are handed on."""
    world = World()
    busy, *_ = running(world)
    shortage = a_shortage() if told else None
    waits = [
        queued(world, number, shortage=shortage, **of_reservation(f"m-{number:03}"))
        for number in range(10 * MOST_POOLS)
    ]
    other = queued(world, 99, **of_reservation(able))
    with_shortages(world, *(capacity_pool_of(each.spec) for each in waits if each.spec))
    ends(world, busy)
    for _ in range(0 if told else 10):
        for _, slice_ in world.publisher.take_requests():
            reconcile(CLUSTER, slice_, world.deps)
        world.clock.advance(MINUTE / 4)
        sweep(CLUSTER, world.deps)
    assert handed_on_to(world, other) is not None or world.records[other.name].current.slot is not None


def test_who_still_says_that_capacity_is_short_gets_a_slot_once_it_is_not_though_nobody_tells_it() -> None:
    world = World()
    busy, *_ = running(world)
    short = queued(world, 1, shortage=a_shortage())
    ends(world, busy)
    assert handed_on_to(world, short) is not None


def test_a_shortage_that_begins_is_told_to_those_who_wait_for_the_capacity_pool_in_all_namespaces() -> None:
    world = World()
    tenants = ("art", "vision", "web")
    waits = [queued(world, number, namespace=each, spec=SHORT) for number, each in enumerate(tenants)]
    queued(world, 9, namespace="elsewhere")
    for change in (
        lambda limiter, _: ran_out(limiter, OF_SHORT, a_shortage()),
        lambda limiter, _: replace(limiter, shortages={}),
    ):
        change_limiter(change, world.settings, world.deps)
        assert world.publisher.take_requests() == [(CLUSTER, each.name) for each in waits]


@pytest.mark.slow
def test_a_shortage_is_told_to_so_many_at_once() -> None:
    world = World()
    for number in range(MOST_TOLD + 5):
        queued(world, number, spec=SHORT)
    change_limiter(lambda limiter, _: ran_out(limiter, OF_SHORT, a_shortage()), world.settings, world.deps)
    assert len(world.publisher.take_requests()) == MOST_TOLD
