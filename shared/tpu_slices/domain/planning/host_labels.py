"""The labels under Google's and Kubernetes' prefixes that a slice's hosts have, and which of them tenants may set."""

from __future__ import annotations

from collections.abc import Mapping

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
CAPACITY_KEYS = (SPOT, RESERVATION, RESERVATION_PROJECT, RESERVATION_BLOCK, RESERVATION_SUBBLOCK, FLEX_START)
"""Node selectors by which a pod requests spot, reserved or flex-start hosts."""
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
MACHINE = "node.kubernetes.io/instance-type"
METADATA_SERVER = "iam.gke.io/gke-metadata-server-enabled"
NODE_POOL = "cloud.google.com/gke-nodepool"
HOSTNAME = "kubernetes.io/hostname"
NAMESPACED_JOB = "alpha.jobset.sigs.k8s.io/namespaced-job"
"""The node selector of JobSet's placement by node selector: `{namespace}_{job}`."""
JOBSET_TAINT = "alpha.jobset.sigs.k8s.io/no-schedule"
"""The taint for that placement, `=true:NoSchedule`: JobSet adds a toleration for it to the pods of such a Job."""

VARYING = frozenset({NODE_POOL, HOSTNAME, "metadata.name"})
"""Labels and fields whose values are not known before the node exists, so that no pod can select them."""

GKE_PROVISIONERS = ("cloud.google.com/compute-class", "cloud.google.com/gke-queued")
"""Node selectors by which a pod requests hosts that GKE itself provisions."""

_KIND_LABELS = {CapacityKind.SPOT: SPOT, CapacityKind.FLEX_START: FLEX_START}
_SYSTEM_SUFFIXES = ("google.com", "kubernetes.io", "k8s.io", "gke.io")
_FROM_USERS = frozenset({"cloud.google.com/gke-tpu-ici-resiliency", "cloud.google.com/gke-location-hint"})
"""Google's keys that GKE accepts from users (ai-on-gke/tpu-provisioner@6789e2a, internal/cloud/gke.go)."""


def is_system(key: str) -> bool:
    """Return whether a label's key has a prefix of Google's or Kubernetes', in whatever spelling of the domain."""
    domain = key.rpartition("/")[0].lower().rstrip(".")
    return any(domain == suffix or domain.endswith(f".{suffix}") for suffix in _SYSTEM_SUFFIXES)


def may_be_a_node_label(key: str) -> bool:
    """Return whether a node pool may carry this label on behalf of a tenant."""
    return key in _FROM_USERS or not is_system(key)


def host_labels(spec: SliceSpec, job: WorkloadJob) -> dict[str, str]:
    """Return the labels that GKE, and for JobSet's placement the relay, set on every host of a slice."""
    labels = {
        ACCELERATOR: spec.accelerator,
        TOPOLOGY: str(spec.topology),
        COUNT: str(spec.chips_per_host),
        ZONE: spec.zone,
        REGION: spec.zone.rpartition("-")[0],
        MACHINE: spec.machine_type,
        METADATA_SERVER: "true",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **dict.fromkeys(VARYING, ""),
        **_capacity_labels(spec.capacity),
    }
    return {**labels, NAMESPACED_JOB: f"{job.owner.namespace}_{job.job_name}"} if spec.exclusive_nodes else labels


def _capacity_labels(capacity: Capacity) -> Mapping[str, str]:
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
