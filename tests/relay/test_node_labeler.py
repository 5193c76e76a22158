"""Labeling and tainting nodes for JobSet's exclusive placement by node selector."""

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


def exclusive(number: int = 0, *taints: Json, version: int = 30, labels: Mapping[str, str | None] = NO_LABELS) -> Json:
    """Return a node of a pool with exclusive nodes."""
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


def test_an_exclusive_node_gets_label_and_taint_and_keeps_its_other_taints() -> None:
    assert missing_labels(exclusive(0, OTHER, version=77)) == {
        "metadata": {"resourceVersion": "77", "labels": {NAMESPACED_JOB: JOB}},
        "spec": {"taints": [OTHER, TAINT]},
    }


@pytest.mark.parametrize(
    ("made", "taints"),
    [
        (exclusive(0, TAINT), [TAINT]),
        (exclusive(0, labels={NAMESPACED_JOB: JOB}), [TAINT]),
        (exclusive(0, OTHER, TAINT, labels={NAMESPACED_JOB: "research_another"}), [OTHER, TAINT]),
        (exclusive(0, {**TAINT, "value": "other"}, OTHER, labels={NAMESPACED_JOB: JOB}), [OTHER, TAINT]),
        (exclusive(0, {**TAINT, "effect": "NoExecute"}), [{**TAINT, "effect": "NoExecute"}, TAINT]),
    ],
    ids=["taint alone", "label alone", "another's label", "another value", "another effect"],
)
def test_a_partly_labeled_node_gets_the_missing_label_and_taint(made: Json, taints: list[Json]) -> None:
    patch = missing_labels(made)
    assert patch is not None
    assert (patch["metadata"]["labels"], patch["spec"]["taints"]) == ({NAMESPACED_JOB: JOB}, taints)


@pytest.mark.parametrize(
    "made",
    [
        node(0),
        exclusive(0, labels={"google.com/tpu-slice-exclusive-nodes": "false"}),
        exclusive(0, {**TAINT, "timeAdded": "2026-11-01T12:00:00Z"}, OTHER, labels={NAMESPACED_JOB: JOB}),
        exclusive(0, labels={"google.com/tpu-provisioner-parent-name": None}),
        exclusive(0, labels={"google.com/tpu-provisioner-parent-name": "j" * 60}),
    ],
    ids=["no exclusive pool", "set to false", "labeled", "of no Job", "longer than a label may be"],
)
def test_other_nodes_are_left_alone(made: Json) -> None:
    assert missing_labels(made) is None


@dataclass
class FakeNodes:
    """Records the patches; every call raises `error` if it is set."""

    patches: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    error: Exception | None = None

    def label_node(self, node: str, patch: Mapping[str, Any]) -> None:
        self.patches.append((node, patch))
        if self.error is not None:
            raise self.error


@dataclass
class Setup:
    """A labeler for the nodes that a fact queue sees."""

    watched: Watched = field(default_factory=Watched)
    nodes: FakeNodes = field(default_factory=FakeNodes)
    now: datetime = START

    def __post_init__(self) -> None:
        self.labeler = NodeLabeler(self.watched.queue.cache.unlabeled, self.nodes, lambda: self.now)

    def look(self, after: timedelta = timedelta()) -> list[str]:
        """Let the labeler look once; return the nodes that it patched."""
        self.now += after
        before = len(self.nodes.patches)
        self.labeler.look()
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
def test_a_pool_whose_hosts_cannot_be_labeled_is_logged_once_and_retried_each_minute(error: Exception) -> None:
    setup = Setup(nodes=FakeNodes(error=error))
    setup.watched.see(exclusive(0), exclusive(1), exclusive(2))
    with capture_logs() as logs:
        assert setup.look() == [name(0)]
        assert setup.look(timedelta(seconds=30)) == []
        assert setup.look(timedelta(seconds=30)) == [name(0)]
    assert [(line["event"], line["log_level"]) for line in logs] == [("node.label_failed", "warning")]
    setup.nodes.error = None
    assert setup.look(RETRY_AFTER) == [name(0), name(1), name(2)]


def test_a_pool_that_cannot_be_labeled_does_not_hold_up_another() -> None:
    setup = Setup(nodes=FakeNodes(error=Temporary("away")))
    setup.watched.see(exclusive(0))
    setup.look()
    setup.nodes.error = None
    other = exclusive(0, labels={"google.com/tpu-slice-id": "tpu-other-0-bbbbbbbbbbbbb"})
    other["metadata"]["name"] = "other"
    setup.watched.see(other)
    assert setup.look() == ["other"]


def test_a_host_is_usable_once_it_is_labeled() -> None:
    seen = [translate.host(exclusive(0)), translate.host(exclusive(0, TAINT, labels={NAMESPACED_JOB: JOB}))]
    assert [each.usable for each in seen if isinstance(each, Host)] == [False, True]
