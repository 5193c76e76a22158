"""The labels under Google's and Kubernetes' prefixes that a slice's hosts have, and which of them tenants may set."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tpu_slices.domain.catalogue.accelerators import CATALOGUE, machine_named
from tpu_slices.domain.catalogue.machines import Placement
from tpu_slices.domain.model.clusters import PoolSettings
from tpu_slices.domain.model.slices import Capacity, CapacityKind, SliceSpec, WorkloadJob

ACCELERATOR = "cloud.google.com/gke-tpu-accelerator"
TOPOLOGY = "cloud.google.com/gke-tpu-topology"
COUNT = "cloud.google.com/gke-accelerator-count"
SPOT = "cloud.google.com/gke-spot"
RESERVATION = "cloud.google.com/reservation-name"
RESERVATION_PROJECT = "cloud.google.com/reservation-project"
RESERVATION_BLOCK = "cloud.google.com/reservation-blocks"
RESERVATION_SUBBLOCK = "cloud.google.com/reservation-subblocks"
FLEX_START = "cloud.google.com/gke-flex-start"
RUN_SECONDS = "cloud.google.com/gke-max-run-duration-seconds"
"""A label that GKE's autoscaler sets on the node pools that it creates itself, and on no others."""
_RESERVATION_KEYS = (RESERVATION, RESERVATION_PROJECT, RESERVATION_BLOCK, RESERVATION_SUBBLOCK)
CAPACITY_KEYS = (SPOT, *_RESERVATION_KEYS, FLEX_START)
"""Node selectors by which a pod requests spot, reserved or flex-start hosts."""
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
MACHINE = "node.kubernetes.io/instance-type"
METADATA_SERVER = "iam.gke.io/gke-metadata-server-enabled"
ARCH = "kubernetes.io/arch"
PLACEMENT_POLICY = "cloud.google.com/placement-policy-name"
"""The workload policy that places the hosts; as a node selector it names the one to use."""
NETWORK_DRIVER = "cloud.google.com/gke-networking-dra-driver"
"""What a pool with an accelerator network profile is labelled with (cluster-toolkit, xpk)."""
NODE_POOL = "cloud.google.com/gke-nodepool"
HOSTNAME = "kubernetes.io/hostname"
NAMESPACED_JOB = "alpha.jobset.sigs.k8s.io/namespaced-job"
"""The node selector of JobSet's placement by node selector: `{namespace}_{job}`."""
JOBSET_TAINT = "alpha.jobset.sigs.k8s.io/no-schedule"
"""The taint for that placement, `=true:NoSchedule`: JobSet adds a toleration for it to the pods of such a Job."""

GROUP_NAME = "cloud.google.com/tpu-node-group-name"
GROUP_NAMESPACE = "cloud.google.com/tpu-node-group-namespace"
GROUP = "cloud.google.com/tpu-node-group"
"""`{namespace}-{name}`, ambiguous and not always a label's value: for selectors that were written for it."""
GROUP_KEYS = frozenset({GROUP_NAME, GROUP_NAMESPACE, GROUP})
"""TPU operator's labels of the hosts of a TPUNodeGroup: a pod that selects one waits for that, and for no slice."""

VARYING = frozenset({NODE_POOL, HOSTNAME, "metadata.name"})
"""Labels and fields whose values are not known before the node exists, so that no pod can select them."""

GKE_PROVISIONERS = ("cloud.google.com/compute-class", "cloud.google.com/gke-queued")
"""Node selectors by which a pod requests hosts that GKE itself provisions."""

_KIND_LABELS = {CapacityKind.SPOT: SPOT, CapacityKind.FLEX_START: FLEX_START}
_SLICING = re.compile(
    r"cloud\.google\.com/gke-(tpu-slice|tpu-(slice|partition)-[0-9x]+-id|accelerator-topology-mode)", re.ASCII
)
"""Labels of the hosts of slices that GKE forms of parts of pools (GKE's tpu-device-plugin and slice controller)."""
_CORES_PER_CHIP = 2
"""Of tpu7x and tpu7, the accelerators with workload policies."""

_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_SYSTEM_SUFFIXES = ("google.com", "kubernetes.io", "k8s.io", "gke.io")
LOCATION_HINT = "cloud.google.com/gke-location-hint"
_FROM_USERS = frozenset(
    {"cloud.google.com/gke-tpu-ici-resiliency", LOCATION_HINT, "cloud.google.com/gke-tpu-auto-restart"}
)
"""Google's keys that GKE accepts from users: ai-on-gke/tpu-provisioner@6789e2a, internal/cloud/gke.go, and the last
from apple/axlearn, which has TPU Provisioner copy it."""


def is_system(key: str) -> bool:
    """Return whether a label's key has a prefix of Google's or Kubernetes', in whatever spelling of the domain."""
    domain = key.rpartition("/")[0].lower().rstrip(".")
    return any(domain == suffix or domain.endswith(f".{suffix}") for suffix in _SYSTEM_SUFFIXES)


def may_be_a_node_label(key: str) -> bool:
    """Return whether a node pool may carry this label on behalf of a tenant."""
    return key in _FROM_USERS or not is_system(key)


def is_label_value(text: str) -> bool:
    """Return whether a text can be the value of a label, which may be empty."""
    return _LABEL_VALUE.fullmatch(text) is not None


def is_slicing(key: str) -> bool:
    """Return whether a label's key belongs to super-, sub- or dynamic slicing."""
    return _SLICING.fullmatch(key) is not None


def workload_policy_of(spec: SliceSpec, pools: PoolSettings) -> str | None:
    """Return the name of the workload policy that places a slice; None: none does."""
    if spec.placement is not Placement.WORKLOAD_POLICY:
        return None
    chips = spec.chips
    name = pools.workload_policy.replace("{topology}", str(spec.topology))
    return spec.workload_policy or name.replace("{chips}", str(chips)).replace("{cores}", str(chips * _CORES_PER_CHIP))


def network_profile_of(spec: SliceSpec, pools: PoolSettings) -> str | None:
    """Return the accelerator network profile of a slice's pool; None: additional networks, or none for its hosts."""
    kind = CATALOGUE.get(spec.accelerator)
    networks = pools.additional_networks if spec.networks is None else spec.networks
    return pools.accelerator_network_profile if kind and kind.network_profile and not networks else None


def network_labels(spec: SliceSpec, pools: PoolSettings) -> dict[str, str]:
    """Return the labels that a slice's pool has because of its accelerator network profile."""
    return {NETWORK_DRIVER: "true"} if network_profile_of(spec, pools) else {}


def host_labels(spec: SliceSpec, job: WorkloadJob, pools: PoolSettings) -> dict[str, str]:
    """Return the labels that every host of a slice has: from GKE, or from our startup script, and from the relay.

    An empty value is not known: before the node exists, or because the spec lacks what it follows from.
    """
    machine = machine_named(spec.machine_type)
    labels = {
        ACCELERATOR: spec.accelerator,
        TOPOLOGY: str(spec.topology),
        COUNT: str(spec.chips_per_host or ""),
        ZONE: spec.zone,
        REGION: spec.zone.rpartition("-")[0],
        MACHINE: spec.machine_type,
        "kubernetes.io/os": "linux",
        ARCH: machine.arch if machine else "",
        **dict.fromkeys(VARYING, ""),
        **({} if pools.compute else _of_gke_alone(spec, pools)),
        **_capacity_labels(spec.capacity),
    }
    return {**labels, NAMESPACED_JOB: f"{job.owner.namespace}_{job.job_name}"} if spec.exclusive_nodes else labels


def _of_gke_alone(spec: SliceSpec, pools: PoolSettings) -> Mapping[str, str]:
    policy = workload_policy_of(spec, pools) if spec.hosts else ""
    placed = {} if policy is None else {PLACEMENT_POLICY: policy}
    return {METADATA_SERVER: "true", **placed, **network_labels(spec, pools)}


def _capacity_labels(capacity: Capacity) -> Mapping[str, str]:
    if capacity.kind is CapacityKind.RESERVATION and capacity.reservation is None:
        return dict.fromkeys(_RESERVATION_KEYS, "")
    if capacity.reservation is None:
        return {_KIND_LABELS[capacity.kind]: "true"} if capacity.kind in _KIND_LABELS else {}
    named: dict[str, str] = {}
    parts = capacity.reservation.split("/")
    if len(parts) % 2:  # a bare name has no leading "reservations"
        parts = ["reservations", *parts]
    keys = {
        "projects": RESERVATION_PROJECT,
        "reservations": RESERVATION,
        "reservationBlocks": RESERVATION_BLOCK,
        "reservationSubBlocks": RESERVATION_SUBBLOCK,
    }
    for kind, name in zip(parts[::2], parts[1::2], strict=True):
        named[keys[kind]] = name
    return named
