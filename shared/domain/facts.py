"""What the relay reports: past tense, each with the versions of the objects it rests on. Never a command."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shared.domain.slices import JobSetUid, Pairs, SliceId


class JobSetState(StrEnum):
    """What a JobSet is up to; the last four are final."""

    ACTIVE = "ACTIVE"
    SUSPENDED = "SUSPENDED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    DELETED = "DELETED"  # seen going
    MISSING = "MISSING"  # asked for and not there: gone, or another UID has its name

    @property
    def ended(self) -> bool:
        return self not in {JobSetState.ACTIVE, JobSetState.SUSPENDED}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSetRef:
    """A JobSet as the API server knows it, at one of its versions."""

    namespace: str
    name: str
    uid: JobSetUid
    generation: int
    """`metadata.generation`: rises with every change of the spec, suspend and resume among them."""
    resource_version: str
    """`metadata.resourceVersion`: recorded for people, never compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRequest:
    """What the pod template of one replicatedJob asks for, raw; the domain makes sense of it."""

    replicated_job: str
    replicas: int
    accelerator: str | None
    """Node selector `cloud.google.com/gke-tpu-accelerator`."""
    topology: str | None
    """Node selector `cloud.google.com/gke-tpu-topology`."""
    chips_per_pod: int
    """`google.com/tpu`, over all containers."""
    node_selector: Pairs = ()
    """The whole node selector."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingLeader:
    """A leader pod (completion index 0) that cannot be scheduled."""

    replicated_job: str
    job_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicesWanted:
    """Leader pods of a JobSet cannot be scheduled; repeated while it is true."""

    jobset: JobSetRef
    requests: tuple[SliceRequest, ...]
    waiting: tuple[WaitingLeader, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSetChanged:
    """A JobSet came to be in this state."""

    jobset: JobSetRef
    state: JobSetState


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

    namespace: str
    jobset: str
    jobset_uid: JobSetUid
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
    uids: tuple[JobSetUid, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the API server said about one JobSet when the relay was asked to look."""

    jobset: JobSetRef
    state: JobSetState


Fact = SlicesWanted | JobSetChanged | HostsChanged | LeaderBound | Heartbeat | Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Asked of the relay: whether this JobSet lives, or (without a JobSet) which TPU JobSets do."""

    namespace: str | None = None
    name: str | None = None
    uid: JobSetUid | None = None
