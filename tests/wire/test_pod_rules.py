"""What a pod template requires of other pods."""

from __future__ import annotations

from typing import Any

import pytest

from tpu_slices.domain.model.facts import PodRule, PodRuleKind
from tpu_slices.wire.pod_rules import pod_rules_of

Json = dict[str, Any]

HOST = "kubernetes.io/hostname"
LABELS = {"app": "train", "tier": "gold"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def rules(kind: str, selector: Json | None, **term: Any) -> list[tuple[PodRuleKind, bool]]:
    """Return the kind of each rule of a template with LABELS, and whether it selects the template's own pods."""
    whole = {"topologyKey": HOST, "labelSelector": selector, **term}
    spec: Json = {kind: [whole]} if kind == "topologySpreadConstraints" else {"affinity": {kind: {REQUIRED: [whole]}}}
    found = pod_rules_of(spec, LABELS)
    assert {rule.topology_key for rule in found} <= {HOST}
    return [(rule.kind, rule.selects_itself) for rule in found]


@pytest.mark.parametrize(
    ("selector", "itself"),
    [
        ({"matchLabels": {"app": "train"}}, True),
        ({"matchLabels": {"app": "serve"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "train"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["train"]}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
        ({"matchLabels": {"app": "train"}, "matchExpressions": [{"key": "x", "operator": "Exists"}]}, False),
        ({}, True),
        (None, False),
    ],
)
@pytest.mark.parametrize("kind", list(PodRuleKind))
def test_a_rule_selects_the_templates_own_pods_as_kubernetes_matches_labels(
    kind: PodRuleKind, selector: Json | None, itself: bool
) -> None:
    assert rules(kind, selector) == [(kind, itself)]


@pytest.mark.parametrize(
    ("selector", "term"),
    [
        ({"matchLabels": {"jobset.sigs.k8s.io/job-key": "k"}}, {}),
        ({"matchLabels": {"app": "train"}}, {"namespaces": ["other"]}),
        ({"matchLabels": {"app": "train"}}, {"mismatchLabelKeys": ["jobset.sigs.k8s.io/job-key"]}),
    ],
)
def test_what_is_not_known_of_the_pods_lets_the_rule_hold(selector: Json, term: Json) -> None:
    assert rules("podAffinity", selector, **term) == [(PodRuleKind.AFFINITY, True)]
    assert rules("podAntiAffinity", selector, **term) == [(PodRuleKind.ANTI_AFFINITY, False)]


def test_preferences_and_spreads_that_may_be_missed_are_no_rules() -> None:
    assert rules("topologySpreadConstraints", {}, whenUnsatisfiable="ScheduleAnyway") == []
    preferred = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}}
    assert pod_rules_of({"affinity": preferred}, LABELS) == ()
    assert pod_rules_of({}, LABELS) == ()


def test_a_rule_is_read_once() -> None:
    term = {"topologyKey": HOST, "labelSelector": {}}
    assert pod_rules_of({"affinity": {"podAffinity": {REQUIRED: [term, term]}}}, LABELS) == (
        PodRule(kind=PodRuleKind.AFFINITY, topology_key=HOST, selects_itself=True),
    )
