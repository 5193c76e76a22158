"""What Kueue adds to a workload when it admits it, by the queues and flavors of the same files. Pure.

LocalQueue -> ClusterQueue -> its groups of resources of which pods request one -> the first flavor that suits:
its nodeLabels become selectors, its tolerations tolerations (sigs.k8s.io/kueue pkg/podset, as of 0.19). A flavor suits
pods that select no other value of a label that a flavor of the group has, and tolerate its taints
(pkg/scheduler/flavorassigner). Which one has quota is not known. Of a LeaderWorkerSet Kueue changes the pods alone,
and not the templates, which say what its slices are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.wire.workloads import Json
from tpu_slices_cli.applied.world import World, templates_of

QUEUE = "kueue.x-k8s.io/queue-name"
_DEFAULT = "default"
"""The LocalQueue of workloads that name none, if their namespace has it."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A workload as Kueue starts it, and what may go otherwise."""

    body: Json
    warnings: tuple[str, ...] = ()


def admitted(body: Json, kind: OwnerKind, world: World) -> Admitted:
    """Return the workload with what Kueue adds to it; as it is if no file has its queue."""
    if kind not in {OwnerKind.JOBSET, OwnerKind.JOB}:
        return Admitted(body)
    metadata = body["metadata"]
    name = (metadata.get("labels") or {}).get(QUEUE) or _DEFAULT
    local = world.get("kueue.x-k8s.io/LocalQueue", name, world.namespace_of(body))
    queue = local and world.get("kueue.x-k8s.io/ClusterQueue", _spec(local).get("clusterQueue"))
    if not queue:
        return Admitted(body)
    admitted_body, warnings = deepcopy(body), []
    for path, template in templates_of(admitted_body, kind):
        for group in _spec(queue).get("resourceGroups") or ():
            if not _requested(template).isdisjoint(group.get("coveredResources") or ()):
                offer = _Offer(queue["metadata"].get("name"), tuple(_flavors(group, world)))
                offer.give(template)
                whose = f"{body['kind']} {metadata.get('name')}: {path}"
                warnings += [f"{whose}: {warning}" for warning in offer.warnings]
    return Admitted(admitted_body, tuple(dict.fromkeys(warnings)))


def _flavors(group: Json, world: World) -> Iterator[tuple[str, Json | None]]:
    """Yield the flavors of a group of resources in their order, each with its spec; None: no file has it."""
    for each in group.get("flavors") or ():
        flavor = world.get("kueue.x-k8s.io/ResourceFlavor", each["name"])
        yield str(each["name"]), flavor and _spec(flavor)


class _Offer:
    """What the flavors of one group of resources of a ClusterQueue give to a pod template."""

    def __init__(self, queue: object, flavors: Sequence[tuple[str, Json | None]]) -> None:
        self.queue = queue
        self.flavors = flavors
        self.warnings: list[str] = []

    def give(self, template: Any) -> None:
        """Add what the first flavor that suits has to a template."""
        spec = template["spec"]
        suit = [(name, flavor) for name, flavor in self.flavors if flavor is not None and self._suits(flavor, spec)]
        if not suit:
            self._tell_that_none_suits(spec)
            return
        (name, first), *others = suit
        before = _selectors(spec), spec.get("tolerations") or []
        spec["nodeSelector"] = {**before[0], **(first.get("nodeLabels") or {})}
        spec["tolerations"] = [*before[1], *(first.get("tolerations") or ())]
        different = [other for other, flavor in others if _given(flavor) != _given(first)]
        if different:
            self.warnings.append(
                f"planned for the flavor {name}: ClusterQueue {self.queue} may admit it to {' or '.join(different)}, "
                f"too, when {name} has no quota left: select what one of them has to be sure"
            )

    def _suits(self, flavor: Json, spec: Json) -> bool:
        labels = flavor.get("nodeLabels") or {}
        selected = {key: value for key, value in _selectors(spec).items() if key in self._keys}
        tolerations = [*(spec.get("tolerations") or ()), *(flavor.get("tolerations") or ())]
        taints = [each for each in flavor.get("nodeTaints") or () if each.get("effect") in {"NoSchedule", "NoExecute"}]
        return selected.items() <= labels.items() and all(_tolerated(taint, tolerations) for taint in taints)

    @property
    def _keys(self) -> set[str]:
        return {key for _, flavor in self.flavors for key in ((flavor or {}).get("nodeLabels") or {})}

    def _tell_that_none_suits(self, spec: Json) -> None:
        if any(flavor is None for _, flavor in self.flavors):
            return
        selects = ", ".join(f"{key}: {value}" for key, value in sorted(_selectors(spec).items()) if key in self._keys)
        what = f"the pods select {selects}" if selects else "their taints are not tolerated"
        self.warnings.append(
            f"ClusterQueue {self.queue} never admits it: {what}, and no flavor of "
            f"{', '.join(name for name, _ in self.flavors) or 'it'} suits: change the nodeLabels of one, or the pods"
        )


def _given(flavor: Json | None) -> tuple[Any, Any]:
    return (flavor or {}).get("nodeLabels") or {}, (flavor or {}).get("tolerations") or []


def _tolerated(taint: Json, tolerations: Iterable[Json]) -> bool:
    """Return whether one of these tolerates a taint (k8s.io/api core/v1 Toleration.ToleratesTaint)."""
    return any(
        (each.get("effect") or taint.get("effect")) == taint.get("effect")
        and (each.get("key") or taint.get("key")) == taint.get("key")
        and (each.get("operator") == "Exists" or (each.get("value") or "") == (taint.get("value") or ""))
        for each in tolerations
    )


def _requested(template: Json) -> set[str]:
    """Return the names of the resources that the containers of a template request; pods are counted, too."""
    spec = template["spec"]
    resources = [each.get("resources") or {} for each in (*(spec.get("initContainers") or ()), *spec["containers"])]
    return {"pods"} | {name for each in resources for some in ("limits", "requests") for name in each.get(some) or ()}


def _selectors(spec: Json) -> dict[str, Any]:
    return dict(spec.get("nodeSelector") or {})


def _spec(obj: Json) -> Json:
    spec: Json = obj.get("spec") or {}
    return spec
