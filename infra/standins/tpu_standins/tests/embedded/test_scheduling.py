"""What the scheduler writes in its rounds, and in which order."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from tpu_standins.clients.conditions import find, of
from tpu_standins.clients.objects import Object
from tpu_standins.embedded.controllers.nodes import Pace
from tpu_standins.embedded.controllers.scheduler import Scheduler
from tpu_standins.testing.objects import START, FakeObjects
from tpu_standins.tests.embedded.test_decisions import node, pod

SECOND = timedelta(seconds=1)


class Cluster:
    """A cluster with waiting pods; `written` is what the scheduler wrote about pods, in order."""

    def __init__(self, pods: int) -> None:
        self.written: list[str] = []
        self.objects = FakeObjects(refuses=self._note)
        self.scheduler = Scheduler(self._bind)
        for number in range(pods):
            created: dict[str, Any] = {"creationTimestamp": "2026-01-01T00:00:00Z"}
            waits = pod(f"pod-{number}")
            self.objects.create("pods", waits | {"metadata": waits["metadata"] | created})
        self.written.clear()

    def has_node(self, name: str, chips: str) -> None:
        self.objects.create("nodes", node(name, chips=chips))

    def rounds(self, at: timedelta) -> list[str]:
        """Let a round pass; return what it wrote about pods."""
        self.written.clear()
        self._wake = self.scheduler.reconcile(self.objects, START + at, Pace(told_again_at_once=2))
        return self.written

    def wakes(self) -> datetime | None:
        return self._wake

    def message(self, name: str) -> str:
        found = find(of(self.objects.get("pods", "team", name)), "PodScheduled")
        return str(found and found["message"])

    def _note(self, verb: str, plural: str, obj: Object) -> None:
        if (verb, plural) == ("update", "pods"):
            self.written.append(f"{obj['metadata']['name']} {'is bound' if obj['spec'].get('nodeName') else 'waits'}")

    def _bind(self, bound: Object, to: str) -> Object:
        return self.objects.update("pods", bound | {"spec": bound["spec"] | {"nodeName": to}})


def test_pods_that_fit_are_bound_before_others_are_told_why_they_wait() -> None:
    cluster = Cluster(pods=3)
    cluster.has_node("small", chips="0")
    cluster.rounds(at=0 * SECOND)
    cluster.has_node("first", chips="4")
    cluster.has_node("second", chips="4")
    assert cluster.rounds(at=5 * SECOND) == ["pod-0 is bound", "pod-1 is bound", "pod-2 waits"]


def test_all_pods_that_were_never_told_are_told_at_once_and_a_few_of_the_others_that_waited_longest_for_it() -> None:
    cluster = Cluster(pods=5)
    cluster.has_node("a", chips="0")
    assert cluster.rounds(at=0 * SECOND) == [f"pod-{number} waits" for number in range(5)]
    cluster.has_node("b", chips="0")
    assert cluster.rounds(at=SECOND / 2) == []
    assert cluster.wakes() == START + SECOND
    assert cluster.rounds(at=2 * SECOND) == ["pod-0 waits", "pod-1 waits"]
    assert cluster.rounds(at=2.5 * SECOND) == ["pod-2 waits", "pod-3 waits"]
    assert cluster.rounds(at=2.6 * SECOND) == ["pod-4 waits"]
    assert cluster.wakes() is None
    assert {cluster.message(f"pod-{number}") for number in range(5)} == {
        "0/2 nodes are available: 2 Insufficient google.com/tpu."
    }
