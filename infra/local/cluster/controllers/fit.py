"""Would this pod run on this node? The filters of kube-scheduler that JobSets on TPU slices meet (pure).

Reasons are the scheduler's texts (k8s.io/kubernetes/pkg/scheduler/framework/plugins, in the order in which the
plugins run). A node that is not Ready counts as tainted `node.kubernetes.io/not-ready`, as the node life-cycle
controller taints it. What no filter here judges is named by `not_covered`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from infra.local.cluster.controllers.board import Board
from infra.local.cluster.controllers.conditions import is_true
from infra.local.cluster.controllers.keys import NOT_READY, UNSCHEDULABLE
from infra.local.cluster.controllers.quantities import requested
from infra.local.cluster.controllers.selectors import Labels, label_selector_picks, node_selector_picks
from infra.local.cluster.objects import Object

CORDONED = "node(s) were unschedulable"
UNTOLERATED = "node(s) had untolerated taint"
UNSELECTED = "node(s) didn't match Pod's node affinity/selector"
NO_PORTS = "node(s) didn't have free ports for the requested pod ports"
NO_COMPANY = "node(s) didn't match pod affinity rules"
UNWANTED_COMPANY = "node(s) didn't match pod anti-affinity rules"
UNWELCOME = "node(s) didn't satisfy existing pods anti-affinity rules"

_PREEMPTION_HELPS = ("Insufficient", "Too many pods", NO_PORTS, UNWANTED_COMPANY, UNWELCOME)


def why_not(pod: Object, node: Object, placed: Board) -> str | None:
    """Give the first reason why `pod` cannot run on `node`, or None. `placed` knows the node."""
    judgements = (_cordon, _taints, _selection, _ports, _resources, _company)
    return next((no for judge in judgements if (no := judge(pod, node, placed))), None)


def preemption_helps(reason: str) -> bool:
    """Tell whether evicting other pods could change this answer (framework.Unschedulable)."""
    return reason.startswith(_PREEMPTION_HELPS)


def not_covered(pod: Object) -> tuple[str, ...]:
    """Name the pod's constraints that no filter here judges."""
    spec = pod["spec"]
    spread = spec.get("topologySpreadConstraints") or ()
    volumes = spec.get("volumes") or ()
    terms = [*_terms(pod, "podAffinity"), *_terms(pod, "podAntiAffinity")]
    asked = {
        "topologySpreadConstraints": any(c["whenUnsatisfiable"] == "DoNotSchedule" for c in spread),
        "persistentVolumeClaims": any({"persistentVolumeClaim", "ephemeral"} & set(v) for v in volumes),
        "resourceClaims": bool(spec.get("resourceClaims")),
        "namespaceSelector with requirements": any(term.get("namespaceSelector") for term in terms),
        "matchLabelKeys": any(term.get("matchLabelKeys") or term.get("mismatchLabelKeys") for term in terms),
    }
    return tuple(name for name, is_asked in asked.items() if is_asked)


def _labels(obj: Object) -> Labels:
    return obj["metadata"].get("labels") or {}


def _cordon(pod: Object, node: Object, _: Board) -> str | None:
    cordoned = node.get("spec", {}).get("unschedulable", False)
    taint = {"key": UNSCHEDULABLE, "effect": "NoSchedule"}
    return CORDONED if cordoned and not _tolerates(pod, taint) else None


def _taints(pod: Object, node: Object, _: Board) -> str | None:
    taints = list(node.get("spec", {}).get("taints") or ())
    if not is_true(node, "Ready"):
        taints.append({"key": NOT_READY, "effect": "NoSchedule"})
    for taint in taints:
        if taint["effect"] in ("NoSchedule", "NoExecute") and not _tolerates(pod, taint):
            return f"{UNTOLERATED} {{{taint['key']}: {taint.get('value', '')}}}"
    return None


def _tolerates(pod: Object, taint: Mapping[str, Any]) -> bool:
    return any(_matches(toleration, taint) for toleration in pod["spec"].get("tolerations") or ())


def _matches(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """v1.Toleration.ToleratesTaint: an empty key or effect means any."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    exists = toleration.get("operator", "Equal") == "Exists"
    return exists or bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")


def _selection(pod: Object, node: Object, _: Board) -> str | None:
    labels = _labels(node)
    wanted = pod["spec"].get("nodeSelector") or {}
    required = _affinity(pod, "nodeAffinity").get("requiredDuringSchedulingIgnoredDuringExecution")
    chosen = all(labels.get(key) == value for key, value in wanted.items())
    return None if chosen and (required is None or node_selector_picks(required, node)) else UNSELECTED


def _ports(pod: Object, node: Object, placed: Board) -> str | None:
    wanted = set(_host_ports(pod))
    others = placed.pods[node["metadata"]["name"]] if wanted else ()
    return NO_PORTS if any(wanted.intersection(_host_ports(other)) for other in others) else None


def _host_ports(pod: Object) -> Iterator[tuple[str, int]]:
    for container in pod["spec"].get("containers", ()):
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield port.get("protocol", "TCP"), port["hostPort"]


def _resources(pod: Object, node: Object, placed: Board) -> str | None:
    lacking = placed.lacks(node["metadata"]["name"], requested(pod["spec"]))
    if lacking is None:
        return None
    return "Too many pods" if lacking == "pods" else f"Insufficient {lacking}"


def _company(pod: Object, node: Object, placed: Board) -> str | None:
    """Judge affinity and anti-affinity between pods, in InterPodAffinity's order."""
    if not _finds_company(pod, node, placed):
        return NO_COMPANY
    hated = _terms(pod, "podAntiAffinity")
    if hated and any(_meet(pod, term, other, (node, there)) for other, there in placed.neighbours() for term in hated):
        return UNWANTED_COMPANY
    for other, there in placed.neighbours():
        if any(_meet(other, term, pod, (there, node)) for term in _terms(other, "podAntiAffinity")):
            return UNWELCOME
    return None


def _finds_company(pod: Object, node: Object, placed: Board) -> bool:
    """Look for pods that all affinity terms pick, one in each term's domain; the first of a kind needs none."""
    terms = _terms(pod, "podAffinity")
    if not terms:
        return True
    if any(term["topologyKey"] not in _labels(node) for term in terms):
        return False
    companions = [there for other, there in placed.neighbours() if _all_pick(terms, pod, other)]
    if not companions:
        return _all_pick(terms, pod, pod)
    return all(any(_share(term["topologyKey"], node, there) for there in companions) for term in terms)


def _all_pick(terms: Iterable[Mapping[str, Any]], owner: Object, other: Object) -> bool:
    return all(_picks(owner, term, other) for term in terms)


def _meet(owner: Object, term: Mapping[str, Any], other: Object, nodes: tuple[Object, Object]) -> bool:
    """Tell whether the term of `owner` picks `other` and both nodes lie in one of its domains."""
    return _share(term["topologyKey"], *nodes) and _picks(owner, term, other)


def _share(topology_key: str, one: Object, another: Object) -> bool:
    domain = _labels(one).get(topology_key)
    return domain is not None and domain == _labels(another).get(topology_key)


def _picks(owner: Object, term: Mapping[str, Any], other: Object) -> bool:
    """v1.PodAffinityTerm: an empty namespaceSelector is every namespace, none at all is the owner's own."""
    if term.get("namespaceSelector") is None:
        namespaces = term.get("namespaces") or (owner["metadata"]["namespace"],)
        if other["metadata"]["namespace"] not in namespaces:
            return False
    return label_selector_picks(term.get("labelSelector"), _labels(other))


def _affinity(pod: Object, kind: str) -> Mapping[str, Any]:
    return (pod["spec"].get("affinity") or {}).get(kind) or {}


def _terms(pod: Object, kind: str) -> list[Mapping[str, Any]]:
    return _affinity(pod, kind).get("requiredDuringSchedulingIgnoredDuringExecution") or []
