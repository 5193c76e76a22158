"""A pod of higher priority preempts pods of lower priority, and as few as possible."""

from typing import Any

import pytest

from infra.local.cluster.objects import Object
from tests.local.controllers.cluster import Cluster, condition, pod_spec

LOW, MIDDLE, HIGH = "", "system-cluster-critical", "system-node-critical"
"""Priority classes that every cluster has; without a class the priority is 0."""


def important(name: str, priority: str = LOW, chips: int = 4, **spec: Any) -> Object:
    named = {"priorityClassName": priority} if priority else {}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": pod_spec(chips) | named | spec}


def put(cluster: Cluster, *pods: Object) -> None:
    for pod in pods:
        cluster.objects.create("pods", pod)
    cluster.settle()


def cluster_with(*pods: Object, hosts: int = 1) -> Cluster:
    cluster = Cluster()
    cluster.add_pool("pool", hosts=hosts)
    put(cluster, *pods)
    cluster.pass_time(5)
    return cluster


def pod(cluster: Cluster, name: str) -> Object:
    return cluster.objects.get("pods", "default", name)


def said(cluster: Cluster, name: str) -> str:
    message: str = condition(pod(cluster, name), "PodScheduled")["message"]
    return message


def test_a_lesser_pod_goes_and_the_greater_one_gets_its_node() -> None:
    cluster = cluster_with(important("low"))
    put(cluster, important("high", HIGH))

    going = pod(cluster, "low")
    assert "deletionTimestamp" in going["metadata"]
    target = condition(going, "DisruptionTarget")
    assert (target["status"], target["reason"]) == ("True", "PreemptionByScheduler")
    assert target["message"] == "default-scheduler: preempting to accommodate a higher priority pod"
    assert "Preempted" in cluster.reasons("pods", "low")
    assert pod(cluster, "high")["status"]["nominatedNodeName"] == "pool-0"
    assert said(cluster, "high") == "0/1 nodes are available: 1 Insufficient google.com/tpu."

    cluster.pass_time(5)
    assert cluster.names("pods") == ["high"]
    assert pod(cluster, "high")["spec"]["nodeName"] == "pool-0"
    assert "nominatedNodeName" not in pod(cluster, "high")["status"]


def test_while_the_lesser_pod_goes_nobody_else_does() -> None:
    cluster = cluster_with(important("a"), important("b"), hosts=2)
    put(cluster, important("high", HIGH))
    cluster.pass_time(2)

    assert ["deletionTimestamp" in pod(cluster, name)["metadata"] for name in ("a", "b")] == [True, False]
    assert said(cluster, "high") == (
        "0/2 nodes are available: 2 Insufficient google.com/tpu. "
        "preemption: not eligible due to a terminating pod on the nominated node."
    )


def test_a_pod_that_never_preempts_says_so_and_waits() -> None:
    cluster = cluster_with(important("low"))
    put(cluster, important("high", HIGH, preemptionPolicy="Never"))

    assert "deletionTimestamp" not in pod(cluster, "low")["metadata"]
    assert said(cluster, "high") == (
        "0/1 nodes are available: 1 Insufficient google.com/tpu. "
        "preemption: not eligible due to preemptionPolicy=Never."
    )


@pytest.mark.parametrize("priority", [MIDDLE, HIGH])
def test_an_equal_or_greater_pod_stays(priority: str) -> None:
    cluster = cluster_with(important("there", priority))
    put(cluster, important("comes", MIDDLE))

    assert "deletionTimestamp" not in pod(cluster, "there")["metadata"]
    assert said(cluster, "comes").endswith("1 No preemption victims found for incoming pod.")


def test_no_more_go_than_make_room_and_the_least_important_first() -> None:
    cluster = cluster_with(important("old", chips=2))
    put(cluster, important("low", chips=1), important("middle", MIDDLE, chips=1))
    put(cluster, important("high", HIGH, chips=1))
    cluster.pass_time(5)

    assert cluster.names("pods") == ["high", "middle", "old"]


def test_the_node_with_the_least_important_victim_is_chosen() -> None:
    cluster = cluster_with(important("middle", MIDDLE), important("low"), hosts=2)
    put(cluster, important("high", HIGH))
    cluster.pass_time(5)

    assert cluster.names("pods") == ["high", "middle"]


def test_nobody_goes_where_going_does_not_help() -> None:
    cluster = cluster_with(important("low", chips=1), important("great", HIGH, chips=3))
    put(cluster, important("high", MIDDLE, chips=4))

    assert "deletionTimestamp" not in pod(cluster, "low")["metadata"]
    assert said(cluster, "high") == (
        "0/1 nodes are available: 1 Insufficient google.com/tpu. "
        "preemption: 0/1 nodes are available: 1 Insufficient google.com/tpu."
    )


def test_the_room_that_is_made_is_kept_for_whom_it_is_made() -> None:
    cluster = cluster_with(important("a", chips=2), important("b", chips=2))
    put(cluster, important("high", HIGH, chips=4))
    put(cluster, important("late", chips=1))
    cluster.pass_time(5)

    assert pod(cluster, "high")["spec"]["nodeName"] == "pool-0"
    assert "nodeName" not in pod(cluster, "late")["spec"]


def test_a_pod_whose_nominated_node_falls_ill_preempts_elsewhere() -> None:
    cluster = cluster_with(important("a"), important("b"), hosts=2)
    put(cluster, important("high", HIGH))
    room = pod(cluster, "high")["status"]["nominatedNodeName"]
    cluster.set_ready(room, ready=False)
    cluster.pass_time(5)

    assert pod(cluster, "high")["spec"]["nodeName"] not in (room, None)


def test_a_pod_whose_nominated_node_goes_is_nominated_no_more() -> None:
    cluster = cluster_with(important("low"))
    put(cluster, important("high", HIGH))
    cluster.remove_pool("pool")
    cluster.pass_time(2)

    assert "nominatedNodeName" not in pod(cluster, "high")["status"]
    assert said(cluster, "high") == "no nodes available to schedule pods"
