"""Reconciling one slice while others write at the same time, or while GKE or the store does not answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.builders import CLUSTER, MINUTE, a_jobset, a_record, settings
from tests.world import World
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.observations import Failure, FailureKind
from tpu_slices.domain.model.questions import HostsQuestion
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import ClaimId
from tpu_slices.flows.looking import Told
from tpu_slices.flows.reconcile import explain, reconcile
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices_simulator.fakes.backend import FakePool, Verb
from tpu_slices_simulator.fuse import Fuse
from tpu_slices_simulator.live import LiveWorkload


def a_world_with_demand() -> tuple[World, LiveWorkload]:
    world = World()
    jobset = world.jobset_appears()
    world.cluster_lives()
    return world, jobset


def a_world_whose_slice_is_created() -> tuple[World, LiveWorkload]:
    world, jobset = a_world_with_demand()
    world.deliver()
    world.operations_end()
    return world, jobset


def edited_meanwhile(world: World, jobset: LiveWorkload) -> None:
    world.store.edit_slice(CLUSTER, world.record(jobset).id, note="seen")


def test_a_slot_is_freed_although_the_record_is_edited_once_its_end_is_saved() -> None:
    world, jobset = a_world_whose_slice_is_created()
    id_ = world.record(jobset).name
    world.store.meanwhile(lambda: None, lambda: edited_meanwhile(world, jobset))
    reconcile(CLUSTER, id_, world.deps, Told(ended=True))
    assert world.store.slots(CLUSTER) == ()
    assert world.record(jobset).note == "seen"


def test_a_decision_on_a_stale_record_is_repeated() -> None:
    world, jobset = a_world_whose_slice_is_created()
    world.store.meanwhile(lambda: edited_meanwhile(world, jobset))
    done = reconcile(CLUSTER, world.record(jobset).name, world.deps)
    assert done is not None
    assert done.before.note == "seen"


class WithoutRequests(World):
    """Where slices are wanted, and nobody is asked to reconcile them."""

    def loses_request(self) -> bool:
        return True


def two_jobsets_wait() -> tuple[World, LiveWorkload, LiveWorkload]:
    world = WithoutRequests()
    jobsets = (world.jobset_appears("llama"), world.jobset_appears("gemma"))
    world.steps()
    return (world, *jobsets)


def reconciled_for(waiting: LiveWorkload, jobset: LiveWorkload, world: World) -> None:
    """Reconcile the slice of a JobSet, as a request does that says whose pods wait."""
    reconcile(CLUSTER, world.record(jobset).name, world.deps, Told(waiting=waiting.ref.owner.uid))


def test_what_a_creation_needs_is_read_with_the_slice_of_who_waits() -> None:
    world, jobset, _ = two_jobsets_wait()
    reconciled_for(jobset, jobset, world)
    assert world.record(jobset).phase is Phase.PROVISIONING
    assert [slot.value.slice_id for slot in world.store.slots(CLUSTER)] == [world.record(jobset).maker]


def test_who_is_said_to_wait_does_not_want_the_slice_of_another() -> None:
    world, jobset, other = two_jobsets_wait()
    world.ends(jobset, WorkloadState.DELETED)
    world.deliver()
    reconciled_for(other, jobset, world)
    assert world.backend.pools == {}


def test_a_request_of_who_waited_that_comes_once_more_creates_nothing_more() -> None:
    world, jobset, _ = two_jobsets_wait()
    reconciled_for(jobset, jobset, world)
    reconciled_for(jobset, jobset, world)
    assert len(world.backend.pools) == len(world.store.slots(CLUSTER)) == 1


def test_a_slot_that_somebody_took_after_it_was_read_with_the_slice_is_left_to_them() -> None:
    world, jobset, other = two_jobsets_wait()
    world.store.meanwhile(lambda: reconciled_for(other, other, world))
    reconciled_for(jobset, jobset, world)
    taken = {slot.value.number: slot.value.slice_id for slot in world.store.slots(CLUSTER)}
    assert {*taken.values()} == {world.record(jobset).maker, world.record(other).maker}


class Stalls(Fuse):
    """An instance that stands still after its first side effect, while something happens."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        super().__init__()
        self._meanwhile = meanwhile

    def burn(self) -> None:
        self.burnt += 1
        if self.burnt == 1:
            self._meanwhile()


@pytest.mark.parametrize(("seconds", "acts"), [(60, True), (61, False)])
def test_what_was_remembered_before_a_stall_is_decided_anew_after_it(seconds: int, acts: bool) -> None:
    def meanwhile() -> None:
        world.clock.advance(timedelta(seconds=seconds))
        world.store.put(a_jobset(state=WorkloadState.COMPLETED))

    world, record = World(Stalls(meanwhile)), a_record()
    world.store.put(a_jobset(), record)
    reconcile(CLUSTER, record.name, world.deps)
    assert world.backend.ordered(Verb.CREATE) == ([record.pool] if acts else [])


def a_world_with_a_ready_slice() -> tuple[World, LiveWorkload]:
    world, jobset = a_world_with_demand()
    world.settle(minutes=10, until=lambda: jobset.bound == {0})
    world.settle(minutes=2)
    return world, jobset


def asked_about_hosts(world: World) -> list[HostsQuestion]:
    return [asked for _, asked in world.publisher.questions if isinstance(asked, HostsQuestion)]


def test_a_requested_release_is_carried_out_once_the_relay_has_answered() -> None:
    world, jobset = a_world_with_a_ready_slice()
    world.store.edit_slice(CLUSTER, world.record(jobset).id, release_requested=True)
    reconcile(CLUSTER, world.record(jobset).name, world.deps)
    (question,) = asked_about_hosts(world)
    assert (question.attempt, question.number, question.close) == (1, 1, True)
    assert world.backend.ordered(Verb.DELETE) == []
    world.steps()
    assert world.backend.ordered(Verb.DELETE) == [world.backend.ordered(Verb.CREATE)[0]]


def test_hosts_that_are_needed_again_are_opened() -> None:
    world, jobset = a_world_with_a_ready_slice()
    world.suspends(jobset)
    world.deliver()
    world.resumes(jobset)
    world.cluster_lives()
    world.deliver()
    assert [question.close for question in asked_about_hosts(world)] == [True, False]
    world.settle(minutes=5)
    assert (world.record(jobset).phase, world.record(jobset).attempt) == (Phase.READY, 1)
    assert world.backend.ordered(Verb.DELETE) == []


@pytest.mark.parametrize("cancels", [True, False])
def test_a_creation_that_nobody_needs_any_more_is_cancelled_once(cancels: bool) -> None:
    world, jobset = a_world_with_demand()
    world.backend.takes_cancellations = cancels
    world.deliver()
    world.ends(jobset)
    for _ in range(5):
        world.steps()
        world.clock.advance(MINUTE)
        reconcile(CLUSTER, world.record(jobset).name, world.deps)
    assert world.backend.ordered(Verb.CANCEL) == [world.backend.ordered(Verb.CREATE)[0]]


def test_a_slice_on_hold_is_not_deleted() -> None:
    world, jobset = a_world_with_demand()
    world.settle(minutes=10, until=lambda: jobset.bound == {0})
    world.store.edit_slice(CLUSTER, world.record(jobset).id, hold=True)
    world.ends(jobset)
    world.settle(minutes=10)
    assert len(world.pools) == 1
    assert world.backend.ordered(Verb.DELETE) == []


def a_world_whose_creation_nobody_needs_before_gke_lists_the_pool(
    *, cancels: bool = False
) -> tuple[World, LiveWorkload, FakePool]:
    """GKE may take an order before it lists the pool: until then it has only the operation."""
    world, jobset = a_world_with_demand()
    world.backend.takes_cancellations = cancels
    world.deliver()
    unlisted = world.backend.pools.pop(world.record(jobset).pool)
    world.ends(jobset)
    world.settle(minutes=5)
    return world, jobset, unlisted


def test_a_creation_that_nobody_needs_any_more_is_followed_by_its_operation() -> None:
    world, jobset, unlisted = a_world_whose_creation_nobody_needs_before_gke_lists_the_pool()
    assert world.record(jobset).phase is Phase.RELEASING
    world.backend.pools[unlisted.name] = unlisted
    world.settle(minutes=20)
    assert (world.pools, world.record(jobset).phase) == ([], Phase.GONE)


def test_a_creation_that_was_cancelled_is_followed_until_it_has_ended() -> None:
    world, jobset, unlisted = a_world_whose_creation_nobody_needs_before_gke_lists_the_pool(cancels=True)
    assert world.backend.ordered(Verb.CANCEL) == [unlisted.name]
    world.settle(minutes=10)
    assert world.record(jobset).phase is Phase.RELEASING
    world.backend.pools[unlisted.name] = unlisted
    world.settle(minutes=20)
    assert (world.pools, world.record(jobset).phase) == ([], Phase.GONE)


def test_a_slice_that_nobody_needs_any_more_is_gone_once_its_creation_failed_and_left_no_pool() -> None:
    world, jobset, unlisted = a_world_whose_creation_nobody_needs_before_gke_lists_the_pool()
    world.backend.pools[unlisted.name] = unlisted
    world.backend.fail(unlisted.name, Failure(FailureKind.STOCKOUT, "No capacity."))
    world.backend.vanish(unlisted.name)
    world.settle(minutes=3)
    assert (world.record(jobset).phase, world.store.slots(CLUSTER)) == (Phase.GONE, ())


def test_an_order_whose_answer_is_lost_is_found_again_by_name() -> None:
    world, jobset = a_world_with_demand()
    world.backend.lose_next_answer()
    world.settle(minutes=10, until=lambda: jobset.bound == {0})
    world.settle(minutes=2)
    assert world.record(jobset).phase is Phase.READY
    assert world.pools == [world.record(jobset).pool]


def test_a_refusal_for_too_many_operations_halves_the_limit() -> None:
    world, jobset = a_world_with_demand()
    world.backend.refuse_next_create(Failure(FailureKind.RATE, "Too many operations."))
    world.deliver()
    limiter = world.store.limiter(CLUSTER)
    assert limiter is not None
    assert limiter.value.limit == 2
    assert (world.record(jobset).phase, world.record(jobset).attempt) == (Phase.WAITING, 1)
    assert world.store.slots(CLUSTER) == ()


def test_a_blocked_slice_has_a_message_and_is_retried_after_the_settings_change() -> None:
    world, jobset = a_world_with_demand()
    world.backend.refuse_next_create(Failure(FailureKind.CONFIGURATION, "no such service account: x@y."))
    world.deliver()
    assert world.record(jobset).phase is Phase.BLOCKED
    assert "x@y" in world.record(jobset).message
    world.store.put_settings(settings(pools=replace(settings().pools, service_account="nodes@demo.iam")))
    world.settle(minutes=20, until=lambda: jobset.bound == {0})
    order = world.backend.pools[world.record(jobset).pool].order
    assert order is not None
    assert order.settings.service_account == "nodes@demo.iam"


def test_an_unreadable_gke_changes_no_phase_and_the_slice_is_reconciled_again() -> None:
    world, jobset = a_world_whose_slice_is_created()
    before = world.record(jobset)
    world.backend.hide()
    done = reconcile(CLUSTER, before.name, world.deps, Told(ended=True))
    assert done is not None
    assert (done.after.phase, done.after.transitions) == (before.phase, before.transitions)
    assert done.after.next_reconcile_at is not None


def test_explaining_changes_nothing() -> None:
    world, jobset = a_world_with_demand()
    world.deliver()
    commits, calls = len(world.store.commits), len(world.backend.calls)
    explained = explain(CLUSTER, world.record(jobset).name, world.deps)
    assert explained is not None
    assert explained.decision.reason == "Creating"
    assert (len(world.store.commits), len(world.backend.calls)) == (commits, calls)


def test_reconciling_an_unknown_slice_does_nothing() -> None:
    world = World()
    assert reconcile(CLUSTER, ClaimId("tpu-unknown-aaaaaaaaaaaaa"), world.deps) is None


def test_a_slice_of_an_unknown_cluster_is_a_permanent_error() -> None:
    world = World()
    record = a_record()
    with pytest.raises(Permanent, match="no settings"):
        reconcile("elsewhere", record.name, world.deps)  # type: ignore[arg-type]  # a cluster id is only a string


def test_an_unavailable_store_is_a_temporary_error() -> None:
    world, jobset = a_world_whose_slice_is_created()
    id_ = world.record(jobset).name
    world.store.unavailable = True
    with pytest.raises(Temporary):
        reconcile(CLUSTER, id_, world.deps)
