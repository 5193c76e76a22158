"""Rounds of the controller in memory: what several JobSets of a queue become."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from infra.local.clients.events import Recorder
from infra.local.clients.objects import Object
from infra.local.kueue.controller import reconcile
from tests.local.clients.fake_objects import FakeObjects
from tests.local.kueue_client.builders import (
    FLAVORS,
    NOON,
    QUEUE,
    TPU,
    condition,
    jobset,
    local_queue,
    queue,
    replicated,
)

Json = dict[str, Any]


@dataclass
class Cluster(FakeObjects):
    """Gives objects the time of their creation, too."""

    recorder: Recorder = field(default_factory=lambda: Recorder("kueue"))

    def create(self, plural: str, obj: Object) -> Object:
        return super().create(
            plural, obj | {"metadata": obj["metadata"] | {"creationTimestamp": "2026-01-01T12:00:00Z"}}
        )

    def settle(self) -> None:
        """Run rounds until nothing changes."""
        for _ in range(20):
            before = self.version
            reconcile(self, NOON, self.recorder)
            if self.version == before:
                return
        raise AssertionError("the rounds do not end")

    def running(self) -> list[str]:
        return [one["metadata"]["name"] for one in self.stored("jobsets") if not one["spec"]["suspend"]]

    def workload(self, of: str) -> Json:
        [found] = [one for one in self.stored("workloads") if one["metadata"]["ownerReferences"][0]["name"] == of]
        return found


def with_quota(chips: int, *jobsets: Json) -> Cluster:
    cluster = Cluster()
    for name, one in FLAVORS.items():
        cluster.create("resourceflavors", one | {"metadata": {"name": name}})
    cluster.create("clusterqueues", queue(chips=chips))
    cluster.create("localqueues", local_queue())
    for each in jobsets:
        cluster.create("jobsets", each)
    cluster.settle()
    return cluster


def test_quota_for_two_lets_two_run_and_queues_count_who_waits() -> None:
    cluster = with_quota(32, jobset("a"), jobset("b"), jobset("c"))
    assert cluster.running() == ["a", "b"]
    for plural in ("clusterqueues", "localqueues"):
        [found] = cluster.stored(plural)
        assert found["status"] == {"pendingWorkloads": 1, "admittedWorkloads": 2}


def test_a_jobset_of_no_queue_is_left_alone() -> None:
    plain = jobset("plain")
    plain["metadata"]["labels"] = {}
    assert with_quota(16, plain).stored("workloads") == []


def test_a_jobset_whose_queue_does_not_exist_starts_once_it_is_created() -> None:
    cluster = with_quota(16, jobset("lost", labels={QUEUE: "later"}))
    assert cluster.running() == []
    assert condition(cluster.workload("lost"), "QuotaReserved")[2] == 'localqueues "later" not found'
    cluster.create("localqueues", local_queue() | {"metadata": {"namespace": "default", "name": "later"}})
    cluster.settle()
    assert cluster.running() == ["lost"]


def test_the_workload_goes_with_its_jobset_and_its_quota_to_the_next() -> None:
    cluster = with_quota(16, jobset("a"), jobset("b"))
    del cluster.kept["jobsets", "default", "a"]
    cluster.settle()
    assert cluster.running() == ["b"]
    assert len(cluster.stored("workloads")) == 1


def test_a_jobset_that_is_being_deleted_keeps_its_quota_until_it_is_gone() -> None:
    cluster = with_quota(16, jobset("a"), jobset("b"))
    cluster.kept["jobsets", "default", "a"]["metadata"]["deletionTimestamp"] = "2026-01-01T12:00:01Z"
    cluster.settle()
    assert cluster.running() == ["a"]


def test_a_jobset_that_nobody_understands_is_told_so_and_harms_no_other() -> None:
    strange = jobset("strange", {"name": "workers"})
    cluster = with_quota(16, strange, jobset("train"))
    assert cluster.running() == ["train"]
    [event] = cluster.stored("events")
    assert (event["involvedObject"]["name"], event["reason"]) == ("strange", "NotUnderstoodByKueue")


def test_a_quota_that_is_no_number_of_chips_is_told_and_harms_no_other_queue() -> None:
    cluster = with_quota(16, jobset("train"))
    broken = queue() | {"metadata": {"name": "broken"}}
    broken["spec"]["resourceGroups"][0]["flavors"][0]["resources"] = [{"name": TPU, "nominalQuota": "some"}]
    cluster.create("clusterqueues", broken)
    cluster.create("jobsets", jobset("small", replicated(hosts=1)))
    cluster.settle()
    assert cluster.running() == ["train"]
    assert condition(cluster.workload("small"), "QuotaReserved")[1] == "WaitingForQuota"
    assert {event["involvedObject"]["name"] for event in cluster.stored("events")} == {"broken"}
