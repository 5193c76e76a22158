from __future__ import annotations

from typing import Any

import pytest

from infra.local.clients.objects import Objects
from infra.local.kueue.workloads import next_change
from tests.local.kueue_client.builders import (
    NOON,
    PRIORITY,
    QUEUE,
    V5E,
    admitted,
    cluster,
    condition,
    driven_out,
    flavor,
    jobset,
    local_queue,
    queue,
    replicated,
    running,
    workload,
)

Json = dict[str, Any]
DRAINED, HELD = queue(stopPolicy="HoldAndDrain"), queue(stopPolicy="Hold")
TAINT = {"key": "reserved", "operator": "Exists", "effect": "NoSchedule"}
BUSY = {"replicatedJobsStatus": [{"name": "workers", "active": 1}]}


def ended(kind: str) -> Json:
    return {"conditions": [{"type": kind, "status": "True", "message": "it is over"}]}


def pods(of: Json | None) -> Json:
    assert of is not None
    spec: Json = of["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    return spec


def test_a_jobset_gets_a_workload_with_a_pod_set_for_each_replicated_job() -> None:
    train = jobset("train", replicated(replicas=3), replicated("driver", hosts=1, chips=0), labels={PRIORITY: "high"})
    made = next_change(train, None, cluster(), NOON)
    assert made is not None
    assert made["metadata"]["name"] == "jobset-train-uid-o"
    assert made["metadata"]["ownerReferences"][0]["uid"] == "uid-of-train"
    assert [(one["name"], one["count"]) for one in made["spec"]["podSets"]] == [("workers", 12), ("driver", 1)]
    assert (made["spec"]["queueName"], made["spec"]["priority"]) == ("jobs", 1000)


def test_an_admitted_jobset_runs_on_the_nodes_of_its_flavor() -> None:
    known = cluster(v5e=flavor("v5e", V5E | {"zone": "a"}, tolerations=[TAINT]))
    after = next_change(jobset(), admitted(workload()), known, NOON)
    assert after is not None
    assert after["spec"]["suspend"] is False
    assert (pods(after)["nodeSelector"], pods(after)["tolerations"]) == (V5E | {"zone": "a"}, [TAINT])


def test_a_jobset_that_must_stop_gets_the_templates_of_its_user_back() -> None:
    mixed = running(jobset("train", replicated(nodeSelector=V5E | {"zone": "a"}, tolerations=[TAINT])))
    after = next_change(mixed, driven_out(workload()), cluster(), NOON)
    assert after == jobset()


def test_a_jobset_that_somebody_resumes_is_suspended_again() -> None:
    assert next_change(running(jobset()), workload(), cluster(), NOON) == jobset()


def test_quota_is_kept_until_the_pods_are_gone() -> None:
    assert next_change(jobset(status=BUSY), driven_out(workload()), cluster(), NOON) is None
    after = next_change(jobset(), driven_out(workload()), cluster(), NOON)
    assert condition(after, "QuotaReserved") == ("False", "Pending", "The ClusterQueue is stopped")
    assert condition(after, "Admitted")[:2] == ("False", "NoReservation")
    assert after is not None
    assert "admission" not in after["status"]


def test_what_was_evicted_and_is_admitted_again_is_evicted_no_more() -> None:
    waits = next_change(jobset(), driven_out(workload()), cluster(), NOON)
    assert waits is not None
    assert condition(admitted(waits), "Evicted")[:2] == ("False", "QuotaReserved")


@pytest.mark.parametrize(("kind", "reason"), [("Completed", "Succeeded"), ("Failed", "Failed")])
def test_the_workload_of_a_jobset_that_has_ended_is_finished(kind: str, reason: str) -> None:
    over = running(jobset(status=ended(kind)))
    after = next_change(over, admitted(workload()), cluster(), NOON)
    assert condition(after, "Finished") == ("True", reason, "it is over")
    assert next_change(over, after, cluster(DRAINED), NOON) == after
    assert next_change(over, None, cluster(), NOON) is None


EVICTING = [
    (cluster(DRAINED), "ClusterQueueStopped"),
    (cluster(jobs=local_queue(stopPolicy="HoldAndDrain")), "LocalQueueStopped"),
]


@pytest.mark.parametrize(("known", "reason"), EVICTING)
def test_a_queue_that_is_drained_evicts(known: Objects, reason: str) -> None:
    after = next_change(running(jobset()), admitted(workload()), known, NOON)
    assert condition(after, "Evicted")[:2] == ("True", reason)


MISSING = [cluster(without=kind) for kind in ("resourceflavors", "localqueues", "clusterqueues")]


@pytest.mark.parametrize("known", [cluster(HELD), *MISSING])
def test_a_queue_that_only_admits_nothing_leaves_alone_what_runs(known: Objects) -> None:
    assert next_change(running(jobset()), admitted(workload()), known, NOON) is None


def test_a_workload_that_is_not_active_is_evicted() -> None:
    off = admitted(workload())
    off["spec"]["active"] = False
    after = next_change(running(jobset()), off, cluster(), NOON)
    assert condition(after, "Evicted") == ("True", "Deactivated", "The workload is deactivated")


CLOSED = [
    (cluster(HELD), "ClusterQueueStopped", "The ClusterQueue is stopped"),
    (cluster(jobs=local_queue(stopPolicy="Hold")), "LocalQueueStopped", "The LocalQueue is stopped"),
    (cluster(without="localqueues"), "Misconfigured", 'localqueues "jobs" not found'),
    (cluster(without="clusterqueues"), "Misconfigured", 'clusterqueues "team" not found'),
    (cluster(without="resourceflavors"), "Misconfigured", 'resourceflavors "v5e" not found'),
    (cluster(without="workloadpriorityclasses"), "Misconfigured", 'workloadpriorityclasses "high" not found'),
]


@pytest.mark.parametrize(("known", "reason", "message"), CLOSED)
def test_a_workload_that_is_not_considered_tells_why(known: Objects, reason: str, message: str) -> None:
    train = jobset(labels={PRIORITY: "high"})
    made = next_change(train, None, known, NOON)
    assert condition(next_change(train, made, known, NOON), "QuotaReserved") == ("False", reason, message)


def test_a_workload_that_waits_for_quota_is_left_to_its_queue() -> None:
    assert next_change(jobset(), workload(), cluster(), NOON) == workload()


def test_a_waiting_jobset_may_move_to_another_queue_and_priority() -> None:
    moved = jobset("train", replicated(hosts=2), labels={QUEUE: "others", PRIORITY: "high"})
    after = next_change(moved, workload(), cluster(), NOON)
    assert after is not None
    assert (after["spec"]["queueName"], after["spec"]["priority"]) == ("others", 1000)
    assert after["spec"]["podSets"][0]["count"] == 2
