"""Where a pod may run, as terms of its required node affinity, and the patch that adds them. Pure.

The table is that of infra/kubernetes/admission.yaml, which says the same in CEL, for API servers that evaluate it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from relay.webhook.pods import Json, Pod
from tpu_slices.domain.model.clusters import PodsOf
from tpu_slices.domain.model.gangs import GANG, Gangs
from tpu_slices.domain.planning.host_labels import CAPACITY_KEYS, LOCATION_HINT
from tpu_slices.domain.planning.keys import KEY_LABEL
from tpu_slices.domain.planning.pool_labels import (
    OWNER_LABEL,
    PARENT_KIND_LABEL,
    PARENT_NAME_LABEL,
    PARENT_NAMESPACE_LABEL,
)

Requirements = list[Json]
"""Expressions that a node has to meet all."""

_AFFINITY = "/spec/affinity"
_NODE_AFFINITY = f"{_AFFINITY}/nodeAffinity"
_REQUIRED = f"{_NODE_AFFINITY}/requiredDuringSchedulingIgnoredDuringExecution"
_SELECTOR = "/spec/nodeSelector"
_GATES = "/spec/schedulingGates"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Those of the policy, too."""

    strips_capacity: bool = False
    """Whether node selectors of spot, reservations and flex-start are removed."""
    location_hint: str = ""
    """Where Google places slices, as agreed with Google; empty: there is no hint."""
    serve: tuple[PodsOf, ...] = ()
    """Whose pods get a slice each."""
    gangs: Gangs = Gangs.NONE
    """Which workloads are gangs that do not say so."""


def meant_for(pod: Pod) -> list[Requirements]:
    """Return the sets of requirements of which a node has to meet one, to be meant for a judged pod.

    | hosts                                                      | for a pod                                     |
    |------------------------------------------------------------|-----------------------------------------------|
    | with a key of its own, in its namespace                    | with keys                                     |
    | made for its Job or LeaderWorkerSet, by name, without keys | of one that a slice is made for               |
    | - whatever keys they have                                  | a leader that is not labelled with a key yet  |
    | static: no provisioner made them                           | kept together, or that no slice is made for   |
    """
    workload = pod.workload
    if workload is None:
        return [[_static()]]
    in_namespace = _within(PARENT_NAMESPACE_LABEL, pod.namespace)
    keyed = [_within(KEY_LABEL, *workload.keys), in_namespace]
    named = [_within(PARENT_KIND_LABEL, workload.kind), in_namespace, _within(PARENT_NAME_LABEL, workload.name)]
    sets = [keyed, [*named, _without(KEY_LABEL)]] if workload.keys else [named]
    sets = sets if workload.name else [keyed]
    return [*sets, [_static()]] if pod.is_kept_together else sets


def patch_of(pod: Pod, options: Options) -> list[Json]:
    """Return the operations (RFC 6902) that place a pod, and hold one of a gang; none: it is as it is to be."""
    if not pod.is_judged:
        return []
    selected = () if pod.workload is None else _selected(pod, options)
    return [*_required(pod), *selected, *_held(pod)]


def _required(pod: Pod) -> Iterator[Json]:
    """Yield what extends each term that has none of the sets yet, once for each set.

    An empty term stays, too: no node meets it.
    """
    sets, left, extended = meant_for(pod), list[Json](), list[Json]()
    for term in pod.terms or ():
        (left if _is_empty(term) or _has_one(term, sets) else extended).append(term)
    if pod.terms is None:
        extended = [{}]
    if not extended:
        return
    if pod.affinity is None:
        yield add(_AFFINITY, {})
    if (pod.affinity or {}).get("nodeAffinity") is None:
        yield add(_NODE_AFFINITY, {})
    yield add(_REQUIRED, {"nodeSelectorTerms": [*left, *(_with(each, more) for more in sets for each in extended)]})


def _selected(pod: Pod, options: Options) -> Iterator[Json]:
    if options.strips_capacity:
        for key in CAPACITY_KEYS:
            if key in pod.selector:
                yield {"op": "remove", "path": f"{_SELECTOR}/{escaped(key)}"}
    hint = options.location_hint
    if hint and pod.selector.get(LOCATION_HINT) != hint:
        if not pod.selector:
            yield add(_SELECTOR, {})
        yield add(f"{_SELECTOR}/{escaped(LOCATION_HINT)}", hint)


def _held(pod: Pod) -> Iterator[Json]:
    if pod.is_to_be_held:
        if not pod.gates:
            yield add(_GATES, [])
        yield add(f"{_GATES}/-", {"name": GANG})


def _is_empty(term: Json) -> bool:
    return not term.get("matchExpressions") and not term.get("matchFields")


def _has_one(term: Json, sets: Sequence[Requirements]) -> bool:
    own = [_compared(each) for each in term.get("matchExpressions") or ()]
    return any(all(_compared(each) in own for each in wanted) for wanted in sets)


def _compared(expression: Json) -> tuple[str, str, tuple[str, ...]]:
    return expression["key"], expression["operator"], tuple(expression.get("values") or ())


def _with(term: Json, more: Requirements) -> Json:
    return {**term, "matchExpressions": [*(term.get("matchExpressions") or ()), *more]}


def _within(key: str, *values: str) -> Json:
    return {"key": key, "operator": "In", "values": list(values)}


def _without(key: str) -> Json:
    return {"key": key, "operator": "DoesNotExist"}


def _static() -> Json:
    return _without(OWNER_LABEL)


def add(path: str, value: object) -> Json:
    """Return the operation that sets a member of an object, or appends to a list."""
    return {"op": "add", "path": path, "value": value}


def escaped(key: str) -> str:
    """Return a key as a part of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")
