"""kube-scheduler without preemption: binds pods to nodes that fit, one by one, and tells why the others wait.

Reasons are the scheduler's (pkg/scheduler/framework/plugins). What has no filter here is told by `not_covered`.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from tpu_standins.clients.conditions import Condition, find, moment, of, with_condition
from tpu_standins.clients.events import Happening, Recorder
from tpu_standins.clients.objects import Object, Objects, timestamp
from tpu_standins.clients.quantities import amounts, requested
from tpu_standins.clients.rounds import each as each_of
from tpu_standins.clients.tolerations import matches
from tpu_standins.embedded.controllers.nodes import CORDON, Pace, finished
from tpu_standins.embedded.store.labels import Labels, meets, selects

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NO_COMPANY = "node(s) didn't match pod affinity rules"
_UNWANTED = "node(s) didn't match pod anti-affinity rules"
_UNWELCOME = "node(s) didn't satisfy existing pods anti-affinity rules"
_MOMENT = timedelta(milliseconds=100)
"""Until others are told, if there are too many."""

Term = Mapping[str, Any]
"""v1.PodAffinityTerm."""

Reasons = tuple[str, ...]

Domains = set[tuple[str, str]]
"""Node labels, key and value, that nodes share."""


@dataclass(slots=True)
class Board:
    """Nodes by name, what they have left, and the pods on them, each with its node."""

    nodes: dict[str, Object] = field(default_factory=dict)
    free: dict[str, dict[str, int]] = field(default_factory=dict)
    placed: list[tuple[Object, Object]] = field(default_factory=list)
    _alike: dict[str, "tuple[Fit, dict[str, Reasons]]"] = field(default_factory=dict)
    """Why each node, looked at alone, rejects pods that do not differ in what is looked at then."""

    def offer(self, node: Object) -> None:
        """Add a node. Raise ValueError if it cannot be read."""
        name = node["metadata"]["name"]
        self.free[name] = dict(amounts(node.get("status", {}).get("allocatable")))
        self.nodes[name] = node
        self._alike.clear()

    def place(self, pod: Object) -> None:
        """Add a pod that is on a node; on one that is not there it holds nothing. Raise ValueError."""
        name, wanted = pod["spec"]["nodeName"], requested(pod["spec"])
        for kind in ("podAffinity", "podAntiAffinity"):
            list(_domains((term for term in _terms(pod, kind) if _picks(pod, term, pod)), {"metadata": {}}))
        if name in self.nodes:
            self.placed.append((pod, self.nodes[name]))
            for resource in self.free[name].keys() & wanted.keys():
                self.free[name][resource] -= wanted[resource]
            for fit, reasons in self._alike.values():
                reasons[name] = fit.why_not_alone(self.nodes[name])

    def alone(self, fit: "Fit") -> Mapping[str, Reasons]:
        """Return, by name and in its order, why each node rejects a pod whatever other pods are there."""
        if fit.likeness not in self._alike:
            self._alike[fit.likeness] = fit, {name: fit.why_not_alone(self.nodes[name]) for name in sorted(self.nodes)}
        return self._alike[fit.likeness][1]


@dataclass(frozen=True)
class Fit:
    """One pod and a board. What is the same for all nodes is computed once, on first use."""

    pod: Object
    board: Board

    @cached_property
    def likeness(self) -> str:
        """Return all of the pod that `why_not_alone` reads."""
        spec = self.pod["spec"]
        asked = spec.get("tolerations"), spec.get("nodeSelector"), (spec.get("affinity") or {}).get("nodeAffinity")
        return repr((asked, sorted(self._wanted.items())))

    def why_not_alone(self, node: Object) -> Reasons:
        """Return the reasons of the first filter that rejects this node whatever pods are near, if there is one."""
        spec, labels = self.pod["spec"], _labels(node)
        if node["spec"].get("unschedulable") and not tolerates(self.pod, CORDON):
            return ("node(s) were unschedulable",)
        for taint in node["spec"].get("taints") or ():
            if taint["effect"] != "PreferNoSchedule" and not tolerates(self.pod, taint):
                return (f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}",)
        required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED)
        chosen = all(labels.get(key) == value for key, value in (spec.get("nodeSelector") or {}).items())
        if not chosen or (required is not None and not _node_picked(required, node)):
            return ("node(s) didn't match Pod's node affinity/selector",)
        free = self.board.free[node["metadata"]["name"]]
        lacking = (name for name in sorted(self._wanted) if self._wanted[name] > free.get(name, 0))
        return tuple("Too many pods" if name == "pods" else f"Insufficient {name}" for name in lacking)

    def company(self, node: Object) -> Reasons:
        """Return why the pod cannot be near this node, for the pods that are there or must be."""
        labels = _labels(node)
        domains = set(labels.items())
        near, alone = self._near
        for term in _terms(self.pod, "podAffinity"):
            key = term["topologyKey"]
            if key not in labels or not (alone or (key, labels[key]) in near):
                return (_NO_COMPANY,)
        if self._far & domains:
            return (_UNWANTED,)
        return (_UNWELCOME,) if self._closed & domains else ()

    @cached_property
    def _wanted(self) -> Mapping[str, int]:
        return requested(self.pod["spec"])

    @cached_property
    def _near(self) -> tuple[Domains, bool]:
        """Return the domains of the pods to be near to, and whether the pod is the first of its own company."""
        terms = _terms(self.pod, "podAffinity")
        there = self.board.placed if terms else []
        nodes = [node for other, node in there if all(_picks(self.pod, term, other) for term in terms)]
        alone = not nodes and all(_picks(self.pod, term, self.pod) for term in terms)
        return {domain for node in nodes for domain in _domains(terms, node)}, alone

    @cached_property
    def _far(self) -> Domains:
        """Return the domains that the pod's anti-affinity excludes."""
        terms = _terms(self.pod, "podAntiAffinity")
        there = self.board.placed if terms else []
        return {d for other, node in there for t in terms if _picks(self.pod, t, other) for d in _domains([t], node)}

    @cached_property
    def _closed(self) -> Domains:
        """Return the domains that the anti-affinity of the pods there excludes."""
        theirs = ((other, node, term) for other, node in self.board.placed for term in _terms(other, "podAntiAffinity"))
        return {d for other, node, term in theirs if _picks(other, term, self.pod) for d in _domains([term], node)}


def _labels(node: Object) -> Labels:
    return node["metadata"].get("labels") or {}


def tolerates(pod: Object, taint: Object) -> bool:
    return any(matches(toleration, taint) for toleration in pod["spec"].get("tolerations") or ())


def not_covered(pod: Object) -> tuple[str, ...]:
    """Return the names of the pod's constraints for which there is no filter here."""
    spec, between = pod["spec"], [*_terms(pod, "podAffinity"), *_terms(pod, "podAntiAffinity")]
    spread = (each["whenUnsatisfiable"] for each in spec.get("topologySpreadConstraints") or ())
    asked = {"topologySpreadConstraints": "DoNotSchedule" in spread, "resourceClaims": bool(spec.get("resourceClaims"))}
    asked["persistentVolumeClaims"] = any("persistentVolumeClaim" in volume for volume in spec.get("volumes") or ())
    asked["namespaceSelector with requirements"] = any(term.get("namespaceSelector") for term in between)
    return tuple(name for name, is_asked in asked.items() if is_asked)


def _node_picked(selector: Mapping[str, Any], node: Object) -> bool:
    labels, names = _labels(node), {"metadata.name": node["metadata"]["name"]}
    for term in selector["nodeSelectorTerms"]:
        wanted = [(labels, each) for each in term.get("matchExpressions") or ()]
        wanted += [(names, each) for each in term.get("matchFields") or ()]
        if wanted and all(meets(of, requirement) for of, requirement in wanted):
            return True
    return False


def _terms(pod: Object, kind: str) -> list[Term]:
    return ((pod["spec"].get("affinity") or {}).get(kind) or {}).get(_REQUIRED) or []


def _domains(terms: Iterable[Term], node: Object) -> Iterator[tuple[str, str]]:
    labels = _labels(node)
    yield from ((term["topologyKey"], labels[term["topologyKey"]]) for term in terms if term["topologyKey"] in labels)


def _picks(owner: Object, term: Term, other: Object) -> bool:
    """Return whether a term matches a pod; without a namespaceSelector or namespaces, only in the owner's own."""
    spaces = term.get("namespaces") or (owner["metadata"]["namespace"],)
    if term.get("namespaceSelector") is None and other["metadata"]["namespace"] not in spaces:
        return False
    return selects(term.get("labelSelector"), other["metadata"].get("labels") or {})


Bind = Callable[[Object, str], Object]
"""Binds a pod to a node and returns it."""


@dataclass(slots=True)
class Scheduler:
    bind: Bind
    _recorder: Recorder = field(default_factory=lambda: Recorder("default-scheduler"))

    def reconcile(self, objects: Objects, now: datetime, pace: Pace) -> datetime | None:
        """Schedule every waiting pod, by descending priority and then by age; tell the others why they wait."""
        waiting = sorted(filter(_waits, objects.stored("pods")), key=_place)
        board, doubt = Board(), self._recorder.doubting(objects, now)
        refused: dict[str, Condition] = {}
        if waiting:
            each_of(objects.stored("nodes"), board.offer, doubt)
            there = (pod for pod in objects.stored("pods") if pod["spec"].get("nodeName") and not finished(pod))
            each_of(there, board.place, doubt)

        def schedule(pod: Object) -> None:
            chosen = choose(pod, board)
            if isinstance(chosen, Condition):
                refused[pod["metadata"]["uid"]] = chosen
                return
            board.place(self.bind(pod, chosen))
            message = f"Successfully assigned {pod['metadata']['namespace']}/{pod['metadata']['name']} to {chosen}"
            self._recorder.record(objects, Happening(pod, "Scheduled", message, action="Binding"), now)

        def explain(pod: Object) -> None:
            self._explain(objects, pod, refused[pod["metadata"]["uid"]], now)

        each_of(waiting, schedule, doubt)
        told, wake = _to_be_told(waiting, refused, now, pace)
        each_of(told, explain, doubt)
        return wake

    def _explain(self, objects: Objects, pod: Object, why: Condition, now: datetime) -> None:
        conditions = with_condition(of(pod), why, now)
        probed = [c | ({"lastProbeTime": timestamp(now)} if c["type"] == "PodScheduled" else {}) for c in conditions]
        objects.update("pods", pod | {"status": pod["status"] | {"conditions": probed}}, status=True)
        if why.reason != "SchedulingGated":
            event = Happening(pod, "FailedScheduling", why.message, warns=True, action="Scheduling")
            self._recorder.record(objects, event, now)


def _to_be_told(
    waiting: Iterable[Object], refused: Mapping[str, Condition], now: datetime, pace: Pace
) -> tuple[list[Object], datetime | None]:
    """Return the pods that are told now why they wait, and when others may be; None: no other has news (pure).

    A pod for which there is another reason, or none yet, is told at once. One that waits for the same reason, of which
    the message has changed, is told a back-off after the last time, and who was told longest ago first: a new node
    changes the messages of all, and the original writes only so many a second (kube-scheduler's clientConnection.qps).
    """
    first: list[Object] = []
    again: list[tuple[datetime, Object]] = []
    for pod in waiting:
        known, why = find(of(pod), "PodScheduled"), refused.get(pod["metadata"]["uid"])
        if why is None:
            continue
        if known is None or known.get("reason") != why.reason:
            first.append(pod)
        elif known.get("message") != why.message:
            again.append((moment(known["lastProbeTime"]) + pace.scheduling_backoff, pod))
    again.sort(key=lambda each: each[0])
    due = [pod for at, pod in again if at <= now][: pace.told_again_at_once]
    later = again[len(due) :]
    return [*first, *due], max(now + _MOMENT, later[0][0]) if later else None


def choose(pod: Object, board: Board) -> str | Condition:
    """Return the first node that fits, by name, or the condition that says why there is none (pure)."""
    if pod["spec"].get("schedulingGates"):
        return _waiting("SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")
    if uncovered := not_covered(pod):
        return _waiting("SchedulerError", f"not implemented by the embedded scheduler: {', '.join(uncovered)}")
    fit, refused = Fit(pod, board), []
    for name, alone in board.alone(fit).items():
        reasons = alone or fit.company(board.nodes[name])
        if not reasons:
            return name
        refused.append(reasons)
    return _waiting("Unschedulable", explanation(refused) if refused else "no nodes available to schedule pods")


def explanation(refused: Collection[Reasons]) -> str:
    """Return the summary of all nodes' reasons, in kube-scheduler's format (framework.FitError)."""
    counted = Counter(reason for reasons in refused for reason in reasons)
    listed = ", ".join(sorted(f"{nodes} {reason}" for reason, nodes in counted.items()))
    return f"0/{len(refused)} nodes are available: {listed}."


def _waiting(reason: str, message: str) -> Condition:
    return Condition(type="PodScheduled", status=False, reason=reason, message=message)


def _waits(pod: Object) -> bool:
    own = pod["spec"].get("schedulerName", "default-scheduler") == "default-scheduler"
    return own and not (pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"] or finished(pod))


def _place(pod: Object) -> tuple[int, str, str, str]:
    metadata = pod["metadata"]
    return -pod["spec"].get("priority", 0), metadata["creationTimestamp"], metadata["namespace"], metadata["name"]
