"""The worst bug there is: a slice deleted under a Job that lives, or one that is not ours."""

from __future__ import annotations

from tests.builders import CLUSTER, MINUTE, NOW, a_jobset_ref, a_slot, leaders_wait, settings
from tests.fakes.backend import Verb
from tests.world import World
from tpu_slices.domain.model.facts import WorkloadChanged, WorkloadState
from tpu_slices.domain.model.observations import Creating
from tpu_slices.domain.model.records import Phase
from tpu_slices.domain.model.slices import PoolName, WorkloadUid, pool_name


def a_world_with_a_ready_slice() -> tuple[World, PoolName]:
    world = World()
    jobset = world.jobset_appears()
    world.settle(minutes=10, until=lambda: jobset.bound == {0})
    world.settle(minutes=2)
    record = world.record(jobset)
    assert record.phase is Phase.READY
    return world, record.pool


def test_a_late_delete_of_an_earlier_attempt_meets_a_name_that_is_no_longer_in_use() -> None:
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
    assert world.pools == [pool_name(world.record(jobset).id, first.attempt + 1)]


def test_a_pool_stays_while_another_jobsets_leader_is_on_it_and_goes_when_that_one_ends() -> None:
    world, pool = a_world_with_a_ready_slice()
    owner = next(iter(world.workloads.values()))
    guest = world.jobset_appears("guest", slices=0)
    world.binds(guest, world.record(owner).id, 1)
    world.ends(owner)
    world.settle(minutes=30)
    assert world.pools == [pool]
    assert world.record(owner).phase is Phase.RELEASING
    world.ends(guest)
    world.settle(minutes=10)
    assert world.pools == []
    assert world.record(owner).phase is Phase.GONE


def test_a_slice_taken_by_another_jobset_is_replaced_not_taken_back() -> None:
    world, pool = a_world_with_a_ready_slice()
    owner = next(iter(world.workloads.values()))
    guest = world.jobset_appears("guest", slices=0)
    world.binds(guest, world.record(owner).id, 1)
    owner.bound.clear()
    world.settle(minutes=20, until=lambda: owner.bound == {0})
    assert world.pools == sorted([pool, pool_name(world.record(owner).id, 2)])


def test_a_pool_with_our_name_that_is_not_ours_is_never_touched() -> None:
    world = World()
    jobset = world.jobset_appears()
    world.cluster_lives()
    world.deliver()
    pool = world.record(jobset).pool
    world.backend.steal(pool)
    world.settle(minutes=5)
    assert world.record(jobset).phase is Phase.BLOCKED
    world.ends(jobset)
    world.settle(minutes=10)
    assert world.pools == [pool]
    assert world.record(jobset).phase is Phase.GONE
    assert world.backend.ordered(Verb.DELETE) == []


def test_a_jobset_made_anew_under_the_same_name_keeps_its_slice_when_the_old_one_ends() -> None:
    world, _ = a_world_with_a_ready_slice()
    old = next(iter(world.workloads.values()))
    new = world.jobset_appears(old.ref.owner.name)
    world.settle(minutes=10, until=lambda: new.bound == {0})
    world.ends(old, WorkloadState.DELETED)
    world.settle(minutes=10)
    assert world.record(old).phase is Phase.GONE
    assert world.record(new).phase is Phase.READY
    assert world.pools == [world.record(new).pool]


def test_an_end_that_overtakes_its_beginning_buys_nothing() -> None:
    world = World()
    ref = a_jobset_ref()
    world.publish(WorkloadChanged(workload=ref, state=WorkloadState.DELETED))
    world.publish(leaders_wait(0, 1, workload=ref))
    world.settle(minutes=10)
    assert world.backend.calls == []
    assert world.records == {}


def test_a_dead_relay_deletes_nothing_and_buys_nothing() -> None:
    world, pool = a_world_with_a_ready_slice()
    (jobset,) = world.workloads.values()
    waiting = world.jobset_appears("late")
    world.cluster_lives()
    world.deliver()
    world.relay_is_dead = True
    world.dies_with_the_relay_away(jobset)
    bought = len(world.backend.ordered(Verb.CREATE))
    world.settle(minutes=180)
    assert pool in world.pools
    assert world.backend.ordered(Verb.DELETE) == []
    assert len(world.backend.ordered(Verb.CREATE)) == bought
    assert world.record(waiting).phase in {Phase.PROVISIONING, Phase.QUEUED}


def test_a_want_that_nobody_confirms_any_more_is_not_bought_late() -> None:
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


def test_an_empty_list_of_live_jobsets_is_a_question_and_the_answer_counts() -> None:
    world, pool = a_world_with_a_ready_slice()
    (jobset,) = world.workloads.values()
    world.relay_lists_nothing = True
    world.settle(minutes=60)
    asked = [question.owner for _, question in world.publisher.questions if question.owner is not None]
    assert {owner.uid for owner in asked} == {jobset.ref.owner.uid}
    assert world.pools == [pool]
    assert world.record(jobset).phase is Phase.READY


def test_a_jobset_that_went_unheard_is_asked_about_and_its_slice_released_on_the_answer() -> None:
    world, _ = a_world_with_a_ready_slice()
    (jobset,) = world.workloads.values()
    world.dies_with_the_relay_away(jobset)
    world.settle(minutes=60)
    assert world.pools == []
    assert world.record(jobset).desire_message == "the JobSet is gone"


def test_a_cluster_that_cannot_be_read_is_no_empty_cluster() -> None:
    world, pool = a_world_with_a_ready_slice()
    (jobset,) = world.workloads.values()
    world.store.put_settings(settings(gke_id="another-cluster"))
    kept = world.backend.pools.pop(pool)
    world.settle(minutes=60)
    world.backend.pools[pool] = kept
    assert world.record(jobset).phase is Phase.READY
    assert [call.verb for call in world.backend.calls] == [Verb.CREATE]


def test_a_pool_without_a_record_is_kept_while_its_jobset_lives_and_goes_with_it() -> None:
    world, pool = a_world_with_a_ready_slice()
    (jobset,) = world.workloads.values()
    fresh = World()
    fresh.backend.pools.update(world.backend.pools)
    fresh.workloads.update(world.workloads)
    fresh.settle(minutes=60)
    assert fresh.pools == [pool]
    fresh.dies_with_the_relay_away(jobset)
    fresh.settle(minutes=60)
    assert fresh.pools == []


def test_a_forged_pod_buys_nothing_beyond_its_jobset() -> None:
    world = World()
    world.publish(leaders_wait(4, 99, -1))
    world.settle(minutes=5)
    assert world.records == {}


def test_an_unknown_uid_is_never_served_by_anothers_slice() -> None:
    world, pool = a_world_with_a_ready_slice()
    world.publish(WorkloadChanged(workload=a_jobset_ref(uid=WorkloadUid("uid-forged")), state=WorkloadState.DELETED))
    world.settle(minutes=10)
    assert world.pools == [pool]


def test_a_delete_waits_until_gke_takes_it() -> None:
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
