"""Slices that are refused for a limit of chips: nothing looks at them until some are released, and then namespaces take
turns."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from tests.builders import CLUSTER, MINUTE, NOW, a_jobset, a_request, settings
from tests.world import World
from tpu_slices.domain.model.clusters import Allowed, ClusterSettings, Policy
from tpu_slices.domain.model.facts import TemplateRequest
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import ClaimId, ClusterId, SliceId, WorkloadUid
from tpu_slices.domain.planning.policy import Room
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.flows.budget import MOST_TOLD, who_fits
from tpu_slices_simulator.fakes.settings import FakeSettings
from tpu_slices_simulator.live import LiveWorkload

SLICE = 16
"""The chips of a world's slice."""


def limited(*, in_cluster: int | None = None, in_namespace: int | None = None) -> ClusterSettings:
    return settings(policy=Policy(everyone=Allowed(chips_per_namespace=in_namespace), chips_per_cluster=in_cluster))


def other_shape() -> TemplateRequest:
    """Return a request for as many chips, which no slice of the usual one serves: there is no hand-over."""
    return a_request("tpu-v5-lite-podslice", "4x4")


def running(world: World, name: str = "first", namespace: str = "research") -> LiveWorkload:
    jobset = world.jobset_appears(name, namespace=namespace, request=other_shape())
    world.settle(minutes=10, until=lambda: jobset.bound == {0})
    return jobset


def waiting(world: World, name: str, namespace: str = "research", slices: int = 1) -> LiveWorkload:
    jobset = world.jobset_appears(name, namespace=namespace, slices=slices)
    world.settle(minutes=5)
    assert {world.record(jobset, index).reason for index in range(slices)} == {Reason.CHIP_LIMIT_REACHED}
    return jobset


def releases(world: World, jobset: LiveWorkload) -> None:
    """Let a JobSet complete, and its slice be deleted; no sweep comes by meanwhile."""
    world.ends(jobset)
    for _ in range(3):
        world.steps()
    world.operations_end()
    world.steps()


def test_a_slice_that_is_refused_for_a_limit_of_chips_is_looked_at_by_nobody_while_nothing_changes() -> None:
    world = World(of_cluster=limited(in_namespace=SLICE))
    running(world)
    waiting(world, "second", slices=5)
    before = len(world.publisher.requests)
    world.settle(minutes=60)
    assert len(world.publisher.requests) == before


@pytest.mark.parametrize(
    "limit",
    [limited(in_namespace=SLICE), limited(in_cluster=SLICE), limited(in_namespace=SLICE, in_cluster=SLICE)],
    ids=["of the namespace", "of the cluster", "of both"],
)
def test_a_slice_is_created_as_soon_as_chips_are_released_for_it(limit: ClusterSettings) -> None:
    world = World(of_cluster=limit)
    first = running(world)
    second = waiting(world, "second", slices=3)
    releases(world, first)
    reasons = [world.record(second, index).reason for index in range(3)]
    assert sorted(reasons) == [Reason.CHIP_LIMIT_REACHED, Reason.CHIP_LIMIT_REACHED, Reason.CREATION_STARTED]


def test_chips_that_are_released_go_round_the_namespaces_however_many_slices_of_one_wait() -> None:
    world = World(of_cluster=limited(in_cluster=SLICE))
    first = running(world, namespace="hog")
    waiting(world, "hogs", namespace="hog", slices=40)
    honest = waiting(world, "honest", namespace="small")
    releases(world, first)
    assert world.record(honest).reason is Reason.CREATION_STARTED


def test_a_slice_whose_chips_were_released_unheard_is_created_by_the_next_sweep() -> None:
    world = World(of_cluster=limited(in_namespace=SLICE))
    first = running(world)
    second = waiting(world, "second")
    request, lost = world.publisher.request_reconcile, world.record(second).name

    def heard_of_others(cluster: ClusterId, slices: Collection[ClaimId | SliceId], *of: Any, **said: Any) -> None:
        request(cluster, [each for each in slices if each != lost], *of, **said)

    world.publisher.request_reconcile = heard_of_others  # type: ignore[method-assign]
    releases(world, first)
    assert world.record(second).phase is Phase.REFUSED
    world.publisher.request_reconcile = request  # type: ignore[method-assign]
    world.sweeps()
    assert world.record(second).phase is Phase.PROVISIONING


def test_a_jobset_that_is_suspended_while_it_waits_for_chips_is_passed_over_and_waits_again_once_resumed() -> None:
    world = World(of_cluster=limited(in_cluster=SLICE))
    first = running(world)
    second, third = waiting(world, "second", slices=30), waiting(world, "third", namespace="other")
    world.suspends(second)
    world.steps()
    releases(world, first)
    assert world.record(third).reason is Reason.CREATION_STARTED
    world.resumes(second)
    world.settle(minutes=3)
    world.ends(third)
    world.settle(minutes=10, until=lambda: len(second.bound) == 1)
    assert len(second.bound) == 1


def test_chips_that_were_released_while_the_cluster_was_paused_are_told_of_once_it_goes_on() -> None:
    world = World(of_cluster=limited(in_namespace=SLICE))
    first = running(world)
    second = waiting(world, "second")
    world.ends(first)
    for _ in range(3):
        world.steps()
    FakeSettings(world.store).pause(CLUSTER, "maintenance")
    world.operations_end()
    world.settle(minutes=5)
    assert world.record(second).phase is not Phase.PROVISIONING
    FakeSettings(world.store).resume(CLUSTER)
    world.settle(minutes=4)
    assert second.bound == {0}


def test_those_that_fit_are_told_in_turns_of_namespaces_and_of_their_workloads_up_to_the_limits() -> None:
    policy = Policy(
        everyone=Allowed(),
        namespaces={"small": Allowed(chips_per_namespace=48)},
        chips_per_cluster=200,
    )

    def wants(name: str, chips: int, namespace: str) -> WorkloadRecord:
        return a_jobset(uid=WorkloadUid(name), namespace=namespace, chips_awaited=chips, chips_awaited_since=NOW)

    big, little = wants("big", 64, "large"), wants("little", 16, "large")
    small, small_2 = wants("small", 32, "small"), wants("small-2", 8, "small")
    room = Room(policy, 40, {"large": 0, "small": 0})
    fits = who_fits([[big, little], [small, small_2]], room)
    assert fits == {"big": 1, "little": 3, "small": 1, "small-2": 2}


def test_no_more_are_told_than_a_sweep_should_and_nobody_who_does_not_fit() -> None:
    jobset = a_jobset(uid=WorkloadUid("one"), chips_awaited=4, chips_awaited_since=NOW + MINUTE)
    namespace = jobset.owner.namespace
    assert who_fits([[jobset]], Room(Policy(), 0, {namespace: 0})) == {"one": MOST_TOLD}
    full = Policy(everyone=Allowed(chips_per_namespace=3))
    assert who_fits([[jobset]], Room(full, 0, {namespace: 0})) == {}
