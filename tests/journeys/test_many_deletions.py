"""Many JobSets that seem to be deleted at once keep their slices until an operator confirms."""

from __future__ import annotations

import pytest

from tests.builders import CLUSTER, MINUTE
from tests.conftest import Lines
from tests.functions.test_handlers import an_event
from tests.world import World
from tpu_slices.app.handlers import handle_reconcile
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import ClusterId, SliceId
from tpu_slices.flows import brakes, edits
from tpu_slices.flows.reconcile import Told
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.wire.messages import encode_reconcile_request
from tpu_slices_simulator.cluster import LiveWorkload
from tpu_slices_simulator.fakes.backend import Verb


def serving(count: int, slices: int = 1) -> tuple[World, list[LiveWorkload]]:
    """Return a world in which so many JobSets run."""
    world = World()
    world.backend.operation_limit = 100
    jobsets = [world.jobset_appears(f"job-{number}", slices=slices) for number in range(count)]
    world.settle(minutes=90, until=lambda: all(len(jobset.bound) == slices for jobset in jobsets))
    world.settle(minutes=2)
    assert {record.phase for record in world.records.values()} == {Phase.READY}
    return world, jobsets


def deleted(world: World) -> int:
    return len(world.backend.ordered(Verb.DELETE))


def reconciled_by_the_function(cluster: ClusterId, slice_: SliceId, deps: ReconcileDeps, told: Told) -> tuple[()]:
    request = encode_reconcile_request(cluster, slice_, told.waiting)
    handle_reconcile(an_event("reconcile-requests", request), deps)
    return ()


def test_forty_jobsets_reported_deleted_at_once_keep_their_slices() -> None:
    world, jobsets = serving(40)
    for jobset in jobsets:
        world.ends(jobset, WorkloadState.DELETED)
    world.settle(minutes=60)
    assert deleted(world) == 0
    assert {record.reason for record in world.records.values()} == {"ReleasesStopped"}
    assert "40 of 40 JobSets" in next(iter(world.records.values())).message


def test_forty_jobsets_that_are_missing_at_once_keep_their_slices() -> None:
    world, jobsets = serving(40)
    for jobset in jobsets:
        world.ends_unreported(jobset)

    def are_missing() -> bool:
        return {record.state for record in world.store.jobset_records(CLUSTER)} == {WorkloadState.MISSING}

    world.settle(minutes=20, until=are_missing)
    assert are_missing()
    world.settle(minutes=5)
    assert deleted(world) == 0
    assert {record.reason for record in world.records.values()} == {"ReleasesStopped"}


def test_a_fifth_of_the_jobsets_may_be_deleted_at_once_and_no_more() -> None:
    world, jobsets = serving(60)
    for jobset in jobsets[:12]:
        world.ends(jobset, WorkloadState.DELETED)
    world.settle(minutes=4, until=lambda: deleted(world) == 12)
    world.ends(jobsets[12], WorkloadState.DELETED)
    world.settle(minutes=4)
    assert (deleted(world), world.record(jobsets[12]).reason) == (12, "ReleasesStopped")


def test_stopped_releases_are_logged_once_a_slice_as_errors_with_their_cluster(
    lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, jobsets = serving(12)
    monkeypatch.setattr("tpu_slices_simulator.system.reconcile_in_turn", reconciled_by_the_function)
    for jobset in jobsets:
        world.ends(jobset, WorkloadState.DELETED)
    world.settle(minutes=20)
    stopped = [line for line in lines() if line["event"] == LogEvent.RELEASES_STOPPED]
    assert {(line["severity"], line["cluster"]) for line in stopped} == {("ERROR", "demo")}
    assert sorted(line["slice"] for line in stopped) == sorted(world.records)
    assert "12 of 12 JobSets" in stopped[0]["message"]


def test_stopped_releases_go_on_once_an_operator_confirms_them() -> None:
    world, jobsets = serving(12)
    for jobset in jobsets:
        world.ends(jobset, WorkloadState.DELETED)
    world.settle(minutes=20)
    assert deleted(world) == 0
    assert brakes.confirm(CLUSTER, world.deps) is not None
    world.settle(minutes=20)
    assert world.pools == []
    assert brakes.confirm(CLUSTER, world.deps) is None, "nothing is stopped any more"


def test_a_person_can_release_one_of_the_stopped_slices() -> None:
    world, jobsets = serving(12)
    for jobset in jobsets:
        world.ends(jobset, WorkloadState.DELETED)
    world.settle(minutes=20)
    edits.edit(CLUSTER, world.record(jobsets[0]).id, edits.release, world.deps)
    world.settle(minutes=20)
    assert deleted(world) == 1


@pytest.mark.parametrize("state", [WorkloadState.COMPLETED, WorkloadState.FAILED])
def test_jobsets_that_complete_or_fail_together_are_an_ordinary_evening(state: WorkloadState) -> None:
    world, jobsets = serving(20)
    for jobset in jobsets:
        world.ends(jobset, state)
    world.settle(minutes=20)
    assert world.pools == []


def test_twenty_jobsets_that_are_suspended_at_once_are_released() -> None:
    world, jobsets = serving(20)
    for jobset in jobsets:
        world.suspends(jobset)
    world.settle(minutes=30)
    assert world.pools == []


def test_one_jobset_with_many_slices_counts_once() -> None:
    world, jobsets = serving(1, slices=30)
    world.ends(jobsets[0], WorkloadState.DELETED)
    world.settle(minutes=30)
    assert world.pools == []


def test_deletions_spread_over_hours_are_not_stopped() -> None:
    world, jobsets = serving(14)
    for jobset in jobsets:
        world.ends(jobset, WorkloadState.DELETED)
        world.settle(minutes=3)
    world.settle(minutes=10)
    assert world.pools == []


def test_deletions_after_a_confirmation_are_counted_anew() -> None:
    world, jobsets = serving(36)
    for jobset in jobsets[:12]:
        world.ends(jobset, WorkloadState.DELETED)
    world.settle(minutes=5)
    brakes.confirm(CLUSTER, world.deps)
    world.clock.advance(MINUTE)
    for jobset in jobsets[12:24]:
        world.ends(jobset, WorkloadState.DELETED)
    world.settle(minutes=30)
    kept = [record.reason for record in world.records.values() if record.phase is Phase.RELEASING]
    assert (deleted(world), kept) == (12, ["ReleasesStopped"] * 12)
