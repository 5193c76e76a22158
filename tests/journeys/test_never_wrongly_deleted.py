"""The worst bug there could be: a slice deleted under a live Job, or a pool deleted that is not ours."""

from __future__ import annotations

from tests.builders import CLUSTER, MINUTE, NOW, a_jobset_ref, a_request, a_slot, leaders_wait, settings
from tests.domain.asking import FLEX
from tests.world import World
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.facts import HostsChanged, Pinning, WorkloadChanged, WorkloadState
from tpu_slices.domain.model.observations import Creating
from tpu_slices.domain.model.questions import Question
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import PoolName, WorkloadUid, pool_name
from tpu_slices.domain.planning.host_labels import NODE_POOL
from tpu_slices_simulator.fakes.backend import Verb


def a_world_with_a_ready_slice() -> tuple[World, PoolName]:
    world = World()
    jobset = world.jobset_appears(request=a_request(exclusive_topology=NODE_POOL))
    world.settle(minutes=10, until=lambda: jobset.bound == {0})
    world.settle(minutes=2)
    record = world.record(jobset)
    assert record.phase is Phase.READY
    return world, record.pool


def test_a_late_deletion_of_an_earlier_attempt_does_not_reach_the_next_one() -> None:
    world, pool = a_world_with_a_ready_slice()
    (jobset,) = world.workloads.values()
    first = world.backend.pools[pool].order
    assert first is not None
    world.suspends(jobset)
    world.settle(minutes=5, until=lambda: world.pools == [])
    world.resumes(jobset)
    world.settle(minutes=10, until=lambda: jobset.bound == {0})
    world.backend.delete(first)
    world.settle(minutes=5)
    assert world.record(jobset).phase is Phase.READY
    assert world.pools == [pool_name(world.record(jobset).maker, first.attempt + 1)]


def test_a_pool_stays_while_another_jobset_occupies_it_and_is_deleted_when_that_ends() -> None:
    world, pool = a_world_with_a_ready_slice()
    owner = next(iter(world.workloads.values()))
    guest = world.guest_appears()
    world.binds(guest, world.record(owner).maker, 1)
    world.ends(owner)
    world.settle(minutes=30)
    assert world.pools == [pool]
    assert (world.record(owner).phase, world.record(guest).phase) == (Phase.GONE, Phase.READY)
    world.ends(guest)
    world.settle(minutes=10)
    assert world.pools == []
    assert world.record(guest).phase is Phase.GONE


def test_a_slice_occupied_by_another_jobset_is_replaced_and_not_deleted() -> None:
    world, pool = a_world_with_a_ready_slice()
    world.cluster.pinning = Pinning.NOTHING
    owner = next(iter(world.workloads.values()))
    guest = world.guest_appears()
    world.binds(guest, world.record(owner).maker, 1)
    world.leaves(owner)
    world.settle(minutes=20, until=lambda: owner.bound == {0})
    assert world.pools == sorted([pool, pool_name(world.record(owner).maker, 2)])


def test_an_unowned_pool_under_our_name_is_never_touched() -> None:
    world = World()
    jobset = world.jobset_appears()
    world.cluster_lives()
    world.deliver()
    pool = world.record(jobset).pool
    world.backend.steal(pool)
    world.settle(minutes=15)
    assert (world.record(jobset).phase, world.record(jobset).attempt) == (Phase.READY, 2)
    world.ends(jobset)
    world.settle(minutes=10)
    assert world.pools == [pool]
    assert world.record(jobset).phase is Phase.GONE
    assert pool not in world.backend.ordered(Verb.DELETE)


def test_a_recreated_jobset_keeps_its_slice_when_the_old_one_of_its_name_ends() -> None:
    world, _ = a_world_with_a_ready_slice()
    old = next(iter(world.workloads.values()))
    new = world.jobset_appears(old.ref.owner.name)
    world.settle(minutes=10, until=lambda: new.bound == {0})
    world.ends(old, WorkloadState.DELETED)
    world.settle(minutes=10)
    assert world.record(old).phase is Phase.GONE
    assert world.record(new).phase is Phase.READY
    assert world.pools == [world.record(new).pool]


def test_demand_that_arrives_after_the_jobsets_end_creates_nothing() -> None:
    world = World()
    ref = a_jobset_ref()
    world.publish(WorkloadChanged(workload=ref, state=WorkloadState.DELETED))
    world.publish(leaders_wait(0, 1, workload=ref))
    world.settle(minutes=10)
    assert world.backend.calls == []
    assert world.records == {}


def test_a_dead_relay_deletes_nothing_and_creates_nothing() -> None:
    world, pool = a_world_with_a_ready_slice()
    (jobset,) = world.workloads.values()
    waiting = world.jobset_appears("late")
    world.cluster_lives()
    world.deliver()
    world.relay_is_dead = True
    world.ends_unreported(jobset)
    created = len(world.backend.ordered(Verb.CREATE))
    world.settle(minutes=180)
    assert pool in world.pools
    assert world.backend.ordered(Verb.DELETE) == []
    assert len(world.backend.ordered(Verb.CREATE)) == created
    assert world.record(waiting).phase in {Phase.PROVISIONING, Phase.QUEUED}


def test_demand_that_is_no_longer_confirmed_creates_nothing() -> None:
    world = World()
    for number in range(5):
        world.store.put(a_slot(number, taken_at=NOW + 28 * MINUTE))
    jobset = world.jobset_appears()
    world.cluster_lives()
    world.deliver()
    assert world.record(jobset).reason == "OperationLimit"
    world.relay_is_dead = True
    world.settle(minutes=60)
    assert world.store.slots(CLUSTER) == ()
    assert world.backend.ordered(Verb.CREATE) == []
    assert world.record(jobset).reason == "DemandStale"


def test_jobsets_missing_from_a_heartbeat_are_asked_about_before_any_deletion() -> None:
    world, pool = a_world_with_a_ready_slice()
    (jobset,) = world.workloads.values()
    world.relay_lists_nothing = True
    world.settle(minutes=60)
    asked = [each.owner for _, each in world.publisher.questions if isinstance(each, Question)]
    assert {owner.uid for owner in asked} == {jobset.ref.owner.uid}
    assert world.pools == [pool]
    assert world.record(jobset).phase is Phase.READY


def test_a_jobset_that_ended_unreported_is_asked_about_and_its_slice_released() -> None:
    world, _ = a_world_with_a_ready_slice()
    (jobset,) = world.workloads.values()
    world.ends_unreported(jobset)
    world.settle(minutes=60)
    assert world.pools == []
    assert world.record(jobset).desire_message == "the JobSet no longer exists"


def test_a_cluster_that_cannot_be_read_does_not_count_as_empty() -> None:
    world, pool = a_world_with_a_ready_slice()
    (jobset,) = world.workloads.values()
    world.store.put_settings(settings(gke_id="another-cluster"))
    kept = world.backend.pools.pop(pool)
    world.settle(minutes=60)
    world.backend.pools[pool] = kept
    assert world.record(jobset).phase is Phase.READY
    assert [call.verb for call in world.backend.calls] == [Verb.CREATE]


def test_a_pool_without_a_record_is_kept_until_its_jobset_ends() -> None:
    world, pool = a_world_with_a_ready_slice()
    (jobset,) = world.workloads.values()
    world.loses_its_records()
    world.settle(minutes=60)
    assert world.pools == [pool]
    world.ends_unreported(jobset)
    world.settle(minutes=60)
    assert world.pools == []


def test_leaders_with_forged_job_indexes_create_nothing() -> None:
    world = World()
    world.publish(leaders_wait(4, 99, -1))
    world.settle(minutes=5)
    assert world.records == {}


def test_the_end_of_a_forged_uid_releases_nobodys_slice() -> None:
    world, pool = a_world_with_a_ready_slice()
    world.publish(WorkloadChanged(workload=a_jobset_ref(uid=WorkloadUid("uid-forged")), state=WorkloadState.DELETED))
    world.settle(minutes=10)
    assert world.pools == [pool]


def test_a_deletion_is_repeated_until_gke_accepts_it() -> None:
    world = World()
    jobset = world.jobset_appears()
    world.cluster_lives()
    world.deliver()
    pool = world.record(jobset).pool
    assert isinstance(world.backend.pools[pool].seen, Creating)
    world.ends(jobset, WorkloadState.DELETED)
    world.deliver()
    assert world.record(jobset).phase is Phase.RELEASING
    world.settle(minutes=10)
    assert world.pools == []
    assert world.record(jobset).phase is Phase.GONE
    assert world.store.slots(CLUSTER) == ()


def test_an_answer_from_before_the_creation_ended_is_not_evidence() -> None:
    world = World()
    llama = world.jobset_appears()
    world.cluster.schedules = False
    world.steps()
    slice_, pool = world.record(llama).maker, world.record(llama).pool
    world.ends(llama)
    world.steps()
    world.sweeps()
    world.steps()
    assert world.record(llama).phase is Phase.RELEASING
    assert world.record(llama).current.hosts.answered == 1, "the relay has said that there are no hosts"
    with world.loses(HostsChanged):
        world.operations_end()
        world.binds(world.guest_appears(), slice_, attempt=1)
        world.settle(minutes=10)
        assert world.backend.ordered(Verb.DELETE) == []
    world.settle(minutes=30)
    assert world.pools == [pool], "the guest is known"


def test_a_job_that_comes_to_hosts_which_join_while_their_deletion_waits_for_a_slot_keeps_them() -> None:
    """That there are no hosts is asked again, even if the answer is less than a minute old."""
    world = World()
    world.store.put_settings(settings(limits=Limits(operations=1)))
    llama = world.jobset_appears(request=FLEX)
    world.settle(minutes=5)
    slice_, pool = world.record(llama).maker, world.record(llama).pool
    world.jobset_appears("other")
    world.steps()
    world.ends(llama)
    world.steps()
    assert world.record(llama).phase is Phase.RELEASING
    assert world.record(llama).current.hosts.answered == 1, "the relay has said that there are no hosts"
    assert world.record(llama).slot_awaited is not None
    with world.loses(HostsChanged):
        world.backend.fill(pool)
        world.binds(world.guest_appears(), slice_, attempt=1)
    world.clock.advance(MINUTE / 2)
    world.operations_end()
    world.sweeps()
    world.settle(minutes=10)
    assert (world.backend.ordered(Verb.DELETE), pool in world.pools) == ([], True)
