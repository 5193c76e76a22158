"""Marking nodes for JobSet's placement by node selector."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from relay import translate
from relay.node_labeler import RETRY_AFTER, NodeLabeler, missing_labels
from relay.objects import Host
from tests.relay.objects import Json, node
from tests.relay.watched import START, Watched
from tpu_slices.ports.errors import Permanent, Temporary

NAMESPACED_JOB = "alpha.jobset.sigs.k8s.io/namespaced-job"
TAINT = {"key": "alpha.jobset.sigs.k8s.io/no-schedule", "value": "true", "effect": "NoSchedule"}
OTHER = {"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}
JOB = "research_llama-workers-0"
NO_LABELS: Mapping[str, str | None] = {}


def own(number: int = 0, *taints: Json, version: int = 30, labels: Mapping[str, str | None] = NO_LABELS) -> Json:
    """Build a node whose pool says that its nodes must be marked."""
    base: dict[str, str | None] = {
        "google.com/tpu-slice-exclusive-nodes": "true",
        "google.com/tpu-provisioner-parent-namespace": "research",
        "google.com/tpu-provisioner-parent-name": "llama-workers-0",
    }
    made = node(number, labels={**base, **labels})
    made["metadata"]["resourceVersion"] = str(version)
    if taints:
        made["spec"]["taints"] = list(taints)
    return made


def test_a_node_of_ones_own_gets_label_and_taint_and_keeps_its_other_taints() -> None:
    assert missing_labels(own(0, OTHER, version=77)) == {
        "metadata": {"resourceVersion": "77", "labels": {NAMESPACED_JOB: JOB}},
        "spec": {"taints": [OTHER, TAINT]},
    }


@pytest.mark.parametrize(
    ("made", "taints"),
    [
        (own(0, TAINT), [TAINT]),
        (own(0, labels={NAMESPACED_JOB: JOB}), [TAINT]),
        (own(0, OTHER, TAINT, labels={NAMESPACED_JOB: "research_another"}), [OTHER, TAINT]),
        (own(0, {**TAINT, "value": "other"}, OTHER, labels={NAMESPACED_JOB: JOB}), [OTHER, TAINT]),
        (own(0, {**TAINT, "effect": "NoExecute"}), [{**TAINT, "effect": "NoExecute"}, TAINT]),
    ],
    ids=["taint alone", "label alone", "another's label", "another value", "another effect"],
)
def test_what_is_half_marked_is_marked_whole(made: Json, taints: list[Json]) -> None:
    patch = missing_labels(made)
    assert patch is not None
    assert (patch["metadata"]["labels"], patch["spec"]["taints"]) == ({NAMESPACED_JOB: JOB}, taints)


@pytest.mark.parametrize(
    "made",
    [
        node(0),
        own(0, labels={"google.com/tpu-slice-exclusive-nodes": "false"}),
        own(0, {**TAINT, "timeAdded": "2026-11-01T12:00:00Z"}, OTHER, labels={NAMESPACED_JOB: JOB}),
        own(0, labels={"google.com/tpu-provisioner-parent-name": None}),
        own(0, labels={"google.com/tpu-provisioner-parent-name": "j" * 60}),
    ],
    ids=["no such pool", "not so", "marked", "of no Job", "longer than a label may be"],
)
def test_other_nodes_are_left_alone(made: Json) -> None:
    assert missing_labels(made) is None


@dataclass
class FakeNodes:
    """Remembers the patches; `trouble` is raised by every call."""

    patches: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    trouble: Exception | None = None

    def label_node(self, node: str, patch: Mapping[str, Any]) -> None:
        self.patches.append((node, patch))
        if self.trouble is not None:
            raise self.trouble


@dataclass
class Bench:
    """Marks at work on what a ledger sees."""

    watched: Watched = field(default_factory=Watched)
    nodes: FakeNodes = field(default_factory=FakeNodes)
    now: datetime = START

    def __post_init__(self) -> None:
        self.marks = NodeLabeler(self.watched.queue.cache.unlabeled, self.nodes, lambda: self.now)

    def look(self, after: timedelta = timedelta()) -> list[str]:
        """Let the marks look once; the nodes that were patched."""
        self.now += after
        before = len(self.nodes.patches)
        self.marks.look()
        return [name for name, _ in self.nodes.patches[before:]]


def name(number: int, slice_id: str = "tpu-llama-0-aaaaaaaaaaaaa") -> str:
    return f"{slice_id}-1-{number}"


def test_each_host_that_lacks_its_marks_is_patched_once() -> None:
    bench = Bench()
    bench.watched.see(own(0), own(1), node(2))
    assert bench.look() == [name(0), name(1)]
    assert bench.look(timedelta(seconds=30)) == []


def test_a_host_that_changed_meanwhile_is_patched_as_it_is_now() -> None:
    bench = Bench()
    bench.watched.see(own(0))
    bench.look()
    bench.watched.see(own(0, OTHER, version=31))
    assert bench.look() == [name(0)]
    assert bench.nodes.patches[-1][1]["spec"]["taints"] == [OTHER, TAINT]


def test_a_patch_that_did_not_help_is_sent_again_after_a_minute() -> None:
    bench = Bench()
    bench.watched.see(own(0))
    bench.look()
    assert bench.look(RETRY_AFTER) == [name(0)]


def test_a_host_that_is_marked_or_gone_is_done_with() -> None:
    bench = Bench()
    bench.watched.see(own(0), own(1))
    bench.look()
    bench.watched.see(own(0, TAINT, version=31, labels={NAMESPACED_JOB: JOB}))
    bench.watched.lose(own(1))
    assert bench.look(RETRY_AFTER) == []


@pytest.mark.parametrize("trouble", [Temporary("refused: 403 Forbidden"), Permanent("refused: 422")])
def test_a_pool_whose_hosts_may_not_be_marked_is_warned_of_once_and_tried_each_minute(trouble: Exception) -> None:
    bench = Bench(nodes=FakeNodes(trouble=trouble))
    bench.watched.see(own(0), own(1), own(2))
    with capture_logs() as logs:
        assert bench.look() == [name(0)]
        assert bench.look(timedelta(seconds=30)) == []
        assert bench.look(timedelta(seconds=30)) == [name(0)]
    assert [(line["event"], line["log_level"]) for line in logs] == [("node.label_failed", "warning")]
    bench.nodes.trouble = None
    assert bench.look(RETRY_AFTER) == [name(0), name(1), name(2)]


def test_a_pool_that_refuses_does_not_hold_up_another() -> None:
    bench = Bench(nodes=FakeNodes(trouble=Temporary("away")))
    bench.watched.see(own(0))
    bench.look()
    bench.nodes.trouble = None
    other = own(0, labels={"google.com/tpu-slice-id": "tpu-other-0-bbbbbbbbbbbbb"})
    other["metadata"]["name"] = "other"
    bench.watched.see(other)
    assert bench.look() == ["other"]


def test_a_host_counts_once_it_is_marked() -> None:
    seen = [translate.host(own(0)), translate.host(own(0, TAINT, labels={NAMESPACED_JOB: JOB}))]
    assert [each.usable for each in seen if isinstance(each, Host)] == [False, True]
