"""Node pool operations of a cluster: never more than GKE takes, and none waits longer than it has to."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.builders import CLUSTER, MINUTE, NOW, a_jobset_ref, a_request, leaders_wait, settings
from tests.domain.asking import FLEX
from tests.journeys.seconds import SECOND, Seconds
from tests.world import World
from tpu_slices.domain.model.clusters import Allowed, Limits, Policy
from tpu_slices.domain.model.facts import WaitingLeader, WorkloadState
from tpu_slices.domain.model.observations import Creating, Failure, FailureKind
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import PoolName, WorkloadUid
from tpu_slices.domain.records.limiters import ConcurrencyLimiter
from tpu_slices.flows.looking import Told
from tpu_slices.flows.outcomes import Reconciled
from tpu_slices.flows.reconcile import reconcile, reconcile_in_turn
from tpu_slices.flows.sweep import sweep
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload

STOCKOUT = Failure(FailureKind.STOCKOUT, "[GCE_STOCKOUT] not enough resources")
TOO_MANY = Failure(FailureKind.RATE, "Too many operations.")


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> Counter[Reason]:
    """Return the number of decisions with each reason, counted while the world reconciles."""
    reasons: Counter[Reason] = Counter()

    def counted(*args: Any) -> list[Reconciled]:
        done = [*reconcile_in_turn(*args)]
        reasons.update(each.decision.reason for each in done)
        return done

    monkeypatch.setattr("tpu_slices_simulator.system.reconcile_in_turn", counted)
    return reasons


def appear(world: World, count: int) -> list[LiveWorkload]:
    """Let JobSets of one slice each appear."""
    return [world.jobset_appears(f"job-{number}") for number in range(count)]


def slices_wait(world: World, name: str, slices: int, namespace: str = "research") -> None:
    """Let the relay report a JobSet whose leaders all wait."""
    ref = a_jobset_ref(name=name, uid=WorkloadUid(f"uid-{name}"), namespace=namespace)
    waiting = tuple(WaitingLeader(replicated_job="slice", job_index=index) for index in range(slices))
    world.publish(leaders_wait(workload=ref, requests=(a_request(replicas=slices),), waiting=waiting))


def created_for(world: World, namespace: str) -> list[PoolName]:
    ours = {record.pool for record in world.records.values() if record.owner.namespace == namespace}
    return [pool for pool in world.backend.ordered(Verb.CREATE) if pool in ours]


@pytest.mark.parametrize("count", [20, 64])
def test_jobsets_that_end_at_once_are_deleted_in_time_and_without_a_refused_call(count: int) -> None:
    world = World()
    seconds = Seconds(world)
    jobsets = appear(world, count)
    seconds.run(2 * count, until=lambda: seconds.stand == count)
    seconds.run(10)
    for jobset in jobsets:
        world.ends(jobset)
    rounds = -(-count // 5)
    assert seconds.run(600, until=lambda: not world.pools) <= 4 * rounds + 15
    assert seconds.refused == 0
    assert len(world.backend.ordered(Verb.DELETE)) == count
    assert world.store.slots(CLUSTER) == ()


def test_pools_without_hosts_are_deleted_in_turn_although_each_is_asked_about_again_once_its_turn_comes() -> None:
    """By then, what the relay said of their hosts is too old: some may have joined."""
    world = World()
    seconds = Seconds(world)
    jobsets = [world.jobset_appears(f"job-{number}", request=FLEX) for number in range(20)]
    seconds.run(120, until=lambda: seconds.stand == 20)
    seconds.operation = 150 * SECOND
    for jobset in jobsets:
        world.ends(jobset)
    rounds = 20 / 5
    assert seconds.run(1000, until=lambda: not world.pools) <= rounds * (150 + seconds.relay + 10)
    assert seconds.refused == 0


def test_256_queued_slices_are_each_decided_upon_about_once_while_they_wait(decided: Counter[Reason]) -> None:
    world = World()
    seconds = Seconds(world, relay=300)
    slices_wait(world, "llama", 256)
    took = seconds.run(600, until=lambda: seconds.stand == 256)
    assert took <= 4 * 256 / 5 + 15
    assert decided[Reason.OPERATION_LIMIT] <= 260
    assert len(world.publisher.requests) <= 4 * 256
    assert seconds.refused == 0


@pytest.mark.parametrize("failing", ["the first ten", "every sixth"])
def test_ten_stockouts_of_64_creations_hold_up_the_others_for_moments(failing: str) -> None:
    world = World()
    ended: list[PoolName] = []

    def stockout(pool: PoolName) -> Failure | None:
        ended.append(pool)
        fails = len(ended) <= 10 if failing == "the first ten" else len(ended) % 6 == 0
        return STOCKOUT if fails and len(ended) <= 60 else None

    seconds = Seconds(world, fails=stockout)
    appear(world, 64)
    assert seconds.run(600, until=lambda: seconds.stand >= 54) <= 90
    assert seconds.refused == 0
    assert sum(call.verb is Verb.CREATE for call in world.backend.calls) <= 64 + 10


def test_only_the_capacity_pool_that_ran_out_waits() -> None:
    world = World()
    elsewhere = a_request(accelerator="tpu-v5-lite-podslice", replicas=10)
    seconds = Seconds(world, fails=lambda pool: STOCKOUT if "short" in pool else None)
    slices_wait(world, "short", 30)
    seconds.run(10)
    other = a_jobset_ref(name="other", uid=WorkloadUid("uid-other"))
    waiting = tuple(WaitingLeader(replicated_job="slice", job_index=index) for index in range(10))
    world.publish(leaders_wait(workload=other, requests=(elsewhere,), waiting=waiting))
    assert seconds.run(600, until=lambda: seconds.stand == 10) <= 25


def test_slots_go_round_the_namespaces() -> None:
    world = World()
    seconds = Seconds(world, relay=300)
    slices_wait(world, "hog", 240, namespace="tenant-a")
    seconds.run(20)
    slices_wait(world, "small", 3, namespace="tenant-b")
    world.deliver()
    before = len(created_for(world, "tenant-a"))
    seconds.run(30, until=lambda: len(created_for(world, "tenant-b")) >= 1)
    assert len(created_for(world, "tenant-a")) - before <= 5
    seconds.run(30, until=lambda: len(created_for(world, "tenant-b")) == 3)
    assert len(created_for(world, "tenant-b")) == 3
    assert len(created_for(world, "tenant-a")) - before <= 10


def test_many_stocked_out_reservations_of_a_namespace_do_not_delay_another() -> None:
    world = World()
    world.store.put_settings(settings(policy=Policy(everyone=Allowed(reservations=("*",)))))
    seconds = Seconds(world, relay=300, fails=lambda pool: STOCKOUT if "hog" in pool else None)
    for number in range(120):
        named = ("cloud.google.com/reservation-name", f"r-{number:03}")
        request = a_request(replicas=1, node_selector=(*a_request().node_selector, named))
        ref = a_jobset_ref(name=f"hog-{number}", uid=WorkloadUid(f"uid-hog-{number}"), namespace="tenant-a")
        world.publish(leaders_wait(workload=ref, requests=(request,)))
    seconds.run(120)
    assert Reason.STOCKOUT in {record.reason for record in world.records.values()}
    slices_wait(world, "small", 3, namespace="tenant-b")
    assert seconds.run(600, until=lambda: seconds.stand == 3) < 60


def test_the_limit_widens_by_time_although_no_slot_is_freed() -> None:
    world = World()
    world.backend.refuse_next_create(TOO_MANY)
    world.jobset_appears()
    world.cluster_lives()
    world.deliver()
    world.backend.operation_limit = 0
    limits = [_limit_after(world, minutes) for minutes in (1, 6, 6, 6)]
    assert limits == [2, 3, 4, 5]


def test_as_many_operations_begin_as_the_settings_allow_until_gke_refuses_one() -> None:
    world = World()
    world.store.put_settings(settings(limits=Limits(operations=9)))
    world.backend.operation_limit = 9
    appear(world, 12)
    world.cluster_lives()
    world.deliver()
    assert len(world.pools) == 9


def _limit_after(world: World, minutes: int) -> int:
    for _ in range(minutes):
        world.clock.advance(MINUTE)
        sweep(CLUSTER, world.deps)
    stored = world.store.limiter(CLUSTER)
    assert stored is not None
    return stored.value.limit


def test_no_call_is_refused_again_and_again_while_others_fill_gkes_operations() -> None:
    world = World()
    world.backend.operation_limit = 0
    seconds = Seconds(world, relay=30)
    appear(world, 64)
    seconds.run(300)
    assert seconds.refused <= 12
    world.backend.operation_limit = 5
    seconds.run(600, until=lambda: seconds.stand == 64)
    assert seconds.stand == 64


def test_operations_of_others_that_fill_gke_for_half_an_hour_halve_the_limit_once() -> None:
    world = World()
    world.store.put_settings(settings(limits=Limits(operations=20)))
    world.store.put(ConcurrencyLimiter(cluster=CLUSTER, limit=20, changed_at=NOW, shortages={}))
    world.backend.operation_limit = 0
    seconds = Seconds(world, relay=60)
    appear(world, 40)
    seconds.run(1800)
    assert _limit_after(world, 0) == 10
    assert seconds.refused <= 32, "about one a minute"
    world.backend.operation_limit = 20
    assert seconds.run(600, until=lambda: seconds.stand == 40) <= 240


# a slot is freed as soon as no order can arrive any more


def a_full_cluster(world: World) -> list[LiveWorkload]:
    jobsets = appear(world, 5)
    world.cluster_lives()
    world.deliver()
    assert len(world.store.slots(CLUSTER)) == 5
    return jobsets


def no_pool_comes(world: World) -> None:
    for pool in list(world.backend.pools):
        world.backend.vanish(pool)
    for operation in world.backend.operations.values():
        operation.done = True


def test_creations_of_which_no_pool_comes_hold_no_slot_after_their_demand_has_ended() -> None:
    world = World()
    a_full_cluster(world)
    world.relay_is_dead = True
    no_pool_comes(world)
    world.clock.advance(14 * MINUTE)
    world.publisher.request_reconcile(CLUSTER, list(world.records))
    world.deliver()
    assert len(world.backend.ordered(Verb.CREATE)) == 10
    no_pool_comes(world)
    world.clock.advance(1.5 * MINUTE)
    world.settle(minutes=2)
    assert {record.reason for record in world.records.values()} == {Reason.DEMAND_STALE}
    assert world.store.slots(CLUSTER) == ()


def test_slices_that_are_held_during_their_creation_give_their_slots_up_when_it_ends() -> None:
    world = World()
    jobsets = a_full_cluster(world)
    for jobset in jobsets:
        world.store.edit_slice(CLUSTER, world.record(jobset).id, hold=True)
    late = world.jobset_appears("late")
    world.settle(minutes=5, until=lambda: late.bound == {0})
    assert late.bound == {0}
    assert world.store.slots(CLUSTER) == ()


def test_a_slot_that_was_handed_on_to_a_released_slice_goes_on_to_the_next() -> None:
    world = World()
    running = a_full_cluster(world)
    gone, served = (world.jobset_appears(name) for name in ("gone", "served"))
    for _ in range(2):
        world.cluster_lives()
        world.deliver()
        world.clock.advance(MINUTE / 10)
    world.backend.finish(world.record(running[0]).pool)
    reconcile(CLUSTER, world.record(running[0]).name, world.deps, Told(ended=True))
    assert [slot.value.slice_id for slot in world.store.slots(CLUSTER)].count(world.record(gone).maker) == 1
    world.ends(gone, WorkloadState.DELETED)
    world.deliver()
    assert world.record(gone).phase is Phase.GONE
    assert isinstance(world.backend.pools[world.record(served).pool].seen, Creating)
    assert len(world.store.slots(CLUSTER)) == 5


def test_the_end_of_an_earlier_creation_under_its_name_does_not_free_the_slot_of_a_later_one() -> None:
    world = World()
    jobset = world.jobset_appears()
    world.cluster_lives()
    world.deliver()
    first = world.record(jobset)
    world.operations_end()
    world.backend.vanish(first.pool)
    world.clock.advance(settings().limits.orders_arrive_within)
    reconcile(CLUSTER, first.name, world.deps, Told(ended=True))
    later = world.record(jobset)
    assert (later.pool, later.current.operation == first.current.operation, later.current.slot is None) == (
        first.pool,
        False,
        False,
    )
    reconcile(CLUSTER, first.name, world.deps, Told(ended=True, created=first.current.operation))
    assert (world.record(jobset).reason, world.record(jobset).current.slot) == (Reason.CREATING, later.current.slot)
