from datetime import timedelta

import pytest

from infra.local.cluster.kueue import transitions
from infra.local.cluster.kueue.lifecycle import Next, step
from infra.local.cluster.kueue.queues import Queues
from infra.local.cluster.kueue.settings import Settings
from infra.local.cluster.objects import Object
from tests.local.controllers.cluster import condition
from tests.local.kueue.world import NOON, admitted, cluster_queue, flavor, local_queue, stored, workload

MINUTE = timedelta(minutes=1)
IMPATIENT = Settings(pods_ready_timeout=5 * MINUTE)


def queues(cluster: Object | None = None, local: Object | None = None, *, flavors: bool = True) -> Queues:
    return Queues.of(
        [stored(cluster or cluster_queue())],
        [local or local_queue()],
        [stored(flavor())] if flavors else [],
        [{"metadata": {"name": "default", "labels": {"team": "a"}}}],
    )


def after(made: Object, known: Queues, settings: Settings = IMPATIENT, minutes: int = 0) -> Next:
    return step(made, known, settings, NOON + minutes * MINUTE)


def told(made: Object, kind: str) -> tuple[str, str, str]:
    found = condition(made, kind)
    return found["status"], found["reason"], found["message"]


BLOCKERS: list[tuple[Queues, str, str]] = [
    (Queues.of([], [], [], []), "Misconfigured", "LocalQueue jobs doesn't exist"),
    (queues(local=local_queue(stopPolicy="Hold")), "Suspended", "LocalQueue jobs is inactive"),
    (queues(local=local_queue(clusterQueue="gone")), "Misconfigured", "ClusterQueue gone doesn't exist"),
    (queues(cluster_queue(stopPolicy="Hold")), "Suspended", "ClusterQueue team is inactive"),
    (queues(flavors=False), "Suspended", "ClusterQueue team is inactive"),
    (queues(cluster_queue(admissionChecks=["dws"])), "Suspended", "ClusterQueue team is inactive"),
    (
        queues(cluster_queue(namespaceSelector={"matchLabels": {"team": "b"}})),
        "Misconfigured",
        "workload namespace doesn't match ClusterQueue selector",
    ),
]


@pytest.mark.parametrize(("known", "reason", "message"), BLOCKERS, ids=[f"{row[1]} {row[2]}" for row in BLOCKERS])
def test_a_workload_that_cannot_be_considered_says_why(known: Queues, reason: str, message: str) -> None:
    found = after(workload("one"), known).workload
    assert told(found, "QuotaReserved") == ("False", reason, message)
    assert told(found, "Admitted") == ("False", "NoReservation", "The workload has no reservation")


def test_a_workload_that_can_be_considered_is_left_to_the_scheduler() -> None:
    waiting = workload("one")
    assert after(waiting, queues(cluster_queue(namespaceSelector={"matchLabels": {"team": "a"}}))).workload == waiting


READINESS = [
    (cluster_queue(), True, "Ready", "Can admit new workloads"),
    (cluster_queue(stopPolicy="Hold"), False, "Stopped", "Can't admit new workloads: is stopped."),
    (
        cluster_queue(stopPolicy="Hold", admissionChecks=["dws"]),
        False,
        "Stopped",
        "Can't admit new workloads: is stopped, references missing AdmissionCheck(s): dws.",
    ),
]


@pytest.mark.parametrize(("queue", "status", "reason", "message"), READINESS)
def test_a_cluster_queue_says_whether_it_admits(queue: Object, status: bool, reason: str, message: str) -> None:
    found = queues(queue).readiness(stored(queue))
    assert (found.status, found.reason, found.message) == (status, reason, message)


def test_a_cluster_queue_without_its_flavor_says_so() -> None:
    found = queues(flavors=False).readiness(stored(cluster_queue()))
    assert (found.reason, found.message) == (
        "FlavorNotFound",
        "Can't admit new workloads: references missing ResourceFlavor(s): tpu.",
    )


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        (queues(cluster_queue(stopPolicy="HoldAndDrain")), "ClusterQueue"),
        (queues(local=local_queue(stopPolicy="HoldAndDrain")), "LocalQueue"),
    ],
)
def test_a_queue_that_drains_evicts(known: Queues, reason: str) -> None:
    found = after(admitted(workload("one")), known).workload
    assert told(found, "Evicted") == ("True", f"{reason}Stopped", f"The {reason} is stopped")
    assert found["status"]["schedulingStats"]["evictions"][0]["count"] == 1


def test_a_queue_that_only_holds_leaves_alone_what_is_admitted() -> None:
    running = admitted(workload("one"))
    assert after(running, queues(cluster_queue(stopPolicy="Hold")), Settings()).workload == running


def test_a_workload_whose_queue_opens_again_is_queued_again() -> None:
    past = transitions.requeued(
        workload("one"), "ClusterQueueStopped", "The ClusterQueue is stopped", NOON, status=False
    )
    assert told(after(past, queues()).workload, "Requeued")[:2] == ("True", "ClusterQueueRestarted")
    closed = after(past, queues(cluster_queue(stopPolicy="Hold"))).workload
    assert told(closed, "Requeued")[:2] == ("False", "ClusterQueueStopped")


def test_pods_may_take_for_ever_unless_a_timeout_is_set() -> None:
    running = admitted(workload("one"))
    assert after(running, queues(), Settings(), minutes=10_000) == Next(workload=running)


def test_pods_that_are_not_ready_in_time_cost_the_workload_its_place() -> None:
    running = admitted(workload("one"))
    assert after(running, queues(), minutes=4) == Next(workload=running, wake=NOON + 5 * MINUTE)
    found = after(running, queues(), minutes=5).workload
    assert told(found, "Evicted") == ("True", "PodsReadyTimeout", "Exceeded the PodsReady timeout default/one")
    assert found["status"]["requeueState"] == {"count": 1, "requeueAt": "2026-01-01T12:06:00Z"}


def test_pods_that_were_ready_have_the_same_time_to_come_back() -> None:
    running = transitions.readiness(admitted(workload("one")), NOON, ready=True)
    assert after(running, queues(), minutes=60) == Next(workload=running)
    hurt = transitions.readiness(running, NOON + 60 * MINUTE, ready=False)
    assert told(hurt, "PodsReady")[1] == "WaitForRecovery"
    assert after(hurt, queues(), minutes=64).wake == NOON + 65 * MINUTE
    evicted = after(hurt, queues(), minutes=65).workload
    assert evicted["status"]["schedulingStats"]["evictions"][0]["underlyingCause"] == "WaitForRecovery"
    healed = transitions.readiness(hurt, NOON + 61 * MINUTE, ready=True)
    assert told(healed, "PodsReady")[:2] == ("True", "Recovered")


def test_the_backoff_doubles_up_to_an_hour() -> None:
    waits = [Settings().backoff(count) / MINUTE for count in (1, 2, 3, 7, 1000)]
    assert waits == [1, 2, 4, 60, 60]


def test_a_workload_in_backoff_wakes_when_it_is_over() -> None:
    past = transitions.timed_out(admitted(workload("one")), "default/one", "WaitForStart", IMPATIENT, NOON)
    past = transitions.requeued(past, "PodsReadyTimeout", "too late", NOON, status=False)
    past = transitions.unreserved(past, "PendingEvaluation", "too late", NOON)
    assert after(past, queues()) == Next(workload=past, wake=NOON + MINUTE)
    over = after(past, queues(), minutes=1).workload
    assert over["status"]["requeueState"] == {"count": 1}
    assert told(after(over, queues(), minutes=1).workload, "Requeued")[:2] == ("True", "BackoffFinished")


def test_a_deactivated_workload_is_evicted_and_waits_until_it_is_active_again() -> None:
    found = after(admitted(workload("one", active=False)), queues()).workload
    assert told(found, "Evicted") == ("True", "Deactivated", "The workload is deactivated")
    waiting = after(workload("one", active=False), queues()).workload
    assert told(waiting, "QuotaReserved") == ("False", "Deactivated", "The workload is deactivated")
    stopped = transitions.requeued(found, "Deactivated", "The workload is deactivated", NOON, status=False)
    stopped = transitions.unreserved(stopped, "PendingEvaluation", "The workload is deactivated", NOON)
    again = after(stopped | {"spec": stopped["spec"] | {"active": True}}, queues()).workload
    assert told(again, "Requeued")[:2] == ("True", "Reactivated")


def test_what_was_evicted_and_is_admitted_again_remembers_why() -> None:
    past = transitions.evicted(admitted(workload("one")), "Preempted", "had to go", NOON)
    past = transitions.unreserved(past, "PendingEvaluation", "had to go", NOON + 3 * MINUTE)
    assert past["status"]["accumulatedPastExexcutionTimeSeconds"] == 180
    again = admitted(past)
    assert told(again, "Evicted") == ("False", "QuotaReserved", "Previously: had to go")


def test_a_finished_workload_is_left_alone() -> None:
    done = transitions.finished(admitted(workload("one")), "Succeeded", "jobset completed successfully", NOON)
    assert after(done, queues(cluster_queue(stopPolicy="HoldAndDrain")), minutes=60) == Next(workload=done)
