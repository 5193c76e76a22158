"""Reads what a pod template requires of other pods: k8s.io/api core/v1 Affinity and TopologySpreadConstraint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tpu_slices.domain.model.facts import PodRule, PodRuleKind

Json = Mapping[str, Any]

_ADDED_LATER = (
    "jobset.sigs.k8s.io/",
    "leaderworkerset.sigs.k8s.io/",
    "batch.kubernetes.io/",
    "kueue.x-k8s.io/",
    "apps.kubernetes.io/",
    "job-name",
    "controller-uid",
)
"""How the keys of labels begin that controllers give to the pods of a template."""


def pod_rules_of(pod_spec: Json, labels: Mapping[str, str]) -> tuple[PodRule, ...]:
    """Return the rules of a pod or template with these labels that it is not scheduled without."""
    return tuple(dict.fromkeys(_rules(pod_spec, labels)))


def _rules(pod_spec: Json, labels: Mapping[str, str]) -> Iterator[PodRule]:
    affinity = pod_spec.get("affinity") or {}
    for kind in (PodRuleKind.AFFINITY, PodRuleKind.ANTI_AFFINITY):
        required = (affinity.get(kind) or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
        for term in required or ():
            yield _rule(kind, term, labels)
    for constraint in pod_spec.get("topologySpreadConstraints") or ():
        if constraint.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule":
            yield _rule(PodRuleKind.SPREAD, constraint, labels)


def _rule(kind: PodRuleKind, term: Json, labels: Mapping[str, str]) -> PodRule:
    return PodRule(
        kind=kind,
        topology_key=str(term["topologyKey"]),
        selects_itself=_selects(term, labels, unknown=kind is PodRuleKind.AFFINITY),
    )


def _selects(term: Json, labels: Mapping[str, str], *, unknown: bool) -> bool:
    """Return whether a term's label selector (apimachinery meta/v1 LabelSelector) matches; without one, nothing does.

    `unknown` is returned for what depends on the namespace, or on labels that are given later.
    """
    selector = term.get("labelSelector")
    if selector is None:
        return False
    wanted: Mapping[str, str] = selector.get("matchLabels") or {}
    asked: list[Json] = [{"key": key, "operator": "In", "values": [value]} for key, value in wanted.items()]
    asked += selector.get("matchExpressions") or ()
    later = [each for each in asked if each["key"] not in labels and each["key"].startswith(_ADDED_LATER)]
    if not all(_holds(each, labels) for each in asked if each not in later):
        return False
    return unknown if later or term.get("namespaces") or term.get("mismatchLabelKeys") else True


def _holds(expression: Json, labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels
