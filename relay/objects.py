"""What the relay keeps of the objects it watches: a few fields of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from tpu_slices.domain.model.facts import TemplateRequest, WaitingLeader, WorkloadRef, WorkloadState
from tpu_slices.domain.model.observations import LegacyPool
from tpu_slices.domain.model.slices import SliceId, WorkloadUid


class Kind(StrEnum):
    """What is watched."""

    JOBSETS = "jobsets"
    LEADERS = "leaders"
    HOSTS = "hosts"


class JobSetName(NamedTuple):
    namespace: str
    name: str


class Place(NamedTuple):
    """Which Job of its JobSet."""

    replicated_job: str
    job_index: int


class PoolKey(NamedTuple):
    """One attempt's pool."""

    slice_id: SliceId
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSet:
    """A JobSet of which at least one replicatedJob asks for TPU chips."""

    ref: WorkloadRef
    state: WorkloadState
    requests: tuple[TemplateRequest, ...]
    """What it asks us for: nothing where its templates opted out or cannot be read."""
    served: bool
    """It is run by the JobSet controller and did not opt out."""
    queue: str = ""
    """The Kueue queue that it is in."""
    parse_error: str | None = None
    """Why its templates cannot be read."""

    @property
    def identity(self) -> str:
        return self.ref.owner.uid

    @property
    def announced_state(self) -> tuple[WorkloadState, str, str | None]:
        """What is said of it when it changes."""
        return self.state, self.queue, self.parse_error

    @property
    def name(self) -> JobSetName:
        return JobSetName(self.ref.owner.namespace, self.ref.owner.name)

    @property
    def slices(self) -> int:
        return sum(request.replicas for request in self.requests)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    """A pod with completion index 0 of a Job of a JobSet."""

    pod: str
    pod_uid: str
    jobset: JobSetName
    jobset_uid: WorkloadUid | None
    """As the JobSet controller labelled it; versions that do not leave it out."""
    job: str
    asks: WaitingLeader
    """As the pod says it: its labels are all there."""
    claims: tuple[str, ...]
    """The volume claims that it mounts."""
    waiting: bool
    """It cannot be scheduled for want of a slice that we might make."""
    node: str | None
    """The node that it is bound to; None once it has ended."""

    @property
    def identity(self) -> str:
        return self.pod_uid

    @property
    def place(self) -> Place:
        return Place(self.asks.replicated_job, self.asks.job_index)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A node of one of our pools."""

    node: str
    pool: PoolKey | LegacyPool
    jobset_uid: WorkloadUid | None
    """Whom the pool was made for."""
    expected: int | None
    """How many hosts its slice has, where the node's labels say so."""
    usable: bool
    """Ready, offering all its chips, here to stay, and marked where it must be."""
    unlabeled: Mapping[str, Any] | None
    """The patch that marks it for JobSet's placement by node selector; None: nothing is missing."""

    @property
    def identity(self) -> str:
        return self.node


@dataclass(frozen=True, slots=True)
class Unparseable:
    """An object that is there and cannot be understood: of it we know what we knew."""

    kind: Kind
    identity: str
    parse_error: str


Known = JobSet | Leader | Host
Seen = Known | Unparseable
