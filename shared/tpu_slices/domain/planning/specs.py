"""Derives the spec of a slice from what a pod template requests, or the reason why it is refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tpu_slices.domain.catalogue.accelerators import (
    CATALOGUE,
    Accelerators,
    Shape,
    accelerator_of,
    shape_of,
    topology_of,
)
from tpu_slices.domain.catalogue.topology import Topology
from tpu_slices.domain.model.capacity import LADDER, OF_NO_HOSTS
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import (
    ADDITIONAL_NETWORKS,
    COPY_LABELS,
    PROVISIONING_REQUESTS,
    SERVICE_ACCOUNT,
    Reach,
    TemplateRequest,
    WaitingLeader,
)
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import (
    Capacity,
    Network,
    OwnerKind,
    Pairs,
    RungSpec,
    SliceSpec,
    WorkloadJob,
    fingerprint,
)
from tpu_slices.domain.planning.capacity import capacity_at, capacity_of, expected_duration, resource, taints_of, takes
from tpu_slices.domain.planning.fit import fit, idle_hosts, pool_fits
from tpu_slices.domain.planning.gangs import GangSize, held_for_longer
from tpu_slices.domain.planning.host_labels import (
    ACCELERATOR,
    CAPACITY_KEYS,
    GKE_PROVISIONERS,
    MACHINE,
    PLACEMENT_POLICY,
    TOPOLOGY,
    may_be_a_node_label,
    workload_policy_of,
)
from tpu_slices.domain.planning.keys import key_of
from tpu_slices.domain.planning.ladders import ladder_of, laddered
from tpu_slices.domain.planning.obstacles import DoesNotFit, Obstacle, Obstacles, does_not_fit
from tpu_slices.domain.planning.policy import disallowed, not_served
from tpu_slices.domain.planning.pool_labels import OWNER_LABEL
from tpu_slices.domain.planning.self_managed import not_in_groups
from tpu_slices.domain.planning.sharing import share_slice, slices_of
from tpu_slices.domain.planning.slicing import asks_gke_for_a_slice, sliced_by_gke
from tpu_slices.domain.planning.zones import zone_of
from tpu_slices.domain.records.claims import Refusal

MOST_NETWORKS = 16
"""More than GKE supports on any machine."""


_NO_TOPOLOGY = Topology(())


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRequest:
    """A Job of a JobSet that waits for its slice."""

    job: WorkloadJob
    request: TemplateRequest
    leader: WaitingLeader
    jobset_chips: int
    """The chips of all slices that the JobSet requests."""
    at: RungSpec | None = None
    """The rung of its ladder for which it is planned; None: it has one place."""


def spec_for(asked: SliceRequest, settings: ClusterSettings) -> SliceSpec | Refusal:
    """Return the spec of the slice that a Job gets in this cluster, or a Refusal that names every key at fault.

    With a ladder: the first rung that its pods can use, and what the others are.
    """
    named = dict(asked.request.requested_annotations).get(LADDER)
    chosen = ladder_of(named, asked.job.owner.namespace, settings)
    if chosen is None or isinstance(chosen, Refusal):
        return spec_at(asked, settings) if chosen is None else chosen
    return laddered(chosen, lambda rung: spec_at(replace(asked, at=rung), settings), settings)


def spec_at(asked: SliceRequest, settings: ClusterSettings) -> SliceSpec | Refusal:
    """Return the spec at one place, that of `asked.at` if there is one, or a Refusal.

    Shape, capacity and count come from the template. A pod, to which admission may have added selectors and labels,
    only adds node labels, and is refused if it selects labels that the hosts would not have.
    """
    found, request, selector = Obstacles(), asked.request, _selector(asked, settings)
    if (shape := earlier_shape(asked)) is not None:
        return _of_earlier_template(shape, request)
    if settings.self_managed:
        found.add(not_in_groups(request, settings))
    else:
        found.add(_provisioned_by_gke(selector, dict(request.requested_annotations)))
    found.add(sliced_by_gke(request))
    spec = _spec(asked, selector, _shape(request, found, settings.accelerators), settings, found)
    found.add(fit(request, selector, asked.job, spec, settings))
    found.add(pool_fits(asked.job, spec, settings))
    found.add(disallowed(spec, asked.job.owner.namespace, settings.policy))
    found.add(held_for_longer(request, settings.limits))
    found.add(not_served(asked.job.owner.kind, request, settings))
    whose = f"replicatedJob {request.replicated_job}: " if request.replicated_job else "pod template: "
    if (refusal := found.refusal(whose)) is None and asked.leader.reach is Reach.STATIC:
        found.add([does_not_fit(_static_alone(asked.job.owner.kind))])
        refusal = found.refusal(whose)
    return refusal or replace(spec, caveat=idle_hosts(request, asked.job, spec))


def _static_alone(kind: OwnerKind) -> str:
    """Return why pods that were judged get no slice, although nothing else is wrong with what they request."""
    remedy = "upgrade JobSet, which labels its pods with jobset-uid and job-global-index since 0.9"
    message = f"its pods were judged to run on hosts without {OWNER_LABEL} alone"
    return f"labels: {message}: {remedy}" if kind is OwnerKind.JOBSET else f"labels: {message}: create it again"


def earlier_shape(asked: SliceRequest) -> tuple[str, str] | None:
    """Return accelerator and topology of a group's pods that are not what its LeaderWorkerSet requests; else None.

    They are of an earlier revision: a rollout has not come to the group, or stops before it.
    """
    selects = dict(asked.leader.node_selector or ())
    accelerator, topology = selects.get(ACCELERATOR), selects.get(TOPOLOGY)
    if asked.job.owner.kind is not OwnerKind.LEADER_WORKER_SET or accelerator is None or topology is None:
        return None
    same = (accelerator, topology) == (asked.request.accelerator, asked.request.topology)
    return None if same else (accelerator, topology)


def _of_earlier_template(shape: tuple[str, str], request: TemplateRequest) -> Refusal:
    now = f"{request.accelerator} {request.topology}" if request.accelerator else "no TPU"
    message = (
        f"{TOPOLOGY}: the group's pods are of an earlier revision and select {' '.join(shape)}, and the "
        f"LeaderWorkerSet requests {now}: delete the group's leader pod after its rollout, or undo the edit."
    )
    return Refusal(reason=Reason.DOES_NOT_FIT, message=message)


def chips_requested(requests: Iterable[TemplateRequest], known: Accelerators = CATALOGUE) -> int:
    """Return the chips of all slices that a JobSet requests; impossible ones do not count."""
    shapes = ((request, _shape(request, Obstacles(), known)) for request in requests)
    return sum(shape.hosts.chips * slices_of(request) for request, shape in shapes if shape.hosts)


def gangs_of(requests: Sequence[TemplateRequest], known: Accelerators = CATALOGUE) -> Mapping[str, GangSize]:
    """Return the size of each gang of a workload by its name."""
    names = dict.fromkeys(each.gang for each in requests if each.gang)
    members = {name: [each for each in requests if each.gang == name] for name in names}
    return {name: GangSize(sum(map(slices_of, some)), chips_requested(some, known)) for name, some in members.items()}


@dataclass(frozen=True, slots=True)
class _Shape:
    """The shape that a template requests; what has obstacles is empty or None."""

    accelerator: str
    topology: Topology
    hosts: Shape | None


def _shape(request: TemplateRequest, found: Obstacles, known: Accelerators) -> _Shape:
    label, text = request.accelerator or "", request.topology or ""
    machine = dict(request.node_selector).get(MACHINE, "")
    kind = found.part(lambda: accelerator_of(label, known), None)
    if not text and asks_gke_for_a_slice(request):  # the remedy names the topology
        return _Shape(kind.label if kind else "", _NO_TOPOLOGY, None)
    if kind is None:
        found.add([] if text else [Obstacle(Reason.IMPOSSIBLE_SHAPE, f"{TOPOLOGY}: the pods select none")])
        return _Shape("", _NO_TOPOLOGY, None)
    topology = found.part(lambda: topology_of(label, text, known), _NO_TOPOLOGY)
    if topology == _NO_TOPOLOGY:
        return _Shape(kind.label, topology, None)
    hosts = found.part(lambda: shape_of(label, topology, request.chips_per_pod, machine, known), None)
    return _Shape(kind.label, topology, hosts)


def _spec(
    asked: SliceRequest, selector: Mapping[str, str], shape: _Shape, settings: ClusterSettings, found: Obstacles
) -> SliceSpec:
    """Return the spec; the parts that have obstacles, which are added to `found`, are empty."""
    request, hosts = asked.request, shape.hosts
    annotations, template = dict(request.requested_annotations), dict(request.node_selector)
    capacity, zone = _place(asked, selector, settings, found)
    keys = _listed(annotations.get(COPY_LABELS, ""))
    found.add(_not_copied(keys))
    spec = SliceSpec(
        accelerator=shape.accelerator,
        topology=shape.topology if hosts else _NO_TOPOLOGY,
        machine_type=hosts.machine.name if hosts else "",
        hosts=hosts.hosts if hosts else 0,
        chips_per_host=hosts.machine.chips if hosts else 0,
        placement=hosts.placement if hosts else None,
        boot_disk=found.part(lambda: _boot_disk(shape.accelerator, settings), ""),
        zone=zone,
        capacity=capacity,
        node_labels=_node_labels(selector, _copied(keys, asked, settings)),
        copied_labels=keys,
        taints=taints_of(request, capacity),
        service_account=annotations.get(SERVICE_ACCOUNT, "").strip() or None,
        networks=found.part(lambda: _networks(annotations.get(ADDITIONAL_NETWORKS, "")), None),
        exclusive_nodes=request.exclusive_nodes,
        scatters=scatters(asked, hosts.hosts if hosts else 0),
        key=key_of(asked.job, request.first_job, shared=share_slice(request), pod_key=request.pod_key),
        jobs=request.replicas if share_slice(request) else 1,
        jobset_chips=asked.jobset_chips,
        fingerprint=_fingerprint(request),
        expected=found.part(lambda: expected_duration(request), None),
        takes=found.part(lambda: takes(asked.job.owner.kind, request, settings), False),  # noqa: FBT003
    )
    requested = found.part(lambda: _workload_policy(template, spec, settings), None)
    return replace(spec, workload_policy=requested)


def _place(
    asked: SliceRequest, selector: Mapping[str, str], settings: ClusterSettings, found: Obstacles
) -> tuple[Capacity, str]:
    """Return capacity and zone: those of the rung, else as the template and the settings say."""
    request, at = asked.request, asked.at
    if at is not None:
        return capacity_at(at, request, settings, found), at.zone
    capacity = capacity_of(request, settings, found)
    return capacity, found.part(lambda: zone_of(selector, capacity, settings), "")


def _selector(asked: SliceRequest, settings: ClusterSettings) -> dict[str, str]:
    """Return the pod's node selector; if there is no pod yet, what admission (infra/kubernetes) will leave of it."""
    if asked.leader.node_selector is not None:
        return dict(asked.leader.node_selector)
    stripped = CAPACITY_KEYS if settings.force_on_demand else ()
    return {key: value for key, value in asked.request.node_selector if key not in stripped}


def _provisioned_by_gke(selector: Mapping[str, str], annotations: Mapping[str, str]) -> Iterator[Obstacle]:
    for key in GKE_PROVISIONERS:
        if key in selector:
            yield Obstacle(
                Reason.PROVISIONED_BY_GKE,
                f'{key}: the pod selects "{selector[key]}", so GKE itself provisions its nodes: '
                "remove the selector to get a slice from this provisioner",
            )
    for key in PROVISIONING_REQUESTS:
        if key in annotations:
            yield Obstacle(
                Reason.PROVISIONED_BY_GKE,
                f'{key}: the pod consumes the ProvisioningRequest "{annotations[key]}", so GKE itself provisions its '
                "nodes: remove the annotation to get a slice from this provisioner",
            )


def _fingerprint(request: TemplateRequest) -> str:
    shape = {ACCELERATOR: request.accelerator, TOPOLOGY: request.topology}  # which an affinity may have instead
    selected = {**{key: value for key, value in shape.items() if value}, **dict(request.node_selector)}
    annotations = ((key, value) for key, value in request.requested_annotations if key not in OF_NO_HOSTS)
    asked = (*sorted(selected.items()), *sorted(annotations))
    return fingerprint(str(request.chips_per_pod), *(f"{key}={value}" for key, value in asked))


def _workload_policy(selector: Mapping[str, str], spec: SliceSpec, settings: ClusterSettings) -> str | None:
    """Return the workload policy that the template selects, None if that is the one in the settings."""
    if (
        settings.self_managed
        or PLACEMENT_POLICY not in selector
        or workload_policy_of(spec, settings.pools)
        in {
            None,
            selector[PLACEMENT_POLICY],
        }
    ):
        return None
    return resource(selector, PLACEMENT_POLICY)


def scatters(asked: SliceRequest, hosts: int) -> bool:
    """Return whether pods of a Job or group of so many hosts could come to several slices: nothing pins them."""
    request = asked.request
    return hosts > 1 and (request.parallelism != 1 or share_slice(request)) and asked.leader.reach is Reach.ANY


def _boot_disk(accelerator: str, settings: ClusterSettings) -> str:
    kind = settings.accelerators.get(accelerator)
    if kind is None:
        return ""
    chosen = settings.pools.boot_disk_type
    if chosen is not None and chosen not in kind.boot_disks:
        raise DoesNotFit(
            f'pools.boot_disk_type: the cluster\'s settings have "{chosen}", and hosts of {kind.label} support '
            f"{' or '.join(kind.boot_disks)}"
        )
    disk = chosen or kind.boot_disks[0]
    if settings.pools.confidential_storage and disk != "hyperdisk-balanced":
        raise DoesNotFit(
            f"pools.confidential_storage: only hyperdisk-balanced supports it, and hosts of {kind.label} get "
            f"{disk}: choose another pools.boot_disk_type, or turn it off"
        )
    return disk


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part for piece in text.split(",") if (part := piece.strip()))


def _networks(text: str) -> tuple[Network, ...] | None:
    """Return the networks of `NETWORK:SUBNETWORK, NETWORK:SUBNETWORK`, or None if the text is empty."""
    networks = []
    pairs = _listed(text)
    if len(pairs) > MOST_NETWORKS:
        raise DoesNotFit(
            f"{ADDITIONAL_NETWORKS}: {len(pairs)} networks are more than a node can have ({MOST_NETWORKS})"
        )
    for pair in pairs:
        network, _, subnetwork = (part.strip() for part in pair.partition(":"))
        if not network or not subnetwork:
            raise DoesNotFit(f'{ADDITIONAL_NETWORKS}: "{pair}" is not NETWORK:SUBNETWORK')
        networks.append(Network(network, subnetwork))
    return tuple(networks) or None


def _not_copied(keys: Iterable[str]) -> Iterator[Obstacle]:
    for key in keys:
        if not may_be_a_node_label(key):
            yield does_not_fit(f"{COPY_LABELS}: {key} is not accepted as a node label: remove it")


def _copied(keys: Iterable[str], asked: SliceRequest, settings: ClusterSettings) -> dict[str, str]:
    """Return the pod's labels to copy to its hosts: those in the settings and those in the pod's annotation."""
    present = {**dict(asked.request.labels), **dict(asked.leader.labels)}
    return {key: present[key] for key in (*settings.pod_to_node_labels, *keys) if key in present}


def _node_labels(selector: Mapping[str, str], copied: Mapping[str, str]) -> Pairs:
    """Return the labels for the tenant's own selectors, so that the pod fits its hosts, and the copied ones."""
    selected = {key: value for key, value in selector.items() if may_be_a_node_label(key)}
    return tuple(sorted({**copied, **selected}.items()))
