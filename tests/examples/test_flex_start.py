"""The example of flex-start on the local stack: an empty pool, filled, taken back under its Job, filled again."""

from __future__ import annotations

import pytest

from tests.examples.cluster import Cluster, Json

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

HOSTS = 4


def reasons(cluster: Cluster) -> list[str]:
    """Return the reasons of the Events of the slice's transitions, in their order: each is numbered in its name."""
    events = cluster.items("events")
    numbered = [each["metadata"]["name"].rpartition(".")[2] for each in events]
    own = {int(number): each["reason"] for number, each in zip(numbered, events, strict=True) if is_of_a_slice(each)}
    return [own[number] for number in sorted(own)]


def is_of_a_slice(event: Json) -> bool:
    return bool(event["metadata"]["name"].startswith("tpu-flex-start-"))


def told(cluster: Cluster, reason: str, after: int = 0) -> int:
    """Wait until a reason is told after so many others, and return how many there were then."""

    def look() -> int:
        later = reasons(cluster)[after:]
        return after + later.index(reason) + 1 if reason in later else 0

    return cluster.until(look)


def ran(cluster: Cluster, *before: str) -> list[str]:
    """Wait until pods run on all hosts that did not run before, and return their UIDs."""

    def look() -> list[str]:
        found = [uid for uid in cluster.running() if uid not in before]
        return found if len(found) == HOSTS else []

    return cluster.until(look)


def test_a_job_whose_hosts_are_taken_back_waits_for_the_same_pool_and_runs_again(cluster: Cluster) -> None:
    own = cluster.within("flex-start")
    waits = told(own, "AwaitingFlexStart")
    own.until(lambda: any("waiting for flex-start capacity" in said for said in own.said_of("JobSet", "flex-start")))
    own.press("fill", "flex-start")
    filled, first = told(own, "NodePoolCreationSucceeded", waits), ran(own)
    own.press("end", "flex-start")
    waits = told(own, "AwaitingFlexStart", filled)
    own.press("fill", "flex-start")
    filled, _ = told(own, "NodePoolCreationSucceeded", waits), ran(own, *first)
    own.end_pods()
    own.until_over("flex-start")
    told(own, "NodePoolDeletionSucceeded", filled)
    for method in ("CreateNodePool", "DeleteNodePool"):
        assert len([pool for pool in own.calls(method) if pool.startswith("tpu-flex-start-")]) == 1
    assert not {"PoolBroken", "HostsNotUsable", "NodePoolCreationFailed"} & {*reasons(own)}
