"""Node lifecycle: taints by condition, timely eviction, shutdown, and garbage-collected pods."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from infra.local.cluster.controllers.kubelet import SHUTTING_DOWN
from infra.local.cluster.controllers.node_lifecycle import leaves_at
from infra.local.cluster.controllers.sweeping import sweep
from infra.local.cluster.objects import Object
from tests.local.controllers.cluster import (
    PACE,
    Cluster,
    annotated,
    condition,
    index,
    job_spec,
    jobset,
    node,
    phases,
    pod_spec,
    replicated_job,
)

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
LIMITED = {"key": NOT_READY, "operator": "Exists", "effect": "NoExecute"}


def taints(cluster: Cluster, name: str = "pool-0") -> list[tuple[str, str]]:
    found = cluster.objects.get("nodes", None, name)["spec"].get("taints", [])
    return [(taint["key"], taint["effect"]) for taint in found if taint["key"] != "google.com/tpu"]


def condition_of_node(cluster: Cluster, name: str, **ready: str) -> None:
    known = cluster.objects.get("nodes", None, name)
    cluster.objects.update("nodes", known | {"status": known["status"] | {"conditions": [ready]}}, status=True)
    cluster.settle()


def with_pod(**spec: Any) -> Cluster:
    """Return a cluster in which a pod has been running for a while."""
    cluster = Cluster()
    cluster.add_pool("pool", hosts=1)
    template = annotated(run_seconds="9999")
    metadata = {"name": "alone", "namespace": "default"} | template["metadata"]
    cluster.apply("pods", {"metadata": metadata, "spec": pod_spec(**spec)})
    cluster.pass_time(5)
    return cluster


def alone(cluster: Cluster) -> Object:
    return cluster.objects.get("pods", "default", "alone")


@pytest.mark.parametrize(
    ("status", "key"), [("False", NOT_READY), ("Unknown", UNREACHABLE)], ids=["not ready", "unreachable"]
)
def test_a_node_is_tainted_by_its_condition_until_it_is_well(status: str, key: str) -> None:
    cluster = with_pod()
    condition_of_node(cluster, "pool-0", type="Ready", status=status)
    assert taints(cluster) == [(key, "NoSchedule"), (key, "NoExecute")]
    cluster.set_ready("pool-0", ready=True)
    assert taints(cluster) == []


def test_a_cordoned_node_is_tainted_and_others_taints_stay() -> None:
    cluster = Cluster()
    cluster.apply(
        "nodes", node("host", unschedulable=True, taints=[{"key": "team", "value": "a", "effect": "NoExecute"}])
    )

    assert taints(cluster, "host") == [("team", "NoExecute"), ("node.kubernetes.io/unschedulable", "NoSchedule")]


def test_pods_of_a_lost_node_are_evicted_when_their_time_is_over_and_stay_until_somebody_sees_them_end() -> None:
    cluster = with_pod()
    cluster.set_ready("pool-0", ready=False)
    cluster.pass_time(29)
    assert "deletionTimestamp" not in alone(cluster)["metadata"]
    cluster.pass_time(2)

    pod = alone(cluster)
    assert "deletionTimestamp" in pod["metadata"]
    assert condition(pod, "DisruptionTarget")["reason"] == "DeletionByTaintManager"
    assert condition(pod, "DisruptionTarget")["message"] == "Taint manager: deleting due to NoExecute taint"
    assert "TaintManagerEviction" in cluster.reasons("pods", "alone")
    assert phases([pod]) == ["Running"]
    cluster.set_ready("pool-0", ready=True)
    cluster.pass_time(5)
    assert cluster.names("pods") == []


def test_a_node_that_recovers_in_time_keeps_its_pods() -> None:
    cluster = with_pod()
    cluster.set_ready("pool-0", ready=False)
    cluster.pass_time(20)
    cluster.set_ready("pool-0", ready=True)
    cluster.pass_time(100)

    assert "deletionTimestamp" not in alone(cluster)["metadata"]


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        ([], 30),
        ([LIMITED], None),
        ([LIMITED | {"tolerationSeconds": 60}], 6),
        ([LIMITED | {"tolerationSeconds": 600}, LIMITED | {"tolerationSeconds": 20}], 2),
        ([LIMITED | {"tolerationSeconds": -5}], 0),
        ([LIMITED, LIMITED | {"tolerationSeconds": 60}], 6),
    ],
)
def test_a_pods_own_tolerations_say_how_long_it_stays(tolerations: list[Object], seconds: int | None) -> None:
    pod = {"spec": {"tolerations": tolerations}}
    now = Cluster().now
    taint = {"key": NOT_READY, "effect": "NoExecute", "timeAdded": now.isoformat()}
    end = None if seconds is None else now + timedelta(seconds=seconds)

    assert leaves_at(pod, [taint], 0.1, now) == end


def test_a_taint_that_a_pod_does_not_tolerate_drives_it_out_at_once() -> None:
    cluster = with_pod()
    known = cluster.objects.get("nodes", None, "pool-0")
    taint = {"key": "team", "value": "b", "effect": "NoExecute"}
    cluster.objects.update("nodes", known | {"spec": known["spec"] | {"taints": [*known["spec"]["taints"], taint]}})
    cluster.pass_time(5)

    assert cluster.names("pods") == []


def test_a_jobset_leaves_a_lost_node_and_comes_back_on_others() -> None:
    cluster = Cluster()
    job = replicated_job(replicas=1, pod=annotated(run_seconds="200"))
    cluster.apply("jobsets", jobset("train", job, failurePolicy={"maxRestarts": 3}))
    cluster.add_pool("pool-0")
    cluster.pass_time(10)
    cluster.set_ready("pool-0-0", ready=False)
    cluster.add_pool("pool-1")
    cluster.pass_time(60)

    assert condition(cluster.job("train-slice-0"), "FailureTarget")["reason"] == "BackoffLimitExceeded"
    assert condition(cluster.job("train-slice-0"), "Failed") == {}, "nobody saw the lost pod end"
    cluster.remove_pool("pool-0")
    cluster.pass_time(30)
    assert cluster.jobset()["status"]["restarts"] == 1
    assert {pod["spec"]["nodeName"] for pod in cluster.pods()} == {"pool-1-0", "pool-1-1"}


def test_a_node_that_shuts_down_ends_its_pods_and_takes_no_others() -> None:
    cluster = with_pod()
    condition_of_node(cluster, "pool-0", type="Ready", status="False", message=SHUTTING_DOWN)
    cluster.pass_time(4)

    pod = alone(cluster)
    assert pod["status"]["phase"] == "Failed"
    assert pod["status"]["reason"] == "Terminated"
    assert pod["status"]["message"] == "Pod was terminated in response to imminent node shutdown."
    assert condition(pod, "DisruptionTarget")["reason"] == "TerminationByKubelet"
    late = {"name": "late", "namespace": "default"}
    cluster.apply("pods", {"metadata": late, "spec": pod_spec(nodeName="pool-0")})
    status = cluster.objects.get("pods", "default", "late")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "NodeShutdown")
    assert status["message"] == "Pod was rejected as the node is shutting down."


def test_a_job_may_ignore_that_a_node_shut_down() -> None:
    cluster = Cluster()
    cluster.add_pool("pool")
    rules = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
    template = annotated(run_seconds="60")
    spec = job_spec(pod=template, podFailurePolicy={"rules": rules}, backoffLimit=0)
    cluster.apply("jobs", {"metadata": {"name": "work"}, "spec": spec})
    cluster.pass_time(5)
    condition_of_node(cluster, "pool-0", type="Ready", status="False", message=SHUTTING_DOWN)
    cluster.pass_time(5)
    cluster.objects.delete("nodes", None, "pool-0")
    cluster.apply("nodes", node("pool-0"))
    cluster.pass_time(120)

    assert condition(cluster.job("work"), "Complete")["status"] == "True"
    assert cluster.job("work")["status"]["failed"] == 0


def test_followers_that_were_sent_elsewhere_than_their_leader_are_made_anew() -> None:
    cluster = Cluster()
    cluster.apply("jobsets", jobset("train", replicated_job(replicas=1, backoffLimit=5)))
    cluster.add_pool("pool-0")
    cluster.pass_time(5)
    label = "cloud.google.com/gke-nodepool"
    for name in ("pool-0-0", "pool-0-1"):
        known = cluster.objects.get("nodes", None, name)
        labels = known["metadata"]["labels"] | {label: "renamed"}
        cluster.objects.update("nodes", known | {"metadata": known["metadata"] | {"labels": labels}})
    cluster.settle()

    going = [pod for pod in cluster.pods() if "deletionTimestamp" in pod["metadata"]]
    assert [index(pod) for pod in going] == [1]
    assert condition(going[0], "DisruptionTarget")["reason"] == "ExclusivePlacementViolation"
    cluster.pass_time(60)
    assert [pod["spec"]["nodeSelector"].get(label) for pod in cluster.pods()] == [None, "renamed"]


def test_old_events_and_too_many_finished_pods_are_forgotten() -> None:
    cluster = Cluster()
    cluster.add_pool("pool")
    cluster.apply("jobs", {"metadata": {"name": "work"}, "spec": job_spec(pod=annotated(run_seconds="1"))})
    cluster.pass_time(30)
    sweep(cluster.objects, cluster.now, PACE)
    assert (len(cluster.pods()), len(cluster.objects.list("events"))) == (2, 4)

    sweep(cluster.objects, cluster.now + timedelta(hours=2), replace(PACE, finished_pods=1))
    assert (len(cluster.pods()), cluster.objects.list("events")) == (1, [])


def test_what_comes_and_goes_leaves_nothing_behind() -> None:
    cluster = Cluster()
    for number in range(5):
        cluster.add_pool(f"pool-{number}", hosts=1)
        name = f"train-{number}"
        job = replicated_job(replicas=1, hosts=1, pod=annotated(run_seconds="1"))
        cluster.apply("jobsets", jobset(name, job, ttlSecondsAfterFinished=5))
        cluster.pass_time(60)
        cluster.remove_pool(f"pool-{number}")
        sweep(cluster.objects, cluster.now + timedelta(hours=2), PACE)

        plurals = ("jobsets", "jobs", "pods", "services", "events", "nodes")
        assert [cluster.names(plural) for plural in plurals] == [[]] * len(plurals)
