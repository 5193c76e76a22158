"""What is broken, late, or of no use: nothing in use is deleted, and nothing is kept for nobody."""

from __future__ import annotations

from dataclasses import replace

from relay.objects import PoolKey
from tests.builders import settings
from tests.journeys.serving import BROKEN, STOCKOUT, crossed, deletions, reason, serving
from tests.world import World
from tpu_slices.domain.model.clusters import Policy
from tpu_slices.domain.model.facts import WorkloadChanged, WorkloadState
from tpu_slices.domain.model.observations import Running
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices_simulator.fakes.backend import Verb

# what GKE calls broken


def test_a_pool_whose_hosts_are_all_usable_is_a_slice_whatever_gke_calls_it() -> None:
    world, llama = serving()
    world.backend.wreck(world.record(llama).pool, BROKEN)
    world.leaves(llama)
    world.settle(minutes=20)
    assert (reason(world, llama), deletions(world)) == (Reason.READY, [])


def test_a_slice_that_failed_is_its_claims_again_while_its_own_leader_runs_there() -> None:
    """Its creation failed late, when hosts had joined, and its deletion is refused: its leader finds it first."""
    world = World()
    jobset = world.jobset_appears()
    world.cluster.schedules = False
    world.steps()
    first = world.record(jobset).pool
    world.backend.fail(first, STOCKOUT)
    world.deliver()
    world.relay_is_dead = True
    world.settle(minutes=1)
    world.relay_is_dead = False
    world.backend.pools[first].seen, world.backend.pools[first].hosts_joined = Running(), True
    world.binds(jobset, world.record(jobset).maker, 1)
    world.settle(minutes=30)
    assert (world.record(jobset).attempt, reason(world, jobset)) == (1, Reason.READY)
    assert world.pools == [first]
    assert first not in deletions(world)


# late and lost messages


def test_a_suspension_that_is_reported_late_does_not_delete_under_the_resumed_job() -> None:
    world, llama = serving()
    suspended = replace(llama.ref, generation=llama.ref.generation + 1)
    llama.ref = replace(llama.ref, generation=llama.ref.generation + 2)
    world.cluster.saw(llama)
    world.publish(WorkloadChanged(workload=suspended, state=WorkloadState.SUSPENDED))
    world.settle(minutes=60)
    assert (reason(world, llama), deletions(world)) == (Reason.READY, [])


def test_a_leader_that_left_unreported_is_not_on_the_hosts_for_ever() -> None:
    """The relay was restarted while the leader went, and no report of these hosts ever said that it left."""
    world, llama = serving()
    llama.absent = True
    world.relay_is_dead = True
    world.cluster.removes_pod(llama, 0)
    world.cluster.loses_nodes(PoolKey(world.record(llama).maker, 1))
    world.settle(minutes=1)
    world.relay_is_dead = False
    world.settle(minutes=15)
    assert world.record(llama).current.hosts.occupants == ()
    llama.absent = False
    world.settle(minutes=5, until=lambda: llama.bound == {0})
    assert (llama.bound, reason(world, llama)) == ({0}, Reason.READY)


def test_hosts_that_went_while_the_relay_was_away_are_not_counted_any_more() -> None:
    world, llama = serving()
    world.relay_is_dead = True
    world.settle(minutes=10)
    world.cluster.unusable_hosts = 1
    world.cluster.loses_nodes(PoolKey(world.record(llama).maker, 1))
    world.relay_is_dead = False
    world.settle(minutes=10)
    assert (world.record(llama).current.hosts.usable, reason(world, llama)) == (3, Reason.HOSTS_LOST)


# surplus


def test_a_slice_suspended_during_its_creation_and_resumed_is_taken_back() -> None:
    world = World()
    jobset = world.jobset_appears()
    world.cluster_lives()
    world.deliver()
    pool = world.record(jobset).pool
    world.suspends(jobset)
    world.deliver()
    world.resumes(jobset)
    world.settle(minutes=20, until=lambda: jobset.bound == {0})
    world.settle(minutes=3)
    assert (world.pools, world.record(jobset).pool) == ([pool], pool)
    assert len(world.backend.ordered(Verb.CREATE)) == 1


def test_a_ready_slice_that_nobody_uses_or_waits_for_is_released() -> None:
    world, llama, gemma = crossed()
    world.ends(gemma)
    world.settle(minutes=60)
    assert world.pools == [world.record(llama).pool], "that of gemma's claim stood unused"
    assert (reason(world, llama), reason(world, gemma)) == (Reason.READY, Reason.RELEASED)
    world.ends(llama)
    world.settle(minutes=20)
    assert world.pools == []


def test_a_slice_that_its_leader_never_uses_ends_and_is_not_bought_again() -> None:
    world = World()
    world.cluster.schedules = False
    jobset = world.jobset_appears()
    world.settle(minutes=240)
    record = world.record(jobset)
    assert (record.phase, record.reason) == (Phase.REFUSED, Reason.LEADER_UNSCHEDULABLE)
    assert world.pools == []
    assert len(world.backend.ordered(Verb.CREATE)) == 1


def test_a_slice_with_a_host_that_never_becomes_usable_is_replaced_at_a_measured_pace() -> None:
    world = World()
    world.cluster.unusable_hosts = 1
    jobset = world.jobset_appears()
    world.settle(minutes=29)
    assert reason(world, jobset) is Reason.HOSTS_JOINING
    world.settle(minutes=10)
    assert Reason.HOSTS_NOT_USABLE in {each.reason for each in world.record(jobset).transitions}
    world.settle(minutes=120)
    assert len(world.backend.ordered(Verb.CREATE)) <= 5
    world.cluster.unusable_hosts = 0
    world.settle(minutes=120, until=lambda: jobset.bound == {0})
    assert jobset.bound == {0}


def test_a_used_slice_that_loses_a_host_is_kept_and_told() -> None:
    world, llama = serving()
    world.a_host_breaks()
    world.settle(minutes=240)
    assert (reason(world, llama), deletions(world)) == (Reason.HOSTS_LOST, [])


# limits


def test_chips_of_a_slice_that_others_use_still_count_against_the_limit() -> None:
    world = World()
    world.store.put_settings(settings(policy=Policy(chips_per_cluster=16)))
    world, llama = serving(world=world)
    guest = world.guest_appears()
    world.leaves(llama)
    world.binds(guest, world.record(llama).maker, 1)
    world.settle(minutes=60)
    assert len(world.pools) == 1
    assert reason(world, llama) is Reason.CHIP_LIMIT_REACHED
