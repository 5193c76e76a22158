"""Whether a pod fits on a node: the filters of kube-scheduler that matter to JobSets on TPU slices (pure).

Reasons are the scheduler's messages (k8s.io/kubernetes/pkg/scheduler/framework/plugins, in the order in which the
plugins run). Readiness of nodes is not checked here: `nodes` taints those that are not Ready. Constraints without a
filter here are reported by `not_covered`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from infra.local.clients.objects import Object
from infra.local.embedded.controllers.board import Board
from infra.local.embedded.controllers.company import Company, affinity_terms
from infra.local.embedded.controllers.nodes import UNSCHEDULABLE
from infra.local.embedded.controllers.tolerations import tolerates
from infra.local.embedded.store.labels import meets
from infra.local.embedded.store.quantities import Amounts, requested

CORDONED = "node(s) were unschedulable"
UNTOLERATED = "node(s) had untolerated taint"
UNSELECTED = "node(s) didn't match Pod's node affinity/selector"
NO_PORTS = "node(s) didn't have free ports for the requested pod ports"
TOO_MANY = "Too many pods"
INSUFFICIENT = "Insufficient"

_HostPort = tuple[str, int]


@dataclass(frozen=True)
class Fit:
    """One pod and a board. What is the same for all nodes is computed once, on first use."""

    pod: Object
    board: Board

    @cached_property
    def wanted(self) -> Amounts:
        return requested(self.pod["spec"])

    @cached_property
    def ports(self) -> frozenset[_HostPort]:
        return frozenset(_host_ports(self.pod))

    @cached_property
    def company(self) -> Company:
        return Company.of(self.pod, self.board.placed())

    def why_not(self, node: Object) -> tuple[str, ...]:
        """Return the reasons of the first filter that rejects this node of the board; none if the pod fits."""
        if fixed := _cordon(self.pod, node) or _taint(self.pod, node) or _selection(self.pod, node):
            return (fixed,)
        if port := self._port(node):
            return (port,)
        if lacking := self._resources(node):
            return lacking
        unfit = self.company.why_not(node["metadata"].get("labels") or {})
        return (unfit,) if unfit else ()

    def _port(self, node: Object) -> str | None:
        others = self.board.pods[node["metadata"]["name"]] if self.ports else ()
        return NO_PORTS if any(not self.ports.isdisjoint(_host_ports(other)) for other in others) else None

    def _resources(self, node: Object) -> tuple[str, ...]:
        lacking = self.board.lacks(node["metadata"]["name"], self.wanted)
        return tuple(TOO_MANY if name == "pods" else f"{INSUFFICIENT} {name}" for name in lacking)


def not_covered(pod: Object) -> tuple[str, ...]:
    """Return the names of the pod's constraints for which there is no filter here."""
    spec = pod["spec"]
    spread = spec.get("topologySpreadConstraints") or ()
    volumes = spec.get("volumes") or ()
    between = [*affinity_terms(pod, "podAffinity"), *affinity_terms(pod, "podAntiAffinity")]
    asked = {
        "topologySpreadConstraints": any(c["whenUnsatisfiable"] == "DoNotSchedule" for c in spread),
        "persistentVolumeClaims": any({"persistentVolumeClaim", "ephemeral"} & set(v) for v in volumes),
        "resourceClaims": bool(spec.get("resourceClaims")),
        "namespaceSelector with requirements": any(term.get("namespaceSelector") for term in between),
        "matchLabelKeys": any(term.get("matchLabelKeys") or term.get("mismatchLabelKeys") for term in between),
    }
    return tuple(name for name, is_asked in asked.items() if is_asked)


def _cordon(pod: Object, node: Object) -> str | None:
    cordoned = node["spec"].get("unschedulable", False)
    return CORDONED if cordoned and not tolerates(pod, {"key": UNSCHEDULABLE, "effect": "NoSchedule"}) else None


def _taint(pod: Object, node: Object) -> str | None:
    for taint in node["spec"].get("taints") or ():
        if taint["effect"] in ("NoSchedule", "NoExecute") and not tolerates(pod, taint):
            return f"{UNTOLERATED} {{{taint['key']}: {taint.get('value', '')}}}"
    return None


def _selection(pod: Object, node: Object) -> str | None:
    labels = node["metadata"].get("labels") or {}
    wanted = pod["spec"].get("nodeSelector") or {}
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    chosen = all(labels.get(key) == value for key, value in wanted.items())
    return None if chosen and (required is None or _picks(required, node)) else UNSELECTED


def _host_ports(pod: Object) -> Iterator[_HostPort]:
    for container in pod["spec"].get("containers", ()):
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield port.get("protocol", "TCP"), port["hostPort"]


def _picks(selector: Mapping[str, Any], node: Object) -> bool:
    """Return whether a v1.NodeSelector matches: its terms are alternatives, and an empty term matches nothing."""
    labels, names = node["metadata"].get("labels") or {}, {"metadata.name": node["metadata"]["name"]}
    return any(
        bool(term.get("matchExpressions") or term.get("matchFields"))
        and all(meets(labels, requirement) for requirement in term.get("matchExpressions") or ())
        and all(meets(names, requirement) for requirement in term.get("matchFields") or ())
        for term in selector["nodeSelectorTerms"]
    )
