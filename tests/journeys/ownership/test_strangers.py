"""Somebody else has a pool of one of our names: it is never touched, it is told, and no slice waits for it."""

from __future__ import annotations

from dataclasses import replace

from tests.builders import CLUSTER
from tests.journeys.serving import own_slice
from tests.world import World
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import PoolName, pool_name
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows.sweep import sweep
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload


def in_the_way() -> tuple[World, LiveWorkload, PoolName]:
    """Return a world in which somebody has a pool of the name that the first pool of a JobSet's slice would get."""
    world = World()
    jobset = world.jobset_appears()
    pool = pool_name(own_slice(jobset), 1)
    world.backend.steal(pool)
    return world, jobset, pool


def reasons(record: SliceRecord) -> list[Reason]:
    return [each.reason for each in record.transitions]


def unproven(world: World) -> tuple[str, ...]:
    """Return what an inventory check tells of now."""
    beat = world.store.heartbeat(CLUSTER)
    assert beat is not None
    world.store.put(replace(beat.value, next_inventory_check_at=None))
    checked = sweep(CLUSTER, world.deps).checked
    assert checked is not None
    world.deliver()
    return checked.unproven


def test_the_next_attempt_has_another_name_and_serves_the_job() -> None:
    world, jobset, theirs = in_the_way()
    world.settle(minutes=20, until=lambda: bool(jobset.bound))
    record = world.record(jobset)
    assert (jobset.bound, record.attempt) == ({0}, 2)
    assert Reason.UNOWNED_POOL in reasons(record)
    told = next(each for each in record.transitions if each.reason is Reason.UNOWNED_POOL)
    assert theirs in told.message
    assert "left alone" in told.message
    assert [call.verb for call in world.backend.calls if call.pool == theirs] == [Verb.CREATE]


def test_it_stands_when_the_job_has_ended_and_is_told_as_long_as_it_stands() -> None:
    world, jobset, theirs = in_the_way()
    world.settle(minutes=20)
    world.ends(jobset)
    world.settle(minutes=20)
    assert world.record(jobset).phase is Phase.GONE
    assert world.pools == [theirs]
    assert unproven(world) == (theirs,)
    assert unproven(world) == (theirs,)
    world.backend.vanish(theirs)
    assert unproven(world) == ()


def test_one_that_is_made_in_place_of_ours_is_no_more_ours() -> None:
    world = World()
    jobset = world.jobset_appears()
    world.settle(until=lambda: bool(jobset.bound))
    pool = world.record(jobset).pool
    world.backend.steal(pool)
    world.settle(minutes=2)
    world.ends(jobset, WorkloadState.DELETED)
    world.settle(minutes=60)
    assert world.pools == [pool]
    assert [call.verb for call in world.backend.calls if call.pool == pool] == [Verb.CREATE]
    assert unproven(world) == (pool,)


def test_one_that_is_made_in_place_of_ours_under_a_job_that_lives_is_left_for_another() -> None:
    world = World()
    jobset = world.jobset_appears()
    world.settle(until=lambda: bool(jobset.bound))
    pool = world.record(jobset).pool
    world.backend.steal(pool)
    world.cluster.loses_nodes(next(iter(world.cluster.nodes.values())).pool)
    world.settle(minutes=40, until=lambda: world.record(jobset).attempt == 2 and bool(jobset.bound))
    assert world.record(jobset).attempt == 2
    assert pool in world.pools


def test_a_pool_of_our_name_of_which_no_record_knows_is_told_and_left_alone() -> None:
    world = World()
    jobset = world.jobset_appears()
    world.settle(until=lambda: bool(jobset.bound))
    pool = world.record(jobset).pool
    world.backend.replace_labels(pool)
    world.loses_its_records()
    world.relay_is_dead = True
    assert unproven(world) == (pool,)
    assert world.records == {}
    world.backend.restore_labels(pool)
    assert unproven(world) == ()
    assert world.record(jobset).reason is Reason.ADOPTED
