"""What the relay keeps of the objects that it watches, a few fields of each, and what a watch delivers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeVar

from relay.pod_status import PodStatus
from tpu_slices.domain.model.facts import TemplateRequest, WaitingLeader, WorkloadRef, WorkloadState
from tpu_slices.domain.model.hosts import Upcoming
from tpu_slices.domain.model.node_groups import FINALIZER, NodeGroup
from tpu_slices.domain.model.observations import LegacyPool
from tpu_slices.domain.model.reasons import OwnerReason
from tpu_slices.domain.model.slices import ClaimId, OwnerKind, WorkloadUid
from tpu_slices.domain.planning.sharing import sharing, slices_of
from tpu_slices.domain.records.standings import standing

SERVERS_DIFFER_BY = timedelta(seconds=30)
"""At most, the clocks of a control plane's API servers."""


class Kind(StrEnum):
    """The kinds of objects that are watched."""

    JOBSETS = "jobsets"
    JOBS = "jobs"
    LEADER_WORKER_SETS = "leaderworkersets"
    NODE_GROUPS = "tpunodegroups"
    LEADERS = "leaders"  # pods of Indexed Jobs, also of those of JobSets, and those beside them
    UNINDEXED = "unindexed-pods"  # pods of other Jobs that may lead
    GROUP_LEADERS = "group-leaders"  # pods of LeaderWorkerSets that lead slices, and those beside them
    PODS = "pods"  # by themselves: each is a workload, and leads it
    HOSTS = "hosts"


class Aside(StrEnum):
    """What is watched, but no fact comes of."""

    UNSCHEDULED = "unscheduled-pods"
    ADMISSION_CHECKS = "admission-checks"  # of Kueue, whose answers are ours
    QUEUED = "queued-workloads"  # Kueue's, of which each stands for one of a user's
    FLAVORS = "resource-flavors"


WORKLOADS: Mapping[Kind, OwnerKind] = {
    Kind.JOBSETS: OwnerKind.JOBSET,
    Kind.JOBS: OwnerKind.JOB,
    Kind.LEADER_WORKER_SETS: OwnerKind.LEADER_WORKER_SET,
    Kind.NODE_GROUPS: OwnerKind.TPU_NODE_GROUP,
    Kind.PODS: OwnerKind.POD,
}
"""Of the kinds that are workloads, what they own slices as."""


class WorkloadName(NamedTuple):
    namespace: str
    name: str
    kind: OwnerKind = OwnerKind.JOBSET


class Place(NamedTuple):
    """The position of a Job in its JobSet, or of a group in its LeaderWorkerSet; ("", 0) for a Job or pod by itself."""

    replicated_job: str
    job_index: int


class PoolKey(NamedTuple):
    """The node pool of one attempt."""

    slice_id: ClaimId
    attempt: int

    @classmethod
    def named(cls, key: str) -> PoolKey | None:
        """Return the pool of a `hosts.key_of`; None: it is no such key."""
        slice_id, _, attempt = key.rpartition("-")
        return cls(ClaimId(slice_id), int(attempt)) if attempt.isdecimal() and len(attempt) < 10 else None


Pool = PoolKey | LegacyPool


class Hardware(NamedTuple):
    """What a pod requests of its node."""

    chips: int
    accelerator: str | None
    topology: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A JobSet, Job or LeaderWorkerSet of which a pod template requests TPU chips, such a pod, or a TPUNodeGroup."""

    ref: WorkloadRef
    state: WorkloadState
    requests: tuple[TemplateRequest, ...]
    """What it requests from this provisioner: nothing of templates that opted out, or that could never be parsed."""
    served: bool
    """Whether it is managed by its kind's own controller and did not opt out."""
    unserved: str = ""
    """Why none of its slices is made; empty: they may be."""
    queue: str = ""
    """The Kueue queue that its label names."""
    notify: str = ""
    """Its annotation `notifications.NOTIFY`; empty of a TPUNodeGroup, of whose annotations nothing is told."""
    reserved: bool = False
    """Whether it is suspended, and taken for active: Kueue has quota for it, and resumes it once its slices stand."""
    asks: bool = True
    """Whether it requests TPU; False: a LeaderWorkerSet, which may have before it was edited, and groups that do."""
    parse_error: str | None = None
    """Why its templates, or what it declares, cannot be parsed."""
    group: NodeGroup | None = None
    """What it declares, if it is a TPUNodeGroup."""
    finalizers: tuple[str, ...] = ()
    """Of a TPUNodeGroup."""
    created: datetime | None = None
    """When, by the API server that took it; None: that is not said."""
    leader: Leader | None = None
    """Of a pod by itself: what it is as its own leader."""
    succeeded: Mapping[str, int] = field(default_factory=dict, hash=False)
    """Of a JobSet: how many Jobs have succeeded since it was last started, by replicatedJob, where some have."""
    sharing: frozenset[str] = field(init=False, repr=False, compare=False)
    """The replicatedJobs whose Jobs share a slice: it follows from `requests`, and is asked for with each event."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sharing", frozenset(sharing(self.requests)))

    @property
    def identity(self) -> str:
        return self.ref.owner.uid

    @property
    def standing(self) -> int:
        """See `standings.standing`."""
        return standing(self.ref.owner.uid, *self.announced_state, notify=self.notify)

    @property
    def announced_state(self) -> tuple[object, ...]:
        """What its standing is made of beside its annotation."""
        return self.state, self.queue, self.parse_error, self.ref.groups

    @property
    def demand_tells_all(self) -> bool:
        """Whether its demand says everything that its state would."""
        if self.ref.owner.kind.declares:
            return False
        beside = self.queue or self.parse_error or self.notify or self.unserved
        return self.state is WorkloadState.ACTIVE and not beside

    @property
    def held(self) -> bool:
        """Whether its object stays until its slice is GONE."""
        return FINALIZER in self.finalizers

    @property
    def tellable(self) -> bool:
        """Whether it may be told of: nothing is bought for a TPUNodeGroup whose object could vanish unnoticed."""
        return not self.ref.owner.kind.declares or self.held or self.state.ended

    @property
    def told(self) -> tuple[object, ...]:
        """What is published of it as soon as it changes."""
        return *self.announced_state, self.notify, self.unserved, self.group, self.tellable

    @property
    def occupancy(self) -> tuple[object, ...]:
        """What decides which of its leader pods occupy hosts."""
        return self.ref.generation, self.state, self.served, self.requests

    @property
    def name(self) -> WorkloadName:
        owner = self.ref.owner
        return WorkloadName(owner.namespace, owner.name, owner.kind)

    @property
    def slices(self) -> int:
        return sum(map(slices_of, self.requests))

    def shares_slice(self, place: Place) -> bool:
        """Return whether a Job shares its slice with the other Jobs of its replicatedJob."""
        return place.replicated_job in self.sharing

    def claimed(self, place: Place) -> Place:
        """Return the place of the Job that a Job's slice is claimed for."""
        return place._replace(job_index=0) if self.shares_slice(place) else place


class Unserved(NamedTuple):
    """Why a pod gets no slice, or does not ask for one."""

    reason: OwnerReason
    why: str
    """A clause with the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPod:
    """A pod of a Job, of a group of a LeaderWorkerSet, or by itself."""

    pod: str
    pod_uid: str
    workload: WorkloadName
    workload_uid: WorkloadUid | None
    """From the JobSet controller's label, the Job's reference, or the pod itself; None if there is none."""
    job: str | None
    """What its controller makes it one of: the Job, or the group; None if no such controller is named."""
    node: str | None
    """The node that it is bound to; None once it has ended."""
    status: PodStatus
    created: datetime | None = None
    """As of a Workload."""
    gated: bool = False
    """Whether it has the scheduling gate that holds pods of gangs."""

    def may_be_of(self, workload: Workload) -> bool:
        """Return whether it is a pod of this workload, as far as its UID and its age tell, and not of one before it.

        The pods of a group name their LeaderWorkerSet only. One that was made before that is of an earlier life.
        """
        if self.workload_uid is not None:
            return self.workload_uid == workload.ref.owner.uid
        if self.created is None or workload.created is None:
            return True
        return self.created >= workload.created - SERVERS_DIFFER_BY

    @property
    def identity(self) -> str:
        return self.pod_uid


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader(JobPod):
    """A pod that may lead a Job or a group of a LeaderWorkerSet, or is by itself; in a HostPod any other, too."""

    asks: WaitingLeader
    """What the pod itself requests, with its labels, also those that its template has."""
    hardware: Hardware
    volumes: tuple[str, ...]
    """The PersistentVolumeClaims that it mounts."""
    waiting: bool
    """Whether it cannot be scheduled, or is held for its gang, and requests chips of this provisioner, even if no slice
    can serve it."""
    ended: bool = False
    """Whether its containers have ended for good."""
    indexed: bool = True
    """Whether a Job's pod has a completion index."""
    unserved: Unserved | None = None
    """Why it gets no slice or does not ask for one, whatever its workload is; None: its workload says it."""

    @property
    def kind(self) -> Kind:
        """As what it is watched."""
        of_kind = {OwnerKind.LEADER_WORKER_SET: Kind.GROUP_LEADERS, OwnerKind.POD: Kind.PODS}
        return of_kind.get(self.workload.kind) or (Kind.LEADERS if self.indexed else Kind.UNINDEXED)

    @property
    def place(self) -> Place:
        return Place(self.asks.replicated_job, self.asks.job_index)


@dataclass(frozen=True, slots=True, kw_only=True)
class Follower(JobPod):
    """A pod with chips beside the leader of its Job or group."""

    place: Place

    @property
    def kind(self) -> Kind:
        """As what it is watched."""
        return Kind.GROUP_LEADERS if self.workload.kind is OwnerKind.LEADER_WORKER_SET else Kind.LEADERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A node of a pool of ours, or of TPU Provisioner's."""

    node: str
    pool: Pool
    workload_uid: WorkloadUid | None
    """The workload that the pool was made for; None for a legacy pool."""
    expected: int | None
    """The number of hosts of its slice; None if the node's labels do not have it."""
    usable: bool
    """Whether it is Ready, offers all its chips, has the label and taint it needs, and is not cordoned or deleted."""
    sound: bool
    """Whether it is usable, or would be if the relay had not closed it."""
    ready: bool
    chips_missing: bool
    """Whether it is Ready, and offers fewer chips than it has."""
    cordoned: bool
    """Whether it takes no new pods (`spec.unschedulable`)."""
    maintained: bool
    """Whether Google maintains its machine now."""
    announced: Upcoming | None
    """None: Google announces nothing of its machine."""
    closed_for: int | None
    """The number of the question for which the relay cordoned it; None: the relay did not."""
    key: str
    """The key that it carries (`planning.keys`); empty: none. `NAMESPACE/KEY` if it may come to other namespaces."""
    uid: str
    version: str
    """Its resourceVersion."""
    unlabeled: Mapping[str, Any] | None
    """The patch that labels it for JobSet's exclusive placement; None: nothing is missing."""

    @property
    def identity(self) -> str:
        return self.node


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to an object of any kind; its UID is empty if the reference does not have it."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


Known = Workload | Leader | Follower | Host
K = TypeVar("K", bound=StrEnum)
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Unparseable(Generic[K]):
    """An object that exists but cannot be parsed: its last known state stays."""

    kind: K
    identity: str
    parse_error: str


@dataclass(frozen=True, slots=True)
class Listed(Generic[K, S]):
    """A whole list: objects that it lacks are gone."""

    kind: K
    seen: Sequence[S | Unparseable[K]]
    version: str


@dataclass(frozen=True, slots=True)
class Saw(Generic[K, S]):
    """An object was added or modified."""

    kind: K
    seen: S | Unparseable[K]
    version: str


@dataclass(frozen=True, slots=True)
class Lost(Generic[K, S]):
    """An object is gone, or not relevant any more."""

    kind: K
    identity: str
    version: str
    last: S | None
    """Its final state, if the watch delivered it."""
    deleted: bool
    """Whether the API server said that it deleted this very object: it said so, and no selector was lost."""


@dataclass(frozen=True, slots=True)
class Bookmarked(Generic[K]):
    """A watch has delivered everything up to a version."""

    kind: K
    version: str


@dataclass(frozen=True, slots=True)
class Ticked(Generic[K]):
    """The thread of a watch is at work, although no event came."""

    kind: K


@dataclass(frozen=True, slots=True)
class Failed(Generic[K]):
    """A list or a watch failed."""

    kind: K
    why: str


Delivery = Listed[K, S] | Saw[K, S] | Lost[K, S] | Bookmarked[K] | Ticked[K] | Failed[K]
"""What a watch delivers of objects of this kind, read as S."""
Seen = Known | Unparseable[Kind]
WatchEvent = Delivery[Kind, Known]
