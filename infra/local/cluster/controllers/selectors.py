"""Matching of node selectors and label selectors, which share their operators (pure).

Sources: k8s.io/api/core/v1 NodeSelectorRequirement, metav1.LabelSelectorRequirement. An unknown operator raises
ValueError: the API server does not admit it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from infra.local.cluster.objects import Object

Labels = Mapping[str, str]

Term = Mapping[str, Any]
"""v1.PodAffinityTerm."""


def meets(labels: Labels, requirement: Mapping[str, Any]) -> bool:
    """Return whether labels meet one of matchExpressions. A missing key satisfies only NotIn and DoesNotExist."""
    value = labels.get(requirement["key"])
    values = requirement.get("values") or ()
    match requirement["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return _integer(value, values, larger=True)
        case "Lt":
            return _integer(value, values, larger=False)
        case unknown:
            raise ValueError(f"no selector operator: {unknown}")


def _integer(value: str | None, values: Any, *, larger: bool) -> bool:
    try:
        found, bound = int(value or ""), int(values[0])
    except ValueError:
        return False
    return found > bound if larger else found < bound


def label_selector_picks(selector: Mapping[str, Any] | None, labels: Labels) -> bool:
    """Return whether a metav1.LabelSelector matches: null matches nothing, an empty one everything."""
    if selector is None:
        return False
    exact = (selector.get("matchLabels") or {}).items()
    return all(labels.get(key) == value for key, value in exact) and all(
        meets(labels, requirement) for requirement in selector.get("matchExpressions") or ()
    )


def affinity_terms(pod: Object, kind: Literal["podAffinity", "podAntiAffinity"]) -> list[Term]:
    """Return the required inter-pod terms."""
    affinity = (pod["spec"].get("affinity") or {}).get(kind) or {}
    return affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or []


def check_terms(pod: Object) -> None:
    """Raise what evaluating the pod's inter-pod terms would raise."""
    for term in _all_terms(pod):
        label_selector_picks(term.get("labelSelector"), {})
        for requirement in (term.get("labelSelector") or {}).get("matchExpressions") or ():
            meets({}, requirement)
        str(term["topologyKey"])


def _all_terms(pod: Object) -> Iterator[Term]:
    yield from affinity_terms(pod, "podAffinity")
    yield from affinity_terms(pod, "podAntiAffinity")


def node_selector_picks(selector: Mapping[str, Any], node: Object) -> bool:
    """Return whether a v1.NodeSelector matches: its terms are alternatives, and an empty term matches nothing."""
    return any(_term_picks(term, node) for term in selector["nodeSelectorTerms"])


def _term_picks(term: Mapping[str, Any], node: Object) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    labels = node["metadata"].get("labels") or {}
    names = {"metadata.name": node["metadata"]["name"]}  # the only supported field
    return bool(expressions or fields) and (
        all(meets(labels, requirement) for requirement in expressions)
        and all(meets(names, requirement) for requirement in fields)
    )
