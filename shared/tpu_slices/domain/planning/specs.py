"""Derives the spec of a slice from what a pod template requests, or the reason why it is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tpu_slices.domain.catalogue.accelerators import ImpossibleShape, Shape, accelerator_of, shape_of, topology_of
from tpu_slices.domain.catalogue.topology import Topology
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import (
    ADDITIONAL_NETWORKS,
    COPY_LABELS,
    PROVISIONING_REQUESTS,
    SERVICE_ACCOUNT,
    TemplateRequest,
    WaitingLeader,
)
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.records import Refusal
from tpu_slices.domain.model.slices import (
    Capacity,
    CapacityKind,
    Network,
    Pairs,
    SliceSpec,
    Taint,
    WorkloadJob,
    fingerprint,
)
from tpu_slices.domain.model.texts import shortened
from tpu_slices.domain.planning.fit import DoesNotFit, fit, pool_fits
from tpu_slices.domain.planning.flex_start import flex_start, is_flex_start, refuse_run_duration
from tpu_slices.domain.planning.host_labels import (
    CAPACITY_KEYS,
    GKE_PROVISIONERS,
    JOBSET_TAINT,
    RESERVATION,
    RESERVATION_BLOCK,
    RESERVATION_PROJECT,
    RESERVATION_SUBBLOCK,
    SPOT,
    may_be_a_node_label,
)
from tpu_slices.domain.planning.policy import NotAllowed, check
from tpu_slices.domain.planning.zones import zone_of

MOST_NETWORKS = 16
"""More than GKE supports on any machine."""
_RESOURCE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SPOT_TAINT = Taint(SPOT, "true")
"""The taint that GKE's autoprovisioning sets on spot nodes; every TPU pod tolerates GKE's other one, google.com/tpu."""


class _ProvisionedByGke(ValueError):
    """GKE itself provisions the nodes for such a pod."""


_REASONS: tuple[tuple[type[ValueError], Reason], ...] = (
    (ImpossibleShape, Reason.IMPOSSIBLE_SHAPE),
    (DoesNotFit, Reason.DOES_NOT_FIT),
    (_ProvisionedByGke, Reason.PROVISIONED_BY_GKE),
    (NotAllowed, Reason.NOT_ALLOWED),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRequest:
    """A Job of a JobSet that waits for its slice."""

    job: WorkloadJob
    request: TemplateRequest
    leader: WaitingLeader
    jobset_chips: int
    """The chips of all slices that the JobSet requests."""


def spec_for(asked: SliceRequest, settings: ClusterSettings) -> SliceSpec | Refusal:
    """Return the spec of the slice that a Job gets in this cluster, or a Refusal that names the key at fault.

    Shape, capacity and count come from the template. A pod, to which admission may have added selectors and labels,
    only adds node labels, and is refused if it selects labels that the hosts would not have.
    """
    try:
        return _spec(asked, settings)
    except tuple(kind for kind, _ in _REASONS) as no:
        reason = next(reason for kind, reason in _REASONS if isinstance(no, kind))
        return Refusal(reason=reason, message=shortened(f"replicatedJob {asked.request.replicated_job}: {no}."))


def chips_requested(requests: Iterable[TemplateRequest]) -> int:
    """Return the chips of all slices that a JobSet requests; impossible ones do not count."""
    return sum(_topology(request).chips * request.replicas for request in requests if _is_possible(request))


def _is_possible(request: TemplateRequest) -> bool:
    try:
        _shape(request)
    except ImpossibleShape:
        return False
    return True


def _spec(asked: SliceRequest, settings: ClusterSettings) -> SliceSpec:
    request = asked.request
    selector = _selector(asked, settings)
    _refuse_gke_provisioned(selector, dict(request.requested_annotations))
    shape = _shape(request)
    capacity = Capacity() if settings.force_on_demand else _capacity(request, settings)
    requested_annotations = dict(request.requested_annotations)
    copied = _listed(requested_annotations.get(COPY_LABELS, ""))
    spec = SliceSpec(
        accelerator=accelerator_of(request.accelerator or "").label,
        topology=_topology(request),
        machine_type=shape.machine.name,
        hosts=shape.hosts,
        chips_per_host=shape.machine.chips,
        placement=shape.placement,
        boot_disk=_boot_disk(request, settings),
        zone=zone_of(selector, capacity, settings),
        capacity=capacity,
        node_labels=_node_labels(selector, _copied(copied, asked, settings)),
        copied_labels=copied,
        taints=_taints(request, capacity),
        service_account=requested_annotations.get(SERVICE_ACCOUNT, "").strip() or None,
        networks=_networks(requested_annotations.get(ADDITIONAL_NETWORKS, "")),
        exclusive_nodes=request.exclusive_nodes,
        jobset_chips=asked.jobset_chips,
        fingerprint=_fingerprint(request),
    )
    fit(request, selector, asked.job, spec, shape.machine)
    pool_fits(asked.job, spec, settings)
    check(spec, asked.job.owner.namespace, settings.policy)
    return spec


def _selector(asked: SliceRequest, settings: ClusterSettings) -> dict[str, str]:
    """Return the pod's node selector; if there is no pod yet, what admission (infra/kubernetes) will leave of it."""
    if asked.leader.node_selector is not None:
        return dict(asked.leader.node_selector)
    stripped = CAPACITY_KEYS if settings.force_on_demand else ()
    return {key: value for key, value in asked.request.node_selector if key not in stripped}


def _refuse_gke_provisioned(selector: Mapping[str, str], annotations: Mapping[str, str]) -> None:
    for key in GKE_PROVISIONERS:
        if key in selector:
            raise _ProvisionedByGke(
                f'{key}: the pod selects "{selector[key]}", so GKE itself provisions its nodes: '
                "remove the selector to get a slice from this provisioner"
            )
    for key in PROVISIONING_REQUESTS:
        if key in annotations:
            raise _ProvisionedByGke(
                f'{key}: the pod consumes the ProvisioningRequest "{annotations[key]}", so GKE itself provisions its '
                "nodes: remove the annotation to get a slice from this provisioner"
            )


def _shape(request: TemplateRequest) -> Shape:
    return shape_of(request.accelerator or "", _topology(request), request.chips_per_pod)


def _topology(request: TemplateRequest) -> Topology:
    return topology_of(request.accelerator or "", request.topology or "")


def _fingerprint(request: TemplateRequest) -> str:
    asked = (*sorted(request.node_selector), *sorted(request.requested_annotations))
    return fingerprint(str(request.chips_per_pod), *(f"{key}={value}" for key, value in asked))


def _capacity(request: TemplateRequest, settings: ClusterSettings) -> Capacity:
    """Return the capacity that the template's node selector requests: flex-start, a reservation, spot, or on demand.

    A reservation of another project, and a block or sub-block of one, are named as GKE's `values` require.
    """
    if is_flex_start(request):
        return flex_start(request, settings)
    refuse_run_duration(request)
    selector = dict(request.node_selector)
    if RESERVATION not in selector:
        return Capacity(CapacityKind.SPOT) if selector.get(SPOT) == "true" else Capacity()
    name = _resource(selector, RESERVATION)
    if RESERVATION_PROJECT in selector:
        name = f"projects/{_resource(selector, RESERVATION_PROJECT)}/reservations/{name}"
    if RESERVATION_BLOCK in selector:
        name = f"{name}/reservationBlocks/{_resource(selector, RESERVATION_BLOCK)}"
        if RESERVATION_SUBBLOCK in selector:
            name = f"{name}/reservationSubBlocks/{_resource(selector, RESERVATION_SUBBLOCK)}"
    return Capacity(CapacityKind.RESERVATION, name)


def _resource(selector: Mapping[str, str], key: str) -> str:
    """Return the name of a resource that a selector gives, as Compute Engine allows names; raise DoesNotFit."""
    if not _RESOURCE_NAME.fullmatch(selector[key]):
        raise DoesNotFit(f'{key}: "{selector[key]}" is not a name: up to 63 of a-z, 0-9 and -, with no - at either end')
    return selector[key]


def _taints(request: TemplateRequest, capacity: Capacity) -> tuple[Taint, ...]:
    spot = (_SPOT_TAINT,) if capacity.kind is CapacityKind.SPOT else ()
    return (*spot, Taint(JOBSET_TAINT, "true")) if request.exclusive_nodes else spot


def _boot_disk(request: TemplateRequest, settings: ClusterSettings) -> str:
    kind = accelerator_of(request.accelerator or "")
    chosen = settings.pools.boot_disk_type
    if chosen is not None and chosen not in kind.boot_disks:
        raise DoesNotFit(
            f'pools.boot_disk_type: the cluster\'s settings have "{chosen}", and hosts of {kind.label} support '
            f"{' or '.join(kind.boot_disks)}"
        )
    disk = chosen or kind.boot_disks[0]
    if settings.pools.confidential_storage and disk != "hyperdisk-balanced":
        raise DoesNotFit(
            f"pools.confidential_storage: GKE supports it with hyperdisk-balanced only, and hosts of {kind.label} get "
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


def _copied(keys: Iterable[str], asked: SliceRequest, settings: ClusterSettings) -> dict[str, str]:
    """Return the pod's labels to copy to its hosts: those in the settings and those in the pod's annotation."""
    for key in keys:
        if not may_be_a_node_label(key):
            raise DoesNotFit(f"{COPY_LABELS}: GKE does not accept {key} as a node label: remove it")
    present = {**dict(asked.request.labels), **dict(asked.leader.labels)}
    return {key: present[key] for key in (*settings.pod_to_node_labels, *keys) if key in present}


def _node_labels(selector: Mapping[str, str], copied: Mapping[str, str]) -> Pairs:
    """Return the labels for the tenant's own selectors, so that the pod fits its hosts, and the copied ones."""
    selected = {key: value for key, value in selector.items() if may_be_a_node_label(key)}
    return tuple(sorted({**copied, **selected}.items()))
