"""Checks whether the pods of a slice could run on its hosts, and whether GKE would accept its node pool."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from tpu_slices.domain.catalogue.accelerators import machine_named
from tpu_slices.domain.catalogue.machines import MachineType
from tpu_slices.domain.model.clusters import ClusterSettings, PoolSettings
from tpu_slices.domain.model.facts import IDLE_HOSTS, MAX_RUN_DURATION, Requirement, TemplateRequest, Toleration
from tpu_slices.domain.model.slices import LAST_ATTEMPT, OwnerKind, SliceSpec, Taint, WorkloadJob, claim_id, slice_id
from tpu_slices.domain.planning.host_labels import (
    ARCH,
    CAPACITY_KEYS,
    GKE_PROVISIONERS,
    GROUP_KEYS,
    JOBSET_TAINT,
    METADATA_SERVER,
    NETWORK_DRIVER,
    PLACEMENT_POLICY,
    RUN_SECONDS,
    TOPOLOGY,
    VARYING,
    ZONE,
    host_labels,
    is_label_value,
    is_slicing,
    network_labels,
)
from tpu_slices.domain.planning.obstacles import Obstacle, does_not_fit
from tpu_slices.domain.planning.pod_rules import pod_rules_hold
from tpu_slices.domain.planning.pool_labels import MOST_CHARACTERS, labels_of, labels_of_pool
from tpu_slices.domain.planning.sharing import are_jobs_of_one_pod, idles, share_slice

_GIB = 1 << 30
_LONGEST = 63
_LABEL_KEY = re.compile(r"([a-z0-9][-a-z0-9.]{0,252}/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
"""Kubernetes' syntax of labels (apimachinery pkg/util/validation)."""

_SELECTED = frozenset({*CAPACITY_KEYS, PLACEMENT_POLICY, ZONE})
"""Keys that a slice follows from if they are node selectors."""

_OF_GKE_ALONE: Mapping[str, str] = MappingProxyType(
    {
        PLACEMENT_POLICY: "and in a self-managed cluster each slice gets a workload policy of its own",
        **dict.fromkeys(
            (METADATA_SERVER, NETWORK_DRIVER, RUN_SECONDS, *GKE_PROVISIONERS),
            "and hosts of a self-managed cluster do not have this label",
        ),
    }
)
"""Why a self-managed cluster has no host with a label of GKE's."""

Labels = Mapping[str, str | None]
"""The labels of a slice's hosts; None: not known, so nothing is said of them."""


def fit(
    request: TemplateRequest,
    selector: Mapping[str, str],
    job: WorkloadJob,
    spec: SliceSpec,
    settings: ClusterSettings,
) -> Iterator[Obstacle]:
    """Yield why the request's pods, which have the node selector `selector`, could not run on the hosts.

    Parts of the spec may be unknown, because they have obstacles of their own: they are empty.

    | checked            | against                                                                        |
    |--------------------|--------------------------------------------------------------------------------|
    | node selector      | labels: Google's and Kubernetes', ours, the tenant's                           |
    | node affinity      | the same labels: one required term must be met                                 |
    | tolerations        | the pool's taints, except JobSet's own                                         |
    | pods               | the number of hosts: none may be left over, nor hosts, unless that is meant    |
    | cpu, memory, disk  | the node's allocatable resources, where they are known                         |
    | GPUs, huge pages   | no host has any                                                                |
    | volume claims      | they exist; the zone: a volume bound in another zone is not accessible         |
    | rules on pods      | the same labels, see `pod_rules`                                               |
    """
    pools, machine = settings.pools, machine_named(spec.machine_type, settings.accelerators)
    given = {**host_labels(spec, job, pools), **({ARCH: machine.arch} if machine else {})}
    known: Labels = {key: value or None for key, value in given.items()}
    labels = {**known, **labels_of(job, LAST_ATTEMPT, spec)}
    yield from _selectors_hold(selector, labels, pools)
    yield from _affinity_holds(request.affinity, labels)
    yield from _taints_are_tolerated(request.tolerations, spec.taints)
    if spec.hosts:
        yield from _pods_have_hosts(request, job, spec)
    if machine is not None:
        yield from _sizes_fit(request, machine, pools)
    yield from _volumes_are_accessible(request, spec.zone)
    yield from pod_rules_hold(request, job.owner.kind, spec.hosts, frozenset(labels))


def pool_fits(job: WorkloadJob, spec: SliceSpec, settings: ClusterSettings) -> Iterator[Obstacle]:
    """Yield why the pool would be rejected: too many nodes, invalid labels, or more than GKE takes."""
    if spec.hosts > settings.hosts_per_slice:
        yield does_not_fit(
            f"{TOPOLOGY}: {spec.topology} needs {spec.hosts} hosts, and a slice may have at most "
            f"{settings.hosts_per_slice} (hosts_per_slice in the cluster's settings)"
        )
    for key, value in spec.node_labels:
        if not (_LABEL_KEY.fullmatch(key) and len(key.rpartition("/")[2]) <= _LONGEST and is_label_value(value)):
            yield does_not_fit(f'node labels: "{key}={value}" is not a valid node label')
    length = max(_characters(job, each, settings) for each in _ordered_as(job, spec, settings))
    if length > MOST_CHARACTERS and not settings.self_managed:
        theirs = ", ".join(key for key, _ in spec.node_labels)
        yield does_not_fit(
            f"node labels: the labels of the node pool have {length} characters, and GKE allows {MOST_CHARACTERS}: "
            f"shorten or remove some of {theirs}"
        )


def _ordered_as(job: WorkloadJob, spec: SliceSpec, settings: ClusterSettings) -> Iterator[SliceSpec]:
    """Yield how a slice may be ordered: for its namespace, or for any if a setting keeps it for all."""
    yield spec
    warm, _ = settings.warm_in(job.owner.namespace)
    if warm is not None and warm.is_for_all:
        yield replace(spec, crosses=True, key=slice_id(claim_id(job), LAST_ATTEMPT))


def _characters(job: WorkloadJob, spec: SliceSpec, settings: ClusterSettings) -> int:
    labels = {**labels_of_pool(job, LAST_ATTEMPT, spec), **network_labels(spec, settings.pools)}
    return sum(len(key) + len(value) for key, value in labels.items())


def idle_hosts(request: TemplateRequest, job: WorkloadJob, spec: SliceSpec) -> str:
    """Return the caveat that fewer pods than hosts run at a time, as is meant; empty if no host is left over."""
    if not _leaves_hosts(request, spec):
        return ""
    whose = f"replicatedJob {request.replicated_job}: " if request.replicated_job else ""
    have, remedy = _pods(request, job, spec)
    return f"{whose}{have}. Hosts stay idle, and programs that wait for the whole slice hang: {remedy}"


def _pods_have_hosts(request: TemplateRequest, job: WorkloadJob, spec: SliceSpec) -> Iterator[Obstacle]:
    if max(request.parallelism or 0, request.completions or 0) > spec.hosts:
        have, remedy = _pods(request, job, spec)
        yield does_not_fit(f"{have}: {remedy}, or select a larger topology")
    elif _leaves_hosts(request, spec) and not idles(request):
        have, remedy = _pods(request, job, spec)
        yield does_not_fit(
            f"{have}. Programs that wait for the whole slice hang{_each_alone(request)}: {remedy}"
            f"{_together(request, spec)}, select a smaller topology, or, if hosts are to stay idle, set the annotation "
            f'{IDLE_HOSTS}: "true" on the pods'
        )


def _each_alone(request: TemplateRequest) -> str:
    return f" (each of its {request.replicas} Jobs gets a slice of its own)" if request.replicas > 1 else ""


def _together(request: TemplateRequest, spec: SliceSpec) -> str:
    """Return what lets several Jobs of one pod share a slice, as a remedy after another; empty: they are no such."""
    if not are_jobs_of_one_pod(request):
        return ""
    alone = " without exclusive-topology" if request.exclusive_nodes or request.exclusive_topology else ""
    return f", have {spec.hosts} such Jobs{alone} (they share one slice)"


def _leaves_hosts(request: TemplateRequest, spec: SliceSpec) -> bool:
    """Return whether fewer pods than hosts run at a time; of a pod by itself that is not known."""
    if share_slice(request):
        return request.replicas < spec.hosts
    at_a_time = [each for each in (request.parallelism, request.completions) if each is not None]
    return request.parallelism is not None and min(at_a_time) < spec.hosts


def _pods(request: TemplateRequest, job: WorkloadJob, spec: SliceSpec) -> tuple[str, str]:
    """Return how many pods and hosts there are, by the fields at fault, and what to set these to."""
    hosts = f"{spec.hosts} host{'s' if spec.hosts > 1 else ''} of {spec.chips_per_host} chips, one for each pod"
    has = f"and a slice of {spec.accelerator} {spec.topology} has {hosts}"
    if job.owner.kind is OwnerKind.LEADER_WORKER_SET:
        beside, without = (1, ", its leader requests no google.com/tpu") if request.leader_apart else (0, "")
        size = (request.parallelism or 0) + beside
        return f"leaderWorkerTemplate.size: it is {size}{without}, {has}", f"set it to {spec.hosts + beside}"
    if job.owner.kind is OwnerKind.POD:
        return f"{TOPOLOGY}: a pod by itself is on one host, {has}", "use a Job or a LeaderWorkerSet"
    both = f"parallelism, completions: the Job has {request.parallelism} and {request.completions}"
    return f"{both}, {has}", f"set both to {spec.hosts}"


def _selectors_hold(selector: Mapping[str, str], labels: Labels, pools: PoolSettings) -> Iterator[Obstacle]:
    told = GKE_PROVISIONERS if pools.compute is None else ()
    for key, value in sorted(selector.items()):
        if key in told or (key in labels and labels[key] in {None, value} and key not in VARYING):
            continue
        yield does_not_fit(f'{key}: the pod selects "{value}", {_why_not(key, labels, pools)}')


def _why_not(key: str, labels: Labels, pools: PoolSettings) -> str:
    if key in VARYING:
        return "which is not known before the node exists: remove the selector"
    if key in labels:
        return f'and the hosts of this slice have "{labels[key]}"'
    if key in CAPACITY_KEYS:
        return "and this slice is not bought that way: remove the selector"
    if pools.compute is not None and key in _OF_GKE_ALONE:
        return f"{_OF_GKE_ALONE[key]}: remove the selector"
    if key == PLACEMENT_POLICY:
        return "and only slices of several hosts of tpu7x or tpu7 are placed by a workload policy: remove the selector"
    if key == RUN_SECONDS:
        return (
            "and GKE sets this label on the hosts of its own provisioners only: remove the selector, and for hosts of "
            f"flex-start set the annotation {MAX_RUN_DURATION} of the pod"
        )
    if key in GROUP_KEYS:
        return (
            "a label of the hosts of a TPUNodeGroup: it runs there once that is ready, and gets no slice of its own "
            "unless the selector is removed"
        )
    if is_slicing(key):
        return (
            "a label of super-, sub- or dynamic slicing, and a slice of this provisioner has hosts of its own: remove "
            f"the selector, and select the whole slice with {TOPOLOGY}"
        )
    return "and the hosts of this slice do not have this label: remove the selector"


def _affinity_holds(terms: tuple[tuple[Requirement, ...], ...], labels: Labels) -> Iterator[Obstacle]:
    unmet = [[each for each in term if not _holds(each, labels)] for term in terms]
    for each in min(unmet, key=len, default=()):
        asked = f"{each.operator} {', '.join(each.values)}".strip()
        has = f'have "{labels[each.key]}"' if each.key in labels else "do not have it"
        has = "have a value that is not known before they exist" if each.key in VARYING else has
        remedy = "select it with the node selector" if each.key in _SELECTED else "remove the requirement, or prefer it"
        yield does_not_fit(
            f"{each.key}: the pod's node affinity requires {asked}, and the hosts of this slice {has}: {remedy}"
        )


def _holds(requirement: Requirement, labels: Labels) -> bool:
    """Return whether the labels meet a requirement, as Kubernetes does (apimachinery labels.Requirement.Matches)."""
    key, values = requirement.key, requirement.values
    known, value = key in labels, labels.get(key)
    open_ = known and value is None and key not in VARYING
    match requirement.operator:
        case "In":
            return open_ or (known and value in values)
        case "NotIn":
            return not known or value not in values
        case "Exists":
            return known
        case "DoesNotExist":
            return not known
        case "Gt" | "Lt" if value and value.isdecimal() and len(values) == 1 and values[0].isdecimal():
            ours, theirs = int(value), int(values[0])
            return ours > theirs if requirement.operator == "Gt" else ours < theirs
        case _:
            return open_ and requirement.operator in {"Gt", "Lt"}


def _taints_are_tolerated(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> Iterator[Obstacle]:
    for taint in taints:
        if taint.key != JOBSET_TAINT and not any(_tolerates(toleration, taint) for toleration in tolerations):
            yield does_not_fit(
                f"{taint.key}: the hosts of this slice have the taint {taint.key}={taint.value}:NoSchedule, "
                "which the pod does not tolerate: add a toleration for it"
            )


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Return whether a toleration tolerates a taint (k8s.io/api core/v1 Toleration.ToleratesTaint)."""
    if toleration.effect not in {"", "NoSchedule"} or toleration.key not in {"", taint.key}:
        return False
    return toleration.operator == "Exists" or (toleration.key != "" and toleration.value == taint.value)


def _sizes_fit(request: TemplateRequest, machine: MachineType, pools: PoolSettings) -> Iterator[Obstacle]:
    cpu, memory, disk = machine.allocatable_cpu_milli, machine.allocatable_memory_gib, _allocatable_disk(pools)
    has = f"and a {machine.name} node has"
    if cpu is not None and request.cpu_milli > cpu:
        yield does_not_fit(f"cpu: a pod requests {request.cpu_milli}m, {has} {cpu}m allocatable")
    if memory is not None and request.memory_bytes > memory * _GIB:
        yield does_not_fit(f"memory: a pod requests {request.memory_bytes / _GIB:.1f}Gi, {has} {memory}Gi allocatable")
    if request.ephemeral_bytes > disk * _GIB:
        yield does_not_fit(
            f"ephemeral-storage: a pod requests {request.ephemeral_bytes / _GIB:.1f}Gi, {has} at most {disk:.1f}Gi "
            f"allocatable with pools.boot_disk_gb {pools.boot_disk_gb} in the cluster's settings"
        )
    for resource in request.unoffered:
        yield does_not_fit(f"{resource}: a pod requests it, {has} none: remove the request")


def _allocatable_disk(pools: PoolSettings) -> float:
    """Return the GiB that pods can have of the boot disk, at most.

    GKE reserves half of the disk, 6 GiB and 35 % of it, or 100 GiB, whichever is least, and evicts pods at the last
    10 % (its page "Plan node sizes", local ephemeral storage).
    """
    size = float(pools.boot_disk_gb)
    return size * 0.9 - min(size * 0.5, 6 + size * 0.35, 100)


def _volumes_are_accessible(request: TemplateRequest, zone: str) -> Iterator[Obstacle]:
    for volume in request.volumes:
        if not volume.zones:
            yield does_not_fit(
                f"persistentVolumeClaim {volume.name}: there is none in the namespace, and the pods cannot be "
                "scheduled without it: create it, or remove the volume"
            )
        elif zone and zone not in volume.zones:
            yield does_not_fit(
                f"persistentVolumeClaim {volume.name}: its volume is accessible from {' or '.join(volume.zones)}, and "
                f"the hosts of this slice are in {zone}: select the volume's zone with {ZONE}, or use another volume"
            )
