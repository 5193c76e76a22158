"""Slices whose workloads the API server deleted are released; if many workloads are only missing, they are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from tests.builders import CLUSTER, MINUTE
from tests.conftest import Lines
from tests.functions.test_handlers import an_event
from tests.world import World
from tpu_slices.app.handlers import handle_reconcile
from tpu_slices.domain.model.facts import Answer, WorkloadChanged, WorkloadState
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import ClaimId, ClusterId
from tpu_slices.flows import brakes, edits
from tpu_slices.flows.looking import Told
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.wire.messages import encode_reconcile_request
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload


def serving(count: int, slices: int = 1, namespaces: Sequence[str] = ("research",)) -> tuple[World, list[LiveWorkload]]:
    """Return a world in which so many JobSets run, their namespaces in turn."""
    world = World()
    world.backend.operation_limit = 100
    jobsets = [
        world.jobset_appears(f"job-{number}", slices=slices, namespace=namespaces[number % len(namespaces)])
        for number in range(count)
    ]
    world.settle(minutes=90, until=lambda: all(len(jobset.bound) == slices for jobset in jobsets))
    world.settle(minutes=2)
    assert {record.phase for record in world.records.values()} == {Phase.READY}
    return world, jobsets


def deleted(world: World) -> int:
    return len(world.backend.ordered(Verb.DELETE))


def kept(world: World) -> int:
    return sum(record.reason == "ReleasesStopped" for record in world.records.values())


def reconciled_by_the_function(cluster: ClusterId, slice_: ClaimId, deps: ReconcileDeps, told: Told) -> tuple[()]:
    request = encode_reconcile_request(cluster, slice_, told.waiting)
    handle_reconcile(an_event("requests-demo", request), deps)
    return ()


# What the API server says of the very object


def test_thirty_jobsets_that_a_person_deletes_at_once_are_released_without_an_operator() -> None:
    world, jobsets = serving(30)
    for jobset in jobsets:
        world.ends(jobset, WorkloadState.DELETED)
    world.steps()
    world.steps()
    assert kept(world) == 0
    assert deleted(world) == world.settings.limits.operations, "as many at a time as may be"
    world.settle(minutes=30)
    assert world.pools == []


def test_so_are_those_whose_objects_stay_for_a_while_with_the_time_of_their_deletion() -> None:
    world, jobsets = serving(12)
    for jobset in jobsets:
        jobset.manifest = {**jobset.manifest, "metadata": {"finalizers": ["foregroundDeletion"]}}
        world.ends(jobset, WorkloadState.DELETED)
    world.settle(minutes=20)
    assert world.pools == []


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


def test_a_deleted_jobset_is_released_while_missing_ones_of_its_namespace_are_kept() -> None:
    world, jobsets = serving(40)
    world.api_server_loses(jobsets[:20])
    world.settle(minutes=10)
    world.ends(jobsets[39], WorkloadState.DELETED)
    world.settle(minutes=10)
    assert (deleted(world), world.record(jobsets[39]).phase, kept(world)) == (1, Phase.GONE, 20)


# What proves nothing


def made_anew(world: World, _: Sequence[LiveWorkload]) -> None:
    """Let the relay talk to another API server, which has nothing."""
    world.cluster.is_made_again()


def emptied(world: World, jobsets: Sequence[LiveWorkload]) -> None:
    """Let the API server have lost its JobSets under a relay that runs."""
    world.api_server_loses(jobsets)


def restored(world: World, jobsets: Sequence[LiveWorkload]) -> None:
    """Let etcd be as it was before the JobSets were made."""
    world.api_server_loses(jobsets, version=50)


def unseen(world: World, jobsets: Sequence[LiveWorkload]) -> None:
    """Let the JobSets go while no relay watches."""
    world.relay_is_dead = True
    for jobset in jobsets:
        world.ends(jobset, WorkloadState.DELETED)
    world.relay_is_dead = False


def misreported(world: World, jobsets: Sequence[LiveWorkload]) -> None:
    """Let a relay that errs tell deletions that no watch showed it."""
    for jobset in jobsets:
        world.publish(WorkloadChanged(workload=jobset.ref, state=WorkloadState.DELETED))


def seen_in_the_past(world: World, jobsets: Sequence[LiveWorkload]) -> None:
    """Let a relay of an API server that was restored see objects of the past being deleted."""
    for jobset in jobsets:
        past = replace(jobset.ref, resource_version="7")
        world.publish(WorkloadChanged(workload=past, state=WorkloadState.DELETED))


def answered(world: World, jobsets: Sequence[LiveWorkload]) -> None:
    """Let the relay answer that it does not find them."""
    for jobset in jobsets:
        gone = replace(jobset.ref, generation=0, resource_version="")
        world.publish(Answer(workload=gone, state=WorkloadState.MISSING))


@pytest.mark.parametrize(
    "happens",
    [made_anew, emptied, restored, unseen, misreported, seen_in_the_past, answered],
    ids=lambda it: it.__name__,
)
def test_forty_of_forty_jobsets_that_nobody_said_to_have_deleted_keep_their_slices(
    happens: Callable[[World, Sequence[LiveWorkload]], None],
) -> None:
    world, jobsets = serving(40)
    happens(world, jobsets)
    world.settle(minutes=60)
    assert deleted(world) == 0
    assert kept(world) == 40
    told = next(iter(world.records.values())).message
    assert "11 of 40 slices in the namespace research had lost their workloads" in told
    assert "`slices confirm-deletions --cluster demo --namespace research`" in told


def test_a_fifth_of_the_slices_of_a_namespace_may_go_at_once_and_no_more() -> None:
    world, jobsets = serving(60)
    world.api_server_loses(jobsets[:12])
    world.settle(minutes=4, until=lambda: deleted(world) == 12)
    world.api_server_loses(jobsets[12:13])
    world.settle(minutes=4)
    assert (deleted(world), world.record(jobsets[12]).reason) == (12, "ReleasesStopped")


def test_one_jobset_of_many_slices_counts_with_each_of_them() -> None:
    world, jobsets = serving(1, slices=30)
    world.api_server_loses(jobsets)
    world.settle(minutes=30)
    assert (deleted(world), kept(world)) == (0, 30)


def test_slices_that_lose_their_workloads_over_hours_are_not_stopped() -> None:
    world, jobsets = serving(14)
    for jobset in jobsets:
        world.api_server_loses([jobset])
        world.settle(minutes=3)
    world.settle(minutes=10)
    assert world.pools == []


def test_they_are_counted_when_they_are_found_however_long_the_functions_were_away() -> None:
    world, jobsets = serving(40)
    world.loses_request = lambda: True  # type: ignore[method-assign]
    world.api_server_loses(jobsets)
    world.deliver()
    assert {record.state for record in world.store.jobset_records(CLUSTER)} == {WorkloadState.MISSING}
    world.clock.advance(30 * MINUTE)
    world.loses_request = lambda: False  # type: ignore[method-assign]
    world.settle(minutes=60)
    assert (deleted(world), kept(world)) == (0, 40)


# Namespaces, and the cluster


def test_one_namespace_alone_stops_the_releases_of_no_other() -> None:
    world, jobsets = serving(30, namespaces=["many", "few", "many"])
    many = [each for each in jobsets if each.ref.owner.namespace == "many"]
    few = [each for each in jobsets if each.ref.owner.namespace == "few"]
    world.api_server_loses(many)
    world.settle(minutes=3)
    world.api_server_loses(few[:1])
    for jobset in few[1:]:
        world.ends(jobset, WorkloadState.DELETED)
    world.settle(minutes=20)
    assert {world.record(each).reason for each in many} == {"ReleasesStopped"}
    assert {world.record(each).phase for each in few[1:]} == {Phase.GONE}


def test_many_namespaces_that_lose_a_few_each_stop_all_releases() -> None:
    world, jobsets = serving(40, namespaces=[f"team-{number}" for number in range(8)])
    world.api_server_loses(jobsets)
    world.settle(minutes=30)
    assert (deleted(world), kept(world)) == (0, 40)
    assert "`slices confirm-deletions --cluster demo`" in next(iter(world.records.values())).message


def test_one_namespace_of_those_can_be_confirmed_by_itself_and_then_all_the_others() -> None:
    world, jobsets = serving(40, namespaces=[f"team-{number}" for number in range(8)])
    world.api_server_loses(jobsets)
    world.settle(minutes=10)
    brakes.confirm(CLUSTER, world.deps, "team-3")
    world.settle(minutes=20)
    assert (deleted(world), kept(world)) == (5, 35)
    brakes.confirm(CLUSTER, world.deps)
    world.settle(minutes=30)
    assert world.pools == []


def test_nothing_is_bought_in_a_cluster_whose_releases_are_stopped_beyond_what_stands() -> None:
    world, jobsets = serving(40, namespaces=[f"team-{number}" for number in range(8)])
    world.api_server_loses(jobsets)
    world.settle(minutes=10)
    waiting = world.jobset_appears("waiting", namespace="another")
    world.settle(minutes=10)
    assert world.record(waiting).reason == "PurchasesStopped"
    brakes.confirm(CLUSTER, world.deps)
    world.settle(minutes=40)
    assert waiting.bound == {0}


# Operators


def test_stopped_releases_are_logged_once_a_slice_as_errors_with_cluster_and_namespace(
    lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, jobsets = serving(12)
    monkeypatch.setattr("tpu_slices_simulator.system.reconcile_in_turn", reconciled_by_the_function)
    world.api_server_loses(jobsets)
    world.settle(minutes=20)
    stopped = [line for line in lines() if line["event"] == LogEvent.RELEASES_STOPPED]
    assert {(each["severity"], each["cluster"], each["namespace"]) for each in stopped} == {
        ("ERROR", "demo", "research")
    }
    assert sorted(line["slice"] for line in stopped) == sorted(world.records)
    assert "of 12 slices" in stopped[0]["message"]


def test_stopped_releases_go_on_once_an_operator_confirms_them() -> None:
    world, jobsets = serving(12)
    world.api_server_loses(jobsets)
    world.settle(minutes=20)
    assert deleted(world) == 0
    assert len(brakes.confirm(CLUSTER, world.deps)) == 1
    world.settle(minutes=20)
    assert world.pools == []
    assert brakes.confirm(CLUSTER, world.deps) == (), "nothing is stopped any more"


def test_a_person_can_release_one_of_the_stopped_slices() -> None:
    world, jobsets = serving(12)
    world.api_server_loses(jobsets)
    world.settle(minutes=20)
    edits.edit(CLUSTER, world.record(jobsets[0]).name, edits.release, world.deps)
    world.settle(minutes=20)
    assert deleted(world) == 1


def test_ends_after_a_confirmation_are_counted_anew() -> None:
    world, jobsets = serving(36)
    world.api_server_loses(jobsets[:12])
    world.settle(minutes=5)
    brakes.confirm(CLUSTER, world.deps)
    world.clock.advance(MINUTE)
    world.api_server_loses(jobsets[12:24])
    world.settle(minutes=30)
    assert (deleted(world), kept(world)) == (12, 12)
