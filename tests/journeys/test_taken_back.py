"""A slice whose deletion GKE did not take stays if its Job needs it again: no second one is bought."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.builders import CLUSTER, MINUTE, a_request, had, settings
from tests.journeys.serving import STOCKOUT, deletions, reason, serving
from tests.manifests import a_manifest
from tests.world import World
from tpu_slices.domain.model.clusters import Allowed, Policy
from tpu_slices.domain.model.observations import Deleting, Failure, FailureKind
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices_simulator.fakes.backend import Verb

REFUSALS = [FailureKind.CONFIGURATION, FailureKind.UNKNOWN, FailureKind.BUSY, FailureKind.RATE]


@pytest.mark.parametrize("kind", REFUSALS)
def test_a_slice_that_gke_refuses_to_delete_serves_its_job_once_that_is_resumed(kind: FailureKind) -> None:
    world, llama = serving()
    world.backend.refuses_deletions = Failure(kind, "no permission")
    world.suspends(llama)
    world.settle(minutes=10)
    world.resumes(llama)
    world.settle(minutes=30)
    assert len(world.backend.ordered(Verb.CREATE)) == 1
    assert reason(world, llama) is Reason.READY
    assert llama.bound == {0}


@pytest.mark.parametrize("kind", REFUSALS)
def test_a_leader_that_comes_back_while_gke_refuses_the_deletion_keeps_its_slice(kind: FailureKind) -> None:
    """Its pod was under way when the hosts were closed."""
    world, llama = serving()
    slice_ = world.record(llama).maker
    world.backend.refuses_deletions = Failure(kind, "no permission")
    world.suspends(llama)
    world.settle(minutes=10)
    world.resumes(llama)
    llama.bound.add(0)
    world.binds(llama, slice_, attempt=1)
    world.settle(minutes=2)
    world.backend.refuses_deletions = None
    before = len(deletions(world))
    world.settle(minutes=90)
    assert len(deletions(world)) == before
    assert len(world.backend.ordered(Verb.CREATE)) == 1
    assert reason(world, llama) is Reason.READY


def test_a_leader_that_comes_back_while_the_deletion_fails_keeps_its_slice() -> None:
    world, llama = serving()
    slice_, pool = world.record(llama).maker, world.record(llama).pool
    world.suspends(llama)
    while not deletions(world):
        world.steps()
    world.backend.fail_deletion(pool, Failure(FailureKind.UNKNOWN, "an internal error"))
    world.resumes(llama)
    llama.bound.add(0)
    world.binds(llama, slice_, attempt=1)
    world.settle(minutes=60)
    assert reason(world, llama) is Reason.READY
    assert world.record(llama).chips_bought == 16


def test_hosts_of_a_failed_creation_that_join_after_all_are_counted_and_serve_their_job() -> None:
    world = World()
    llama = world.jobset_appears()
    world.steps()
    slice_, pool = world.record(llama).maker, world.record(llama).pool
    world.backend.refuses_deletions = Failure(FailureKind.UNKNOWN, "an internal error")
    world.backend.fail(pool, STOCKOUT)
    world.settle(minutes=3, until=lambda: bool(had(world.record(llama))))
    assert world.store.chips_bought(CLUSTER) == 0
    world.backend.repair(pool)
    world.backend.finish(pool)
    llama.bound.add(0)
    world.binds(llama, slice_, attempt=1)
    world.settle(minutes=30)
    assert reason(world, llama) is Reason.READY
    assert world.record(llama).pool == pool
    assert world.store.chips_bought(CLUSTER) == 16 * len(world.pools)


def limited(world: World) -> World:
    world.store.put_settings(settings(policy=Policy(everyone=Allowed(chips_per_namespace=16))))
    return world


def test_a_slices_own_earlier_pools_that_stand_count_against_its_next_creation() -> None:
    world = limited(World())
    world.backend.refuses_deletions = Failure(FailureKind.CONFIGURATION, "no permission")
    world.cluster.unusable_hosts = 1
    llama = world.jobset_appears()
    world.settle(minutes=200)
    assert len(world.pools) == 1
    assert reason(world, llama) is Reason.CHIP_LIMIT_REACHED


def test_a_template_that_is_changed_while_suspended_does_not_hold_twice_the_limit() -> None:
    world, llama = serving(world=limited(World()))
    world.suspends(llama)
    world.settle(minutes=1)
    selector = (*a_request().node_selector, ("team", "vision"))
    llama.edit(a_manifest(request=a_request(node_selector=selector)))
    world.resumes(llama)
    world.cluster.schedules = False  # the new template does not match the nodes that are there
    for _ in range(25):
        world.settle(minutes=1)
        assert len(world.pools) <= 1
    world.cluster.schedules = True
    world.settle(minutes=10)
    assert reason(world, llama) is Reason.READY


def test_a_host_that_is_repaired_again_and_again_does_not_restart_the_patience() -> None:
    world = World()
    world.cluster.unusable_hosts = 1
    llama = world.jobset_appears()
    world.settle(minutes=5)
    pool = world.record(llama).pool
    began = world.clock.now()
    while world.record(llama).attempt == 1:
        world.backend.repair(pool)
        world.settle(minutes=5)
        world.backend.finish(pool)
        world.settle(minutes=10, until=lambda: world.record(llama).attempt > 1)
    assert timedelta(hours=2) <= world.clock.now() - began <= timedelta(hours=2, minutes=45)


@pytest.mark.parametrize("minutes", [0, 30])
def test_a_slice_that_is_held_during_its_creation_is_told_as_it_is_seen(minutes: int) -> None:
    world = World()
    llama = world.jobset_appears()
    world.steps()
    world.store.edit_slice(world.record(llama).cluster, world.record(llama).id, hold=True)
    world.clock.advance(minutes * MINUTE)
    world.settle(minutes=30)
    assert llama.bound == {0}
    assert (world.record(llama).phase, reason(world, llama)) == (Phase.READY, Reason.READY)


def test_a_pool_that_somebody_deletes_under_its_job_is_left_once_and_not_had_again() -> None:
    world, llama = serving()
    claim = world.record(llama)
    world.backend.pools[claim.pool].seen = Deleting()
    world.store.edit_slice(CLUSTER, claim.id, look_at=world.clock.now())
    world.publisher.requests.append((CLUSTER, claim.maker))
    world.settle(minutes=20)
    assert world.record(llama).claim.tried == 2
    assert claim.attempt in had(world.record(llama))


def test_a_failed_slice_whose_deletion_came_to_nothing_is_had_again_by_the_job_that_runs_on_it() -> None:
    world = World()
    llama = world.jobset_appears()
    world.steps()
    slice_, pool = world.record(llama).maker, world.record(llama).pool
    world.backend.refuses_creations = STOCKOUT
    world.backend.fail(pool, STOCKOUT)
    while not deletions(world):
        world.steps()
    world.backend.fail_deletion(pool, Failure(FailureKind.UNKNOWN, "an internal error"))
    world.backend.repair(pool)
    world.backend.finish(pool)
    llama.bound.add(0)
    world.binds(llama, slice_, attempt=1)
    world.settle(minutes=40, until=lambda: reason(world, llama) is Reason.READY)
    assert (world.record(llama).pool, had(world.record(llama))) == (pool, ())
    assert reason(world, llama) is Reason.READY
