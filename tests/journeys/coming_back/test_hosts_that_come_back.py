"""Hosts that the vendor brings back: they are waited for, and neither given away nor bought a second time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.builders import self_managed
from tests.domain.asking import FLEX, SPOT
from tests.journeys.serving import BROKEN, reason, serving
from tests.world import World
from tpu_slices.domain.model.observations import Failure, FailureKind, Observation, Refused, Started
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.ports.backend import PoolOrder
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload
from tpu_slices_simulator.objects import maintenance

BUSY_CLUSTER = Failure(FailureKind.BUSY, "Cluster is running incompatible operation operation-7.")
HOURS = 60


def creations(world: World) -> int:
    return len(world.backend.ordered(Verb.CREATE))


def deletions(world: World) -> list[str]:
    """Return the pools whose deletion was accepted."""
    calls = (call for call in world.backend.calls if call.verb is Verb.DELETE)
    return [str(call.pool) for call in calls if isinstance(call.outcome, Started) and call.outcome.operation]


def refused_deletions(world: World) -> int:
    return sum(call.verb is Verb.DELETE and isinstance(call.outcome, Refused) for call in world.backend.calls)


def looks(world: World) -> list[PoolOrder]:
    """Return the looks at pools from now on, as they come."""
    seen: list[PoolOrder] = []
    look = world.backend.look

    def looked(order: PoolOrder) -> Observation:
        seen.append(order)
        return look(order)

    world.backend.look = looked  # type: ignore[method-assign]
    return seen


def writes(world: World, since: int) -> int:
    """Return how often the slice was written since so many commits."""
    return sum(isinstance(each.after, SliceRecord) for changes in world.store.commits[since:] for each in changes)


def reasons_since(world: World, jobset: LiveWorkload, count: int) -> list[Reason]:
    return [each.reason for each in world.record(jobset).transitions_after(count)]


def under_work(start: str = "upgrade") -> tuple[World, LiveWorkload]:
    """Return a world in which GKE works on the pool under a Job, since a minute ago."""
    world, llama = serving()
    getattr(world.backend, start)(world.record(llama).pool)
    world.settle(minutes=1)
    return world, llama


# GKE upgrades a pool under a Job for two hours


def test_a_pool_that_gke_upgrades_for_two_hours_is_waited_for() -> None:
    world, llama = serving()
    pool, before, nodes = world.record(llama).pool, world.record(llama), set(world.cluster.nodes)
    world.backend.upgrade(pool)
    world.settle(minutes=1)
    assert reason(world, llama) is Reason.GKE_UPGRADES
    world.settle(minutes=2 * HOURS - 1)
    assert reason(world, llama) is Reason.GKE_UPGRADES
    world.backend.finish(pool)
    world.settle(minutes=3)
    assert (reason(world, llama), llama.bound) == (Reason.READY, {0})
    assert not nodes & set(world.cluster.nodes), "the hosts have new names"
    assert (creations(world), deletions(world), refused_deletions(world)) == (1, [], 0)
    assert (world.record(llama).attempt, world.record(llama).current.returning) == (1, None)
    told = reasons_since(world, llama, before.transition_count)
    assert told in ([Reason.GKE_UPGRADES, Reason.READY], [Reason.GKE_UPGRADES, Reason.HOSTS_JOINING, Reason.READY])


def test_what_gke_does_and_since_when_is_told_and_until_when_it_is_waited_for() -> None:
    world, llama = under_work()
    world.settle(minutes=90)
    message = world.record(llama).message
    assert "GKE upgrades the node pool" in message
    assert "since 2026-03-01 12:0" in message
    assert "by 2026-03-01 18:0" in message
    assert "0 of 4 hosts" in message


def test_two_hours_of_work_cost_a_look_in_ten_minutes() -> None:
    world, llama = under_work()
    before, looked = len(world.store.commits), looks(world)
    world.settle(minutes=2 * HOURS)
    assert reason(world, llama) is Reason.GKE_UPGRADES
    assert len(looked) <= 12
    assert writes(world, before) <= 12


def test_what_gke_does_is_asked_when_it_begins_and_not_again() -> None:
    world, llama = serving()
    looked = looks(world)
    world.backend.upgrade(world.record(llama).pool)
    world.settle(minutes=2 * HOURS)
    assert sum(order.asks_work for order in looked) == 1


# auto-repair waits for a host for a day


def test_a_repair_that_lasts_a_day_is_replaced_once_after_two_hours_and_deleted_when_gke_lets_it() -> None:
    world, llama = under_work("repair")
    pool = world.record(llama).pool
    world.settle(minutes=2 * HOURS - 2)
    assert (reason(world, llama), creations(world)) == (Reason.GKE_REPAIRS, 1)
    world.settle(minutes=20, until=lambda: llama.bound == {0})
    world.settle(minutes=2)
    assert (reason(world, llama), creations(world)) == (Reason.READY, 2)
    world.settle(minutes=22 * HOURS)
    assert (creations(world), deletions(world)) == (2, [])
    assert refused_deletions(world) <= 30
    world.backend.finish(pool)
    world.settle(minutes=15)
    assert deletions(world) == [pool]
    assert (reason(world, llama), len(world.pools)) == (Reason.READY, 1)


def test_repairs_that_follow_each_other_share_one_patience() -> None:
    world, llama = under_work("repair")
    pool = world.record(llama).pool
    for _ in range(3):
        world.settle(minutes=25)
        world.backend.end_without_hosts(pool)
        world.settle(minutes=12)
        world.backend.repair(pool)
    assert (world.record(llama).attempt, reason(world, llama)) == (1, Reason.HOSTS_JOINING)
    world.settle(minutes=20)
    assert world.record(llama).attempt == 2


# preempted hosts come back after 40 minutes, eight times


def test_spot_hosts_that_come_back_after_forty_minutes_eight_times_are_waited_for() -> None:
    world = World()
    jobsets = [world.jobset_appears(f"llama-{number}", request=SPOT) for number in range(5)]
    world.settle(minutes=10, until=lambda: all(each.bound == {0} for each in jobsets))
    for _ in range(8):
        world.settle(minutes=50)
        for jobset in jobsets:
            world.backend.preempt(world.record(jobset).pool)
        world.settle(minutes=2)
        assert {reason(world, each) for each in jobsets} == {Reason.PREEMPTED}
        world.settle(minutes=38)
        for jobset in jobsets:
            world.backend.refill(world.record(jobset).pool)
        world.settle(minutes=2)
        assert all(each.bound == {0} for each in jobsets)
    assert (creations(world), deletions(world), refused_deletions(world)) == (5, [], 0)


def test_hosts_that_nobody_is_known_to_bring_back_are_replaced_as_before() -> None:
    world, llama = serving()
    world.backend.preempt(world.record(llama).pool)
    world.settle(minutes=25)
    assert (reason(world, llama), creations(world)) == (Reason.HOSTS_LOST, 1)
    world.settle(minutes=25)
    assert (creations(world), len(deletions(world))) == (2, 1)


# maintenance of a host


def test_a_host_under_maintenance_for_four_hours_is_waited_for() -> None:
    world, llama = serving()
    host = min(world.cluster.nodes)
    world.host_is_maintained(host)
    world.leaves(llama)
    world.settle(minutes=4 * HOURS)
    assert reason(world, llama) is Reason.UNDER_MAINTENANCE
    assert "Google maintains the machine of a host since" in world.record(llama).message
    world.host_is_back(host)
    world.settle(minutes=3)
    assert (reason(world, llama), llama.bound) == (Reason.READY, {0})
    assert (creations(world), deletions(world)) == (1, [])


def test_a_host_that_stays_away_after_its_maintenance_is_given_up_like_any_other() -> None:
    world, llama = serving()
    host = min(world.cluster.nodes)
    world.host_is_maintained(host)
    world.leaves(llama)
    world.settle(minutes=60)
    world.host_is_back(host, ready=False)
    world.settle(minutes=25)
    assert (reason(world, llama), creations(world)) == (Reason.HOSTS_JOINING, 1)
    world.settle(minutes=30)
    assert creations(world) == 2


# what happens meanwhile


@pytest.mark.parametrize("over", [World.ends, World.suspends], ids=["ends", "is suspended"])
def test_a_pool_whose_job_is_over_while_gke_works_on_it_goes_when_gke_lets_it(
    over: Callable[[World, LiveWorkload], None],
) -> None:
    world, llama = under_work()
    pool = world.record(llama).pool
    world.settle(minutes=30)
    over(world, llama)
    world.settle(minutes=2 * HOURS)
    record = world.record(llama)
    assert (record.phase, record.reason) == (Phase.RELEASING, Reason.DELETION_POSTPONED)
    assert "another operation" in record.message
    assert 1 <= refused_deletions(world) <= 4
    world.backend.finish(pool)
    world.settle(minutes=5)
    assert (world.pools, reason(world, llama)) == ([], Reason.RELEASED)
    assert creations(world) == 1


def test_a_jobset_that_is_suspended_and_resumed_while_gke_works_keeps_its_pool() -> None:
    world, llama = under_work()
    pool = world.record(llama).pool
    world.suspends(llama)
    world.settle(minutes=30)
    world.resumes(llama)
    world.settle(minutes=60)
    assert (world.record(llama).pool, reason(world, llama)) == (pool, Reason.GKE_UPGRADES)
    world.backend.finish(pool)
    world.settle(minutes=5)
    assert (world.pools, reason(world, llama), llama.bound) == ([pool], Reason.READY, {0})
    assert (creations(world), deletions(world)) == (1, [])


def test_a_pool_that_ends_in_error_after_the_work_is_replaced_at_once() -> None:
    world, llama = under_work()
    pool = world.record(llama).pool
    world.settle(minutes=60)
    world.backend.fail(pool, BROKEN)
    world.settle(minutes=30, until=lambda: llama.bound == {0})
    assert (llama.bound, world.record(llama).attempt) == ({0}, 2)
    assert deletions(world) == [pool]


def test_nothing_is_concluded_while_the_relay_is_silent() -> None:
    world, llama = under_work()
    pool = world.record(llama).pool
    world.relay_is_dead = True
    world.settle(minutes=7 * HOURS)
    assert (creations(world), deletions(world)) == (1, [])
    world.backend.finish(pool)
    world.relay_is_dead = False
    world.settle(minutes=15)
    assert (reason(world, llama), creations(world), deletions(world)) == (Reason.READY, 1, [])


def test_a_flex_start_pool_that_gke_works_on_waits_as_long_as_its_leader_does() -> None:
    world = World()
    jobset = world.jobset_appears(request=FLEX)
    world.settle(minutes=5)
    pool = world.record(jobset).pool
    world.backend.fill(pool)
    world.settle(minutes=3)
    world.backend.upgrade(pool)
    world.settle(minutes=9 * HOURS)
    assert (creations(world), deletions(world)) == (1, [])
    world.backend.finish(pool)
    world.backend.fill(pool)
    world.settle(minutes=3)
    assert reason(world, jobset) is Reason.READY


def test_a_cluster_that_is_busy_for_two_hours_is_not_asked_each_minute() -> None:
    """Its control plane is upgraded, say: nothing shows on the pool, and each deletion is refused."""
    world, llama = serving()
    world.backend.refuses_deletions = BUSY_CLUSTER
    world.ends(llama)
    world.settle(minutes=2 * HOURS)
    assert reason(world, llama) is Reason.DELETION_POSTPONED
    assert refused_deletions(world) <= 20
    world.backend.refuses_deletions = None
    world.settle(minutes=15)
    assert reason(world, llama) is Reason.RELEASED


def test_on_compute_engine_a_group_whose_instances_are_recreated_is_waited_for() -> None:
    world = World(of_cluster=self_managed())
    llama = world.jobset_appears()
    world.settle(minutes=20, until=lambda: llama.bound == {0})
    world.settle(minutes=2)
    pool, steps = world.record(llama).pool, creations(world)
    world.backend.repair(pool)
    world.settle(minutes=100)
    assert (reason(world, llama), creations(world)) == (Reason.POOL_BUSY, steps)
    assert "Compute Engine repairs the instance group" in world.record(llama).message
    world.backend.finish(pool)
    for node in list(world.cluster.nodes.values()):
        world.cluster.changes_node(node, maintenance(on=False))
    world.settle(minutes=3)
    assert (reason(world, llama), llama.bound) == (Reason.READY, {0})
    assert (creations(world), deletions(world)) == (steps, [])


def test_a_leader_that_finds_a_static_pool_meanwhile_runs_there_and_its_own_is_kept_until_it_is_back_and_idle() -> None:
    world, llama = under_work()
    pool = world.record(llama).pool
    world.settle(minutes=15)
    (pod,) = (pod for pod in world.cluster.pods.values() if pod.jobset is llama)
    world.cluster.binds_outside(pod, "static-host")
    world.settle(minutes=2 * HOURS)
    assert (world.pools, reason(world, llama), creations(world)) == ([pool], Reason.GKE_UPGRADES, 1)
    world.backend.finish(pool)
    world.settle(minutes=60)
    assert (deletions(world), creations(world)) == ([pool], 1)
    assert refused_deletions(world) == 0
