"""A freed slot is handed on at once, to exactly one operation, and nothing is left behind by crashes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, cast

import pytest

from tests.builders import (
    CLUSTER,
    MINUTE,
    NOW,
    a_heartbeat,
    a_job,
    a_jobset,
    a_record,
    a_slot,
    settings,
)
from tests.flows.counting_store import CountingStore
from tests.flows.queueing import ends, ends_unseen, handed_on_to, queued, running, slots
from tests.journeys.serving import BROKEN
from tests.world import ENDED, World
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.domain.records.awaited import PoolOperation, SlotAwaited
from tpu_slices.domain.records.limiters import ConcurrencyLimiter, Slot
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows.looking import Told
from tpu_slices.flows.reconcile import reconcile, reconcile_in_turn
from tpu_slices.flows.sweep import sweep
from tpu_slices.ports.errors import Temporary
from tpu_slices.wire.cluster_settings import pause_key
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.fakes.clock import FakeClock
from tpu_slices_simulator.fakes.store import FakeStore


def test_a_freed_slot_is_handed_on_to_who_waits_longest_and_only_that_slice_is_requested() -> None:
    world = World()
    busy, *_ = running(world)
    first, second = queued(world, 1), queued(world, 2)
    world.publisher.take_requests()
    ends(world, busy)
    assert world.publisher.take_requests() == [(CLUSTER, first.maker)]
    assert slots(world)[cast("int", handed_on_to(world, first))] == first.maker
    assert handed_on_to(world, second) is None
    assert len(slots(world)) == 5


def test_a_slot_that_was_handed_on_is_used_by_the_next_reconcile() -> None:
    world = World()
    busy, *_ = running(world)
    first = queued(world, 1)
    ends(world, busy)
    number = handed_on_to(world, first)
    reconcile(CLUSTER, first.name, world.deps, ENDED)
    assert world.records[first.name].current.slot == number is not None
    assert world.records[first.name].slot_awaited is None
    assert world.backend.ordered(Verb.CREATE)[-1] == first.pool


def test_who_gets_a_freed_slot_is_reconciled_without_a_message() -> None:
    world = World()
    busy, *_ = running(world)
    first, second = queued(world, 1), queued(world, 2)
    ends_unseen(world, busy)
    done = [*reconcile_in_turn(CLUSTER, busy.name, world.deps, ENDED)]
    assert [each.after.name for each in done] == [busy.name, first.name]
    assert world.backend.ordered(Verb.CREATE)[-1] == first.pool
    assert handed_on_to(world, second) is None
    assert world.publisher.take_requests() == []


def test_who_gets_the_slot_of_a_creation_that_failed_comes_before_the_slice_that_is_let_go() -> None:
    world = World()
    busy, *_ = running(world)
    first = queued(world, 1)
    world.backend.fail(busy.pool, BROKEN)
    world.publisher.take_requests()
    done = [*reconcile_in_turn(CLUSTER, busy.name, world.deps, ENDED)]
    assert [each.after.name for each in done] == [busy.name, first.name]
    assert world.publisher.take_requests() == [(CLUSTER, busy.id)]


def test_a_slot_is_freed_that_was_taken_while_it_was_read_with_the_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    (ended,) = running(world, 1)
    ends_unseen(world, ended)
    together = FakeStore.together
    monkeypatch.setattr(FakeStore, "together", lambda *asked: replace(together(*asked), slots=()))
    reconcile(CLUSTER, ended.name, world.deps, Told(ended=True, slots=True))
    assert (world.records[ended.name].slots, slots(world)) == (frozenset(), {})


def test_of_several_who_get_a_slot_all_but_the_first_are_requested() -> None:
    world = World()
    one, other, *_ = running(world)
    first, second = queued(world, 1), queued(world, 2)
    with_a_slot_more(world)
    ends_unseen(world, one)
    done = [*reconcile_in_turn(CLUSTER, one.name, world.deps, ENDED)]
    assert [each.after.name for each in done] == [one.name, first.name]
    assert world.publisher.take_requests() == [(CLUSTER, second.maker)]
    assert {first.name, second.name, other.name} <= {*slots(world).values()}


def with_a_slot_more(world: World) -> None:
    world.store.put(ConcurrencyLimiter(cluster=CLUSTER, limit=6, changed_at=world.clock.now(), shortages={}))
    world.store.put_settings(settings(limits=replace(settings().limits, operations=6)))


def test_who_got_a_slot_is_reconciled_although_the_next_one_cannot_be_given_out() -> None:
    world = World()
    busy, *_ = running(world)
    first, second = queued(world, 1), queued(world, 2)
    with_a_slot_more(world)
    ends_unseen(world, busy)
    world.store.meanwhile(lambda: None, lambda: None, partial(world.store.fail_next, Temporary("Firestore: 503")))
    done = [*reconcile_in_turn(CLUSTER, busy.name, world.deps, ENDED)]
    assert [each.after.name for each in done] == [busy.name, first.name]
    assert handed_on_to(world, second) is None


def test_who_got_a_slot_does_not_wait_until_others_leave_the_next_one_alone() -> None:
    world = World()
    busy, *_ = running(world)
    first, second = queued(world, 1), queued(world, 2)
    with_a_slot_more(world)
    ends_unseen(world, busy)
    edits = [partial(world.store.edit_slice, CLUSTER, second.id, note=f"{number}") for number in range(8)]
    world.store.meanwhile(lambda: None, lambda: None, *edits)
    reconcile(CLUSTER, busy.name, replace(world.deps, clock=Hasty(world.clock.now())), ENDED)
    assert world.publisher.take_requests() == [(CLUSTER, first.maker)]


@pytest.mark.parametrize("error", [Temporary("Firestore: 503"), ValueError("a bug")], ids=repr)
def test_who_gets_a_slot_and_cannot_be_reconciled_is_requested(error: Exception) -> None:
    """Its own message is recorded, or redelivered; that of the slice that handed the slot on is done."""
    world = World()
    busy, *_ = running(world)
    first = queued(world, 1)
    ends_unseen(world, busy)
    turns = reconcile_in_turn(CLUSTER, busy.name, world.deps, ENDED)
    assert next(turns).after.name == busy.name
    world.store.fail_next(error)
    assert [*turns] == []
    assert world.publisher.take_requests() == [(CLUSTER, first.maker)]


def test_who_got_a_slot_is_requested_although_what_freed_it_fails_in_the_end() -> None:
    world = World()
    busy, *_ = running(world)
    first = queued(world, 1)
    ends_unseen(world, busy)
    world.store.meanwhile(world.publisher.fail_next)  # what is announced after the slot was handed on
    with pytest.raises(Temporary):
        [*reconcile_in_turn(CLUSTER, busy.name, world.deps, ENDED)]
    assert world.publisher.take_requests() == [(CLUSTER, first.maker)]


def test_two_slots_freed_at_the_same_time_go_to_two_slices() -> None:
    world = World()
    one, other, *_ = running(world)
    first, second = queued(world, 1), queued(world, 2)
    world.backend.finish(one.pool)
    world.store.meanwhile(lambda: None, lambda: ends(world, other))
    reconcile(CLUSTER, one.name, world.deps, ENDED)
    assert len(slots(world)) == 5
    assert Counter(slots(world).values())[first.maker] == Counter(slots(world).values())[second.maker] == 1


class Hasty(FakeClock):
    """A clock of a process that never has to wait."""

    def pause(self, at_most: float) -> None:
        raise AssertionError(f"a slot is idle for up to {at_most} s")


def test_a_slot_goes_to_the_next_in_the_queue_at_once_if_others_serve_those_before() -> None:
    world = World()
    busy, *_ = running(world)
    first, second, third = (queued(world, number) for number in range(1, 4))
    world.backend.finish(busy.pool)
    commits: list[Callable[[], object]] = [
        lambda: None,  # the decision
        lambda: world.store.edit_slice(CLUSTER, first.id, note="served"),
        lambda: world.store.edit_slice(CLUSTER, first.id, note="served again"),
        lambda: world.store.edit_slice(CLUSTER, second.id, note="served"),
    ]
    world.store.meanwhile(*commits)
    reconcile(CLUSTER, busy.name, replace(world.deps, clock=Hasty(world.clock.now())), ENDED)
    assert handed_on_to(world, third) is not None


def test_a_freed_slot_goes_to_a_waiting_deletion_before_all_creations() -> None:
    world = World()
    busy, *_ = running(world)
    queued(world, 1)
    deleted = a_record(
        job=a_job(uid=WorkloadUid("uid-ended")),
        slot_awaited=SlotAwaited(operation=PoolOperation.DELETE, attempt=1, since=NOW),
    )
    world.store.put(deleted)
    ends(world, busy)
    assert handed_on_to(world, deleted) is not None
    (slot,) = [stored.value for stored in world.store.slots(CLUSTER) if stored.value.slice_id == deleted.maker]
    assert (slot.operation, slot.capacity_pool) == (PoolOperation.DELETE, None)


def test_a_slot_whose_slice_does_not_use_it_goes_on_to_the_next() -> None:
    world = World()
    busy, *_ = running(world)
    stale, fresh = queued(world, 1), queued(world, 2)
    world.store.put(a_jobset(uid=stale.owner.uid, demand={stale.maker: NOW - 16 * MINUTE}))
    world.store.put(a_heartbeat(received_at=world.clock.now()))
    ends(world, busy)
    assert handed_on_to(world, stale) is not None
    reconcile(CLUSTER, stale.name, world.deps, ENDED)
    assert world.records[stale.name].reason == "DemandStale"
    assert handed_on_to(world, fresh) is not None
    assert len(slots(world)) == 5


def test_a_slice_that_is_held_after_it_got_a_slot_gives_it_up() -> None:
    world = World()
    busy, *_ = running(world)
    held, other = queued(world, 1), queued(world, 2)
    ends(world, busy)
    world.store.edit_slice(CLUSTER, held.id, hold=True)
    reconcile(CLUSTER, held.name, world.deps, ENDED)
    assert world.records[held.name].slots == frozenset()
    assert handed_on_to(world, other) is not None


def test_nothing_is_handed_on_while_the_cluster_is_paused() -> None:
    world = World()
    busy, *_ = running(world)
    waiting = queued(world, 1)
    world.store.put_document(pause_key(CLUSTER), {"message": "maintenance"})
    ends(world, busy)
    assert handed_on_to(world, waiting) is None
    assert len(slots(world)) == 4


def test_a_crash_before_a_freed_slot_is_handed_on_is_made_up_for_by_the_sweep() -> None:
    world = World()
    world.store.put(*(a_slot(number) for number in range(5)))  # of slices that do not exist
    waiting = queued(world, 1)
    sweep(CLUSTER, world.deps)
    assert handed_on_to(world, waiting) is None
    world.clock.advance(world.settings.limits.orders_arrive_within + MINUTE)
    sweep(CLUSTER, world.deps)
    assert handed_on_to(world, waiting) is not None
    assert len(slots(world)) == 1


def test_a_slot_that_was_handed_on_and_not_used_in_time_is_withdrawn_by_the_sweep() -> None:
    world = World()
    busy, *_ = running(world)
    first, second = queued(world, 1), queued(world, 2)
    ends(world, busy)
    world.clock.advance(world.settings.limits.orders_arrive_within + MINUTE)
    sweep(CLUSTER, world.deps)
    assert world.records[first.name].slots == frozenset()
    assert world.records[first.name].next_reconcile_at is not None
    assert handed_on_to(world, second) is not None
    assert len(slots(world)) == 5


def test_a_slot_in_use_is_never_withdrawn() -> None:
    world = World()
    records = running(world)
    world.clock.advance(world.settings.limits.orders_arrive_within + MINUTE)
    before = slots(world)
    sweep(CLUSTER, world.deps)
    assert slots(world) == before
    assert {world.records[record.name].current.slot for record in records} == {*before}


def test_slots_that_a_raised_limit_adds_are_handed_on_by_the_sweep() -> None:
    world = World()
    running(world)
    waiting = queued(world, 1)
    world.store.put(ConcurrencyLimiter(cluster=CLUSTER, limit=5, changed_at=world.clock.now(), shortages={}))
    world.store.put_settings(settings(limits=replace(settings().limits, operations=6)))
    sweep(CLUSTER, world.deps)
    assert handed_on_to(world, waiting) is None
    world.clock.advance(5 * MINUTE)
    sweep(CLUSTER, world.deps)
    assert handed_on_to(world, waiting) is not None


def test_a_slot_and_the_operation_that_takes_it_are_saved_together() -> None:
    world = World()
    running(world, 1)
    taken = [changes for changes in world.store.commits if any(isinstance(each.after, Slot) for each in changes)]
    assert [{type(each.after) for each in changes} >= {Slot, SliceRecord} for changes in taken] == [True]


def test_a_pool_that_nobody_needs_any_more_hands_its_slot_on_until_the_relay_has_answered_anew() -> None:
    world = World()
    busy, *_ = running(world)
    for jobset in world.workloads.values():
        world.ends(jobset)
    for _ in range(2):
        world.deliver()
        world.cluster_lives()
    waiting = queued(world, 1)
    world.backend.finish(busy.pool)
    reconcile(CLUSTER, busy.name, world.deps, ENDED)
    assert world.backend.ordered(Verb.DELETE) == [], "hosts may have joined since it answered"
    assert world.records[busy.name].slots == frozenset()
    assert handed_on_to(world, waiting) is not None


def documents_read_to_hand_on(queue: int) -> int:
    world = World()
    busy, *_ = running(world)
    for number in range(queue):
        queued(world, number)
    world.backend.finish(busy.pool)
    counting = CountingStore(world.store)
    reconcile(CLUSTER, busy.name, replace(world.deps, store=cast("Any", counting)), ENDED)
    assert len(slots(world)) == 5
    return counting.documents


@pytest.mark.slow
def test_the_documents_read_to_hand_on_a_slot_do_not_grow_with_the_queue() -> None:
    assert documents_read_to_hand_on(100) == documents_read_to_hand_on(3) < 30
