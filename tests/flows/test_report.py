"""Reports on JobSets as the sweep makes them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import CLUSTER
from tests.world import World
from tpu_slices.domain.model.facts import HostsChanged, WorkloadChanged, WorkloadState
from tpu_slices.domain.model.reasons import ReportReason
from tpu_slices.domain.model.records import Phase
from tpu_slices.domain.model.workloads import WorkloadRecord
from tpu_slices.domain.reporting.reports import RENEW
from tpu_slices.flows.receive import receive
from tpu_slices.flows.report import MOST_TROUBLES, report_due
from tpu_slices.flows.sweep import sweep
from tpu_slices.ports.store import Change


@pytest.fixture
def world() -> World:
    return World()


def request_slices(world: World, *names: str, slices: int = 1) -> None:
    for name in names:
        world.jobset_appears(name, slices=slices)
    world.cluster_lives()
    world.deliver()


def reported(world: World) -> list[str]:
    updates, _ = report_due(world.deps)
    return sorted(each.workload.owner.name for each in updates)


def test_each_jobset_that_is_due_is_reported_on_once(world: World) -> None:
    request_slices(world, "llama", "gemma")
    assert reported(world) == ["gemma", "llama"]
    assert reported(world) == []


def test_a_report_over_an_unreadable_record_fails_by_name_and_stops_no_other(world: World) -> None:
    request_slices(world, "llama", "gemma")
    (unreadable,) = (record for record in world.records.values() if record.owner.name == "llama")
    world.store.edit_slice(CLUSTER, unreadable.id, phase="REDY")
    updates, failures = report_due(world.deps)
    assert [each.workload.owner.name for each in updates] == ["gemma"]
    (failure,) = failures
    assert failure.startswith("demo: no report on research/llama: ")
    assert report_due(world.deps) == ([], [])
    world.clock.advance(RENEW)
    assert len(report_due(world.deps)[1]) == 1


def test_a_failing_publisher_leaves_the_report_due(world: World) -> None:
    request_slices(world, "llama")
    world.publisher.fail_next()
    updates, failures = report_due(world.deps)
    assert (updates, len(failures)) == ([], 1)
    assert reported(world) == ["llama"]


def test_slices_that_transition_together_request_one_report(world: World) -> None:
    request_slices(world, "llama", slices=4)
    world.settle(minutes=15)
    (jobset,) = world.workloads
    assert world.store.workloads(CLUSTER, [jobset])[jobset].value.next_report_at is None
    before = len(world.store.commits)
    for record in world.records.values():
        world.publish(HostsChanged(slice_id=record.id, attempt=record.attempt, usable=0, joined=0, sequence=99))
    world.deliver()
    report_requests = [
        change
        for commit in world.store.commits[before:]
        for change in commit
        if isinstance(change.after, WorkloadRecord)
    ]
    assert len(report_requests) == 1
    assert [each.phase for each in world.records.values()] == [Phase.PROVISIONING] * 4
    (update,), _ = report_due(world.deps)
    assert (update.report.reason, update.report.ready) == (ReportReason.WAITING, 0)


def test_reporting_stops_after_some_failures_until_the_next_sweep(world: World) -> None:
    request_slices(world, *(f"jobset-{number}" for number in range(10)))
    world.publisher.fail_next(100)
    updates, failures = report_due(world.deps)
    assert (updates, len(failures)) == ([], MOST_TROUBLES)


def test_a_pending_reconcile_is_cleared_though_a_report_was_written_meanwhile(world: World) -> None:
    jobset = world.jobset_appears("llama")
    fact = WorkloadChanged(workload=jobset.ref, state=WorkloadState.ACTIVE)
    world.publisher.meanwhile = lambda: report_due(world.deps)
    receive(fact, CLUSTER, world.deps)
    (record,) = world.store.workloads(CLUSTER, [jobset.ref.owner.uid]).values()
    assert (record.value.next_reconcile_at, record.value.report is not None) == (None, True)


def test_a_pending_reconcile_is_requested_and_cleared_by_the_sweep(world: World) -> None:
    request_slices(world, "llama")
    (uid,) = world.workloads
    stored = world.store.workloads(CLUSTER, [uid])[uid]
    world.store.commit(Change(stored, replace(stored.value, next_reconcile_at=world.clock.now())))
    world.publisher.take_requests()
    sweep(world.deps)
    assert {slice_ for _, slice_ in world.publisher.take_requests()} == set(world.records)
    assert world.store.workloads(CLUSTER, [uid])[uid].value.next_reconcile_at is None
