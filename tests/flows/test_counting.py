"""What a report of hosts alone decides is decided with it; whatever else is to be looked at is reconciled."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from relay.objects import PoolKey
from tests.builders import (
    CLUSTER,
    MINUTE,
    NOW,
    a_job,
    a_jobset,
    a_record,
    an_occupant,
    hosts_changed,
    self_managed,
    some_hosts,
)
from tests.domain.cases import was_seen
from tests.world import World
from tpu_slices.domain.model.observations import Running
from tpu_slices.domain.model.reasons import Phase, Reason, ReportReason
from tpu_slices.domain.model.slices import claim_id
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows.receive import receive
from tpu_slices.wire.cluster_settings import pause_key
from tpu_slices_simulator.live import LiveWorkload


class Forgetful(World):
    """A world in which reconcile requests are lost from some time on."""

    loses_all = False

    def loses_request(self) -> bool:
        return self.loses_all


@pytest.fixture
def world() -> Forgetful:
    return Forgetful()


def joining(world: World, slices: int = 1) -> LiveWorkload:
    """Let pools be created whose hosts have not joined yet."""
    jobset = world.jobset_appears(slices=slices)
    world.cluster_lives()
    world.deliver()
    for index in range(slices):
        world.backend.finish(world.record(jobset, index).pool)
    world.deliver()
    assert {record.reason for record in world.records.values()} == {Reason.HOSTS_JOINING}
    return jobset


def hosts_join(world: Forgetful) -> set[str]:
    """Return the slices of which a reconcile is requested when their hosts are usable and their leaders run."""
    world.loses_all, before = True, len(world.publisher.requests)
    world.cluster_lives()
    world.deliver()
    return {slice_ for _, slice_ in world.publisher.requests[before:]}


def ready(record: SliceRecord) -> bool:
    return record.phase is Phase.READY


def test_a_slice_is_ready_with_the_report_that_its_job_runs_on_all_its_hosts(world: Forgetful) -> None:
    jobset = joining(world)
    looked = len(world.backend.calls)
    assert hosts_join(world) == set()
    assert ready(world.record(jobset))
    assert len(world.backend.calls) == looked
    assert [update.transition.reason for update in world.publisher.updates][-1] is Reason.READY


def test_its_workload_is_reported_on_with_its_last_slice(world: Forgetful) -> None:
    jobset = joining(world, slices=2)
    hosts_join(world)
    assert all(map(ready, world.records.values()))
    (report,) = [update.report for _, update in world.publisher.reports]
    assert (report.reason, report.ready, report.requested) == (ReportReason.READY, 2, 2)
    recorded = world.store.workloads(CLUSTER, [jobset.ref.owner.uid])[jobset.ref.owner.uid].value
    assert (recorded.report, recorded.next_report_at, recorded.announced_count) == (report, None, 1)


def holds(world: World, record: SliceRecord) -> None:
    world.store.edit_slice(CLUSTER, record.id, hold=True)


def pauses(world: World, _: SliceRecord) -> None:
    world.store.put_document(pause_key(CLUSTER), {"message": "upgrade", "paused_at": world.clock.now()})


@pytest.mark.parametrize("hinders", [holds, pauses])
def test_what_hinders_it_is_left_to_reconcile(world: Forgetful, hinders: Callable[[World, SliceRecord], None]) -> None:
    record = world.record(joining(world))
    hinders(world, record)
    assert hosts_join(world) == {record.name}
    assert world.records[record.name].reason is Reason.HOSTS_JOINING
    assert world.publisher.reports == []


def test_hosts_that_are_still_missing_are_counted_without_a_look(world: Forgetful) -> None:
    record = world.record(joining(world))
    looked, due = len(world.backend.calls), record.next_reconcile_at
    world.cluster.unusable_hosts = 1
    assert hosts_join(world) == set()
    counted = world.records[record.name]
    assert (counted.reason, counted.message) == (
        Reason.HOSTS_JOINING,
        "3 of 4 hosts are ready and offer their chips.",
    )
    assert counted.next_reconcile_at == due
    assert len(world.backend.calls) == looked
    assert world.publisher.reports == []


def test_in_a_self_managed_cluster_missing_hosts_are_left_to_reconcile_which_says_whose_nodes_are_to_come() -> None:
    world = Forgetful(of_cluster=self_managed())
    jobset = world.jobset_appears()
    world.cluster.unusable_hosts = 1
    world.settle(minutes=30, until=lambda: world.record(jobset).reason is Reason.HOSTS_JOINING)
    record, before = world.record(jobset), len(world.publisher.requests)
    world.cluster.loses_nodes(PoolKey(record.maker, record.attempt))
    world.relay_publishes()
    world.deliver()
    assert (world.record(jobset).reason, world.record(jobset).current.hosts.usable) == (Reason.HOSTS_JOINING, 0)
    assert record.maker in {slice_ for _, slice_ in world.publisher.requests[before:]}


def test_a_slice_whose_leader_is_not_scheduled_yet_is_ready_and_looked_at_again(world: Forgetful) -> None:
    record = world.record(joining(world))
    world.cluster.schedules = False
    assert hosts_join(world) == set()
    counted = world.records[record.name]
    assert counted.reason is Reason.READY
    assert counted.next_reconcile_at is not None
    assert world.publisher.reports == []


def test_a_leader_that_comes_to_a_slice_that_is_ready_is_counted_without_a_look(world: Forgetful) -> None:
    record = world.record(joining(world))
    world.cluster.schedules = False
    hosts_join(world)
    world.loses_all, world.cluster.schedules, looked = True, True, len(world.backend.calls)
    assert hosts_join(world) == set()
    assert [each.owner for each in world.records[record.name].current.hosts.occupants] == [record.owner]
    assert len(world.backend.calls) == looked


def test_lost_hosts_of_a_slice_that_is_ready_are_left_to_reconcile(world: Forgetful) -> None:
    record = world.record(joining(world))
    hosts_join(world)
    world.cluster.loses_nodes(PoolKey(record.maker, 1))
    world.relay_publishes()
    world.deliver()
    assert [slice_ for _, slice_ in world.publisher.requests][-1] == record.maker
    assert (world.records[record.name].reason, world.records[record.name].current.hosts.usable) == (Reason.READY, 0)


def test_a_workload_is_not_told_whole_with_a_slice_that_one_of_its_jobs_takes_from_another(world: Forgetful) -> None:
    first, second = a_job(job_index=0), a_job(job_index=1)
    made = {"create_requested_at": NOW - 60 * MINUTE, "seen": was_seen(Running()), "hosts": some_hosts()}
    stands = a_record(job=second, reason=Reason.READY, phase=Phase.READY, **made)
    demand = {claim_id(first): NOW, claim_id(second): None}
    world.store.put(stands, a_record(job=first), a_jobset(demand=demand))
    comes = hosts_changed(slice_id=stands.maker, occupants=(an_occupant(job_index=0),), sequence=5)
    receive(comes, CLUSTER, world.deps)
    has = {record.last_claim: record.reason for record in world.records.values()}
    assert has == {claim_id(first): Reason.READY, claim_id(second): Reason.REQUESTED}
    assert world.publisher.reports == []
