"""Would a slice's pods run on the hosts that we would make? Every key that says no."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tpu_slices.domain.catalogue.accelerators import MachineType
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import Requirement, TemplateRequest, Toleration
from tpu_slices.domain.model.slices import LAST_ATTEMPT, SliceSpec, Taint, WorkloadJob
from tpu_slices.domain.planning.host_labels import CAPACITY_KEYS, JOBSET_TAINT, TOPOLOGY, VARYING, ZONE, host_labels
from tpu_slices.domain.planning.pool_labels import MOST_CHARACTERS, labels_of

_GIB = 1 << 30
_LONGEST = 63
_LABEL_KEY = re.compile(r"([a-z0-9][-a-z0-9.]{0,252}/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
"""Kubernetes' syntax of labels (apimachinery pkg/util/validation)."""


class DoesNotFit(ValueError):
    """The pod could not run on the hosts that we would make; the text names the key, what it asks and what it gets."""


def fit(
    request: TemplateRequest, selector: Mapping[str, str], job: WorkloadJob, spec: SliceSpec, machine: MachineType
) -> None:
    """Raise DoesNotFit where something would keep the pods of a request, which select `selector`, off the hosts.

    | checked          | against                                                                        |
    |------------------|--------------------------------------------------------------------------------|
    | node selector    | labels: Google's and Kubernetes' own, ours, the tenant's                       |
    | node affinity    | the same: one required term must hold                                          |
    | tolerations      | the taints that the pool gets, but for JobSet's own                            |
    | cpu, memory      | what a node has left for pods                                                  |
    | volume claims    | the zone: a volume that is bound elsewhere cannot be reached                   |
    """
    labels = {**host_labels(spec, job), **labels_of(job, LAST_ATTEMPT, spec)}
    _refuse_selectors(selector, labels)
    _refuse_affinity(request.affinity, labels)
    _refuse_taints(request.tolerations, spec.taints)
    _refuse_sizes(request, machine)
    _refuse_claims(request, spec.zone)


def pool_fits(job: WorkloadJob, spec: SliceSpec, settings: ClusterSettings) -> None:
    """Raise DoesNotFit where GKE takes no such pool: too many nodes, too long labels."""
    if spec.hosts > settings.hosts_per_slice:
        raise DoesNotFit(
            f"{TOPOLOGY}: {spec.topology} takes {spec.hosts} hosts, and a node pool has at most "
            f"{settings.hosts_per_slice} (hosts_per_slice in the cluster's settings)"
        )
    for key, value in spec.node_labels:
        if not (
            _LABEL_KEY.fullmatch(key) and len(key.rpartition("/")[2]) <= _LONGEST and _LABEL_VALUE.fullmatch(value)
        ):
            raise DoesNotFit(f'node labels: "{key}={value}" is no label that a node can have')
    length = sum(len(key) + len(value) for key, value in labels_of(job, LAST_ATTEMPT, spec).items())
    if length > MOST_CHARACTERS:
        theirs = ", ".join(key for key, _ in spec.node_labels)
        raise DoesNotFit(
            f"node labels: the node pool would carry {length} characters of labels, GKE takes {MOST_CHARACTERS}: "
            f"shorten or leave out some of {theirs}"
        )


def _refuse_selectors(selector: Mapping[str, str], labels: Mapping[str, str]) -> None:
    for key, value in sorted(selector.items()):
        if key in VARYING:
            raise DoesNotFit(f'{key}: the pod selects "{value}", which no node has before it is made; remove it')
        if key in CAPACITY_KEYS and key not in labels:
            raise DoesNotFit(
                f'{key}: the pod selects "{value}", and this slice is not bought that way: remove the selector'
            )
        if key not in labels:
            raise DoesNotFit(f'{key}: a node of ours would not have this label (the pod selects "{value}"); remove it')
        if labels[key] != value:
            raise DoesNotFit(f'{key}: the pod selects "{value}", the hosts of this slice have "{labels[key]}"')


def _refuse_affinity(terms: tuple[tuple[Requirement, ...], ...], labels: Mapping[str, str]) -> None:
    unmet = [next((each for each in term if not _holds(each, labels)), None) for term in terms]
    if not terms or None in unmet:
        return
    first = next(each for each in unmet if each is not None)
    asked = f"{first.operator} {', '.join(first.values)}".strip()
    has = f'have "{labels[first.key]}"' if first.key in labels else "do not have it"
    raise DoesNotFit(f"{first.key}: the pod's node affinity requires {asked}, the hosts of this slice {has}")


def _holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Evaluate a requirement as Kubernetes does (apimachinery labels.Requirement.Matches)."""
    key, values = requirement.key, requirement.values
    known = key in labels
    match requirement.operator:
        case "In":
            return known and labels[key] in values and key not in VARYING
        case "NotIn":
            return not known or labels[key] not in values
        case "Exists":
            return known
        case "DoesNotExist":
            return not known
        case "Gt" | "Lt" if known and labels[key].isdecimal() and len(values) == 1 and values[0].isdecimal():
            ours, theirs = int(labels[key]), int(values[0])
            return ours > theirs if requirement.operator == "Gt" else ours < theirs
        case _:
            return False


def _refuse_taints(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> None:
    for taint in taints:
        if taint.key != JOBSET_TAINT and not any(_tolerates(toleration, taint) for toleration in tolerations):
            raise DoesNotFit(
                f"{taint.key}: the hosts of this slice carry the taint {taint.key}={taint.value}:NoSchedule, "
                "which the pod does not tolerate: add a toleration for it"
            )


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Say whether a taint is put up with (k8s.io/api core/v1 Toleration.ToleratesTaint)."""
    if toleration.effect not in {"", "NoSchedule"} or toleration.key not in {"", taint.key}:
        return False
    return toleration.operator == "Exists" or (toleration.key != "" and toleration.value == taint.value)


def _refuse_sizes(request: TemplateRequest, machine: MachineType) -> None:
    cpu, memory = machine.allocatable_cpu_milli, machine.allocatable_memory_gib
    if request.cpu_milli > cpu:
        raise DoesNotFit(f"cpu: a pod requests {request.cpu_milli}m, a node of {machine.name} has {cpu}m to give")
    if request.memory_bytes > memory * _GIB:
        asked = f"{request.memory_bytes / _GIB:.1f}Gi"
        raise DoesNotFit(f"memory: a pod requests {asked}, a node of {machine.name} has {memory}Gi to give")


def _refuse_claims(request: TemplateRequest, zone: str) -> None:
    for claim in request.claims:
        if zone not in claim.zones:
            raise DoesNotFit(
                f"persistentVolumeClaim {claim.name}: its volume can be reached from {' or '.join(claim.zones)}, "
                f"the hosts of this slice are in {zone}: select that zone with {ZONE}, or use another volume"
            )
