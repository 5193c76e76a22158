"""Labeling and tainting nodes for JobSet's exclusive placement by node selector."""

from collections.abc import Mapping

import pytest

from relay import translate
from relay.node_labels import missing_labels
from relay.objects import Host
from tests.relay.objects import Json, node

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


def test_a_host_is_usable_once_it_is_labeled() -> None:
    seen = [translate.host(exclusive(0)), translate.host(exclusive(0, TAINT, labels={NAMESPACED_JOB: JOB}))]
    assert [each.usable for each in seen if isinstance(each, Host)] == [False, True]
