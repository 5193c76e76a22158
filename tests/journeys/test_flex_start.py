"""A slice of flex-start: its node pool is empty until GKE fills it, and again when GKE takes the hosts back."""

from __future__ import annotations

from datetime import timedelta

from tests.domain.asking import FLEX
from tests.journeys.serving import deletions
from tests.world import World
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.reasons import Phase, Reason, ReportReason
from tpu_slices.domain.model.slices import PoolName
from tpu_slices.domain.records.workloads import Report
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload


def waiting() -> tuple[World, LiveWorkload, PoolName]:
    """Return a world in which a JobSet waits for the hosts of its slice, and the slice's pool."""
    world = World()
    jobset = world.jobset_appears(request=FLEX)
    world.settle(minutes=5)
    return world, jobset, world.record(jobset).pool


def running() -> tuple[World, LiveWorkload, PoolName]:
    """Return a world in which a JobSet runs on hosts that GKE has added."""
    world, jobset, pool = waiting()
    world.backend.fill(pool)
    world.settle(minutes=3)
    assert (world.record(jobset).phase, jobset.bound) == (Phase.READY, {0})
    return world, jobset, pool


def reported(world: World, jobset: LiveWorkload) -> Report:
    made = world.store.workloads(world.record(jobset).cluster, [jobset.ref.owner.uid])[jobset.ref.owner.uid].value
    assert made.report is not None
    return made.report


def test_an_empty_pool_waits_however_long_it_takes() -> None:
    world, jobset, pool = waiting()
    world.settle(minutes=90)
    record = world.record(jobset)
    assert (record.reason, record.attempt, record.claim.failures) == (Reason.AWAITING_FLEX_START, 1, 0)
    assert (world.pools, deletions(world)) == ([pool], [])
    assert len(world.backend.ordered(Verb.CREATE)) == 1
    assert "Waiting for flex-start capacity since 2026-03-01 12:0" in record.message


def test_its_chips_count_and_its_slot_is_free() -> None:
    world, jobset, _ = waiting()
    record = world.record(jobset)
    assert (record.chips_bought, record.slots) == (16, frozenset())


def test_it_is_reported_as_on_its_way_and_not_as_ready() -> None:
    world, jobset, _ = waiting()
    report = reported(world, jobset)
    assert (report.reason, report.ready, report.requested) == (ReportReason.PROVISIONING, 0, 1)
    assert "waiting for flex-start capacity: GKE adds 4 hosts in us-central2-b when it has them" in report.message


def test_a_slice_is_ready_once_gke_has_added_the_hosts_and_tells_when_they_end() -> None:
    world, jobset, pool = running()
    world.settle(minutes=60)
    record = world.record(jobset)
    assert "GKE takes them back 7 days after their start, before 2026-03-08 12:" in record.message
    assert "GKE takes flex-start hosts back 7 days after their start" in reported(world, jobset).message
    assert world.pools == [pool]


def test_a_job_that_restarts_when_gke_takes_its_hosts_waits_for_the_same_pool_again() -> None:
    world, jobset, pool = running()
    world.backend.take_back(pool)
    world.settle(minutes=60)
    record = world.record(jobset)
    assert (record.reason, record.attempt, record.claim.failures) == (Reason.AWAITING_FLEX_START, 1, 0)
    assert record.message.startswith("GKE took its hosts back; waiting again for flex-start capacity since")
    assert not {Reason.HOSTS_LOST, Reason.POOL_BROKEN} & {each.reason for each in record.transitions}
    world.backend.fill(pool)
    world.settle(minutes=3)
    assert (world.record(jobset).phase, jobset.bound) == (Phase.READY, {0})
    assert (world.pools, deletions(world)) == ([pool], [])


def test_a_jobset_that_fails_when_gke_takes_its_hosts_leaves_nothing() -> None:
    world, jobset, pool = running()
    world.backend.take_back(pool)
    world.cluster_lives()
    world.ends(jobset, WorkloadState.FAILED)
    world.settle(minutes=10)
    assert (world.pools, world.record(jobset).phase) == ([], Phase.GONE)


def test_an_empty_pool_for_which_no_leader_waits_any_more_is_deleted_and_is_no_failure() -> None:
    world, jobset, pool = running()
    jobset.absent = True
    world.backend.take_back(pool)
    world.settle(minutes=60)
    record = world.record(jobset)
    assert (world.pools, record.reason, record.claim.failures) == ([], Reason.DEMAND_STALE, 0)
    jobset.absent = False
    world.settle(minutes=5)
    world.backend.fill(world.record(jobset).pool)
    world.settle(minutes=3)
    assert (world.record(jobset).phase, jobset.bound) == (Phase.READY, {0})


def test_a_jobset_that_ends_while_its_pool_is_empty_leaves_nothing() -> None:
    world, jobset, _ = waiting()
    world.ends(jobset, WorkloadState.DELETED)
    world.settle(minutes=10)
    assert (world.pools, world.record(jobset).phase) == ([], Phase.GONE)


def test_hosts_that_joined_and_never_became_usable_are_replaced() -> None:
    world, jobset, pool = waiting()
    world.cluster.unusable_hosts = 1
    world.backend.fill(pool)
    world.settle(minutes=50)
    assert str(pool) in deletions(world)
    assert world.record(jobset).attempt == 2


def test_hosts_that_join_while_an_unneeded_pool_is_given_up_are_left_to_nobody() -> None:
    world, jobset, pool = waiting()
    world.relay_is_dead = True
    world.ends_unreported(jobset)
    world.backend.fill(pool)
    world.settle(minutes=5)
    world.relay_is_dead = False
    world.relay_restarts()
    world.settle(minutes=45)
    assert world.pools == []
    assert world.clock.now() - world.record(jobset).created_at < timedelta(hours=2)
