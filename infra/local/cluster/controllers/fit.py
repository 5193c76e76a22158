"""Would this pod run on this node? The filters of kube-scheduler that JobSets on TPU slices meet (pure).

Reasons are the scheduler's texts (k8s.io/kubernetes/pkg/scheduler/framework/plugins, in the order in which the
plugins run). A node that is not Ready counts as tainted `node.kubernetes.io/not-ready`, as the node life-cycle
controller taints it. What no filter here judges is named by `not_covered`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from infra.local.cluster.controllers.board import Board
from infra.local.cluster.controllers.company import UNWANTED_COMPANY, UNWELCOME, Company, terms
from infra.local.cluster.controllers.conditions import is_true
from infra.local.cluster.controllers.keys import NOT_READY, UNSCHEDULABLE
from infra.local.cluster.controllers.quantities import Amounts, requested
from infra.local.cluster.controllers.selectors import node_selector_picks
from infra.local.cluster.objects import Object

CORDONED = "node(s) were unschedulable"
UNTOLERATED = "node(s) had untolerated taint"
UNSELECTED = "node(s) didn't match Pod's node affinity/selector"
NO_PORTS = "node(s) didn't have free ports for the requested pod ports"
TOO_MANY = "Too many pods"
INSUFFICIENT = "Insufficient"

_PREEMPTION_HELPS = (INSUFFICIENT, TOO_MANY, NO_PORTS, UNWANTED_COMPANY, UNWELCOME)

_HostPort = tuple[str, int]


@dataclass(frozen=True)
class Fit:
    """One pod against a board. What is the same for every node is worked out once, when it is needed."""

    pod: Object
    placed: Board

    @cached_property
    def wanted(self) -> Amounts:
        return requested(self.pod["spec"])

    @cached_property
    def ports(self) -> frozenset[_HostPort]:
        return frozenset(_host_ports(self.pod))

    @cached_property
    def company(self) -> Company:
        return Company.of(self.pod, self.placed)

    def why_not(self, node: Object) -> str | None:
        """Give the first reason why the pod cannot run on this node of the board, or None."""
        return (
            _cordon(self.pod, node)
            or _taint(self.pod, node)
            or _selection(self.pod, node)
            or self._port(node)
            or self._resource(node)
            or self.company.why_not(node["metadata"].get("labels") or {})
        )

    def _port(self, node: Object) -> str | None:
        others = self.placed.pods[node["metadata"]["name"]] if self.ports else ()
        return NO_PORTS if any(not self.ports.isdisjoint(_host_ports(other)) for other in others) else None

    def _resource(self, node: Object) -> str | None:
        lacking = self.placed.lacks(node["metadata"]["name"], self.wanted)
        if lacking is None:
            return None
        return TOO_MANY if lacking == "pods" else f"{INSUFFICIENT} {lacking}"


def why_not(pod: Object, node: Object, placed: Board) -> str | None:
    """Give the first reason why `pod` cannot run on `node`, or None. `placed` knows the node."""
    return Fit(pod, placed).why_not(node)


def preemption_helps(reason: str) -> bool:
    """Tell whether evicting other pods could change this answer (framework.Unschedulable)."""
    return reason.startswith(_PREEMPTION_HELPS)


def not_covered(pod: Object) -> tuple[str, ...]:
    """Name the pod's constraints that no filter here judges."""
    spec = pod["spec"]
    spread = spec.get("topologySpreadConstraints") or ()
    volumes = spec.get("volumes") or ()
    between = [*terms(pod, "podAffinity"), *terms(pod, "podAntiAffinity")]
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
    return CORDONED if cordoned and not _tolerates(pod, {"key": UNSCHEDULABLE, "effect": "NoSchedule"}) else None


def _taint(pod: Object, node: Object) -> str | None:
    taints = list(node["spec"].get("taints") or ())
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
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")


def _selection(pod: Object, node: Object) -> str | None:
    labels = node["metadata"].get("labels") or {}
    wanted = pod["spec"].get("nodeSelector") or {}
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    chosen = all(labels.get(key) == value for key, value in wanted.items())
    return None if chosen and (required is None or node_selector_picks(required, node)) else UNSELECTED


def _host_ports(pod: Object) -> Iterator[_HostPort]:
    for container in pod["spec"].get("containers", ()):
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield port.get("protocol", "TCP"), port["hostPort"]
