"""What a researcher sees when nothing goes wrong, or only the usual."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.builders import CLUSTER, MINUTE, a_request, leaders_wait, self_managed
from tests.world import World
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.node_groups import NodesGone
from tpu_slices.domain.model.observations import Failure, FailureKind
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload


def reasons(world: World, jobset: LiveWorkload, index: int = 0) -> list[Reason]:
    return [transition.reason for transition in world.record(jobset, index).transitions]


def test_a_slice_goes_from_demand_to_ready_to_gone_and_announces_each_transition() -> None:
    world = World()
    jobset = world.jobset_appears()
    world.settle(minutes=10, until=lambda: jobset.bound == {0})
    world.settle(minutes=2)
    world.ends(jobset)
    world.settle(minutes=5)
    assert reasons(world, jobset) == [
        Reason.CREATION_STARTED,
        Reason.HOSTS_JOINING,
        Reason.READY,
        Reason.CLOSING_HOSTS,
        Reason.DELETION_STARTED,
        Reason.RELEASED,
    ]
    announced = {update.transition_number: update.transition.reason for update in world.publisher.updates}
    assert [announced[number] for number in sorted(announced)] == reasons(world, jobset)
    assert world.record(jobset).message == "Released: the JobSet completed."


def test_a_suspended_jobsets_slice_is_released_and_a_resumed_one_gets_another() -> None:
    world = World()
    jobset = world.jobset_appears()
    world.settle(minutes=10, until=lambda: jobset.bound == {0})
    world.suspends(jobset)
    world.settle(minutes=5)
    assert (world.pools, world.record(jobset).phase) == ([], Phase.GONE)
    world.resumes(jobset)
    world.settle(minutes=10, until=lambda: jobset.bound == {0})
    world.settle(minutes=2)
    assert world.record(jobset).phase is Phase.READY
    assert world.pools == [world.record(jobset).pool]
    assert world.record(jobset).attempt == 2


def test_what_is_said_to_be_gone_of_a_slice_is_gone_for_good() -> None:
    world = World(of_cluster=self_managed())
    jobset = world.jobset_appears()
    world.settle(until=lambda: bool(jobset.bound))
    assert gone(world) == []
    world.suspends(jobset)
    world.settle()
    assert gone(world) == [1]
    world.resumes(jobset)
    world.settle(until=lambda: bool(jobset.bound))
    assert (world.pools, gone(world)) == ([world.record(jobset).pool_of(2)], [1])


def gone(world: World) -> list[int]:
    """Return the numbers of the pools that the relay was told to be gone."""
    return [question.attempt for _, question in world.publisher.questions if isinstance(question, NodesGone)]


def test_a_jobset_that_restarts_keeps_its_slice() -> None:
    world = World()
    jobset = world.jobset_appears()
    world.settle(minutes=10, until=lambda: jobset.bound == {0})
    world.settle(minutes=2)
    world.leaves(jobset)
    world.cluster_lives()
    world.settle(minutes=10)
    assert world.record(jobset).phase is Phase.READY
    assert len(world.backend.calls) == 1


def test_a_stockout_is_retried_without_an_operator() -> None:
    world = World()
    jobset = world.jobset_appears()
    world.cluster_lives()
    world.deliver()
    world.backend.fail(world.record(jobset).pool, Failure(FailureKind.STOCKOUT, "[GCE_STOCKOUT] none left."))
    world.settle(minutes=10, until=lambda: jobset.bound == {0})
    world.settle(minutes=2)
    assert Reason.STOCKOUT in reasons(world, jobset)
    assert world.record(jobset).phase is Phase.READY
    assert world.pools == [world.record(jobset).pool]


def test_a_job_displaced_by_its_siblings_leader_gets_the_siblings_slice() -> None:
    """Leader 0 is scheduled to slice 1, because slice 0 is out of stock: the claim of Job 1 then waits for another."""
    world = World()
    jobset = world.jobset_appears(slices=2)
    world.cluster_lives()
    world.deliver()
    first, second = world.record(jobset, 0), world.record(jobset, 1)
    world.backend.finish(second.pool)
    jobset.bound = {0}
    world.binds(jobset, second.maker, 1, index=0)
    world.backend.fail(first.pool, Failure(FailureKind.STOCKOUT, "[GCE_STOCKOUT] none left."))
    world.deliver()
    world.settle(minutes=60, until=lambda: jobset.bound == {0, 1})
    world.settle(minutes=5)
    assert {record.phase for record in world.records.values()} == {Phase.READY}
    assert (world.record(jobset, 0).id, len(world.pools)) == (second.id, 2)


def test_slices_beyond_the_operation_limit_are_queued_and_all_are_served() -> None:
    world = World()
    jobset = world.jobset_appears(slices=12)
    world.cluster_lives()
    world.deliver()
    phases = sorted(record.phase for record in world.records.values())
    assert phases == [Phase.PROVISIONING] * 5 + [Phase.QUEUED] * 7
    world.settle(minutes=30, until=lambda: len(jobset.bound) == 12)
    world.settle(minutes=2)
    assert {record.phase for record in world.records.values()} == {Phase.READY}
    assert world.store.slots(CLUSTER) == ()
    refused = [call for call in world.backend.calls if "RATE" in repr(call.outcome)]
    assert refused == []


def test_an_impossible_request_is_refused_with_the_reason_and_costs_nothing() -> None:
    world = World()
    request = a_request(accelerator="tpu-v5p-slice", topology="3x5x7")
    world.publish(leaders_wait(0, requests=(request,)))
    world.deliver()
    (record,) = world.records.values()
    assert (record.phase, record.next_reconcile_at) == (Phase.REFUSED, None)
    assert "3x5x7" in record.message
    assert [update.transition.reason for update in world.publisher.updates] == [Reason.IMPOSSIBLE_SHAPE]
    assert world.backend.calls == []


def test_a_shape_that_gke_calls_impossible_is_requested_once_however_often_it_is_reported() -> None:
    world = World()
    world.backend.refuse_next_create(Failure(FailureKind.IMPOSSIBLE, "unsupported"))
    jobset = world.jobset_appears()
    world.settle(minutes=130)
    (heartbeat,) = [world.store.heartbeat(CLUSTER)]
    assert heartbeat is not None
    confirmed_at = heartbeat.value.demand_confirmed_at
    assert confirmed_at is not None
    assert world.clock.now() - confirmed_at <= 6 * MINUTE, "its demand is confirmed again and again"
    assert [call.verb for call in world.backend.calls] == [Verb.CREATE]
    assert world.record(jobset).phase is Phase.REFUSED


def test_a_creation_is_cancelled_if_its_jobset_is_deleted_meanwhile() -> None:
    world = World()
    world.backend.takes_cancellations = True
    jobset = world.jobset_appears()
    world.steps()
    pool = world.record(jobset).pool
    world.clock.advance(2 * MINUTE)
    world.ends(jobset, WorkloadState.DELETED)
    world.steps()
    assert [(call.verb, call.pool) for call in world.backend.calls] == [(Verb.CREATE, pool), (Verb.CANCEL, pool)]
    world.settle(minutes=10)
    assert (world.pools, world.record(jobset).phase) == ([], Phase.GONE)


@pytest.mark.parametrize("state", [WorkloadState.COMPLETED, WorkloadState.FAILED, WorkloadState.DELETED])
def test_whatever_its_end_a_jobset_leaves_nothing_behind(state: WorkloadState) -> None:
    world = World()
    jobset = world.jobset_appears(slices=3)
    world.settle(minutes=10, until=lambda: len(jobset.bound) == 3)
    world.ends(jobset, state)
    world.settle(minutes=10)
    assert world.pools == []
    assert {record.phase for record in world.records.values()} == {Phase.GONE}


@hypothesis_settings(max_examples=20)
@given(seed=st.integers(0, 10_000))
def test_messages_may_come_late_twice_and_in_any_order(seed: int) -> None:
    chance = random.Random(seed)
    world = World()
    jobset = world.jobset_appears(slices=2)
    for _ in range(12):
        world.cluster_lives()
        world.shuffle_messages(chance)
        world.settle(minutes=1)
    world.ends(jobset)
    world.shuffle_messages(chance)
    world.settle(minutes=20)
    assert world.pools == []
    assert {record.phase for record in world.records.values()} == {Phase.GONE}
    taken = world.backend.ordered(Verb.CREATE)
    assert len(taken) == len(set(taken))
