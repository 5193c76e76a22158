"""Where nothing pins pods, only what stays together by itself is served, and the others are told what lacks."""

from __future__ import annotations

import pytest

from tests.builders import a_request
from tests.journeys.serving import own_slice, serving
from tests.world import World
from tpu_slices.domain.model.facts import Pinning, TemplateRequest
from tpu_slices.domain.model.reasons import Phase, Reason, ReportReason
from tpu_slices.domain.planning.host_labels import NODE_POOL
from tpu_slices_simulator.live import LiveWorkload

EXCLUSIVE = a_request(exclusive_topology=NODE_POOL)


def unpinned() -> World:
    world = World()
    world.cluster.pinning = Pinning.NOTHING
    return world


def refused(world: World, slices: int = 1) -> LiveWorkload:
    jobset = world.jobset_appears(slices=slices)
    world.settle(minutes=3)
    assert (world.record(jobset).phase, world.record(jobset).reason) == (Phase.REFUSED, Reason.PODS_NOT_PINNED)
    return jobset


def said(world: World) -> tuple[str, str]:
    last = world.publisher.reports[-1][1].report
    return last.reason, last.message


def test_a_job_whose_pods_could_scatter_gets_no_slice_and_is_told_why() -> None:
    world = unpinned()
    refused(world)
    assert world.backend.calls == []
    reason, message = said(world)
    assert reason is ReportReason.BLOCKED
    assert "neither the admission policy nor the webhook" in message
    assert "or set the annotation alpha.jobset.sigs.k8s.io/exclusive-topology" in message


@pytest.mark.parametrize("request_", [EXCLUSIVE, a_request(topology="2x2")], ids=["exclusive", "one host"])
def test_what_stays_together_by_itself_is_served_and_told_that_others_may_come(request_: TemplateRequest) -> None:
    world = unpinned()
    jobset = world.jobset_appears(request=request_)
    world.settle(minutes=10, until=lambda: jobset.bound == {0})
    world.settle(minutes=2)
    assert jobset.bound == {0}
    assert said(world) == (
        ReportReason.READY,
        "1 of 1 slices ready. Pods are not pinned in this cluster: others may take free hosts of its slices.",
    )


@pytest.mark.parametrize("by", [Pinning.POLICY, Pinning.WEBHOOK])
def test_it_is_served_once_its_pods_are_made_anew_where_they_are_pinned_and_not_before(by: Pinning) -> None:
    world = unpinned()
    jobset = refused(world)
    world.cluster.pinning = by
    world.settle(minutes=20)
    assert world.record(jobset).reason is Reason.PODS_NOT_PINNED, "its pods are as they were"
    assert world.backend.calls == []
    world.suspends(jobset)
    world.settle(minutes=1)
    world.resumes(jobset)
    world.settle(minutes=10, until=lambda: jobset.bound == {0})
    assert jobset.bound == {0}


def test_jobs_that_are_refused_cost_nothing_while_nothing_changes() -> None:
    world = unpinned()
    refused(world, slices=20)
    before = len(world.publisher.requests)
    world.settle(minutes=30)
    assert len(world.publisher.requests) == before


def test_a_job_that_runs_when_the_policy_goes_keeps_its_slice_and_returns_to_it() -> None:
    world, jobset = serving()
    world.cluster.pinning = Pinning.NOTHING
    world.settle(minutes=30)
    world.cluster.removes_pod(jobset, 0)
    world.settle(minutes=10)
    assert (jobset.bound, len(world.pools), world.record(jobset).phase) == ({0}, 1, Phase.READY)


def test_a_job_that_lost_its_slice_while_nothing_pins_its_pods_gets_no_other() -> None:
    world, jobset = serving()
    world.cluster.pinning = Pinning.NOTHING
    world.cluster.removes_pod(jobset, 0)
    world.cluster.schedules = False
    world.settle(minutes=3)
    order = world.backend.pools[world.record(jobset).pool].order
    assert order is not None
    world.backend.delete(order)
    world.cluster.schedules = True
    world.settle(minutes=20)
    assert (jobset.bound, world.pools) == (set(), [])
    assert world.record(jobset).reason is Reason.PODS_NOT_PINNED
    world.cluster.is_pinned_by(Pinning.POLICY)
    world.settle(minutes=10, until=lambda: jobset.bound == {0})
    assert jobset.bound == {0}


def test_a_slice_that_is_being_made_when_the_policy_goes_is_not_given_up() -> None:
    world = World()
    jobset = world.jobset_appears()
    world.cluster_lives()
    world.deliver()
    assert world.record(jobset).phase is Phase.PROVISIONING
    world.cluster.pinning = Pinning.NOTHING
    world.settle(minutes=20, until=lambda: jobset.bound == {0})
    assert (jobset.bound, world.record(jobset).maker) == ({0}, own_slice(jobset))
