"""A slice that no claim has is given back to the claim that it was made for, if that needs it."""

from __future__ import annotations

from functools import partial

import pytest

from tests.builders import (
    CLUSTER,
    NOW,
    a_jobset,
    a_record,
    a_slot,
    had,
    hosts_changed,
    some_hosts,
    with_fields,
)
from tests.domain.cases import OURS, OWN, going, requested, was_seen, with_hosts
from tests.flows.queueing import handed_on_to, queued, running, slots
from tests.flows.swept import requested as taken_requests
from tests.flows.unclaimed import a_world, committed, stands
from tests.world import World
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.observations import Failure, FailureKind
from tpu_slices.domain.model.questions import HostsQuestion
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import slice_id
from tpu_slices.domain.records.awaited import PoolOperation, SlotAwaited
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows.receive import receive
from tpu_slices.flows.reconcile import reconcile, reconcile_in_turn
from tpu_slices.wire.cluster_settings import pause_key
from tpu_slices_simulator.fakes.backend import Verb

STOCKOUT = Failure(FailureKind.STOCKOUT, "[GCE_STOCKOUT] not enough resources")


# one that its claim needs is given back

NEXT = a_record(attempt=2, earlier=(1,))
"""A leader waits for it, and nothing was requested."""
FREE = going(fits=True, seen=was_seen(OURS))
WITH_OWN = with_fields(FREE, hosts=some_hosts(occupants=(OWN,)), fits=False)


@pytest.mark.parametrize("slice_", [WITH_OWN, FREE], ids=["its Job is on it", "it fits, and the claim waits"])
def test_a_slice_is_its_claims_again_in_the_commit_that_removes_the_next_one(slice_: SliceRecord) -> None:
    world = a_world(NEXT, slice_)
    assert reconcile(CLUSTER, slice_.name, world.deps) is None
    [changed] = committed(world)
    after = changed.pop(slice_.id)
    assert (changed, after) == ({NEXT.id: None}, world.records[NEXT.name])
    assert after is not None
    assert (after.attempt, had(after), after.wanted, after.goes) == (1, (), True, False)
    assert after.current.hosts.occupants == slice_.current.hosts.occupants
    assert {*world.records} == {NEXT.name}
    assert taken_requests(world) == {NEXT.name}
    assert world.backend.calls == []


def test_a_slice_that_is_given_back_serves_its_claim_at_once() -> None:
    world = a_world(NEXT, FREE)
    stands(world, FREE)
    [done] = reconcile_in_turn(CLUSTER, FREE.name, world.deps)
    assert (done.after.name, done.after.attempt) == (NEXT.name, 1)
    assert taken_requests(world) == set()
    (question,) = [asked for _, asked in world.publisher.questions if isinstance(asked, HostsQuestion)]
    assert (question.slice_id, question.attempt, question.close) == (NEXT.name, 1, False)
    assert (world.backend.ordered(Verb.CREATE), world.backend.ordered(Verb.DELETE)) == ([], [])


def test_a_slice_is_given_back_with_the_report_that_its_job_is_there() -> None:
    world = a_world(NEXT, with_fields(WITH_OWN, hosts=some_hosts()))
    receive(hosts_changed(occupants=(OWN,), sequence=2), CLUSTER, world.deps)
    assert world.publisher.requests == [(CLUSTER, WITH_OWN.name)]
    reconcile(CLUSTER, WITH_OWN.name, world.deps)
    assert {id_: record.attempt for id_, record in world.records.items()} == {NEXT.name: 1}
    assert world.records[NEXT.name].current.hosts.occupants == (OWN,)


def test_what_the_claim_had_meanwhile_goes_by_itself_with_its_slot() -> None:
    claim = requested(attempt=2, earlier=(1,), slot=3)
    world = a_world(claim, WITH_OWN)
    world.store.put(a_slot(3, slice_id=claim.name, attempt=2))
    reconcile(CLUSTER, WITH_OWN.name, world.deps)
    [changed] = committed(world)
    meanwhile = slice_id(claim.maker, 2)
    assert {*changed} == {WITH_OWN.id, meanwhile}
    assert {id_: (record.attempt, had(record)) for id_, record in world.records.items()} == {
        claim.name: (1, (2,)),
        meanwhile: (2, ()),
    }
    going_by_itself = world.records[meanwhile]
    assert (going_by_itself.wanted, going_by_itself.phase) == (False, Phase.RELEASING)
    assert going_by_itself.next_reconcile_at is not None
    assert (going_by_itself.slots, slots(world)) == (frozenset({3}), {3: claim.name})


def test_a_slot_that_the_claim_needs_no_more_is_handed_on() -> None:
    world = World()
    running(world, 4)
    awaited = SlotAwaited(operation=PoolOperation.CREATE, attempt=2, since=NOW, number=4)
    claim = with_fields(NEXT, slot_awaited=awaited)
    world.store.put(claim, FREE, a_jobset(), a_slot(4, slice_id=claim.name, attempt=2))
    first = queued(world, 1)
    taken_requests(world)
    reconcile(CLUSTER, FREE.name, world.deps)
    assert world.records[claim.name].slots == frozenset()
    assert slots(world)[4] == first.name
    assert (handed_on_to(world, first), taken_requests(world)) == (4, {claim.name, first.name})


@pytest.mark.parametrize("slice_", [WITH_OWN, FREE], ids=["its Job is on it", "it fits, and the claim waits"])
@pytest.mark.parametrize("held", ["the slice", "the claim", "the cluster"])
def test_a_slice_to_which_nothing_is_to_happen_is_not_given_back(slice_: SliceRecord, held: str) -> None:
    world = a_world(NEXT, slice_)
    stands(world, slice_)
    if held == "the cluster":
        world.store.put_document(pause_key(CLUSTER), {"message": "maintenance"})
    else:
        world.store.edit_slice(CLUSTER, slice_.id if held == "the slice" else NEXT.id, hold=True)
    reconcile(CLUSTER, slice_.name, world.deps)
    assert {id_: record.attempt for id_, record in world.records.items()} == {NEXT.name: 2, slice_.name: 1}
    assert taken_requests(world) == set()


@pytest.mark.parametrize("held", ["the slice", "the cluster"])
def test_a_slice_that_was_held_is_given_back_once_it_is_not(held: str) -> None:
    world = a_world(NEXT, WITH_OWN)
    stands(world, WITH_OWN)
    paused = pause_key(CLUSTER)
    if held == "the cluster":
        world.store.put_document(paused, {"message": "maintenance"})
    else:
        world.store.edit_slice(CLUSTER, WITH_OWN.id, hold=True)
    reconcile(CLUSTER, WITH_OWN.name, world.deps)
    if held == "the cluster":
        world.store.remove_document(paused)
    else:
        world.store.edit_slice(CLUSTER, WITH_OWN.id, hold=False)
    reconcile(CLUSTER, WITH_OWN.name, world.deps)
    assert {id_: record.attempt for id_, record in world.records.items()} == {NEXT.name: 1}


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(None, id="it has no record"),
        pytest.param(with_fields(NEXT, release_requested=True), id="an operator releases it"),
        pytest.param(with_hosts(requested(attempt=2, earlier=(1,)), occupants=(OWN,)), id="its Job is on another"),
    ],
)
def test_a_slice_is_not_given_back_to_a_claim_that_does_not_need_it(claim: SliceRecord | None) -> None:
    world = a_world(*([] if claim is None else [claim]), WITH_OWN)
    stands(world, WITH_OWN)
    done = reconcile(CLUSTER, WITH_OWN.name, world.deps)
    assert done is not None
    assert (done.after.name, done.after.phase) == (WITH_OWN.name, Phase.RELEASING)
    assert WITH_OWN.name in world.records


def test_a_slice_is_not_given_back_to_a_workload_that_has_ended() -> None:
    world = a_world(NEXT, WITH_OWN, state=WorkloadState.COMPLETED)
    stands(world, WITH_OWN)
    reconcile(CLUSTER, WITH_OWN.name, world.deps)
    assert {id_: record.attempt for id_, record in world.records.items()} == {NEXT.name: 2, WITH_OWN.name: 1}


def test_a_claim_that_is_edited_while_it_gets_a_slice_back_keeps_the_edit() -> None:
    world = a_world(NEXT, WITH_OWN)
    world.store.meanwhile(partial(world.store.edit_slice, CLUSTER, NEXT.id, note="seen"))
    reconcile(CLUSTER, WITH_OWN.name, world.deps)
    assert {id_: (record.attempt, record.note) for id_, record in world.records.items()} == {NEXT.name: (1, "seen")}


def test_a_slice_on_which_its_job_comes_while_the_next_one_is_reconciled_is_had_by_one_of_the_two() -> None:
    """The claim orders the next slice while it is given the last one back: whoever writes later decides anew."""
    world = a_world(NEXT, WITH_OWN)
    world.store.meanwhile(partial(reconcile, CLUSTER, WITH_OWN.name, world.deps))
    stands(world, WITH_OWN)
    reconcile(CLUSTER, NEXT.name, world.deps)
    assert {id_: record.attempt for id_, record in world.records.items()} == {NEXT.name: 1}
    assert (world.backend.ordered(Verb.CREATE), world.store.slots(CLUSTER)) == ([], ())
