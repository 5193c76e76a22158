"""Derives the spec of a slice from what a TPUNodeGroup declares, or every reason why it is refused. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from tpu_slices.domain.catalogue.accelerators import (
    CATALOGUE,
    Accelerators,
    ImpossibleShape,
    Shape,
    accelerator_with,
    machines_for,
    shape_of,
    topology_of,
)
from tpu_slices.domain.catalogue.machines import Accelerator, MachineType
from tpu_slices.domain.catalogue.topology import Topology
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.node_groups import InstanceConfig, NodeGroup
from tpu_slices.domain.model.slices import (
    Capacity,
    CapacityKind,
    InstanceRequest,
    Owner,
    Pairs,
    SliceSpec,
    WorkloadJob,
    fingerprint,
)
from tpu_slices.domain.planning.fit import pool_fits
from tpu_slices.domain.planning.host_labels import ACCELERATOR, GROUP, GROUP_NAME, GROUP_NAMESPACE, TOPOLOGY
from tpu_slices.domain.planning.obstacles import DoesNotFit, Obstacle, Obstacles, does_not_fit
from tpu_slices.domain.planning.policy import disallowed
from tpu_slices.domain.planning.zones import checked
from tpu_slices.domain.records.claims import Refusal

_SERVED = ("tpu-v6e-slice", "tpu7x", "tpu7")
_BY_SIDES = {2: "tpu-v6e-slice", 3: "tpu7x"}
"""The accelerator of a topology of so many sides, where nothing else names one."""
_OURS = ("kubeadm-join-token", "kubeadm-control-plane-ip", "kubeadm-ca-hash", "startup-script")
"""Keys of instance metadata by which hosts join that are bootstrapped."""
_PORT = 6443
_LONGEST = 63
_NO_TOPOLOGY = Topology(())
_UNREAD = "its capacity, disk and service account are those of the instance template, which a plan does not read"
Part = TypeVar("Part")


def declared_slice(group: NodeGroup, job: WorkloadJob, settings: ClusterSettings) -> SliceSpec | Refusal:
    """Return the spec of the slice that a TPUNodeGroup gets in this cluster, or a Refusal that names every field."""
    found = Obstacles()
    found.add(_elsewhere(group, settings))
    found.add(_taken_keys(group))
    spec = _spec(group, job, _shape(group, settings.accelerators, found), settings, found)
    found.add(pool_fits(job, spec, settings))
    found.add(disallowed(spec, job.owner.namespace, settings.policy))
    return found.refusal() or spec


def group_labels(owner: Owner) -> dict[str, str]:
    """Return the labels by which pods select the hosts of a TPUNodeGroup; TPU operator's own."""
    both = f"{owner.namespace}-{owner.name}"
    labels = {GROUP_NAME: owner.name, GROUP_NAMESPACE: owner.namespace}
    return {**labels, GROUP: both} if len(both) <= _LONGEST else labels


def _elsewhere(group: NodeGroup, settings: ClusterSettings) -> Iterator[Obstacle]:
    """Yield why the group is not one of this cluster."""
    project = settings.path.split("/")[1]
    if not settings.self_managed:
        yield does_not_fit(
            "kind: TPUNodeGroups are served in self-managed clusters on Compute Engine, and the settings of this one "
            "have no compute: use a JobSet"
        )
    elif group.project != project:
        yield does_not_fit(f'spec.project: it is "{group.project}", and the hosts of this cluster are in {project}')


def _taken_keys(group: NodeGroup) -> Iterator[Obstacle]:
    if group.instance is None or group.bootstrap is None:
        return
    for key, _ in group.instance.metadata:
        if key in _OURS:
            yield does_not_fit(
                f"spec.instanceConfig.metadata.{key}: it is set for bootstrapKubernetes: remove the key, or "
                "let hosts join by themselves, without bootstrapKubernetes"
            )


@dataclass(frozen=True, slots=True)
class _Shape:
    """The shape that a group declares; what has obstacles is None."""

    kind: Accelerator | None
    hosts: Shape | None
    topology: Topology = _NO_TOPOLOGY


def _shape(group: NodeGroup, known: Accelerators, found: Obstacles) -> _Shape:
    kind = found.part(lambda: _accelerator(group, known), None)
    if kind is None:
        return _Shape(None, None)
    topology = found.part(lambda: _by_field(lambda: topology_of(kind.label, group.topology, known)), None)
    if topology is None:
        return _Shape(kind, None)
    hosts = found.part(lambda: _hosts(group, kind, topology, known), None)
    return _Shape(kind, hosts, topology)


def _accelerator(group: NodeGroup, known: Accelerators) -> Accelerator:
    """Return the accelerator of the machine type; of a template that of the object's label, else by the topology."""
    if group.instance is not None:
        where, given = "spec.instanceConfig.machineType", group.instance.machine_type
        kind = accelerator_with(given, known)
    elif group.accelerator is not None:
        where, given = f"metadata.labels.{ACCELERATOR}", group.accelerator
        kind = known.get(given)
    else:
        where, given = "spec.topology", group.topology
        kind = known.get(_BY_SIDES.get(given.count("x") + 1, ""))
    served = (*(label for label in _SERVED if label in known), *(label for label in known if label not in CATALOGUE))
    if kind is None or kind.label not in served:
        choices = ", ".join(f"{label} ({_named(known[label].machines)})" for label in served)
        raise DoesNotFit(f'{where}: "{given}" is of no TPUNodeGroup: there are {choices}')
    return kind


def _named(machines: Iterable[MachineType]) -> str:
    return " or ".join(each.name for each in machines)


def _hosts(group: NodeGroup, kind: Accelerator, topology: Topology, known: Accelerators) -> Shape:
    """Return the hosts of the topology; raise ImpossibleShape or DoesNotFit by field."""
    possible = _by_field(lambda: machines_for(kind, topology))
    machine = _machine(group, kind, topology)
    if machine not in possible:
        raise DoesNotFit(
            f"spec.instanceConfig.machineType: {kind.label} {topology} is not made of {machine.name}: use "
            f"{_named(possible)}"
        )
    shape = shape_of(kind.label, topology, machine.chips, machine.name, known)
    if shape.hosts != group.nodes:
        raise DoesNotFit(
            f"spec.nodeCount: it is {group.nodes}, and {kind.label} {topology} consists of {shape.hosts} x "
            f"{machine.name}: set it to {shape.hosts}"
        )
    return shape


def _machine(group: NodeGroup, kind: Accelerator, topology: Topology) -> MachineType:
    """Return the machine type of the group; that of a template follows from chips and nodes."""
    if group.instance is not None:
        return next(each for each in kind.machines if each.name == group.instance.machine_type)
    found = next((each for each in kind.machines if each.slices.get(topology) == group.nodes), None)
    if found is None:
        sizes = " or ".join(str(each.chips) for each in kind.machines)
        raise DoesNotFit(
            f"spec.nodeCount: it is {group.nodes}, and the {topology.chips} chips of {topology} are on hosts of "
            f"{sizes} chips of {kind.label}; a template for another accelerator needs the label {ACCELERATOR}"
        )
    return found


def _by_field(make: Callable[[], Part]) -> Part:
    """Return what is made; raise why it is impossible with the TPUNodeGroup's field instead of a pod's label."""
    try:
        return make()
    except ImpossibleShape as no:
        key, _, why = str(no).partition(": ")
        field = "spec.topology" if key == TOPOLOGY else f"metadata.labels.{key}"
        raise ImpossibleShape(f"{field}: {why.replace('the pods select none', 'there is none')}") from no


def _spec(group: NodeGroup, job: WorkloadJob, shape: _Shape, settings: ClusterSettings, found: Obstacles) -> SliceSpec:
    """Return the spec; the parts that have obstacles, which are added to `found`, are empty."""
    hosts, config = shape.hosts, group.instance
    topology = shape.topology if hosts else _NO_TOPOLOGY
    of_zone = f'spec.nodeLocation: it is "{group.zone}"'
    return SliceSpec(
        accelerator=shape.kind.label if shape.kind else "",
        topology=topology,
        machine_type=hosts.machine.name if hosts else "",
        hosts=hosts.hosts if hosts else 0,
        chips_per_host=hosts.machine.chips if hosts else 0,
        placement=hosts.placement if hosts else None,
        boot_disk=found.part(lambda: _boot_disk(shape.kind, config, settings), ""),
        zone=found.part(lambda: checked(group.zone, of_zone, settings), ""),
        capacity=_capacity(config, settings),
        node_labels=_node_labels(job.owner),
        service_account=config.service_account if config else None,
        instance=_request(group, config),
        jobset_chips=hosts.chips if hosts else 0,
        caveat="" if config else _UNREAD,
        fingerprint=fingerprint(*_asked(asdict(group))),
    )


def _boot_disk(kind: Accelerator | None, config: InstanceConfig | None, settings: ClusterSettings) -> str:
    if kind is None:
        return ""
    disk = (config and config.boot_disk_type) or settings.pools.boot_disk_type or kind.boot_disks[0]
    if disk not in kind.boot_disks:
        where = "spec.instanceConfig.diskType" if config and config.boot_disk_type else "pools.boot_disk_type"
        raise DoesNotFit(f'{where}: it is "{disk}", and hosts of {kind.label} support {" or ".join(kind.boot_disks)}')
    return disk


def _capacity(config: InstanceConfig | None, settings: ClusterSettings) -> Capacity:
    if config is None or settings.force_on_demand:
        return Capacity()
    if config.provisioning_model == "SPOT":
        return Capacity(CapacityKind.SPOT)
    reserved = config.reservation is not None
    return Capacity(CapacityKind.RESERVATION, config.reservation) if reserved else Capacity()


def _request(group: NodeGroup, config: InstanceConfig | None) -> InstanceRequest:
    if config is None:
        return InstanceRequest(template=group.template)
    joins = group.bootstrap
    return InstanceRequest(
        image=config.image,
        boot_disk_gb=config.boot_disk_gb,
        boot_disk_type=config.boot_disk_type,
        subnetwork=config.subnetwork,
        scopes=config.scopes,
        network_tags=config.network_tags,
        metadata=config.metadata,
        kubernetes=joins.kubernetes if joins else None,
        control_plane=f"{joins.control_plane}:{_PORT}" if joins else None,
    )


def _node_labels(owner: Owner) -> Pairs:
    return tuple(sorted(group_labels(owner).items()))


def _asked(fields: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield what is declared, field by field; what is left out says nothing, so that later fields change nothing."""
    for name, value in sorted(fields.items()):
        if isinstance(value, Mapping):
            yield from _asked(value, f"{path}{name}.")
        elif value not in (None, ()):
            yield f"{path}{name}={value}"
