"""The JobSet controller on a cluster in memory."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tpu_standins.clients.errors import ApiError, Unreachable
from tpu_standins.clients.objects import Object
from tpu_standins.jobset.controller import JobSets
from tpu_standins.testing.jobsets import condition, ended, replicated_job, stored
from tpu_standins.testing.objects import START, FakeObjects, Refusal, never

JOBS = ["train-slice-0", "train-slice-1"]


class World:
    """A cluster with the controller."""

    def __init__(self, *jobsets: Object) -> None:
        self.objects = FakeObjects()
        self.controller = JobSets()
        for jobset in jobsets:
            self.objects.create("jobsets", jobset)

    def look(self, now: datetime = START) -> datetime | None:
        return self.controller.reconcile(self.objects, now, None)

    def jobset(self) -> Object:
        return self.objects.get("jobsets", "default", "train")

    def end(self, name: str, kind: str) -> None:
        self.objects.update("jobs", ended(self.objects.get("jobs", "default", name), kind), status=True)

    def reasons(self) -> list[str]:
        return [event["reason"] for event in self.objects.stored("events")]


def refusing(kind: str) -> Refusal:
    return lambda _, plural, __: ApiError(403, "Forbidden", "exceeded quota") if plural == kind else None


def test_its_jobs_and_its_headless_service_are_created() -> None:
    world = World(stored())
    world.look()
    assert world.objects.names("jobs") == JOBS
    service = world.objects.get("services", "default", "train")
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == {"jobset.sigs.k8s.io/jobset-name": "train"}
    assert service["metadata"]["ownerReferences"][0]["kind"] == "JobSet"


def test_a_round_in_which_nothing_is_to_be_done_changes_nothing() -> None:
    world = World(stored())
    world.look()
    world.look()
    version = world.objects.version
    assert world.look() is None
    assert world.objects.version == version


def test_a_jobset_of_another_controller_or_one_that_is_being_deleted_is_left_alone() -> None:
    going = stored("going")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    world = World(stored(managedBy="kueue.x-k8s.io/multikueue"), going)
    world.look()
    assert world.objects.names("jobs") == []


def test_its_end_is_told_once_in_status_and_event() -> None:
    world = World(stored())
    world.look()
    for name in JOBS:
        world.end(name, "Complete")
    for _ in range(3):
        world.look()
    assert world.jobset()["status"]["terminalState"] == "Completed"
    assert world.reasons() == ["AllJobsCompleted"]


def test_after_a_restart_there_are_jobs_of_the_next_attempt() -> None:
    world = World(stored(failurePolicy={"maxRestarts": 1}))
    world.look()
    world.end(JOBS[0], "Failed")
    for _ in range(3):
        world.look()
    attempts = [job["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"] for job in world.objects.stored("jobs")]
    assert attempts == ["1", "1"]
    assert world.reasons() == ["RestartJobSetFailurePolicyAction"]


def test_a_finished_jobset_is_deleted_after_its_time_to_live() -> None:
    world = World(stored(ttlSecondsAfterFinished=100))
    world.look()
    for name in JOBS:
        world.end(name, "Complete")
    world.look()
    end = START + timedelta(seconds=100)
    assert world.look() == end
    world.look(end)
    assert (world.objects.names("jobsets"), world.objects.names("jobs")) == ([], [])


def test_a_job_that_is_refused_is_told_and_tried_again() -> None:
    world = World(stored())
    world.objects.refuses = refusing("jobs")
    assert world.look() == START + timedelta(seconds=1)
    assert "status" not in world.jobset()
    (event,) = world.objects.stored("events")
    assert (event["reason"], event["type"]) == ("JobCreationFailed", "Warning")
    assert event["message"] == "exceeded quota"
    world.objects.refuses = never
    assert world.look() is None
    assert world.objects.names("jobs") == JOBS


def test_without_the_service_of_their_pods_there_are_no_jobs() -> None:
    world = World(stored())
    world.objects.refuses = refusing("services")
    assert world.look() is not None
    assert world.objects.names("jobs") == []


def test_silence_of_the_server_is_told_to_nobody() -> None:
    world = World(stored())
    world.objects.refuses = lambda *_: Unreachable("refused")
    with pytest.raises(Unreachable):
        world.look()


@pytest.mark.parametrize("label", ["restart-attempt", "replicatedjob-name"])
def test_a_job_that_somebody_spoiled_is_told_and_the_other_jobsets_go_on(label: str) -> None:
    world = World(stored("alone", replicated_job(replicas=1)), stored())
    world.look()
    spoiled = world.objects.get("jobs", "default", "alone-slice-0")
    del spoiled["metadata"]["labels"][f"jobset.sigs.k8s.io/{label}"]
    world.objects.update("jobs", spoiled)
    for name in JOBS:
        world.end(name, "Complete")
    for _ in range(3):
        world.look()
    assert sorted(world.reasons()) == ["AllJobsCompleted", "NotUnderstoodByJobset"]
    assert condition(world.jobset(), "Completed")["status"] == "True"
