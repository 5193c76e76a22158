"""How a pod is, by its conditions and its containers."""

from __future__ import annotations

from typing import Any

import pytest

from relay.pod_status import PodStatus, status_of
from tests.relay.objects import Json, pod
from tpu_slices.domain.model.pods import MOST_WORDS, PodTrouble

SAID = "0/9 nodes are available: 4 Insufficient google.com/tpu."
PULL = "rpc error: code = NotFound desc = train:2: not found"


def bound(phase: str = "Pending", **status: Any) -> Json:
    """Return a pod on a host whose status has these fields."""
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-01T12:00:00Z"}
    ready = {"type": "ContainersReady", "status": "False", "lastTransitionTime": "2026-11-01T12:03:00Z"}
    return pod(spec={"nodeName": "n"}, status={"phase": phase, "conditions": [scheduled, ready], **status})


def container(state: Json, last: Json | None = None, name: str = "main") -> Json:
    return {"name": name, "image": "train:2", "state": state, **({"lastState": last} if last else {})}


def waiting(reason: str, message: str = "") -> Json:
    return {"waiting": {"reason": reason, "message": message}}


def stopped(code: int, reason: str = "Error", message: str = "") -> Json:
    return {"terminated": {"exitCode": code, "reason": reason, "message": message}}


PULL_LATER = f"Back-off pulling image: ErrImagePull: {PULL}"
BACK_OFF = waiting("CrashLoopBackOff", "back-off 10s restarting failed container=main")
RUNNING: Json = {"running": {}}


@pytest.mark.parametrize(
    ("pod_", "trouble", "words"),
    [
        (bound("Running", containerStatuses=[container(RUNNING)]), None, ""),
        (bound("Running", containerStatuses=[container(RUNNING, stopped(1))]), None, ""),
        (bound(containerStatuses=[container(waiting("ContainerCreating"))]), PodTrouble.STARTING, ""),
        (bound(), PodTrouble.STARTING, ""),
        (
            bound(containerStatuses=[container(waiting("CreateContainerConfigError", 'secret "hf" not found'))]),
            PodTrouble.STARTING,
            'container main, CreateContainerConfigError: secret "hf" not found',
        ),
        (
            bound(containerStatuses=[container(waiting("ErrImagePull", PULL))]),
            PodTrouble.IMAGE,
            f"container main, image train:2: {PULL}",
        ),
        (
            bound(containerStatuses=[container(waiting("ImagePullBackOff", PULL_LATER))]),
            PodTrouble.IMAGE,
            f"container main, image train:2: {PULL}",
        ),
        (
            bound(initContainerStatuses=[container(BACK_OFF, stopped(2), name="fetch")]),
            PodTrouble.INIT,
            "container fetch ended with exit code 2 (Error)",
        ),
        (
            bound("Running", containerStatuses=[container(BACK_OFF, stopped(1, message="no TPU\n"))]),
            PodTrouble.CRASHING,
            "container main ended with exit code 1 (Error): no TPU",
        ),
        (
            bound("Running", containerStatuses=[container(BACK_OFF, stopped(137, "OOMKilled"))]),
            PodTrouble.OUT_OF_MEMORY,
            "container main ended with exit code 137 (OOMKilled)",
        ),
        (bound("Running", containerStatuses=[container(stopped(0, "Completed")), container(RUNNING)]), None, ""),
    ],
    ids=[
        "runs",
        "runs again",
        "is created",
        "nothing is said",
        "is not started",
        "no image",
        "no image, tried again",
        "init container",
        "crashes",
        "out of memory",
        "a container is done",
    ],
)
def test_a_pod_on_a_host_is_as_its_containers_are(pod_: Json, trouble: PodTrouble | None, words: str) -> None:
    status = status_of(pod_)
    assert (status.trouble, status.words, status.ended, status.departing) == (trouble, words, False, False)


SIDECAR = {"name": "upload", "image": "upload", "restartPolicy": "Always"}
SIDECAR_CRASHES = [container(BACK_OFF, stopped(1), name="upload")]


@pytest.mark.parametrize("statuses", ["containerStatuses", "initContainerStatuses"])
@pytest.mark.parametrize("main", [RUNNING, waiting("ContainerCreating")], ids=["trains", "does not train yet"])
def test_a_pod_whose_containers_with_chips_run_runs_whatever_crashes_beside_them(statuses: str, main: Json) -> None:
    beside = {"containerStatuses": [container(main)]}
    beside[statuses] = [*beside.get(statuses, ()), *SIDECAR_CRASHES]
    made = bound("Running", **beside)
    made["spec"]["containers"].append(SIDECAR)
    assert (status_of(made).trouble is None) is (main is RUNNING)


def test_the_words_of_the_scheduler_are_those_of_an_unschedulable_pod() -> None:
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": SAID}
    status = status_of(pod(status={"conditions": [{**said, "lastTransitionTime": "2026-11-01T12:00:00Z"}]}))
    assert (status.trouble, status.words) == (PodTrouble.UNSCHEDULABLE, SAID)
    assert status.since is not None
    assert status.bound_at is None


@pytest.mark.parametrize(
    "beside",
    [
        ". no new claims to deallocate, preemption: 0/9 nodes are available: 9 Preemption is not helpful.",
        ". preemption: 0/9 nodes are available: 4 No preemption victims found for incoming pod.",
    ],
)
def test_what_would_not_help_an_unschedulable_pod_is_left_out(beside: str) -> None:
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": f"{SAID[:-1]}{beside}"}
    assert status_of(pod(status={"conditions": [said]})).words == SAID[:-1]


def test_a_gated_pod_is_told_with_its_gates() -> None:
    status = status_of(pod(spec={"schedulingGates": [{"name": "kueue.x-k8s.io/topology"}]}))
    assert (status.trouble, status.words) == (PodTrouble.GATED, "kueue.x-k8s.io/topology")


@pytest.mark.parametrize(
    ("phase", "over"),
    [("Succeeded", PodStatus(ended=True)), ("Failed", PodStatus(departing=True, words="has failed"))],
)
def test_a_pod_that_is_over_has_no_trouble(phase: str, over: PodStatus) -> None:
    assert status_of(bound(phase)).told == over.told


def test_a_pod_that_is_being_deleted_is_departing() -> None:
    deleted = pod(metadata={"deletionTimestamp": "2026-11-01T12:00:00Z"})
    assert status_of(deleted).departing


def test_its_times_are_those_of_its_conditions() -> None:
    status = status_of(bound(containerStatuses=[container(waiting("ErrImagePull", PULL))]))
    assert status.bound_at is not None
    assert status.since is not None
    assert (status.since - status.bound_at).total_seconds() == 180


def test_many_words_are_cut_off() -> None:
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no " * 1_000}
    assert len(status_of(pod(status={"conditions": [said]})).words) <= MOST_WORDS
