from datetime import UTC, datetime
from typing import Any

import pytest

from infra.local.cluster.durations import human_duration
from infra.local.cluster.objects import RESOURCES
from infra.local.cluster.pod_phase import summary
from infra.local.cluster.tables import TABLES, table
from tests.local.cluster.world import World, job, jobset, node, pod

NOW = datetime(2026, 1, 1, 0, 5, tzinfo=UTC)


def row(plural: str, obj: dict[str, Any]) -> dict[str, Any]:
    shown = table(RESOURCES[plural], [obj], NOW, "None")
    columns = [column["name"] for column in shown["columnDefinitions"]]
    return dict(zip(columns, shown["rows"][0]["cells"], strict=True))


def test_every_resource_has_its_columns() -> None:
    assert set(TABLES) == set(RESOURCES)


def test_a_new_jobset_shows_empty_cells() -> None:
    made = World().objects.create("jobsets", jobset())
    assert row("jobsets", made) == {
        "Name": "train",
        "TerminalState": None,
        "Restarts": None,
        "Completed": None,
        "Suspended": None,
        "Age": "5m",
    }


def test_a_completed_jobset_says_so() -> None:
    made = World().objects.create("jobsets", jobset(suspend=False))
    made["status"] = {
        "terminalState": "Completed",
        "restarts": 1,
        "conditions": [{"type": "Completed", "status": "True"}],
    }
    shown = row("jobsets", made)
    assert (shown["TerminalState"], shown["Restarts"]) == ("Completed", 1)
    assert (shown["Completed"], shown["Suspended"]) == ("True", "false")


def test_a_node_shows_whether_it_takes_pods() -> None:
    cordoned = node(**{"node-role.kubernetes.io/worker": ""})
    cordoned["spec"] = {"unschedulable": True}
    cordoned["status"] = {"conditions": [{"type": "Ready", "status": "True"}]}
    made = World().objects.create("nodes", cordoned)
    assert (row("nodes", made)["Status"], row("nodes", made)["Roles"]) == ("Ready,SchedulingDisabled", "worker")
    made["status"]["conditions"][0]["status"] = "Unknown"
    assert row("nodes", made)["Status"] == "NotReady,SchedulingDisabled"


def test_a_job_shows_how_far_it_is() -> None:
    made = World().objects.create("jobs", job())
    made["status"] = {"succeeded": 1, "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:01:00Z"}
    assert (row("jobs", made)["Completions"], row("jobs", made)["Duration"]) == ("1/1", "60s")


def test_an_event_shows_what_it_is_about() -> None:
    event = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "JobSet", "name": "train"},
        "type": "Normal",
        "reason": "Waiting",
        "message": "3 of 4\n",
        "count": 3,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:04:00Z",
    }
    shown = row("events", event)
    assert (shown["Object"], shown["Last Seen"], shown["First Seen"]) == ("jobset/train", "60s", "5m")
    assert (shown["Message"], shown["Count"]) == ("3 of 4", 3)


RUNNING: dict[str, Any] = {"running": {}}
ENDED = {"terminated": {"reason": "Completed", "exitCode": 0}}


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ({"phase": "Pending"}, "Pending"),
        (
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
            "SchedulingGated",
        ),
        (
            {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]},
            "ContainerCreating",
        ),
        ({"phase": "Running", "containerStatuses": [{"state": RUNNING, "ready": True}]}, "Running"),
        ({"phase": "Succeeded", "containerStatuses": [{"state": ENDED}]}, "Completed"),
        ({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]}, "ExitCode:3"),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
    ],
)
def test_a_pod_is_summed_up_in_a_word(status: dict[str, Any], shown: str) -> None:
    assert summary(pod() | {"status": status}) == shown


def test_a_pod_that_goes_is_terminating() -> None:
    assert summary(pod(deletionTimestamp="2026-01-01T00:00:00Z") | {"status": {"phase": "Running"}}) == "Terminating"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (185, "3m5s"),
        (600, "10m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (9 * 3600, "9h"),
        (48 * 3600, "2d"),
        (50 * 3600, "2d2h"),
        (9 * 86400, "9d"),
        (800 * 86400, "2y70d"),
        (-5, "<invalid>"),
    ],
)
def test_durations_are_short(seconds: int, shown: str) -> None:
    assert human_duration(seconds) == shown
