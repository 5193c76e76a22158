"""Where nothing pins pods, a Job gets a slice only if its pods stay together; the report of any other says why not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import CLUSTER, MINUTE, a_request
from tests.journeys.serving import own_slice, serving
from tests.manifests import a_manifest
from tests.world import World
from tpu_slices.domain.model.facts import EXCLUSIVE as EXCLUSIVE_TOPOLOGY
from tpu_slices.domain.model.facts import Fact, Pinning, Reach, SlicesWanted, TemplateRequest
from tpu_slices.domain.model.reasons import Phase, Reason, ReportReason
from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.domain.planning.host_labels import NODE_POOL
from tpu_slices.flows.receive import receive
from tpu_slices_simulator.live import LiveWorkload
from tpu_slices_simulator.objects import template_of

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
    assert "or create the JobSet with the annotation alpha.jobset.sigs.k8s.io/exclusive-topology" in message


@pytest.mark.parametrize("request_", [EXCLUSIVE, a_request(topology="2x2")], ids=["exclusive", "one host"])
def test_what_stays_together_by_itself_is_served_and_told_that_others_may_come(request_: TemplateRequest) -> None:
    world = unpinned()
    jobset = world.jobset_appears(request=request_)
    world.settle(minutes=10, until=lambda: jobset.bound == {0})
    world.settle(minutes=2)
    assert jobset.bound == {0}
    hosts = len(world.cluster.nodes)
    assert said(world) == (
        ReportReason.READY,
        (
            f"1 of 1 slices ready, {hosts} of {hosts} pods run. New pods are not pinned in this cluster: others "
            "may take free hosts of its slices."
        ),
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


def told(world: World) -> list[SlicesWanted]:
    """Return what the relay publishes of leaders that wait, from now on."""
    kept: list[SlicesWanted] = []
    publishes = world.publish

    def publish(fact: Fact, *more: Any) -> None:
        kept.extend([fact] if isinstance(fact, SlicesWanted) else [])
        publishes(fact, *more)

    world.publish = publish  # type: ignore[method-assign]  # to listen
    return kept


def test_a_fact_about_the_pods_before_that_comes_late_does_not_count() -> None:
    world = unpinned()
    kept = told(world)
    jobset = refused(world)
    before = world.clock.now()
    world.cluster.schedules = False
    world.cluster.is_pinned_by(Pinning.POLICY)
    world.settle(minutes=2)
    assert [each.waiting[0].reach for each in kept] == [Reach.ANY, Reach.OWN]
    receive(kept[0], CLUSTER, world.deps, before - MINUTE)
    spec = world.record(jobset).spec
    assert spec is not None
    assert not spec.scatters
    world.cluster.schedules = True
    world.settle(minutes=20)
    assert jobset.bound == {0}


def test_what_pods_that_were_made_anew_are_is_told_again_if_that_was_lost() -> None:
    world = unpinned()
    jobset = refused(world)
    with world.loses(SlicesWanted):
        world.cluster.is_pinned_by(Pinning.POLICY)
        world.settle(minutes=2)
    world.settle(minutes=15)
    assert jobset.bound == {0}


def test_an_annotation_that_its_pods_do_not_have_gets_it_no_slice() -> None:
    world = unpinned()
    jobset = refused(world)
    jobset.edit({**jobset.manifest, "metadata": {"annotations": {EXCLUSIVE_TOPOLOGY: NODE_POOL}}})
    world.cluster.changes(jobset)
    world.settle(minutes=5)
    assert (world.record(jobset).reason, world.backend.calls) == (Reason.PODS_NOT_PINNED, [])


def test_a_group_of_an_earlier_revision_is_judged_by_the_pods_that_it_has_now() -> None:
    world = unpinned()
    group = world.other_appears(OwnerKind.LEADER_WORKER_SET)
    world.settle(minutes=3)
    assert world.record(group).reason is Reason.PODS_NOT_PINNED
    assert "delete the group's leader pod" in said(world)[1]
    before = template_of(group.manifest, "")
    world.edits(group, a_manifest(OwnerKind.LEADER_WORKER_SET, 1, a_request(topology="4x8")))
    world.cluster.pinning = Pinning.POLICY
    world.cluster.removes_pod(group, 0)
    pod = world.cluster.creates_pod(group, 0)
    pod.template = before
    world.cluster.saw(pod)
    world.settle(minutes=15)
    assert (pod.node is not None, group.bound) == (True, {0})


def test_the_annotation_of_a_jobset_keeps_no_pods_of_a_job_by_itself_together() -> None:
    world = unpinned()
    job = world.other_appears(OwnerKind.JOB)
    job.manifest["spec"]["template"]["metadata"] = {"annotations": {EXCLUSIVE_TOPOLOGY: NODE_POOL}}
    world.settle(minutes=5)
    assert (world.record(job).reason, world.backend.calls) == (Reason.PODS_NOT_PINNED, [])
