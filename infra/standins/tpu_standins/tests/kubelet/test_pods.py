"""The course of bound pods on the nodes of the local GKE."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tpu_standins.clients.conditions import find, is_true
from tpu_standins.clients.objects import Object, timestamp
from tpu_standins.kubelet.pace import Pace
from tpu_standins.kubelet.pods import SHUTTING_DOWN, Pods
from tpu_standins.testing.objects import START, FakeObjects

PACE = Pace(
    start=timedelta(seconds=2), run=timedelta(seconds=60), termination=timedelta(seconds=3), lease=timedelta(seconds=10)
)
READY = {"type": "Ready", "status": "True"}


class World:
    """A cluster with one node to which a pod was just bound, and the kubelet; time passes as the test says."""

    def __init__(self, *, owner: str | None = None, labels: Object | None = None, **annotations: str) -> None:
        self.objects = FakeObjects()
        self.kubelet = Pods()
        self.now = START
        self.objects.create("nodes", {"metadata": {"name": "host"}, "status": {"conditions": [READY]}})
        owners = [{"kind": owner, "name": "owner", "uid": "o", "controller": True}] if owner else []
        notes = {f"local.kubelet/{key.replace('_', '-')}": value for key, value in annotations.items()}
        created = {"creationTimestamp": timestamp(START)}
        metadata = created | {"name": "pod", "annotations": notes, "labels": labels or {}, "ownerReferences": owners}
        bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": timestamp(START)}
        self.objects.create(
            "pods",
            {
                "metadata": metadata,
                "spec": {"nodeName": "host", "containers": [{"name": "main", "image": "trainer:1"}]},
                "status": {"phase": "Pending", "conditions": [bound]},
            },
        )

    def settle(self) -> datetime | None:
        """Run the kubelet until it changes nothing more."""
        while True:
            version = self.objects.version
            wake = self.kubelet.reconcile(self.objects, self.now, PACE)
            if self.objects.version == version:
                return wake

    def pass_time(self, seconds: float) -> None:
        """Advance the clock, and run the kubelet whenever it wants that."""
        end = self.now + timedelta(seconds=seconds)
        while (wake := self.settle()) is not None and wake <= end:
            assert wake > self.now, "a wake-up that changes nothing"
            self.now = wake
        self.now = end
        self.settle()

    def host(self, status: str, message: str = "") -> None:
        """Change the node's Ready."""
        ready = {"type": "Ready", "status": status, "message": message}
        self.objects.update("nodes", {"metadata": {"name": "host"}, "status": {"conditions": [ready]}}, status=True)

    def pod(self) -> Object:
        return self.objects.get("pods", "default", "pod")

    def phase(self) -> str:
        return str(self.pod()["status"]["phase"])

    def delete(self) -> None:
        self.objects.delete("pods", "default", "pod")


def test_a_bound_pod_starts_runs_and_succeeds_in_its_own_time() -> None:
    world = World(run_seconds="7")
    world.pass_time(1)
    assert world.phase() == "Pending"
    world.pass_time(1)
    assert world.phase() == "Running"
    assert is_true(world.pod(), "Ready")
    assert world.pod()["status"]["startTime"] == "2026-01-01T00:00:02Z"
    world.pass_time(6)
    assert world.phase() == "Running"
    world.pass_time(1)
    assert world.phase() == "Succeeded"
    (container,) = world.pod()["status"]["containerStatuses"]
    assert container["state"]["terminated"]["reason"] == "Completed"


def test_a_pod_that_no_scheduler_has_bound_starts_too() -> None:
    world = World()
    world.objects.update("pods", world.pod() | {"status": {"phase": "Pending"}}, status=True)
    world.pass_time(2)
    assert world.phase() == "Running"


def test_a_pod_without_the_annotation_runs_for_the_default_time() -> None:
    world = World()
    world.pass_time(61)
    assert world.phase() == "Running"
    world.pass_time(1)
    assert world.phase() == "Succeeded"


def test_a_pod_whose_containers_are_always_restarted_runs_until_it_is_deleted() -> None:
    world = World()
    pod = world.pod()
    world.objects.update("pods", pod | {"spec": pod["spec"] | {"restartPolicy": "Always"}})
    world.pass_time(10_000)
    assert world.phase() == "Running"


@pytest.mark.parametrize(("attempt", "phase"), [("0", "Failed"), ("1", "Failed"), ("2", "Succeeded")])
def test_a_pod_fails_until_the_attempt_that_it_names(attempt: str, phase: str) -> None:
    world = World(labels={"jobset.sigs.k8s.io/restart-attempt": attempt}, fail_until_restart="2")
    world.pass_time(62)
    assert world.phase() == phase


@pytest.mark.parametrize("seconds", ["soon", "nan", "inf", "1e400"])
def test_a_run_time_that_is_no_time_is_refused(seconds: str) -> None:
    world = World(run_seconds=seconds)
    world.pass_time(5)
    assert (world.phase(), world.pod()["status"]["reason"]) == ("Failed", "InvalidAnnotation")


def test_a_deleted_pod_ends_within_its_grace_period() -> None:
    world = World()
    world.pass_time(5)
    world.delete()
    world.settle()
    assert not is_true(world.pod(), "Ready")
    world.pass_time(2)
    assert world.objects.names("pods") == ["pod"]
    world.pass_time(1)
    assert world.objects.names("pods") == []


def test_a_deleted_pod_that_never_ran_or_has_ended_goes_at_once() -> None:
    for seconds in (0, 62):
        world = World()
        world.pass_time(seconds)
        world.delete()
        world.settle()
        assert world.objects.names("pods") == []


def test_a_pod_that_waits_for_finalizers_only_is_left_alone() -> None:
    world = World()
    world.pass_time(5)
    pod = world.pod()
    pod["metadata"] |= {"deletionTimestamp": timestamp(START), "deletionGracePeriodSeconds": 0, "finalizers": ["x"]}
    world.objects.update("pods", pod)
    world.pass_time(100)
    assert world.objects.names("pods") == ["pod"]


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_on_a_node_that_is_not_ready_everything_stands_still(status: str) -> None:
    world = World(run_seconds="7")
    world.pass_time(5)
    world.host(status)
    world.pass_time(20)
    assert world.phase() == "Running"
    world.delete()
    world.pass_time(60)
    assert world.objects.names("pods") == ["pod"]
    world.host("True")
    world.pass_time(5)
    assert world.objects.names("pods") == []


def test_a_node_that_comes_back_in_time_has_its_pods_ready_again() -> None:
    world = World()
    world.pass_time(5)
    pod = world.pod()
    conditions = [
        each | {"status": "False"} if each["type"] == "Ready" else each for each in pod["status"]["conditions"]
    ]
    world.objects.update("pods", pod | {"status": pod["status"] | {"conditions": conditions}}, status=True)
    world.settle()
    assert is_true(world.pod(), "Ready")


def test_a_node_that_shuts_down_ends_its_pods_and_starts_none() -> None:
    running, waiting = World(), World()
    running.pass_time(5)
    for world in (running, waiting):
        world.host("False", SHUTTING_DOWN)
        world.pass_time(4)
        assert world.phase() == "Failed"
    assert running.pod()["status"]["reason"] == "Terminated"
    disruption = find(running.pod()["status"]["conditions"], "DisruptionTarget")
    assert disruption
    assert disruption["reason"] == "TerminationByKubelet"
    assert waiting.pod()["status"]["reason"] == "NodeShutdown"


def test_the_pods_of_a_node_that_is_gone_are_left_to_others() -> None:
    world = World()
    world.pass_time(5)
    version = world.objects.version
    world.objects.delete("nodes", None, "host")
    world.pass_time(100)
    assert (world.phase(), world.objects.version) == ("Running", version + 1)


def test_the_pods_of_daemon_sets_are_left_alone() -> None:
    world = World(owner="DaemonSet")
    world.pass_time(100)
    assert world.phase() == "Pending"
    owned = World(owner="StatefulSet")
    owned.pass_time(5)
    assert owned.phase() == "Running"


def test_a_run_time_that_is_shortened_meanwhile_ends_the_pod() -> None:
    world = World(run_seconds="100000")
    world.pass_time(5)
    assert world.phase() == "Running"
    world.objects.patch("pods", "default", "pod", {"metadata": {"annotations": {"local.kubelet/run-seconds": "0"}}})
    world.settle()
    assert world.phase() == "Succeeded"
