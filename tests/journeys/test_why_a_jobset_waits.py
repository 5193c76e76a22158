"""Why is my job waiting? The same report in the Event, the record, the log and from `slices explain`."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from relay.events import REPORT_ANNOTATION, over, summary
from tests.builders import CLUSTER, MINUTE, self_managed, settings
from tests.cli.stage import Stage
from tests.conftest import Lines
from tests.world import World
from tpu_slices.app.handlers import Event, handle_sweep
from tpu_slices.domain.model.clusters import Allowed, Policy
from tpu_slices.domain.model.facts import WorkloadChanged, WorkloadState
from tpu_slices.domain.model.observations import Failure, FailureKind
from tpu_slices.domain.model.slices import CapacityKind
from tpu_slices.domain.reporting.reports import RENEW
from tpu_slices.wire.documents import encode
from tpu_slices_simulator.live import LiveWorkload


def refused_with(kind: FailureKind) -> Callable[[World], LiveWorkload]:
    def begin(world: World) -> LiveWorkload:
        world.backend.refuse_next_create(Failure(kind, "GKE's words"))
        return one_slice(world)

    return begin


def one_slice(world: World) -> LiveWorkload:
    jobset = world.jobset_appears("llama")
    world.cluster_lives()
    world.deliver()
    return jobset


def nine_slices(world: World) -> LiveWorkload:
    jobset = world.jobset_appears("llama", slices=9)
    world.cluster_lives()
    world.deliver()
    return jobset


def not_allowed(world: World) -> LiveWorkload:
    world.store.put_settings(settings(policy=Policy(everyone=Allowed(capacity=(CapacityKind.SPOT,)))))
    return one_slice(world)


def queued_by_kueue(world: World) -> LiveWorkload:
    jobset = world.jobset_appears("llama")
    jobset.state = WorkloadState.SUSPENDED
    world.publish(WorkloadChanged(workload=jobset.ref, state=WorkloadState.SUSPENDED, queue="team-a"))
    world.deliver()
    return jobset


STORIES = {
    "out of stock": (
        refused_with(FailureKind.STOCKOUT),
        (
            "0 of 1 slices ready; llama-slice-0 since 12:00 UTC: us-central2-b is out of tpu-v6e-slice 4x4, "
            "next attempt at 12:01:00 UTC. "
        ),
    ),
    "quota": (
        refused_with(FailureKind.QUOTA),
        "llama-slice-0 since 12:00 UTC: the project's quota does not allow more tpu-v6e-slice",
    ),
    "settings of GKE": (refused_with(FailureKind.CONFIGURATION), "GKE rejected the node pool"),
    "operations": (nine_slices, "(queue position 1, 5 running)"),
    "policy": (not_allowed, "capacity"),
    "Kueue": (queued_by_kueue, 'The JobSet is suspended by Kueue in queue "team-a" (see `kubectl describe workloads'),
    "on its way": (
        one_slice,
        "0 of 1 slices ready; llama-slice-0 since 12:00 UTC: requested from GKE. No action needed",
    ),
}


def swept(world: World) -> None:
    handle_sweep(Event(id="tick", source="//pubsub.googleapis.com/projects/p/topics/ticks-demo", data=TICK), world.deps)


TICK = {"message": {"data": "e30=", "attributes": {}, "messageId": "1", "publishTime": "2026-03-01T12:00:00Z"}}


@pytest.mark.parametrize("name", STORIES)
def test_the_report_is_the_same_wherever_it_is_read(name: str, lines: Lines) -> None:
    begin, expected = STORIES[name]
    stage = Stage()
    jobset = begin(stage.world)
    swept(stage.world)
    (line,) = [line for line in lines() if line["event"] == "workload.reported"]
    ((_, update),) = stage.world.publisher.reports
    event = summary(update)
    stored = stage.world.store.workloads(CLUSTER, [jobset.ref.owner.uid])[jobset.ref.owner.uid].value
    explained = json.loads(stage.output_of("explain", "research/llama", "-o", "json"))["report"]
    assert expected in line["message"]
    assert event["message"] == line["message"] == explained["message"]
    assert encode(stored)["report"]["message"] == line["message"]
    assert line["message"] in stage.output_of("explain", "research/llama")
    assert json.loads(event["metadata"]["annotations"][REPORT_ANNOTATION]) == explained
    assert {key: line[key] for key in explained} == explained


def test_a_wait_is_one_event_that_is_renewed_and_its_end_is_told_once_with_how_long_it_was_and_for_what() -> None:
    world = World()
    for _ in range(3):
        world.backend.refuse_next_create(Failure(FailureKind.STOCKOUT, "GKE's words"))
    jobset = world.jobset_appears("llama")
    world.settle(minutes=5)
    names = {summary(update)["metadata"]["name"] for _, update in world.publisher.reports}
    assert names == {f"llama.{jobset.ref.owner.uid}.sliceswaiting"}
    assert len(world.publisher.reports) <= 10
    world.settle(minutes=40, until=lambda: jobset.bound == {0})
    world.settle(minutes=2)
    last = world.publisher.reports[-1][1]
    assert (last.report.reason, last.report.message) == (
        "SlicesReady",
        (
            "1 of 1 slices ready, 4 of 4 pods run; "
            "waited 8 min: 7 min for stock of tpu-v6e-slice 4x4 in us-central2-b, 60 s for its creation."
        ),
    )
    ended = [told["message"] for told in map(over, (update for _, update in world.publisher.reports)) if told]
    assert ended
    assert all(message.startswith("Until ") for message in ended)
    count = len(world.publisher.reports)
    world.settle(minutes=60)
    assert len(world.publisher.reports) == count


@pytest.mark.parametrize("suspended", [1, 30], ids=["for a minute", "until its slice is gone"])
def test_that_a_jobset_was_suspended_is_over_as_soon_as_it_is_resumed(suspended: int) -> None:
    world = World()
    jobset = world.jobset_appears("llama")
    world.settle(minutes=5)
    world.suspends(jobset)
    world.deliver()
    assert summary(world.publisher.reports[-1][1])["message"].startswith("The JobSet is suspended")
    world.settle(minutes=suspended)
    world.resumes(jobset)
    world.deliver()
    last = world.publisher.reports[-1][1]
    assert "suspended" not in summary(last)["message"]
    told = over(last)
    assert told is not None
    assert told["message"].startswith(f"Until {world.clock.now():%H:%M:%S} UTC, for ")
    assert "The JobSet is suspended" in told["message"]


def test_a_jobset_that_waits_for_an_operator_is_reported_every_ten_minutes() -> None:
    world = World()
    not_allowed(world)
    world.settle(minutes=60)
    assert len(world.publisher.reports) in range(int(60 * MINUTE / RENEW) - 1, int(60 * MINUTE / RENEW) + 2)


@pytest.mark.parametrize(
    ("begin", "expected"),
    [
        (refused_with(FailureKind.CONFIGURATION), "Compute Engine rejected the instance group"),
        (nine_slices, "queued, because the cluster's settings limit how many slices are created and deleted at once"),
        (one_slice, "llama-slice-0 since 12:00 UTC: requested from Compute Engine. No action needed"),
    ],
    ids=["settings", "operations", "on its way"],
)
def test_in_a_self_managed_cluster_the_report_names_what_runs_its_slices(
    begin: Callable[[World], LiveWorkload], expected: str
) -> None:
    world = World(of_cluster=self_managed())
    begin(world)
    swept(world)
    ((_, update),) = world.publisher.reports
    assert expected in update.report.message
    assert "node pool" not in update.report.message
