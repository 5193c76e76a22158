"""From what a pod template asks for to the slice we would make, or why it could not run there."""

from __future__ import annotations

from shared.domain.accelerators import ImpossibleShape, accelerator_of, shape_of
from shared.domain.clusters import ClusterSettings
from shared.domain.decisions import Reason
from shared.domain.facts import SliceRequest
from shared.domain.records import Verdict
from shared.domain.slices import Capacity, CapacityKind, Pairs, SliceSpec, fingerprint
from shared.domain.topology import Topology

ACCELERATOR = "cloud.google.com/gke-tpu-accelerator"
TOPOLOGY = "cloud.google.com/gke-tpu-topology"
COUNT = "cloud.google.com/gke-accelerator-count"
SPOT = "cloud.google.com/gke-spot"
RESERVATION = "cloud.google.com/reservation-name"
RESERVATION_PROJECT = "cloud.google.com/reservation-project"
ZONE = "topology.kubernetes.io/zone"
MACHINE = "node.kubernetes.io/instance-type"
METADATA_SERVER = "iam.gke.io/gke-metadata-server-enabled"

_SYSTEM_SUFFIXES = ("google.com", "kubernetes.io", "k8s.io", "gke.io")


def spec_for(request: SliceRequest, settings: ClusterSettings) -> SliceSpec | Verdict:
    """Say which slice a replicatedJob of a JobSet would get in this cluster; a Verdict names the key that says no."""
    try:
        return _spec(request, settings)
    except ImpossibleShape as impossible:
        return Verdict(reason=Reason.IMPOSSIBLE_SHAPE, sentence=_of(request, str(impossible)))
    except _DoesNotFit as misfit:
        return Verdict(reason=Reason.DOES_NOT_FIT, sentence=_of(request, str(misfit)))


class _DoesNotFit(ValueError):
    """The pod could not run on the hosts that we would make."""


def _of(request: SliceRequest, why: str) -> str:
    return f"replicatedJob {request.replicated_job}: {why}."


def _spec(request: SliceRequest, settings: ClusterSettings) -> SliceSpec:
    selector = dict(request.node_selector)
    kind = accelerator_of(request.accelerator or "")
    topology = _topology(request.topology or "")
    shape = shape_of(kind.label, topology, request.chips_per_pod)
    zone = selector.get(ZONE) or settings.zone
    if zone is None:
        raise _DoesNotFit(f"{ZONE}: neither the pod nor the cluster's settings name a zone: set either")
    spec = SliceSpec(
        accelerator=kind.label,
        topology=topology,
        machine_type=shape.machine.name,
        hosts=shape.hosts,
        chips_per_host=shape.machine.chips,
        placement=shape.placement,
        boot_disk=kind.boot_disks[0],
        zone=zone,
        capacity=_capacity(selector),
        node_labels=_tenant_labels(selector),
        fingerprint=_fingerprint(request),
    )
    _refuse_unmet(selector, spec)
    return spec


def _fingerprint(request: SliceRequest) -> str:
    selectors = (f"{key}={value}" for key, value in sorted(request.node_selector))
    return fingerprint(str(request.chips_per_pod), *selectors)


def _topology(text: str) -> Topology:
    try:
        return Topology.parse(text)
    except ValueError as bad:
        raise ImpossibleShape(f"{TOPOLOGY}: {bad}") from bad


def _capacity(selector: dict[str, str]) -> Capacity:
    reservation = selector.get(RESERVATION)
    if reservation is not None:
        project = selector.get(RESERVATION_PROJECT)
        name = reservation if project is None else f"projects/{project}/reservations/{reservation}"
        return Capacity(CapacityKind.RESERVATION, name)
    if selector.get(SPOT) == "true":
        return Capacity(CapacityKind.SPOT)
    return Capacity()


def _tenant_labels(selector: dict[str, str]) -> Pairs:
    """Give the tenant's own selectors: our hosts get them as labels, so that the pod finds them."""
    return tuple(sorted((key, value) for key, value in selector.items() if not _is_system(key)))


def _is_system(key: str) -> bool:
    domain = key.rpartition("/")[0]
    return any(domain == suffix or domain.endswith(f".{suffix}") for suffix in _SYSTEM_SUFFIXES)


def _refuse_unmet(selector: dict[str, str], spec: SliceSpec) -> None:
    """Refuse a selector under Google's or Kubernetes' names that the hosts would not have."""
    made = made_labels(spec)
    for key, value in sorted(selector.items()):
        if not _is_system(key):
            continue
        if key not in made:
            raise _DoesNotFit(f'{key}: a node of ours would not have this label (the pod selects "{value}"); remove it')
        if made[key] != value:
            raise _DoesNotFit(f'{key}: the pod selects "{value}", the hosts of this slice have "{made[key]}"')


def made_labels(spec: SliceSpec) -> dict[str, str]:
    """Give the labels under Google's and Kubernetes' names that the hosts of a slice have (GKE sets them)."""
    return {
        ACCELERATOR: spec.accelerator,
        TOPOLOGY: str(spec.topology),
        COUNT: str(spec.chips_per_host),
        ZONE: spec.zone,
        MACHINE: spec.machine_type,
        METADATA_SERVER: "true",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **_capacity_labels(spec.capacity),
    }


def _capacity_labels(capacity: Capacity) -> dict[str, str]:
    match capacity:
        case Capacity(CapacityKind.SPOT):
            return {SPOT: "true"}
        case Capacity(CapacityKind.RESERVATION, str(name)) if "/" in name:
            _, project, _, reservation = name.split("/")
            return {RESERVATION: reservation, RESERVATION_PROJECT: project}
        case Capacity(CapacityKind.RESERVATION, str(name)):
            return {RESERVATION: name}
        case _:
            return {}
