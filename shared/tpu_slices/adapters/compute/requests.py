"""Builds Compute Engine's requests for a slice (google.cloud.compute_v1) from an order, and paths and links. Pure.

A slice is a workload policy, if it has several hosts; an instance template, unless it brings its own; and a managed
instance group of them. All three have the pool's name, and the proof of our ownership as their description.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from google.cloud.compute_v1.types import (
    AttachedDisk,
    AttachedDiskInitializeParams,
    CustomerEncryptionKey,
    InstanceGroupManager,
    InstanceGroupManagerAllInstancesConfig,
    InstanceGroupManagerInstanceLifecyclePolicy,
    InstanceGroupManagerResourcePolicies,
    InstanceGroupManagerTargetSizePolicy,
    InstanceProperties,
    InstancePropertiesPatch,
    InstanceTemplate,
    Items,
    Metadata,
    NetworkInterface,
    ReservationAffinity,
    ResourcePolicy,
    ResourcePolicyWorkloadPolicy,
    Scheduling,
    ServiceAccount,
    ShieldedInstanceConfig,
    Tags,
)

from tpu_slices.adapters.billing_labels import billing_labels
from tpu_slices.adapters.cloud_errors import WITHOUT_SPEC, CannotBeMade
from tpu_slices.adapters.compute.metadata import host_items, template_items
from tpu_slices.domain.model.clusters import ComputeSettings
from tpu_slices.domain.model.observations import FailureKind
from tpu_slices.domain.model.slices import Capacity, CapacityKind, InstanceRequest, SliceSpec
from tpu_slices.domain.planning.pool_descriptions import description_of
from tpu_slices.domain.planning.tpu_operator import PartNames, operator_names
from tpu_slices.ports.backend import PoolOrder

POLICIES = "resourcePolicies"
TEMPLATES = "instanceTemplates"
GROUPS = "instanceGroupManagers"

_LINK = "https://www.googleapis.com/compute/v1/"
_RESERVATION_KEY = "compute.googleapis.com/reservation-name"
_REQUESTS = uuid5(NAMESPACE_URL, "tpu-slice-provisioner/compute")
_BROUGHT = re.compile(
    r"projects/(?P<project>[^/]+)/(?:global|regions/(?P<region>[^/]+))/instanceTemplates/(?P<name>[^/]+)"
)
_AS_REQUESTED = InstanceRequest()

_MODELS: Mapping[CapacityKind, Mapping[str, str]] = {
    CapacityKind.ON_DEMAND: {"provisioning_model": "STANDARD"},
    CapacityKind.SPOT: {"provisioning_model": "SPOT", "instance_termination_action": "DELETE"},
    CapacityKind.RESERVATION: {"provisioning_model": "RESERVATION_BOUND", "instance_termination_action": "DELETE"},
}
_ENDS: Mapping[str, frozenset[str]] = {
    "SPOT": frozenset({"STOP", "DELETE"}),
    "RESERVATION_BOUND": frozenset({"DELETE"}),
    "STANDARD": frozenset({""}),
}
"""By provisioning model, the termination actions that a template that is brought may have."""


def part_names(order: PoolOrder) -> PartNames:
    """Return the names of what an order's pool consists of; each is the pool's, unless TPU operator made it."""
    if order.legacy_pool is not None:
        return operator_names(order.job.owner)
    return PartNames(order.name, order.name, order.name)


def policy_request(order: PoolOrder) -> ResourcePolicy | None:
    """Return the workload policy that wires an order's hosts together, or None for a single host."""
    spec = _spec(order)
    if spec.hosts == 1:
        return None
    topology = ResourcePolicyWorkloadPolicy(type_="HIGH_THROUGHPUT", accelerator_topology=str(spec.topology))
    return ResourcePolicy(name=order.name, description=_proof(order, spec), workload_policy=topology)


def template_request(order: PoolOrder) -> InstanceTemplate | None:
    """Return an order's instance template, or None if it brings its own."""
    spec = _spec(order)
    if brought_template(order) is not None:
        return None
    return InstanceTemplate(name=order.name, description=_proof(order, spec), properties=_properties(order, spec))


def group_request(order: PoolOrder) -> InstanceGroupManager:
    """Return an order's group of instances, created all at once; a host that fails is replaced with its whole slice."""
    spec, brought = _spec(order), brought_template(order)
    several = spec.hosts > 1
    return InstanceGroupManager(
        name=order.name,
        description=_proof(order, spec),
        base_instance_name=order.name,
        instance_template=_LINK + (brought or template_path(order)),
        all_instances_config=_added_to_template(order, spec) if brought else None,
        target_size=spec.hosts,
        target_size_policy=InstanceGroupManagerTargetSizePolicy(mode="BULK" if several else "INDIVIDUAL"),
        instance_lifecycle_policy=InstanceGroupManagerInstanceLifecyclePolicy(
            default_action_on_failure="DO_NOTHING" if several else "REPAIR"
        ),
        resource_policies=(
            InstanceGroupManagerResourcePolicies(workload_policy=f"{_LINK}{policy_path(order)}") if several else None
        ),
    )


def as_rest(order: PoolOrder) -> list[Mapping[str, Any]]:
    """Return the order's requests as in Compute Engine's REST API, in their order: method, path and body."""
    policy, template = policy_request(order), template_request(order)
    steps = (
        (policy_path(order), policy),
        (template_path(order), template),
        (group_path(order), group_request(order)),
    )
    return [
        {"method": "POST", "path": path.rpartition("/")[0], "body": _json(body)}
        for path, body in steps
        if body is not None
    ]


def misfit(template: InstanceTemplate, order: PoolOrder) -> str | None:
    """Return what keeps the template that an order brings from serving it, or None.

    `TERMINATE`, because TPU hosts are not migrated; the termination action, because hosts that Compute Engine takes
    back would otherwise not end, or be refused in the group.
    """
    spec, properties = _spec(order), template.properties
    machine = properties.machine_type.rpartition("/")[2]
    if machine != spec.machine_type:
        return f"its machine type is {machine or 'not set'}, not {spec.machine_type}."
    scheduling = properties.scheduling
    if scheduling.on_host_maintenance != "TERMINATE":
        return f"its onHostMaintenance is {scheduling.on_host_maintenance or 'not set'}, not TERMINATE."
    model = scheduling.provisioning_model or "STANDARD"
    if model not in _ENDS:
        return f"its provisioningModel is {model}, not one of {', '.join(sorted(_ENDS))}."
    action = scheduling.instance_termination_action
    if action in _ENDS[model]:
        return None
    expected = " or ".join(sorted(_ENDS[model])) or "unset"
    return f"its instanceTerminationAction is {action or 'not set'}; with {model} it must be {expected}."


def brought_template(order: PoolOrder) -> str | None:
    """Return the path of the template that an order brings, or None."""
    return order.spec.instance.template if order.spec and order.spec.instance else None


def template_place(path: str) -> tuple[str, str | None, str]:
    """Return project, region (None: global) and name of an instance template; raise CannotBeMade for another path."""
    found = _BROUGHT.fullmatch(path)
    if found is None:
        raise CannotBeMade(
            f'"{path}" is no instance template: write projects/P/global/instanceTemplates/T, or regions/R for global.'
        )
    return found["project"], found["region"], found["name"]


def request_id(order: PoolOrder, collection: str, verb: str, now: datetime) -> str:
    """Return the id by which Compute Engine knows a request again: the same for a step of an attempt within a minute.

    No longer, since what somebody deleted is made again under its name, and a deletion that failed is repeated.
    """
    return str(uuid5(_REQUESTS, f"{order.name}/{collection}/{verb}/{now:%Y-%m-%dT%H:%M}"))


def project_of(cluster_path: str) -> str:
    return cluster_path.split("/")[1]


def region_of(cluster_path: str) -> str:
    """Return the region of `projects/P/locations/L`, where L is a region or a zone."""
    return region(cluster_path.rpartition("/")[2])


def region(location: str) -> str:
    """Return the region of a zone; a region itself."""
    return "-".join(location.split("-")[:2])


def policy_path(order: PoolOrder) -> str:
    return f"projects/{project_of(order.cluster_path)}/regions/{region(_spec(order).zone)}/{POLICIES}/{order.name}"


def template_path(order: PoolOrder) -> str:
    return f"projects/{project_of(order.cluster_path)}/global/{TEMPLATES}/{order.name}"


def group_path(order: PoolOrder) -> str:
    return f"projects/{project_of(order.cluster_path)}/zones/{_spec(order).zone}/{GROUPS}/{order.name}"


def _spec(order: PoolOrder) -> SliceSpec:
    if order.spec is None:
        raise CannotBeMade(WITHOUT_SPEC)
    return order.spec


def _compute(order: PoolOrder) -> ComputeSettings:
    if order.settings.compute is None:
        raise CannotBeMade("The settings of its cluster have no section compute: say there how hosts are made.")
    return order.settings.compute


def _proof(order: PoolOrder, spec: SliceSpec) -> str:
    return description_of(order.job, order.attempt, spec)


def _properties(order: PoolOrder, spec: SliceSpec) -> InstanceProperties:
    compute, asked = _compute(order), spec.instance or _AS_REQUESTED
    settings = order.settings
    tags = asked.network_tags or settings.network_tags
    return InstanceProperties(
        machine_type=spec.machine_type,
        labels=billing_labels(order.job, settings.resource_labels),
        disks=[_boot_disk(order, spec)],
        network_interfaces=_interfaces(order, spec),
        service_accounts=[
            ServiceAccount(
                email=spec.service_account or settings.service_account or "default",
                scopes=asked.scopes or compute.scopes,
            )
        ],
        scheduling=_scheduling(spec.capacity),
        reservation_affinity=_reservation(spec.capacity),
        shielded_instance_config=ShieldedInstanceConfig(
            enable_secure_boot=settings.secure_boot,
            enable_integrity_monitoring=settings.integrity_monitoring,
            enable_vtpm=True,
        ),
        tags=Tags(items=tags) if tags else None,
        metadata=Metadata(
            items=[Items(key=key, value=value) for key, value in sorted(template_items(order, spec).items())]
        ),
    )


def _added_to_template(order: PoolOrder, spec: SliceSpec) -> InstanceGroupManagerAllInstancesConfig:
    """Return what the group adds to a template that is brought: the metadata without which hosts do not work."""
    patch = InstancePropertiesPatch(metadata=host_items(order, spec))
    return InstanceGroupManagerAllInstancesConfig(properties=patch)


def _boot_disk(order: PoolOrder, spec: SliceSpec) -> AttachedDisk:
    asked, settings = spec.instance or _AS_REQUESTED, order.settings
    key = settings.boot_disk_kms_key
    return AttachedDisk(
        boot=True,
        auto_delete=True,
        initialize_params=AttachedDiskInitializeParams(
            source_image=asked.image or _compute(order).image,
            disk_size_gb=asked.boot_disk_gb or settings.boot_disk_gb,
            disk_type=asked.boot_disk_type or spec.boot_disk,
        ),
        disk_encryption_key=CustomerEncryptionKey(kms_key_name=key) if key else None,
    )


def _interfaces(order: PoolOrder, spec: SliceSpec) -> list[NetworkInterface]:
    """Return the hosts' interfaces, without external addresses: the settings' subnetwork, then additional ones."""
    asked, settings = spec.instance or _AS_REQUESTED, order.settings
    additional = settings.additional_networks if spec.networks is None else spec.networks
    first = NetworkInterface(subnetwork=_subnetwork(asked.subnetwork or _compute(order).subnetwork, spec.zone))
    others = (
        NetworkInterface(
            network=each.network if "/" in each.network else f"global/networks/{each.network}",
            subnetwork=_subnetwork(each.subnetwork, spec.zone),
        )
        for each in additional
    )
    return [first, *others]


def _subnetwork(name: str, zone: str) -> str:
    """Return the partial URL of a subnetwork: a name alone is none (google.cloud.compute_v1 NetworkInterface)."""
    return name if "/" in name else f"regions/{region(zone)}/subnetworks/{name}"


def _scheduling(capacity: Capacity) -> Scheduling:
    """Return how hosts are provisioned; those of spot and of reservations are deleted when they are taken back."""
    if capacity.kind not in _MODELS:
        raise CannotBeMade(
            "Flex-start is not possible in groups of instances: select spot, a reservation, or neither.",
            FailureKind.IMPOSSIBLE,
        )
    return Scheduling(on_host_maintenance="TERMINATE", **_MODELS[capacity.kind])


def _reservation(capacity: Capacity) -> ReservationAffinity | None:
    if capacity.reservation is None:
        return None
    return ReservationAffinity(
        consume_reservation_type="SPECIFIC_RESERVATION", key=_RESERVATION_KEY, values=[capacity.reservation]
    )


def _json(body: ResourcePolicy | InstanceTemplate | InstanceGroupManager) -> Mapping[str, Any]:
    text = type(body).to_json(
        body,
        use_integers_for_enums=False,
        preserving_proto_field_name=False,
        sort_keys=True,
        always_print_fields_with_no_presence=False,
    )
    found: Mapping[str, Any] = json.loads(text)
    return found
