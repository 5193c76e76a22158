"""The example of flex-start on the local stack: an empty pool, filled, taken back under its Job, filled again."""

from __future__ import annotations

import pytest

from tests.examples.cluster import Cluster, Json

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]


def reasons(cluster: Cluster) -> list[str]:
    """Return the reasons of the Events of the slice's transitions, in their order: each is numbered in its name."""
    events = cluster.get("events")["items"]
    numbered = [each["metadata"]["name"].rpartition(".")[2] for each in events]
    own = {int(number): each["reason"] for number, each in zip(numbered, events, strict=True) if is_of_a_slice(each)}
    return [own[number] for number in sorted(own)]


def is_of_a_slice(event: Json) -> bool:
    return bool(event["metadata"]["name"].startswith("tpu-flex-start-"))


def leader_runs(cluster: Cluster) -> bool:
    pods = cluster.get("pods", "-l", "batch.kubernetes.io/job-completion-index=0")["items"]
    return [pod["status"].get("phase") for pod in pods] == ["Running"]


def test_a_job_whose_hosts_are_taken_back_waits_for_the_same_pool_and_runs_again(cluster: Cluster) -> None:
    own = cluster.within("flex-start")
    own.until(lambda: reasons(own)[-1:] == ["AwaitingFlexStart"])
    own.until(lambda: "waiting for flex-start capacity" in own.kubectl("describe", "jobset", "flex-start"))
    own.press("fill", "flex-start")
    own.until(lambda: reasons(own)[-1:] == ["NodePoolCreationSucceeded"] and leader_runs(own))
    own.press("end", "flex-start")
    own.until(lambda: reasons(own)[-1:] == ["AwaitingFlexStart"])
    own.press("fill", "flex-start")
    own.until_over("flex-start")
    own.until(lambda: reasons(own)[-1:] == ["NodePoolDeletionSucceeded"])
    for method in ("CreateNodePool", "DeleteNodePool"):
        assert len([pool for pool in own.calls(method) if pool.startswith("tpu-flex-start-")]) == 1
    assert not {"PoolBroken", "HostsNotUsable", "NodePoolCreationFailed"} & {*reasons(own)}
