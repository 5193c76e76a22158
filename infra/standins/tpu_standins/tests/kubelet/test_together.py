"""The pods of a Job run together, as the processes of one program on TPUs do."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tpu_standins.clients.objects import Object, timestamp
from tpu_standins.kubelet.pace import Pace
from tpu_standins.kubelet.pods import Pods
from tpu_standins.testing.objects import START, FakeObjects

READY = {"type": "Ready", "status": "True"}
PACE = Pace(start=timedelta(0), run=timedelta(seconds=60))


class World:
    """A cluster with one node and a Job, whose pods come when the test says, and the kubelet."""

    def __init__(self, **spec: Any) -> None:
        self.objects, self.kubelet, self.now = FakeObjects(), Pods(), START
        self.objects.create("nodes", {"metadata": {"name": "host"}, "status": {"conditions": [READY]}})
        self.job = self.objects.create("jobs", {"metadata": {"name": "train"}, "spec": spec})

    def bind(self, name: str, index: int | None = None, **reference: str) -> None:
        """Let another pod be there, bound to the node; it is of the Job unless a reference says whose it is."""
        owner = {"kind": "Job", "name": "train", "uid": self.job["metadata"]["uid"], "controller": True} | reference
        notes = {} if index is None else {"batch.kubernetes.io/job-completion-index": str(index)}
        metadata = {"creationTimestamp": timestamp(self.now), "annotations": notes, "ownerReferences": [owner]}
        spec = {"nodeName": "host", "containers": [{"name": "main"}]}
        self.objects.create(
            "pods", {"metadata": metadata | {"name": name}, "spec": spec, "status": {"phase": "Pending"}}
        )
        self.pass_time(0)

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        version = -1
        while version != self.objects.version:
            version = self.objects.version
            self.kubelet.reconcile(self.objects, self.now, PACE)

    def phase(self, name: str) -> str:
        return str(self.objects.get("pods", "default", name)["status"]["phase"])

    def change(self, plural: str, name: str, **status: Any) -> None:
        found: Object = self.objects.get(plural, "default", name)
        self.objects.update(plural, found | {"status": found.get("status", {}) | status}, status=True)


def test_a_leader_runs_until_its_followers_have_run_however_late_they_come() -> None:
    world = World(parallelism=2, completions=2)
    world.bind("leader", 0)
    world.pass_time(10_000)
    assert world.phase("leader") == "Running"
    world.bind("follower", 1)
    world.pass_time(59)
    assert (world.phase("leader"), world.phase("follower")) == ("Running", "Running")
    world.pass_time(1)
    assert (world.phase("leader"), world.phase("follower")) == ("Succeeded", "Succeeded")


@pytest.mark.parametrize(
    ("spec", "together"),
    [({}, 1), ({"parallelism": 3}, 3), ({"parallelism": 5, "completions": 2}, 2), ({"parallelism": 1}, 1)],
)
def test_as_many_pods_wait_for_each_other_as_run_at_a_time(spec: dict[str, int], together: int) -> None:
    world = World(**spec)
    for number in range(together):
        world.pass_time(60)
        assert [world.phase(f"pod-{each}") for each in range(number)] == ["Running"] * number
        world.bind(f"pod-{number}")
    world.pass_time(60)
    assert [world.phase(f"pod-{each}") for each in range(together)] == ["Succeeded"] * together


def test_a_pod_that_comes_when_others_have_ended_runs_for_its_own_time() -> None:
    world = World(parallelism=2, completions=3)
    world.bind("first", 0)
    world.bind("second", 1)
    world.pass_time(60)
    world.bind("third", 2)
    world.pass_time(59)
    assert world.phase("third") == "Running"
    world.pass_time(1)
    assert world.phase("third") == "Succeeded"


def test_a_pod_that_replaces_a_failed_one_takes_no_other_place() -> None:
    world = World(parallelism=2, completions=2)
    world.bind("leader", 0)
    world.change("pods", "leader", phase="Failed")
    world.bind("again", 0)
    world.pass_time(60)
    assert world.phase("again") == "Running"


def test_pods_of_a_job_of_which_one_succeeded_wait_for_nobody() -> None:
    world = World(parallelism=2, completions=2)
    world.bind("left", 0)
    world.change("jobs", "train", succeeded=1)
    world.pass_time(60)
    assert world.phase("left") == "Succeeded"


def test_pods_of_other_controllers_wait_for_nobody() -> None:
    world = World(parallelism=2)
    world.bind("replica", kind="StatefulSet")
    world.pass_time(60)
    assert world.phase("replica") == "Succeeded"


def test_a_pod_whose_job_is_not_known_yet_runs_on() -> None:
    world = World()
    world.bind("early", uid="of-another")
    world.pass_time(60)
    assert world.phase("early") == "Running"
