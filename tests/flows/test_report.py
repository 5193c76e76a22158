"""Reports on JobSets as the sweep makes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, groupby
from typing import Any, cast

import pytest

from tests.builders import CLUSTER, MINUTE, NOW, a_job, a_jobset, a_record, hosts_changed
from tests.world import World
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.reasons import Phase, Reason, ReportReason
from tpu_slices.domain.model.slices import ClusterId, WorkloadUid
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.domain.reporting.reports import RENEW
from tpu_slices.flows.failures import Failures
from tpu_slices.flows.report import CHANGED_WITHIN, MOST_TROUBLES, PAGE, Reported, report_due
from tpu_slices.ports.errors import Permanent
from tpu_slices.ports.publisher import Publisher, WorkloadUpdate
from tpu_slices.wire.cluster_settings import settings_key
from tpu_slices_simulator.fuse import Crash


@pytest.fixture
def world() -> World:
    return World()


def request_slices(world: World, *names: str, slices: int = 1) -> None:
    for name in names:
        world.jobset_appears(name, slices=slices)
    world.cluster_lives()
    world.deliver()


def report_all(world: World) -> tuple[list[Reported], list[str]]:
    failures = Failures()
    updates = report_due([CLUSTER], world.deps, failures)
    return updates, [str(failure) for failure in failures.found]


def reported(world: World) -> list[str]:
    updates, _ = report_all(world)
    return sorted(each.workload.owner.name for each in updates)


def test_each_jobset_that_is_due_is_reported_on_once(world: World) -> None:
    request_slices(world, "llama", "gemma")
    assert reported(world) == ["gemma", "llama"]
    assert reported(world) == []


def test_a_report_names_a_slice_whose_record_cannot_be_read(world: World) -> None:
    request_slices(world, "llama", slices=2)
    unreadable, _ = world.records.values()
    world.store.edit_slice(CLUSTER, unreadable.id, phase="REDY")
    ((update,), failures) = report_all(world)
    assert failures == []
    assert (update.report.reason, update.report.requested) == (ReportReason.BLOCKED, 2)
    assert update.report.message.startswith(
        f"0 of 2 slices ready; {unreadable.name} since 12:00 UTC: its record cannot be read"
    )
    assert [wait.count for wait in update.report.waits] == [1, 1]


def ready_and_told(world: World) -> SliceRecord:
    """Return the record of a slice whose JobSet was told to be READY: no report of it is due."""
    request_slices(world, "llama")
    world.operations_end()
    world.cluster_lives()
    world.deliver()
    report_all(world)
    (record,) = world.records.values()
    assert record.phase is Phase.READY
    return record


class Beside:
    """The publisher of a process beside which another one writes the records of JobSets, while it first reports."""

    def __init__(self, world: World) -> None:
        self._world, self._wrote = world, False

    def announce_workloads(self, cluster: ClusterId, updates: Sequence[WorkloadUpdate]) -> None:
        self._world.publisher.announce_workloads(cluster, updates)
        if not self._wrote:
            seen = [replace(each, last_seen_at=NOW + MINUTE) for each in self._world.store.jobset_records(cluster)]
            self._world.store.put(*seen)
            self._wrote = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world.publisher, name)


def test_what_is_announced_while_another_process_writes_the_record_is_recorded(world: World) -> None:
    """Otherwise what was said before would be no news when it holds again."""
    record = ready_and_told(world)
    world.store.edit_slice(CLUSTER, record.id, phase="REDY")
    report_due([CLUSTER], replace(world.deps, publisher=cast("Publisher", Beside(world))), Failures())
    world.store.edit_slice(CLUSTER, record.id, phase=record.phase)
    report_all(world)
    told = [reason for reason, _ in groupby(update.report.reason for _, update in world.publisher.reports)]
    assert told[-3:] == [ReportReason.READY, ReportReason.BLOCKED, ReportReason.READY]


def test_a_slice_of_which_nobody_was_told_that_its_jobset_was_resumed_is_looked_at_again(world: World) -> None:
    """Its Job may have found hosts that are nobody's slice, so that no leader of it waits."""
    jobset = world.jobset_appears(slices=2)
    world.settle(minutes=10)
    world.suspends(jobset)
    world.settle(minutes=10)
    gone = world.record(jobset, 1)
    assert (gone.phase, gone.next_reconcile_at) == (Phase.GONE, None)
    (known,) = world.store.jobset_records(CLUSTER)
    world.store.put(replace(known, state=WorkloadState.ACTIVE, next_report_at=world.clock.now()))
    report_all(world)
    world.deliver()
    assert world.record(jobset, 1).reason is Reason.DEMAND_STALE


def test_a_report_that_fails_does_so_by_name_and_stops_no_other(world: World) -> None:
    request_slices(world, "llama", "gemma")
    world.clock.advance(CHANGED_WITHIN)
    world.publisher.refuse_next_report(Permanent("Pub/Sub: the message is too large"))
    updates, failures = report_all(world)
    assert len(updates) == 1
    (failure,) = failures
    assert failure.startswith("demo: no report on research/")
    assert report_all(world) == ([], [])
    world.clock.advance(RENEW)
    assert reported(world)


def test_a_failing_publisher_leaves_the_report_due(world: World) -> None:
    request_slices(world, "llama")
    world.publisher.fail_next()
    updates, failures = report_all(world)
    assert (updates, len(failures)) == ([], 1)
    assert reported(world) == ["llama"]


def test_a_change_is_reported_by_the_next_sweep_although_no_report_is_due(world: World) -> None:
    request_slices(world, "llama", slices=2)
    assert reported(world) == ["llama"]
    world.clock.advance(MINUTE)
    world.backend.finish(next(iter(world.backend.pools)))
    world.cluster_lives()
    world.deliver()
    world.clock.advance(MINUTE)
    (update,), _ = report_all(world)
    assert (update.report.ready, update.report.requested) == (1, 2)


def be_killed() -> None:
    raise Crash


def hosts_leave(world: World, record: SliceRecord) -> None:
    world.publish(hosts_changed(slice_id=record.maker, attempt=record.attempt, usable=0, joined=0, sequence=10_000))
    world.deliver()


def last_told(world: World) -> ReportReason:
    return world.publisher.reports[-1][1].report.reason


def test_a_change_whose_report_was_not_recorded_is_looked_at_whenever_the_next_sweep_comes_through(
    world: World,
) -> None:
    """A sweep is killed after it announced that the JobSet waits; it no longer does when one comes through."""
    record = ready_and_told(world)
    hosts_leave(world, record)
    world.store.meanwhile(lambda: None, be_killed)
    with pytest.raises(Crash):
        report_all(world)
    assert last_told(world) is ReportReason.WAITING
    world.publish(hosts_changed(slice_id=record.maker, attempt=record.attempt, sequence=10_001))
    world.deliver()
    world.clock.advance(60 * CHANGED_WITHIN)
    report_all(world)
    assert last_told(world) is ReportReason.READY


def test_a_report_that_says_the_same_is_not_written_again_before_it_is_due(world: World) -> None:
    request_slices(world, "llama")
    assert reported(world) == ["llama"]
    commits = len(world.store.commits)
    assert reported(world) == []
    assert len(world.store.commits) == commits


def test_changes_of_one_sweep_take_at_most_half_of_its_reports_and_renewals_have_the_rest(world: World) -> None:
    renewed = suspended(PAGE, "vision", announced_count=1, announced_at=NOW - 60 * MINUTE)
    changed = [a_jobset(uid=WorkloadUid(f"uid-{number:03}"), announced_count=1) for number in range(PAGE)]
    world.store.put(*renewed, *changed)
    for jobset in changed:
        world.store.put(a_record(job=a_job(owner=jobset.owner), changed_at=NOW))
    report_all(world)
    made = [each for each in world.store.jobset_records(CLUSTER) if each.report is not None]
    assert Counter(each.owner.namespace for each in made) == {"vision": PAGE // 2, "research": PAGE // 2}


def test_a_change_that_could_not_be_announced_is_reported_whenever_the_next_sweep_comes_through(world: World) -> None:
    hosts_leave(world, ready_and_told(world))
    world.publisher.fail_next()
    assert report_all(world)[0] == []
    world.clock.advance(60 * CHANGED_WITHIN)
    report_all(world)
    assert last_told(world) is ReportReason.WAITING


def test_a_report_on_a_change_that_can_never_be_announced_is_not_tried_with_every_sweep(world: World) -> None:
    """The record that says that it is due was written since it was read: it is postponed by the next sweep."""
    hosts_leave(world, ready_and_told(world))
    for _ in range(2):
        world.publisher.refuse_next_report(Permanent("Pub/Sub: the message is too large"))
        _, failures = report_all(world)
        assert len(failures) == 1
        world.clock.advance(CHANGED_WITHIN)
    assert report_all(world) == ([], [])


def test_slices_that_transition_together_are_reported_on_once_and_write_no_workload(world: World) -> None:
    request_slices(world, "llama", slices=4)
    world.settle(minutes=15)
    (jobset,) = world.workloads
    assert world.store.workloads(CLUSTER, [jobset])[jobset].value.next_report_at is None
    before = len(world.store.commits)
    for record in world.records.values():
        world.publish(hosts_changed(slice_id=record.maker, attempt=record.attempt, usable=0, joined=0, sequence=10_000))
    world.deliver()
    written = chain.from_iterable(world.store.commits[before:])
    assert not any(isinstance(change.after, WorkloadRecord) for change in written)
    assert [each.phase for each in world.records.values()] == [Phase.PROVISIONING] * 4
    (update,), _ = report_all(world)
    assert (update.report.reason, update.report.ready) == (ReportReason.WAITING, 0)


def test_reporting_stops_after_some_failures_until_the_next_sweep(world: World) -> None:
    request_slices(world, *(f"jobset-{number}" for number in range(10)))
    world.publisher.fail_next(100)
    updates, failures = report_all(world)
    assert (updates, len(failures)) == ([], MOST_TROUBLES)


def suspended(count: int, namespace: str, **changes: Any) -> list[WorkloadRecord]:
    return [
        a_jobset(
            **{
                "uid": WorkloadUid(f"{namespace}-{number}"),
                "name": f"{namespace}-{number}",
                "namespace": namespace,
                "state": WorkloadState.SUSPENDED,
                "demand": {},
                "next_report_at": NOW,
                **changes,
            }
        )
        for number in range(count)
    ]


def reported_namespaces(world: World) -> Counter[str]:
    updates, failures = report_all(world)
    assert failures == []
    return Counter(each.workload.owner.namespace for each in updates)


@pytest.mark.slow
def test_many_jobsets_of_one_namespace_do_not_delay_anothers_first_report(world: World) -> None:
    world.store.put(*suspended(PAGE + 50, "research"))
    world.clock.advance(MINUTE)
    world.store.put(*suspended(1, "vision", next_report_at=world.clock.now()))
    assert reported_namespaces(world) == {"research": PAGE - 1, "vision": 1}
    assert reported_namespaces(world) == {"research": 51}
    assert reported_namespaces(world) == {}


@pytest.mark.slow
def test_namespaces_with_many_jobsets_are_reported_on_in_turn(world: World) -> None:
    world.store.put(*suspended(PAGE, "a"), *suspended(PAGE, "b"))
    assert reported_namespaces(world) == {"a": PAGE // 2, "b": PAGE // 2}


def test_a_first_report_comes_before_renewals_that_are_longer_due(world: World) -> None:
    renewals = suspended(PAGE, "research", announced_count=1, announced_at=NOW - 60 * MINUTE)
    (new,) = suspended(1, "research", uid=WorkloadUid("new"), name="new", next_report_at=NOW + MINUTE)
    world.store.put(*renewals, new)
    world.clock.advance(MINUTE)
    updates, _ = report_all(world)
    assert updates[0].workload.owner.name == "new"
    assert len(updates) == PAGE


def test_a_cluster_that_cannot_be_reported_on_stops_no_other(world: World) -> None:
    other = ClusterId("ahead")
    world.store.put_document(settings_key(other), {"path": "nowhere"})
    world.store.put(*suspended(5, "research", cluster=other), *suspended(1, "vision"))
    failures = Failures()
    updates = report_due([other, CLUSTER], world.deps, failures)
    assert [each.workload.owner.namespace for each in updates] == ["vision"]
    assert {failure.cluster for failure in failures.found} == {other}
