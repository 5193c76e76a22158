"""Checks whether the pods of a slice could run on its hosts, and whether GKE would accept its node pool."""

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
    """The pod could not run on the slice's hosts; the text names the key, the value and what the hosts have."""


def fit(
    request: TemplateRequest, selector: Mapping[str, str], job: WorkloadJob, spec: SliceSpec, machine: MachineType
) -> None:
    """Raise DoesNotFit if the request's pods, which have the node selector `selector`, could not run on the hosts.

    | checked          | against                                                                        |
    |------------------|--------------------------------------------------------------------------------|
    | node selector    | labels: Google's and Kubernetes', ours, the tenant's                           |
    | node affinity    | the same labels: one required term must be met                                 |
    | tolerations      | the pool's taints, except JobSet's own                                         |
    | cpu, memory      | the node's allocatable resources                                               |
    | volume claims    | the zone: a volume bound in another zone is not accessible                     |
    """
    labels = {**host_labels(spec, job), **labels_of(job, LAST_ATTEMPT, spec)}
    _refuse_selectors(selector, labels)
    _refuse_affinity(request.affinity, labels)
    _refuse_taints(request.tolerations, spec.taints)
    _refuse_sizes(request, machine)
    _refuse_claims(request, spec.zone)


def pool_fits(job: WorkloadJob, spec: SliceSpec, settings: ClusterSettings) -> None:
    """Raise DoesNotFit if GKE would reject the pool: too many nodes, or invalid or too many labels."""
    if spec.hosts > settings.hosts_per_slice:
        raise DoesNotFit(
            f"{TOPOLOGY}: {spec.topology} needs {spec.hosts} hosts, and a node pool may have at most "
            f"{settings.hosts_per_slice} (hosts_per_slice in the cluster's settings)"
        )
    for key, value in spec.node_labels:
        if not (
            _LABEL_KEY.fullmatch(key) and len(key.rpartition("/")[2]) <= _LONGEST and _LABEL_VALUE.fullmatch(value)
        ):
            raise DoesNotFit(f'node labels: "{key}={value}" is not a valid node label')
    length = sum(len(key) + len(value) for key, value in labels_of(job, LAST_ATTEMPT, spec).items())
    if length > MOST_CHARACTERS:
        theirs = ", ".join(key for key, _ in spec.node_labels)
        raise DoesNotFit(
            f"node labels: the labels of the node pool have {length} characters, and GKE allows {MOST_CHARACTERS}: "
            f"shorten or remove some of {theirs}"
        )


def _refuse_selectors(selector: Mapping[str, str], labels: Mapping[str, str]) -> None:
    for key, value in sorted(selector.items()):
        if key in VARYING:
            raise DoesNotFit(
                f'{key}: the pod selects "{value}", which is not known before the node exists: remove the selector'
            )
        if key in CAPACITY_KEYS and key not in labels:
            raise DoesNotFit(
                f'{key}: the pod selects "{value}", and this slice is not bought that way: remove the selector'
            )
        if key not in labels:
            raise DoesNotFit(
                f'{key}: the pod selects "{value}", and the hosts of this slice do not have this label: '
                "remove the selector"
            )
        if labels[key] != value:
            raise DoesNotFit(f'{key}: the pod selects "{value}", and the hosts of this slice have "{labels[key]}"')


def _refuse_affinity(terms: tuple[tuple[Requirement, ...], ...], labels: Mapping[str, str]) -> None:
    unmet = [next((each for each in term if not _holds(each, labels)), None) for term in terms]
    if not terms or None in unmet:
        return
    first = next(each for each in unmet if each is not None)
    asked = f"{first.operator} {', '.join(first.values)}".strip()
    has = f'have "{labels[first.key]}"' if first.key in labels else "do not have it"
    raise DoesNotFit(f"{first.key}: the pod's node affinity requires {asked}, and the hosts of this slice {has}")


def _holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Return whether the labels meet a requirement, as Kubernetes does (apimachinery labels.Requirement.Matches)."""
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
                f"{taint.key}: the hosts of this slice have the taint {taint.key}={taint.value}:NoSchedule, "
                "which the pod does not tolerate: add a toleration for it"
            )


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Return whether a toleration tolerates a taint (k8s.io/api core/v1 Toleration.ToleratesTaint)."""
    if toleration.effect not in {"", "NoSchedule"} or toleration.key not in {"", taint.key}:
        return False
    return toleration.operator == "Exists" or (toleration.key != "" and toleration.value == taint.value)


def _refuse_sizes(request: TemplateRequest, machine: MachineType) -> None:
    cpu, memory = machine.allocatable_cpu_milli, machine.allocatable_memory_gib
    if request.cpu_milli > cpu:
        raise DoesNotFit(f"cpu: a pod requests {request.cpu_milli}m, and a {machine.name} node has {cpu}m allocatable")
    if request.memory_bytes > memory * _GIB:
        asked = f"{request.memory_bytes / _GIB:.1f}Gi"
        raise DoesNotFit(f"memory: a pod requests {asked}, and a {machine.name} node has {memory}Gi allocatable")


def _refuse_claims(request: TemplateRequest, zone: str) -> None:
    for claim in request.claims:
        if zone not in claim.zones:
            raise DoesNotFit(
                f"persistentVolumeClaim {claim.name}: its volume is accessible from {' or '.join(claim.zones)}, and "
                f"the hosts of this slice are in {zone}: select the volume's zone with {ZONE}, or use another volume"
            )
