"""What a TPUNodeGroup declares, its status, and which nodes a slice of a self-managed cluster has."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tpu_slices.domain.model.slices import ClaimId, Pairs

FINALIZER = "tpu.google.com/tpu-slice-provisioner"
"""Keeps the object of a TPUNodeGroup that was deleted until its slice is GONE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceConfig:
    """spec.instanceConfig."""

    machine_type: str
    provisioning_model: str | None = None
    """SPOT, RESERVATION_BOUND or STANDARD; None: it follows from the reservation."""
    reservation: str | None = None
    image: str | None = None
    boot_disk_gb: int | None = None
    boot_disk_type: str | None = None
    subnetwork: str | None = None
    service_account: str | None = None
    scopes: tuple[str, ...] = ()
    network_tags: tuple[str, ...] = ()
    metadata: Pairs = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """spec.bootstrapKubernetes."""

    kubernetes: str
    """The minor version."""
    control_plane: str
    """The address of the API server, without a port."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """The spec of a TPUNodeGroup: a slice that is declared."""

    project: str
    zone: str
    nodes: int
    topology: str
    instance: InstanceConfig | None = None
    """None: there is a template."""
    template: str | None = None
    """An instance template of its user's: `projects/P/{global,regions/R}/instanceTemplates/T`."""
    accelerator: str | None = None
    """The label `cloud.google.com/gke-tpu-accelerator` of the object, by which a template's accelerator is told."""
    bootstrap: Bootstrap | None = None
    """None: hosts join by themselves."""


class ConditionType(StrEnum):
    """The conditions of a TPUNodeGroup; TPU operator's."""

    WORKLOAD_POLICY = "WorkloadPolicyReady"
    INSTANCE_TEMPLATE = "InstanceTemplateReady"
    INSTANCE_GROUP = "ManagedInstanceGroupReady"
    READY = "Ready"


INVALID_TEMPLATE = "InvalidTemplate"
"""The reason of a template's condition if Compute Engine refuses what comes of the user's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    type: ConditionType
    status: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroupStatus:
    """How far the slice of a TPUNodeGroup is."""

    generation: int
    """Of the object, when this was known of it."""
    conditions: tuple[Condition, ...]
    """Those that are known; others stay as they are."""
    ready: int
    reconciling: int
    failed: int
    gone: bool
    """Nothing is left of the slice of a group that is over: its object may go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesGone:
    """A word to the relay of a self-managed cluster: a pool is gone for good, and its Node objects are to go, too."""

    slice_id: ClaimId
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesExpected:
    """A word to the relay of a self-managed cluster: the nodes of these instances are a pool's hosts."""

    slice_id: ClaimId
    attempt: int
    instances: str
    """How the providerID of each begins: `gce://P/Z/` and the name of the pool, with a hyphen."""
    labels: Pairs
    """What they are labelled with where they lack it."""
