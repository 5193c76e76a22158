"""Slices that no claim has are forgotten once they are gone, and found by their number."""

from __future__ import annotations

from functools import partial

import pytest

from tests.builders import (
    CLUSTER,
    MINUTE,
    NOW,
    a_job,
    a_jobset,
    a_record,
    a_slot,
    had,
    leaders_wait,
    with_fields,
)
from tests.domain.cases import HOUR, going
from tests.flows.queueing import handed_on_to, queued, running, slots
from tests.flows.swept import being_created, make_unreadable, repair, serving
from tests.flows.swept import requested as taken_requests
from tests.flows.unclaimed import a_world, committed, stands
from tests.world import ENDED, World
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.observations import Failure, FailureKind
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import WorkloadUid, claim_id, slice_id
from tpu_slices.domain.reconciling.inventory import INVENTORY_CHECK_EVERY
from tpu_slices.domain.records.awaited import PoolOperation
from tpu_slices.domain.records.slices import Desire, SliceRecord
from tpu_slices.flows.looking import Told
from tpu_slices.flows.receive import receive
from tpu_slices.flows.reconcile import reconcile, reconcile_in_turn
from tpu_slices.flows.sweep import sweep
from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.documents import key_of
from tpu_slices_simulator.fakes.backend import Verb

STOCKOUT = Failure(FailureKind.STOCKOUT, "[GCE_STOCKOUT] not enough resources")


# one that is gone is forgotten

WAITS = a_record(attempt=3, earlier=(1, 2), next_reconcile_at=NOW + HOUR)
GONE = going(attempt=2)
"""Its pool is nowhere."""


def test_a_slice_that_is_gone_leaves_its_claim_in_the_commit_that_forgets_it() -> None:
    world = a_world(WAITS, GONE)
    done = reconcile(CLUSTER, GONE.name, world.deps)
    assert done is not None
    assert (done.before, done.after.phase) == (GONE, Phase.GONE)
    [[*changed]] = committed(world)
    assert {*changed} == {WAITS.id, GONE.id}
    assert world.records == {WAITS.name: with_fields(WAITS, earlier=(1,))}


def test_a_claim_that_is_needed_is_not_looked_at_for_that() -> None:
    world = a_world(WAITS, GONE)
    assert [each.after.name for each in reconcile_in_turn(CLUSTER, GONE.name, world.deps)] == [GONE.name]
    assert (world.records[WAITS.name].next_reconcile_at, taken_requests(world)) == (NOW + HOUR, set())


def unneeded(**changes: object) -> SliceRecord:
    """Return a claim that nobody needs any more, and whose last slice is gone but for one before."""
    fields = {"attempt": 3, "desire": Desire.ABSENT, "phase": Phase.RELEASING, "next_reconcile_at": None}
    return a_record(**{**fields, "earlier": (2,), **changes})


def test_a_claim_that_is_not_needed_is_gone_once_the_last_slice_that_it_had_is() -> None:
    claim = unneeded()
    world = a_world(claim, GONE, state=WorkloadState.COMPLETED)
    reconcile(CLUSTER, GONE.name, world.deps)
    assert world.records[claim.name].next_reconcile_at is not None
    assert world.publisher.requests == [(CLUSTER, claim.name)]
    world.deliver()
    assert {id_: record.phase for id_, record in world.records.items()} == {claim.name: Phase.GONE}


def test_a_claim_that_is_not_needed_is_not_gone_while_another_slice_stands_that_it_had() -> None:
    claim = unneeded(earlier=(1, 2))
    world = a_world(claim, GONE, state=WorkloadState.COMPLETED)
    reconcile(CLUSTER, GONE.name, world.deps)
    world.deliver()
    assert (world.records[claim.name].phase, had(world.records[claim.name])) == (Phase.RELEASING, (1,))


def test_a_claim_that_is_not_needed_is_reconciled_in_turn() -> None:
    claim = unneeded()
    world = a_world(claim, GONE, state=WorkloadState.COMPLETED)
    done = [*reconcile_in_turn(CLUSTER, GONE.name, world.deps)]
    assert [(each.after.name, each.after.phase) for each in done] == [(GONE.name, Phase.GONE), (claim.name, Phase.GONE)]


def test_a_slice_that_is_gone_is_forgotten_although_its_claim_has_no_record() -> None:
    world = a_world(GONE)
    assert reconcile(CLUSTER, GONE.name, world.deps) is not None
    assert (world.records, taken_requests(world)) == ({}, set())


def test_a_claim_that_does_not_know_of_a_slice_that_is_gone_is_left_as_it_is() -> None:
    claim = with_fields(WAITS, earlier=(1,))
    world = a_world(claim, GONE)
    reconcile(CLUSTER, GONE.name, world.deps)
    assert (committed(world), world.records) == ([{GONE.id: None}], {claim.name: claim})


def test_a_slice_is_not_forgotten_while_the_record_of_its_claim_cannot_be_read() -> None:
    world = a_world(WAITS, GONE)
    make_unreadable(world, WAITS)
    with pytest.raises(Permanent, match="schema: 99"):
        reconcile(CLUSTER, GONE.name, world.deps)
    assert world.records == {GONE.name: GONE}
    repair(world, WAITS.id)
    reconcile(CLUSTER, GONE.name, world.deps)
    assert world.records == {WAITS.name: with_fields(WAITS, earlier=(1,))}


def test_a_claim_that_is_edited_while_its_slice_is_forgotten_keeps_the_edit() -> None:
    world = a_world(WAITS, GONE)
    world.store.meanwhile(partial(world.store.edit_slice, CLUSTER, WAITS.id, note="seen"))
    reconcile(CLUSTER, GONE.name, world.deps)
    assert world.records == {WAITS.name: with_fields(WAITS, earlier=(1,), note="seen")}


def test_the_slot_of_a_slice_that_is_gone_is_handed_on() -> None:
    world = World()
    running(world, 4)
    deleted = going(slot=4, delete_requested_at=NOW - 2 * MINUTE)
    world.store.put(deleted, a_slot(4, slice_id=deleted.maker, operation=PoolOperation.DELETE, capacity_pool=None))
    first = queued(world, 1)
    taken_requests(world)
    reconcile(CLUSTER, deleted.name, world.deps, Told(ended=True, slots=True))
    assert deleted.name not in world.records
    assert slots(world)[4] == first.name
    assert (handed_on_to(world, first), taken_requests(world)) == (4, {first.name})


def test_what_happens_to_a_slice_that_no_claim_has_is_announced_to_nobody() -> None:
    slice_ = GONE.transitioned(NOW - MINUTE, Reason.CLOSING_HOSTS, "Releasing.")
    world = a_world(WAITS, slice_)
    stands(world, slice_)
    reconcile(CLUSTER, slice_.name, world.deps)
    assert [each.reason for each in world.records[slice_.name].transitions[1:]] == [Reason.DELETION_STARTED]
    world.backend.finish(slice_.pool)
    reconcile(CLUSTER, slice_.name, world.deps, ENDED)
    assert slice_.name not in world.records
    assert world.publisher.updates == []


def test_a_slice_that_failed_has_a_record_of_its_own_until_it_is_gone() -> None:
    world = World()
    jobset = world.jobset_appears()
    world.cluster_lives()
    world.deliver()
    claim = world.record(jobset)
    world.backend.fail(claim.pool, STOCKOUT)
    world.deliver()
    failed = world.records[slice_id(claim.maker, 1)]
    assert (failed.pool, failed.wanted, failed.phase) == (claim.pool, False, Phase.RELEASING)
    assert (world.record(jobset).reason, had(world.record(jobset))) == (Reason.STOCKOUT, (1,))
    world.settle(minutes=20, until=lambda: jobset.bound == {0})
    world.settle(minutes=5)
    assert {*world.records} == {claim.name}
    assert (world.record(jobset).attempt, had(world.record(jobset))) == (2, ())
    assert world.pools == [world.record(jobset).pool]
    assert world.store.slots(CLUSTER) == ()


# what the sweep makes up for


def failed(world: World) -> tuple[SliceRecord, SliceRecord]:
    """Let a creation fail, and its pool be deleted; return the claim, which waits, and the slice that it had."""
    jobset = being_created(world, slices=1)
    claim = world.record(jobset)
    world.backend.refuses_creations = STOCKOUT
    world.backend.fail(claim.pool, STOCKOUT)
    world.steps()
    slice_ = world.records[slice_id(claim.maker, 1)]
    assert (slice_.reason, world.backend.ordered(Verb.DELETE)) == (Reason.DELETION_STARTED, [claim.pool])
    return world.record(jobset), slice_


def test_the_slot_of_a_slice_that_no_claim_has_is_its_own_until_its_deletion_has_ended() -> None:
    world = World()
    claim, slice_ = failed(world)
    world.clock.advance(world.settings.limits.orders_arrive_within)
    world.store.put(with_fields(slice_, next_reconcile_at=None))
    taken_requests(world)
    sweep(CLUSTER, world.deps)
    assert (slots(world), slice_.name in taken_requests(world)) == ({slice_.current.slot: claim.name}, False)

    world.backend.finish(slice_.pool)
    world.backend.ended.clear()
    sweep(CLUSTER, world.deps)
    assert slice_.name in taken_requests(world)
    reconcile(CLUSTER, slice_.name, world.deps, ENDED)
    assert (slice_.name in world.records, slots(world)) == (False, {})


def test_a_pool_of_a_claim_that_has_another_one_gets_a_record_of_its_own_and_is_deleted() -> None:
    world = World()
    jobset = serving(world)
    claim = world.record(jobset)
    stands(world, with_fields(claim, attempt=7))
    world.clock.advance(INVENTORY_CHECK_EVERY)
    sweep(CLUSTER, world.deps)
    stray = world.records[slice_id(claim.maker, 7)]
    assert (stray.attempt, stray.pool, stray.wanted) == (7, claim.pool_of(7), False)
    assert (CLUSTER, stray.name) in world.publisher.requests
    world.settle(minutes=30)
    assert ({*world.records}, world.pools) == ({claim.name}, [claim.pool])
    assert jobset.bound == {0}


def test_the_lost_record_of_a_claim_is_made_anew_with_the_slices_that_it_had_and_with_the_next_number() -> None:
    world = World()
    claim, slice_ = failed(world)
    world.store.remove_document(key_of(claim))
    world.clock.advance(INVENTORY_CHECK_EVERY)
    sweep(CLUSTER, world.deps)
    found = world.records[claim.name]
    assert (found.attempt, had(found), found.current.create_requested_at) == (2, (slice_.attempt,), None)


def test_the_first_slice_of_a_claim_that_was_forgotten_has_a_name_that_nothing_has() -> None:
    """Another claim still has what was made for it first, and what it had itself was on record for as long as told."""
    world = World()
    other = a_job(name="gemma", uid=WorkloadUid("uid-gemma"))
    taken = [a_record(job=other, first_job=a_job()), with_fields(going(attempt=2), claimed_by=None)]
    world.store.put(*taken, a_jobset(demand={}))
    receive(leaders_wait(), CLUSTER, world.deps)
    made = world.records[claim_id(a_job())]
    assert (made.attempt, made.claim.tried) == (3, 3)
    assert {record.id for record in taken} < {record.id for record in world.records.values()}
