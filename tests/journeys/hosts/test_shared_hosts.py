"""Hosts that several Jobs use in turn, or that are broken or unknown: each is kept for the live Job that is on it."""

from __future__ import annotations

from tests.builders import CLUSTER, MINUTE, a_job, a_jobset_ref, a_request, an_occupant, hosts_changed, leaders_wait
from tests.flows.test_adopt import POOL, a_cluster_of_tpu_provisioner, as_listed
from tests.journeys.serving import BROKEN, STOCKOUT, deletions, own_slice, reason, serving
from tests.world import World
from tpu_slices.domain.model.facts import WaitingLeader
from tpu_slices.domain.model.observations import Running
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import claim_id
from tpu_slices.flows.adopt import adopt
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload

# three that cross


def three_crossed() -> tuple[World, list[LiveWorkload]]:
    """Return a world in which each of three JobSets runs on the next one's slice."""
    world = World()
    jobsets = [world.jobset_appears(name) for name in ("llama", "gemma", "phi")]
    world.cluster_lives()
    world.deliver()
    world.operations_end()
    for jobset, other in zip(jobsets, [*jobsets[1:], jobsets[0]], strict=True):
        jobset.bound.add(0)
        world.binds(jobset, own_slice(other), attempt=1)
    world.settle(minutes=5)
    return world, jobsets


def test_three_jobsets_that_run_on_each_others_slices_are_all_served_and_counted() -> None:
    world, _ = three_crossed()
    world.settle(minutes=60)
    assert {record.reason for record in world.records.values()} == {Reason.READY}
    assert world.store.chips_bought(CLUSTER) == 48
    assert len(world.backend.ordered(Verb.CREATE)) == 3


def test_one_of_three_that_restarts_in_a_stockout_comes_back_to_the_hosts_it_had() -> None:
    world, (llama, gemma, _) = three_crossed()
    for _ in range(20):
        world.backend.refuse_next_create(STOCKOUT)
    world.leaves(llama)
    world.settle(minutes=9)
    assert (deletions(world), len(world.pools)) == ([], 3)
    llama.bound.add(0)
    world.binds(llama, own_slice(gemma), attempt=1)
    world.settle(minutes=60)
    assert {record.reason for record in world.records.values()} == {Reason.READY}
    assert (deletions(world), len(world.pools)) == ([], 3)


def test_the_slice_that_nobody_of_three_uses_any_more_is_released() -> None:
    world, (llama, *others) = three_crossed()
    world.ends(llama)
    world.settle(minutes=70)
    assert len(world.pools) == 2
    assert {reason(world, each) for each in others} == {Reason.READY}


# slices that their claim had before


def test_a_slice_that_failed_is_spared_while_the_leader_that_left_it_may_restart() -> None:
    world = World()
    world.cluster.schedules = False
    llama = world.jobset_appears()
    world.steps()
    first = world.record(llama).pool
    world.backend.fail(first, STOCKOUT)
    world.deliver()
    world.relay_is_dead = True
    world.settle(minutes=1)
    world.relay_is_dead = False
    world.backend.pools[first].seen, world.backend.pools[first].hosts_joined = Running(), True
    assert world.record(llama).attempt == 2
    world.binds(llama, own_slice(llama), attempt=1)
    world.steps()
    world.backend.wreck(first, BROKEN)
    world.a_host_breaks()
    llama.absent = True
    world.leaves(llama)
    world.settle(minutes=8)
    assert world.pools == [first]
    assert first not in deletions(world)


def test_an_owner_returns_to_the_slice_that_it_had_before_once_the_guest_that_took_it_is_gone() -> None:
    world, llama = serving()
    guest = world.guest_appears()
    world.leaves(llama)
    world.binds(guest, own_slice(llama), attempt=1)
    world.deliver()
    world.settle(minutes=8, until=lambda: world.record(llama).attempt == 2)
    assert world.record(llama).attempt == 2
    world.ends(guest)
    llama.bound.add(0)
    world.binds(llama, own_slice(llama), attempt=1)
    world.settle(minutes=60)
    record = world.record(llama)
    assert (record.attempt, record.reason) == (1, Reason.READY)
    assert world.pools == [record.pool_of(1)]


# broken, and found


def test_an_adopted_pool_that_gke_calls_broken_is_spared_while_its_leader_runs() -> None:
    world, llama = a_cluster_of_tpu_provisioner()
    world.backend.wreck(POOL, BROKEN)
    world.a_host_breaks()
    adopt(CLUSTER, [as_listed(llama)], world.deps)
    world.settle(minutes=90)
    assert (world.pools, deletions(world)) == ([POOL], [])


def test_a_broken_pool_that_is_found_without_its_record_is_spared_while_its_leader_runs() -> None:
    world, llama = serving()
    pool = world.record(llama).pool
    world.backend.wreck(pool, BROKEN)
    world.a_host_breaks()
    world.loses_its_records()
    world.settle(minutes=90)
    assert (world.pools, deletions(world)) == ([pool], [])


def test_a_pool_that_is_found_without_its_record_is_kept_for_the_guest_when_its_maker_completes() -> None:
    world, llama = serving()
    pool = world.record(llama).pool
    llama.absent = True
    world.leaves(llama)
    guest = world.guest_appears()
    world.binds(guest, own_slice(llama), attempt=1)
    world.settle(minutes=2)
    world.loses_its_records()
    world.ends(llama)
    world.settle(minutes=90)
    assert (pool in world.pools, str(pool) in deletions(world)) == (True, False)


# two templates


def test_a_job_whose_hosts_another_template_of_its_jobset_took_gets_its_next_slice() -> None:
    world = World()
    plain = a_request(replicated_job="a", replicas=1)
    choosy = a_request(replicated_job="b", replicas=1, node_selector=(*a_request().node_selector, ("team", "x")))
    a, b = (claim_id(a_job(replicated_job=name)) for name in "ab")

    def waits(*names: str) -> None:
        leaders = tuple(WaitingLeader(replicated_job=name, job_index=0) for name in names)
        world.publish(leaders_wait(workload=a_jobset_ref(), requests=(plain, choosy), waiting=leaders))
        world.sweeps()

    waits("a", "b")
    world.operations_end()
    world.publish(hosts_changed(slice_id=a))
    of_a = an_occupant(replicated_job="a", pod_uid="pod-a")
    world.publish(hosts_changed(slice_id=b, occupants=(of_a,)))
    for _ in range(4):
        world.clock.advance(MINUTE)
        waits("b")
    assert (world.records[b].attempt, world.records[b].pool in world.pools) == (2, True)
    assert (world.records[a].maker, world.records[a].reason) == (b, Reason.SPEC_DRIFTED)
    assert "its Job came to it" in world.records[a].message
    _, update = world.publisher.reports[-1]
    assert update.report.message.startswith("1 of 2 slices ready")
