"""Affinity and anti-affinity between pods: the topology domains that they require or exclude (pure).

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/interpodaffinity. It is computed once per pod, so that
for each node only its labels need to be compared.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from infra.local.clients.objects import Object
from infra.local.embedded.store.labels import Labels, selects

NO_COMPANY = "node(s) didn't match pod affinity rules"
UNWANTED_COMPANY = "node(s) didn't match pod anti-affinity rules"
UNWELCOME = "node(s) didn't satisfy existing pods anti-affinity rules"

Term = Mapping[str, Any]
"""v1.PodAffinityTerm."""

_Domain = tuple[str, str]
"""A node label, key and value, that nodes share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Company:
    """`keys`: labels that a node must have. `near`: domains it must be in, unless the pod is the first to match.

    `far`: domains excluded by the pod's anti-affinity; `closed`: domains excluded by that of pods already there.
    """

    keys: frozenset[str]
    near: frozenset[_Domain]
    first: bool
    far: frozenset[_Domain]
    closed: frozenset[_Domain]

    @classmethod
    def of(cls, pod: Object, placed: Iterable[tuple[Object, Object]]) -> Self:
        """Evaluate the pod's terms, and those of all placed pods, each given with its node."""
        wanted, hated = affinity_terms(pod, "podAffinity"), affinity_terms(pod, "podAntiAffinity")
        others = list(placed)
        companions = [node for other, node in others if wanted and _all_pick(wanted, pod, other)]
        return cls(
            keys=frozenset(term["topologyKey"] for term in wanted),
            near=frozenset(domain for node in companions for domain in _domains(wanted, node)),
            first=not companions and _all_pick(wanted, pod, pod),
            far=frozenset(_picked(pod, hated, others)),
            closed=frozenset(_closed(pod, others)),
        )

    def why_not(self, labels: Labels) -> str | None:
        """Return why a node with these labels is not possible, or None."""
        domains = labels.items()
        for key in self.keys:
            if key not in labels or not (self.first or (key, labels[key]) in self.near):
                return NO_COMPANY
        if not self.far.isdisjoint(domains):
            return UNWANTED_COMPANY
        return None if self.closed.isdisjoint(domains) else UNWELCOME


def _picked(pod: Object, hated: list[Term], others: Iterable[tuple[Object, Object]]) -> Iterator[_Domain]:
    for other, node in others:
        yield from _domains((term for term in hated if _picks(pod, term, other)), node)


def _closed(pod: Object, others: Iterable[tuple[Object, Object]]) -> Iterator[_Domain]:
    for other, node in others:
        repelling = (term for term in affinity_terms(other, "podAntiAffinity") if _picks(other, term, pod))
        yield from _domains(repelling, node)


def _domains(of_terms: Iterable[Term], node: Object) -> Iterator[_Domain]:
    labels = node["metadata"].get("labels") or {}
    for term in of_terms:
        if term["topologyKey"] in labels:
            yield term["topologyKey"], labels[term["topologyKey"]]


def _all_pick(wanted: Iterable[Term], owner: Object, other: Object) -> bool:
    return all(_picks(owner, term, other) for term in wanted)


def _picks(owner: Object, term: Term, other: Object) -> bool:
    """Return whether a v1.PodAffinityTerm matches a pod.

    An empty namespaceSelector selects all namespaces; without one, and without namespaces, it is the owner's own.
    """
    if term.get("namespaceSelector") is None:
        namespaces = term.get("namespaces") or (owner["metadata"]["namespace"],)
        if other["metadata"]["namespace"] not in namespaces:
            return False
    return selects(term.get("labelSelector"), other["metadata"].get("labels") or {})


def affinity_terms(pod: Object, kind: Literal["podAffinity", "podAntiAffinity"]) -> list[Term]:
    """Return the required inter-pod terms."""
    affinity = (pod["spec"].get("affinity") or {}).get(kind) or {}
    return affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or []


def check_terms(pod: Object) -> None:
    """Raise what evaluating the pod's inter-pod terms would raise."""
    for term in (*affinity_terms(pod, "podAffinity"), *affinity_terms(pod, "podAntiAffinity")):
        selects(term.get("labelSelector"), {})
        str(term["topologyKey"])
