"""Patching nodes, and retrying."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from relay.node_patcher import AT_ONCE, RETRY_AFTER, NodePatcher
from relay.node_patches import NodePatch
from tests.relay.closing import question
from tests.relay.objects import node
from tests.relay.test_translate import JOB, NAMESPACED_JOB, OTHER, TAINT, exclusive
from tests.relay.watched import START, Watched
from tpu_slices.ports.errors import Permanent, Temporary

SECOND = timedelta(seconds=1)


@dataclass
class FakeNodes:
    """Records the patches; every call raises `error` if it is set."""

    patches: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    error: Exception | None = None

    def patch_node(self, node: str, patch: Mapping[str, Any]) -> None:
        self.patches.append((node, patch))
        if self.error is not None:
            raise self.error


@dataclass
class Setup:
    """A patcher of the nodes that a fact queue sees."""

    watched: Watched = field(default_factory=Watched)
    nodes: FakeNodes = field(default_factory=FakeNodes)
    now: datetime = START

    def __post_init__(self) -> None:
        self.patcher = NodePatcher(self.needed, self.nodes, lambda: self.now)

    def needed(self) -> tuple[NodePatch, ...]:
        return self.watched.patches()

    def look(self, after: timedelta = timedelta()) -> list[str]:
        """Let the patcher look once; return the nodes that it patched."""
        self.now += after
        before = len(self.nodes.patches)
        self.patcher.look()
        return [name for name, _ in self.nodes.patches[before:]]


def name(number: int, slice_id: str = "tpu-llama-0-aaaaaaaaaaaaa") -> str:
    return f"{slice_id}-1-{number}"


def test_each_host_that_lacks_its_labels_is_patched_once() -> None:
    setup = Setup()
    setup.watched.see(exclusive(0), exclusive(1), node(2))
    assert setup.look() == [name(0), name(1)]
    assert setup.look(timedelta(seconds=30)) == []


def test_a_host_that_changed_meanwhile_is_patched_again() -> None:
    setup = Setup()
    setup.watched.see(exclusive(0))
    setup.look()
    setup.watched.see(exclusive(0, OTHER, version=31))
    assert setup.look() == [name(0)]
    assert setup.nodes.patches[-1][1]["spec"]["taints"] == [OTHER, TAINT]


def test_a_patch_without_effect_is_repeated_after_a_minute() -> None:
    setup = Setup()
    setup.watched.see(exclusive(0))
    setup.look()
    assert setup.look(RETRY_AFTER) == [name(0)]


def test_a_host_that_is_labeled_or_gone_is_not_patched_again() -> None:
    setup = Setup()
    setup.watched.see(exclusive(0), exclusive(1))
    setup.look()
    setup.watched.see(exclusive(0, TAINT, version=31, labels={NAMESPACED_JOB: JOB}))
    setup.watched.lose(exclusive(1))
    assert setup.look(RETRY_AFTER) == []


@pytest.mark.parametrize("error", [Temporary("refused: 403 Forbidden"), Permanent("refused: 422")])
def test_a_pool_whose_hosts_cannot_be_patched_is_logged_once_and_retried_with_rising_pauses(error: Exception) -> None:
    setup = Setup(nodes=FakeNodes(error=error))
    setup.watched.see(exclusive(0), exclusive(1), exclusive(2))
    with capture_logs() as logs:
        assert setup.look() == [name(0)]
        assert setup.look() == []
        assert setup.look(SECOND) == [name(1)]
        assert setup.look(SECOND) == []
        assert setup.look(SECOND) == [name(2)]
        assert setup.look(4 * SECOND) == [name(0)]
    assert [(line["event"], line["log_level"]) for line in logs] == [("node.label_failed", "warning")]
    setup.nodes.error = None
    assert sorted(setup.look(RETRY_AFTER)) == [name(0), name(1), name(2)]
    assert setup.look(SECOND) == []


def test_many_nodes_are_patched_in_parts_so_that_what_they_need_is_looked_up_again() -> None:
    setup = Setup()
    setup.watched.see(*(exclusive(number) for number in range(AT_ONCE + 1)))
    assert setup.patcher.look()
    assert len(setup.nodes.patches) == AT_ONCE
    setup.watched.see(exclusive(30))
    setup.watched.lose(exclusive(9))
    assert setup.look() == [name(30)]


def test_a_pool_that_cannot_be_patched_does_not_hold_up_another() -> None:
    setup = Setup(nodes=FakeNodes(error=Temporary("away")))
    setup.watched.see(exclusive(0))
    setup.look()
    setup.nodes.error = None
    other = exclusive(0, labels={"google.com/tpu-slice-id": "tpu-other-0-bbbbbbbbbbbbb"})
    other["metadata"]["name"] = "other"
    setup.watched.see(other)
    assert setup.look() == ["other"]


@pytest.mark.parametrize("error", [Temporary("refused: 403 Forbidden"), Temporary("away"), Permanent("refused: 422")])
def test_a_host_that_cannot_be_closed_is_logged_and_retried_while_that_is_asked(error: Exception) -> None:
    setup = Setup(nodes=FakeNodes(error=error))
    setup.watched.see(node(0))
    setup.watched.queue.ask(question(), setup.now)
    with capture_logs() as logs:
        assert [setup.look(pause * SECOND) for pause in (0, 1, 1, 1, 4)] == [
            [name(0)],
            [name(0)],
            [],
            [name(0)],
            [name(0)],
        ]
    assert [(line["event"], line["log_level"]) for line in logs] == [("node.close_failed", "warning")]
    setup.watched.queue.ask(question(close=False, number=2), setup.now)
    assert setup.look(RETRY_AFTER) == []


def test_hosts_that_cannot_be_labeled_can_be_closed() -> None:
    setup = Setup(nodes=FakeNodes(error=Temporary("away")))
    setup.watched.see(exclusive(0))
    setup.look()
    setup.nodes.error = None
    setup.watched.queue.ask(question(), setup.now)
    assert setup.look() == [name(0)]
    assert setup.nodes.patches[-1][1]["spec"] == {"unschedulable": True}


def test_a_node_gets_one_patch_at_a_time() -> None:
    """Of two on the same version the API server would refuse the second."""
    setup = Setup()
    setup.watched.see(exclusive(0))
    setup.watched.queue.ask(question(), setup.now)
    assert setup.look() == [name(0)]
    assert setup.nodes.patches[-1][1]["spec"] == {"unschedulable": True}


def test_a_patch_that_met_a_newer_node_is_sent_again_for_that() -> None:
    """The API server ignores a patch of an earlier version of a node."""
    setup = Setup()
    setup.watched.see(node(0, metadata={"resourceVersion": "30"}))
    setup.watched.queue.ask(question(), setup.now)
    setup.look()
    setup.watched.see(node(0, metadata={"resourceVersion": "31"}))
    assert setup.look() == [name(0)]
    assert [patch["metadata"]["resourceVersion"] for _, patch in setup.nodes.patches] == ["30", "31"]
