"""Pods are evicted from closed hosts of a deleted TPUNodeGroup until none is left."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from structlog.testing import capture_logs

from relay.node_groups.evictor import Eviction, Evictor
from relay.objects import Pool, PoolKey
from tests.relay.node_groups.objects import SLICE, FakePods, Json
from tpu_slices.ports.errors import Temporary

POOL = PoolKey(SLICE, 1)
HOSTS = (f"{SLICE}-1-a", f"{SLICE}-1-b")


def pod(name: str = "worker-0", controller: str = "StatefulSet", **parts: Any) -> Json:
    reference = {"apiVersion": "apps/v1", "kind": controller, "name": "it", "uid": "u", "controller": True}
    metadata = {"namespace": "team", "name": name, "ownerReferences": [reference], **parts.get("metadata", {})}
    return {"metadata": metadata, "spec": {}, "status": parts.get("status", {"phase": "Running"})}


@dataclass
class Site:
    """A pool of two closed hosts, and the pods on the first."""

    pods: FakePods = field(default_factory=FakePods)
    needed: list[Eviction] = field(default_factory=lambda: [Eviction(POOL, HOSTS, whole=True)])
    over: list[Pool] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.evictor = Evictor(lambda: self.needed, self.pods, self.over.append)

    def has(self, *pods: Json) -> None:
        self.pods.pods[HOSTS[0]] = [*pods]


@pytest.fixture
def site() -> Site:
    return Site()


def test_every_pod_is_evicted_and_then_it_is_over(site: Site) -> None:
    site.has(pod("worker-0"), pod("worker-1", controller="Job"))
    site.evictor.look()
    assert (site.pods.asked, site.over) == (["team/worker-0", "team/worker-1"], [])
    site.evictor.look()
    assert site.over == [POOL]


def test_hosts_without_pods_are_over_at_once(site: Site) -> None:
    site.evictor.look()
    assert site.over == [POOL]


@pytest.mark.parametrize(
    "stays",
    [
        pod(controller="DaemonSet"),
        pod(metadata={"annotations": {"kubernetes.io/config.mirror": "x"}}),
        pod(status={"phase": "Succeeded"}),
        pod(status={"phase": "Failed"}),
    ],
    ids=["of a DaemonSet", "of the kubelet's own", "that succeeded", "that failed"],
)
def test_a_pod_is_not_waited_for_if_it_would_come_back_or_has_ended(site: Site, stays: Json) -> None:
    site.has(stays)
    site.evictor.look()
    assert (site.pods.asked, site.over) == ([], [POOL])


def test_a_pod_that_is_going_is_waited_for_and_not_asked_again(site: Site) -> None:
    site.has(pod(metadata={"deletionTimestamp": "2026-11-24T12:00:00Z"}))
    site.evictor.look()
    assert (site.pods.asked, site.over) == ([], [])


def test_a_pod_that_a_budget_keeps_is_asked_for_again(site: Site) -> None:
    site.has(pod("worker-0"))
    site.pods.kept.add("worker-0")
    for _ in range(3):
        site.evictor.look()
    assert (site.pods.asked, site.over) == (["team/worker-0"] * 3, [])


def test_it_is_not_over_while_a_host_is_open(site: Site) -> None:
    site.needed = [Eviction(POOL, HOSTS[:1], whole=False)]
    site.evictor.look()
    assert site.over == []


def test_what_fails_is_logged_once_for_each_pool_and_tried_again(site: Site) -> None:
    site.pods.error = Temporary("the API server refused: 403 Forbidden")
    with capture_logs() as lines:
        for _ in range(3):
            site.evictor.look()
    assert [line["event"] for line in lines] == ["eviction.failed"]
    site.pods.error = None
    site.evictor.look()
    assert site.over == [POOL]


def test_one_pool_that_fails_keeps_no_other_waiting(site: Site) -> None:
    other = PoolKey(SLICE, 2)
    site.needed.append(Eviction(other, ("x",), whole=True))
    pods_on = site.pods.pods_on

    def only_the_other(node: str) -> Any:
        if node in HOSTS:
            raise Temporary("the API server does not answer")
        return pods_on(node)

    site.pods.pods_on = only_the_other  # type: ignore[method-assign]
    site.evictor.look()
    assert site.over == [other]
