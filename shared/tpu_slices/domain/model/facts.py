"""What the relay reports: past tense, each with the versions of the objects it rests on. Never a command."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tpu_slices.domain.model.slices import Owner, Pairs, SliceId, WorkloadUid

COPY_LABELS = "tpu-provisioner.cloud.google.com/copy-labels"
ADDITIONAL_NETWORKS = "tpu-provisioner.cloud.google.com/additional-node-networks"
SERVICE_ACCOUNT = "tpu-provisioner.cloud.google.com/node-service-account"
REQUESTED_ANNOTATIONS = (COPY_LABELS, ADDITIONAL_NETWORKS, SERVICE_ACCOUNT)
"""Annotations of a pod template by which a tenant asks for more; the names are TPU Provisioner's."""


class WorkloadState(StrEnum):
    """What a JobSet is up to; the last four are final."""

    ACTIVE = "ACTIVE"
    SUSPENDED = "SUSPENDED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    DELETED = "DELETED"  # seen going
    MISSING = "MISSING"  # asked for and not there: gone, or another UID has its name

    @property
    def ended(self) -> bool:
        return self not in {WorkloadState.ACTIVE, WorkloadState.SUSPENDED}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadRef:
    """A workload as the API server knows it, at one of its versions."""

    owner: Owner
    generation: int
    """`metadata.generation`: rises with every change of the spec, suspend and resume among them."""
    resource_version: str
    """`metadata.resourceVersion`: recorded for people, never compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One match expression of a required node affinity (v1 NodeSelectorRequirement)."""

    key: str
    operator: str
    """In, NotIn, Exists, DoesNotExist, Gt or Lt."""
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """A taint that a pod puts up with (v1 Toleration)."""

    key: str = ""
    """Empty: every key."""
    operator: str = "Equal"
    """Equal or Exists."""
    value: str = ""
    effect: str = ""
    """Empty: every effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundClaim:
    """A volume claim of a pod whose volume can only be reached from some zones."""

    name: str
    zones: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateRequest:
    """What the pod template of one replicatedJob asks for, raw; the domain makes sense of it."""

    replicated_job: str
    replicas: int
    accelerator: str | None
    """Node selector `cloud.google.com/gke-tpu-accelerator`."""
    topology: str | None
    """Node selector `cloud.google.com/gke-tpu-topology`."""
    chips_per_pod: int
    """`google.com/tpu`: the most that containers, sidecars and init containers ask for at one time."""
    node_selector: Pairs = ()
    """The whole node selector."""
    affinity: tuple[tuple[Requirement, ...], ...] = ()
    """Required node affinity: one of these terms must hold, all requirements of it. Empty: nothing is required."""
    tolerations: tuple[Toleration, ...] = ()
    cpu_milli: int = 0
    """What the pod requests, in thousandths of a CPU, by the same rule as chips."""
    memory_bytes: int = 0
    labels: Pairs = ()
    """The template's labels."""
    requested_annotations: Pairs = ()
    """The template's annotations among WISHES."""
    exclusive_nodes: bool = False
    """JobSet's placement by node selector: nodes must be labelled and tainted for the one Job that may use them
    (annotations `alpha.jobset.sigs.k8s.io/exclusive-topology` and `alpha.jobset.sigs.k8s.io/node-selector`)."""
    claims: tuple[BoundClaim, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingLeader:
    """A leader pod (completion index 0) that cannot be scheduled."""

    replicated_job: str
    job_index: int
    node_selector: Pairs | None = None
    """The pod's own, to which admission may have added; None: no pod is there, the template says it all."""
    labels: Pairs = ()
    """The pod's labels beyond the template's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicesWanted:
    """Leader pods of a JobSet cannot be scheduled; repeated while it is true."""

    workload: WorkloadRef
    requests: tuple[TemplateRequest, ...]
    waiting: tuple[WaitingLeader, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadChanged:
    """A JobSet came to be in this state."""

    workload: WorkloadRef
    state: WorkloadState
    queue: str = ""
    """The Kueue queue that its label names."""
    template_error: str = ""
    """Why its templates cannot be read: nothing can be made for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostsChanged:
    """The hosts of a pool were counted. Usable: Ready and offering all their chips."""

    slice_id: SliceId
    attempt: int
    usable: int
    joined: int
    sequence: int
    """Where the relay's watch of the nodes stood: never falls. An older count is ignored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupant:
    """The Job whose leader is bound to a slice's hosts."""

    owner: Owner
    job: str
    pod_uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderBound:
    """A leader was bound to a pool's hosts, or (not `bound`) left them."""

    slice_id: SliceId
    attempt: int
    occupant: Occupant
    bound: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """The relay is alive and sees so many TPU JobSets; `uids` only when it was asked for the list."""

    count: int
    digest: str
    uids: tuple[WorkloadUid, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the API server said about one JobSet when the relay was asked to look."""

    workload: WorkloadRef
    state: WorkloadState


Fact = SlicesWanted | WorkloadChanged | HostsChanged | LeaderBound | Heartbeat | Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Asked of the relay: whether this JobSet lives, or (without a JobSet) which TPU JobSets do."""

    owner: Owner | None = None
