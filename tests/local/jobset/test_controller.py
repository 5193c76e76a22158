"""The JobSet controller on a cluster in memory."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from infra.local.clients.errors import ApiError
from infra.local.clients.objects import Object
from infra.local.jobset.controller import JobSets
from tests.local.clients.fake_objects import START, FakeObjects
from tests.local.jobset.builders import condition, ended, replicated_job, stored

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


def refusing(*names: str) -> World:
    """Return a cluster in which no Job of these names can be created."""

    def refuses(verb: str, plural: str, obj: Object) -> ApiError | None:
        refused = (verb, plural) == ("create", "jobs") and obj["metadata"]["name"] in names
        return ApiError(403, "Forbidden", "exceeded quota") if refused else None

    jobs = [replicated_job(name) for name in ("a", "b", "c")]
    world = World(stored("train", *jobs))
    world.objects.refuses = refuses
    return world


def test_its_jobs_and_its_headless_service_are_created() -> None:
    world = World(stored())
    world.look()
    assert world.objects.names("jobs") == JOBS
    service = world.objects.get("services", "default", "train")
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == {"jobset.sigs.k8s.io/jobset-name": "train"}
    assert service["metadata"]["ownerReferences"][0]["kind"] == "JobSet"


def test_a_service_has_the_name_of_the_subdomain_and_without_hostnames_there_is_none() -> None:
    named = World(stored(network={"subdomain": "ring"}))
    named.look()
    assert named.objects.names("services") == ["ring"]
    none = World(stored(network={"enableDNSHostnames": False}))
    none.look()
    assert none.objects.names("services") == []


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
    assert world.reasons() == ["DefaultFailurePolicy", "RestartJobSetFailurePolicyAction"]


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


def test_everything_ends_at_the_first_replicated_job_that_cannot_be_created() -> None:
    world = refusing("train-b-0", "train-b-1")
    world.look()
    assert world.objects.names("jobs") == ["train-a-0", "train-a-1"]
    assert "status" not in world.jobset()
    (event,) = world.objects.stored("events")
    assert (event["reason"], event["type"]) == ("JobCreationFailed", "Warning")
    assert event["message"] == (
        'job "train-b-0" creation failed with error: exceeded quota\n'
        'job "train-b-1" creation failed with error: exceeded quota'
    )


def test_the_other_jobs_of_the_refused_replicated_job_are_created() -> None:
    world = refusing("train-b-0")
    world.look()
    assert world.objects.names("jobs") == ["train-a-0", "train-a-1", "train-b-1"]


def test_a_refused_job_is_tried_again_later_and_later() -> None:
    world = refusing("train-a-0", "train-a-1")
    now, waits = START, []
    for _ in range(4):
        wake = world.look(now)
        assert wake
        waits.append((wake - now) / timedelta(milliseconds=1))
        now = wake
    assert waits == [5, 10, 20, 40]
    (event,) = world.objects.stored("events")
    assert event["series"]["count"] == 2


def test_before_its_time_a_refused_job_is_not_tried_again_unless_the_jobset_changes() -> None:
    world = refusing("train-a-0", "train-a-1")
    wake = world.look()
    world.objects.refuses = lambda *_: None
    assert world.look() == wake
    assert world.objects.names("jobs") == []
    changed = world.jobset()
    changed["metadata"]["labels"] = {"team": "a"}
    world.objects.update("jobsets", changed)
    assert world.look() is None
    assert len(world.objects.names("jobs")) == 6


def test_a_service_that_cannot_be_created_ends_it_too() -> None:
    world = World(stored())
    world.objects.refuses = lambda _, plural, __: ApiError(403, "Forbidden", "no") if plural == "services" else None
    assert world.look() is not None
    assert world.objects.names("jobs") == []
    assert world.reasons() == ["HeadlessServiceCreationFailed"]


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
