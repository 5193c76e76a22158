"""A slice that stands and does not train: its pods do not run, run apart, or nobody comes. Each is said, once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from relay.events import event, summary
from relay.translate import MAINTENANCE
from tests.journeys.serving import deletions, reason, serving
from tests.world import World
from tpu_slices.domain.model.reasons import Phase, Reason, ReportReason
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload, Pod

NO_IMAGE: Mapping[str, Any] = {
    "phase": "Pending",
    "containerStatuses": [
        {
            "name": "main",
            "image": "train:2",
            "state": {"waiting": {"reason": "ErrImagePull", "message": "manifest unknown"}},
        }
    ],
}


def wedged() -> tuple[World, LiveWorkload, Pod]:
    """Return a JobSet of one slice of four hosts, of whose pods one has no image, and that pod."""
    world, llama = serving()
    pod = next(iter(world.cluster.followers.values()))
    pod.status, pod.since = NO_IMAGE, world.clock.now()
    world.cluster.saw(pod)
    return world, llama, pod


def last_report(world: World) -> Mapping[str, Any]:
    return summary(world.publisher.reports[-1][1])


def test_how_many_pods_run_is_said_once_all_do() -> None:
    world, llama = serving()
    world.settle(minutes=3)
    assert world.record(llama).message == "All 4 hosts are ready and offer their chips; 4 of 4 pods run."
    assert last_report(world)["message"] == "1 of 1 slices ready, 4 of 4 pods run."


def test_a_pod_that_does_not_run_is_said_with_the_kubelets_words_by_event_and_report() -> None:
    world, llama, pod = wedged()
    world.settle(minutes=4)
    record = world.record(llama)
    assert (record.phase, record.reason) == (Phase.READY, Reason.PODS_NOT_RUNNING)
    name = pod.raw["metadata"]["name"]
    assert f"1 pod of 4 does not run: pod {name} cannot start, as an image cannot be pulled since " in record.message
    assert record.message.endswith(": container main, image train:2: manifest unknown.")
    told = last_report(world)
    assert (told["type"], told["reason"]) == ("Warning", "WorkloadNotRunning")
    assert told["message"].startswith("0 of 1 slices ready, 3 of 4 pods run; llama-slice-0 since ")
    assert "manifest unknown" in told["message"]
    assert ". Meanwhile 16 chips are billed at an unknown price. Run `kubectl describe pod`" in told["message"]
    [said] = [each for each in world.publisher.updates if each.transition.reason is Reason.PODS_NOT_RUNNING]
    assert event(said, None)["type"] == "Warning"


def test_it_is_said_once_and_costs_nothing_while_it_lasts() -> None:
    world, _, _ = wedged()
    world.settle(minutes=5)
    commits, requests = len(world.store.commits), len(world.publisher.requests)
    world.settle(minutes=60)
    assert len(world.publisher.requests) == requests
    renewals = 6
    assert len(world.store.commits) - commits <= 60 + 2 * renewals, "heartbeats, and reports that are renewed"


def test_once_it_runs_the_slice_is_ready_again_and_nothing_was_bought_or_deleted() -> None:
    world, llama, pod = wedged()
    world.settle(minutes=30)
    pod.status, pod.since = {}, world.clock.now()
    world.cluster.saw(pod)
    world.settle(minutes=3)
    assert reason(world, llama) is Reason.READY
    assert last_report(world)["message"] == "1 of 1 slices ready, 4 of 4 pods run."
    assert (len(world.backend.ordered(Verb.CREATE)), deletions(world)) == (1, [])


def test_a_pod_that_runs_on_hosts_of_another_slice_is_said() -> None:
    world, llama = serving()
    gemma = world.jobset_appears("gemma")
    world.settle(minutes=20, until=lambda: gemma.bound == {0})
    mine, other = (
        next(each for each in world.cluster.followers.values() if each.jobset is jobset) for jobset in (llama, gemma)
    )
    mine.node = other.node
    world.cluster.saw(mine)
    world.settle(minutes=3)
    assert reason(world, llama) is Reason.PODS_APART
    assert world.record(llama).message == "1 pod of 4 runs on hosts outside this slice."


def test_a_slice_that_nobody_uses_is_idle_until_somebody_comes_or_it_goes() -> None:
    world, llama = serving()
    llama.absent = True
    world.leaves(llama)
    world.settle(minutes=8)
    assert reason(world, llama) is Reason.IDLE
    assert "nobody has used them since" in world.record(llama).message
    assert last_report(world)["reason"] == ReportReason.IDLE
    llama.absent = False
    world.settle(minutes=5, until=lambda: llama.bound == {0})
    world.settle(minutes=2)
    assert reason(world, llama) is Reason.READY


def test_what_is_reported_of_hosts_that_nobody_uses_leaves_the_slice_idle() -> None:
    world, llama = serving()
    llama.absent = True
    world.leaves(llama)
    world.settle(minutes=8)
    transitions = world.record(llama).transition_count
    node = next(iter(world.cluster.nodes.values()))
    world.cluster.changes_node(node, {"metadata": {"labels": {MAINTENANCE: "ONGOING"}}})
    world.settle(minutes=5)
    assert world.record(llama).current.hosts.maintained == 1
    assert (reason(world, llama), world.record(llama).transition_count) == (Reason.IDLE, transitions)


def test_an_idle_slice_goes_after_a_time() -> None:
    world, llama = serving()
    llama.absent = True
    world.leaves(llama)
    world.settle(minutes=60)
    assert world.pools == []


@pytest.mark.parametrize("minutes", [10, 60])
def test_of_a_relay_that_is_silent_nobody_says_that_a_slice_is_idle(minutes: int) -> None:
    world, llama = serving()
    llama.absent = True
    world.leaves(llama)
    world.deliver()
    world.relay_is_dead = True
    world.settle(minutes=minutes)
    assert reason(world, llama) is Reason.READY
