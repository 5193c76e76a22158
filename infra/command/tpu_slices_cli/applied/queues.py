"""What Kueue adds to a workload when it admits it, by the queues and flavors of the same files. Pure.

LocalQueue -> ClusterQueue -> its groups of resources of which pods request one -> the first flavor that suits:
its nodeLabels become selectors, its tolerations tolerations (sigs.k8s.io/kueue pkg/podset, as of 0.19). A flavor suits
pods that select no other value of a label that a flavor of the group has, and tolerate its taints
(pkg/scheduler/flavorassigner). Which one has quota is not known. Of a LeaderWorkerSet Kueue changes the pods alone,
and not the templates, which say what its slices are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from tpu_slices.domain.model.gangs import ADMISSION_CHECKS
from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.wire.workloads import Json, reading
from tpu_slices_cli.applied.world import World, named, templates_of

QUEUE = "kueue.x-k8s.io/queue-name"
_DEFAULT = "default"
"""The LocalQueue of workloads that name none, if their namespace has it."""

_MERGED = (
    ", and a JobSet up to 0.12 that is admitted once more, and to another flavor, has pods with the nodeLabels and "
    "tolerations of both, which may fit no host"
)
"""JobSet adds to the templates of Jobs that it resumes, and removes nothing of them (0.12, resumeJob)."""


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
    with reading(f"LocalQueue {name}, or what it leads to"):
        offers = _offers(name, world.namespace_of(body), world)
    if not offers:
        return Admitted(body)
    admitted_body, warnings = deepcopy(body), dict[str, None]()
    later = _MERGED if kind is OwnerKind.JOBSET else ""
    for path, template in templates_of(admitted_body, kind):
        for offer in offers:
            covers = not offer.covered.isdisjoint(_requested(template))
            if covers and (warning := offer.give(template["spec"], later)):
                warnings[f"{named(body)}: {path}: {warning}"] = None
    return Admitted(admitted_body, tuple(warnings))


@dataclass(frozen=True, slots=True)
class _Flavor:
    """A ResourceFlavor."""

    name: str
    labels: Mapping[str, Any]
    tolerations: Sequence[Json]
    taints: Sequence[Json]
    known: bool
    """False: no file has it."""

    def gives(self, other: _Flavor) -> bool:
        """Return whether pods get the same of both."""
        return (self.labels, self.tolerations) == (other.labels, other.tolerations)

    def add_to(self, spec: dict[str, Any]) -> None:
        """Add to a pod's spec what Kueue gives to pods that it admits to this flavor."""
        spec["nodeSelector"] = {**_selectors(spec), **self.labels}
        spec["tolerations"] = [*(spec.get("tolerations") or ()), *self.tolerations]

    def is_tolerated(self, spec: Json) -> bool:
        """Return whether pods tolerate its taints, by themselves or with what it gives them."""
        tolerations = [*(spec.get("tolerations") or ()), *self.tolerations]
        taints = [each for each in self.taints if each.get("effect") in {"NoSchedule", "NoExecute"}]
        return all(_tolerated(taint, tolerations) for taint in taints)


def _offers(name: object, namespace: str, world: World) -> tuple[_Offer, ...]:
    """Return what the ClusterQueue of a LocalQueue offers, a group of resources each; nothing if no file has it."""
    queue = _leads_to(name, namespace, world)
    if not queue:
        return ()
    return tuple(
        _Offer(
            str(queue["metadata"].get("name")),
            frozenset(map(str, group.get("coveredResources") or ())),
            tuple(_flavor(str(each["name"]), world) for each in group.get("flavors") or ()),
        )
        for group in (queue.get("spec") or {}).get("resourceGroups") or ()
    )


def is_checked(queue: object, namespace: str, world: World) -> bool:
    """Return whether Kueue admits what is in a LocalQueue once its slices stand, by a check of the same files."""
    with reading(f"LocalQueue {queue}, or what it leads to"):
        strategy = (_leads_to(queue, namespace, world).get("spec") or {}).get("admissionChecksStrategy") or {}
        names = [each["name"] for each in strategy.get("admissionChecks") or ()]
        checks = (world.get("kueue.x-k8s.io/AdmissionCheck", name) or {} for name in names)
        return any((each.get("spec") or {}).get("controllerName") == ADMISSION_CHECKS for each in checks)


def _leads_to(name: object, namespace: str, world: World) -> Json:
    """Return the ClusterQueue of a LocalQueue; an empty object if no file has it."""
    local = world.get("kueue.x-k8s.io/LocalQueue", name, namespace)
    return (local and world.get("kueue.x-k8s.io/ClusterQueue", (local.get("spec") or {}).get("clusterQueue"))) or {}


def _flavor(name: str, world: World) -> _Flavor:
    flavor = world.get("kueue.x-k8s.io/ResourceFlavor", name)
    spec = (flavor or {}).get("spec") or {}
    tolerations, taints = ([dict(each) for each in spec.get(field) or ()] for field in ("tolerations", "nodeTaints"))
    return _Flavor(name, dict(spec.get("nodeLabels") or {}), tolerations, taints, known=flavor is not None)


@dataclass(frozen=True, slots=True)
class _Offer:
    """What the flavors of one group of resources of a ClusterQueue give to pods."""

    queue: str
    covered: frozenset[str]
    flavors: tuple[_Flavor, ...]

    def give(self, spec: dict[str, Any], later: str) -> str:
        """Add to a pod's spec what the first flavor that suits has; return what may go otherwise, or nothing.

        `later`: what else happens when it is admitted again, and to another flavor.
        If none tolerates, and it is sure that Kueue admits none, the pods are planned as if the first were tolerated.
        """
        alike = [each for each in self.flavors if each.known and self._agrees(each, spec)]
        suit = [each for each in alike if each.is_tolerated(spec)]
        if not suit and not (self.flavors and all(each.known for each in self.flavors)):
            return ""
        if given := suit or alike:
            given[0].add_to(spec)
        return self._otherwise(later, *suit) if suit else self._why_never(spec, alike)

    def _otherwise(self, later: str, first: _Flavor, *others: _Flavor) -> str:
        """Return that Kueue may take a flavor after the first, which gives pods something else, or nothing."""
        different = [each.name for each in others if not first.gives(each)]
        if not different:
            return ""
        return (
            f"planned for the flavor {first.name}: ClusterQueue {self.queue} may admit it to {' or '.join(different)}, "
            f"too, when {first.name} has no quota left{later}: to be sure, select the nodeLabels of one of them"
        )

    def _agrees(self, flavor: _Flavor, spec: Json) -> bool:
        """Return whether pods select no other value of a label that flavors have."""
        return self._selected(spec).items() <= flavor.labels.items()

    def _selected(self, spec: Json) -> dict[str, Any]:
        """Return what pods select of the labels that flavors have."""
        keys = {key for each in self.flavors for key in each.labels}
        return {key: value for key, value in sorted(_selectors(spec).items()) if key in keys}

    def _why_never(self, spec: Json, alike: Sequence[_Flavor]) -> str:
        """Return why no flavor suits, and the remedy; `alike`: those whose nodeLabels the pods agree with."""
        never = f"ClusterQueue {self.queue} never admits it"
        if alike:
            names = " or ".join(each.name for each in alike)
            return f"{never}: the pods do not tolerate the nodeTaints of {names}: add a toleration to either"
        selects = ", ".join(f"{key}: {value}" for key, value in self._selected(spec).items())
        names = ", ".join(each.name for each in self.flavors)
        return (
            f"{never}: the pods select {selects}, and none of its flavors ({names}) has these nodeLabels: change those "
            "of one, or what the pods select"
        )


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
