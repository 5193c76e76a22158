"""The facts that the relay reports, each with the versions of the objects it is based on. Never a command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from tpu_slices.domain.model.capacity import OF_NO_HOSTS
from tpu_slices.domain.model.gangs import Gating
from tpu_slices.domain.model.hosts import HostKey, Upcoming
from tpu_slices.domain.model.joining import JoinToken
from tpu_slices.domain.model.node_groups import NodeGroup
from tpu_slices.domain.model.pods import JobPods
from tpu_slices.domain.model.slices import ClaimId, ClusterId, Owner, Pairs, WorkloadJob

K = TypeVar("K", bound=str)

COPY_LABELS = "tpu-provisioner.cloud.google.com/copy-labels"
ADDITIONAL_NETWORKS = "tpu-provisioner.cloud.google.com/additional-node-networks"
SERVICE_ACCOUNT = "tpu-provisioner.cloud.google.com/node-service-account"
MAX_RUN_DURATION = "tpu-provisioner.cloud.google.com/max-run-duration-seconds"
IDLE_HOSTS = "tpu-provisioner.cloud.google.com/idle-hosts"
"""`true`: fewer pods than hosts are meant, and the others stay idle."""
PROVISIONING_REQUESTS = (
    "autoscaling.x-k8s.io/consume-provisioning-request",
    "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
)
"""Annotations that name the ProvisioningRequest by which GKE provisions a pod's nodes."""
_OURS = (COPY_LABELS, ADDITIONAL_NETWORKS, SERVICE_ACCOUNT, MAX_RUN_DURATION, IDLE_HOSTS, *OF_NO_HOSTS)
REQUESTED_ANNOTATIONS = (*_OURS, *PROVISIONING_REQUESTS)
"""The annotations of a pod template that say how its hosts are provisioned; the first three are TPU Provisioner's."""
EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
GROUP_EXCLUSIVE = "leaderworkerset.sigs.k8s.io/exclusive-topology"
"""The annotations of JobSets and of LeaderWorkerSets for exclusive placement; the value is the key of a node label."""
SLICE_TOPOLOGY = "cloud.google.com/gke-tpu-slice-topology"
INJECT_SLICE_SELECTOR = "tpu-provisioner.cloud.google.com/inject-slice-selector"
SLICING_MARKS = (SLICE_TOPOLOGY, INJECT_SLICE_SELECTOR)
"""Super-, sub- and dynamic slicing: GKE's annotation (its tpu-device-plugin and xpk), and the label or annotation by
which axlearn asks for the selector of such a slice (ai-on-gke/tpu-provisioner internal/webhook)."""


class WorkloadState(StrEnum):
    """The state of a JobSet; the last four are final."""

    ACTIVE = "ACTIVE"
    SUSPENDED = "SUSPENDED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    DELETED = "DELETED"  # the API server says of this very object that it deletes it
    MISSING = "MISSING"  # a list or an answer lacks it, or another UID has its name

    @property
    def ended(self) -> bool:
        return self not in {WorkloadState.ACTIVE, WorkloadState.SUSPENDED}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadRef:
    """A workload at one version, as read from the API server."""

    owner: Owner
    generation: int
    """`metadata.generation`: increases with every change of the spec, including suspend and resume."""
    resource_version: str
    """`metadata.resourceVersion`: compared only to confirm a deletion."""
    groups: int | None = None
    """Of a LeaderWorkerSet: how many groups it has (spec.replicas), which may change while it runs."""
    as_of: datetime | None = None
    """By the relay's clock: of one in a Kueue queue, whose state may change at one generation; None: it may not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One match expression of a required node affinity (v1 NodeSelectorRequirement)."""

    key: str
    operator: str  # In, NotIn, Exists, DoesNotExist, Gt or Lt
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """A toleration of a pod (v1 Toleration)."""

    key: str = ""
    """Empty: every key."""
    operator: str = "Equal"
    """Equal or Exists."""
    value: str = ""
    effect: str = ""
    """Empty: every effect."""


class PodRuleKind(StrEnum):
    """The rules of a pod template about other pods that can keep it from being scheduled, by their fields."""

    AFFINITY = "podAffinity"
    ANTI_AFFINITY = "podAntiAffinity"
    SPREAD = "topologySpreadConstraints"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRule:
    """A required term of a pod affinity or anti-affinity, or a topology spread constraint with DoNotSchedule."""

    kind: PodRuleKind
    topology_key: str
    selects_itself: bool
    """Whether the template's own pods are among those that it selects; if that is not known, what lets it hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MountedVolume:
    """A PersistentVolumeClaim of a pod that does not exist, or whose volume is only accessible from some zones."""

    name: str
    zones: tuple[str, ...]
    """Empty: there is none of that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateRequest:
    """What the pod template of one replicatedJob requests, not yet interpreted."""

    replicated_job: str
    replicas: int
    accelerator: str | None
    """Node selector `cloud.google.com/gke-tpu-accelerator`."""
    topology: str | None
    """Node selector `cloud.google.com/gke-tpu-topology`."""
    chips_per_pod: int
    """`google.com/tpu`: the most that containers, sidecars and init containers request at one time."""
    node_selector: Pairs = ()
    """The whole node selector."""
    affinity: tuple[tuple[Requirement, ...], ...] = ()
    """Required node affinity: all requirements of at least one term must be met. Empty: none."""
    tolerations: tuple[Toleration, ...] = ()
    cpu_milli: int = 0
    """The pod's CPU request in thousandths of a CPU, computed like the chips."""
    memory_bytes: int = 0
    ephemeral_bytes: int = 0
    """`ephemeral-storage`."""
    unoffered: tuple[str, ...] = ()
    """The resources that it requests and that no TPU host offers: GPUs and huge pages."""
    parallelism: int | None = None
    """The Job's; the pods of a group with chips; None: there is only a pod, of which that is not known."""
    completions: int | None = None  # likewise
    labels: Pairs = ()
    """The template's labels."""
    requested_annotations: Pairs = ()
    """The template's annotations whose keys are in REQUESTED_ANNOTATIONS."""
    exclusive_nodes: bool = False
    """JobSet's placement by node selector (annotations EXCLUSIVE and `alpha.jobset.sigs.k8s.io/node-selector`)."""
    exclusive_topology: str = ""
    """The value of EXCLUSIVE or GROUP_EXCLUSIVE; empty: there is none, or JobSet places by node selector."""
    first_job: int | None = None
    """The index of its first Job among all Jobs of the JobSet; None: it is of none, or that is not known."""
    leader_apart: bool = False
    """Of a LeaderWorkerSet: whether the leader of a group requests no chips, and its workers are the hosts."""
    slicing: Pairs = ()
    """What asks for a slice that GKE forms of parts of pools: keys of SLICING_MARKS and their values."""
    pod_rules: tuple[PodRule, ...] = ()
    volumes: tuple[MountedVolume, ...] = ()
    made_by: str = ""
    """Of a pod by itself: whose it is, as the setting `serve` names it (`clusters.PodsOf`); empty: it is none."""
    pod_key: str = ""
    """Of a pod by itself: the key that it has (`planning.keys`)."""
    gang: str = ""
    """The name of the gang (`model.gangs`) that the claims of its Jobs or groups are of; empty: of none."""
    gang_hold_for: int = 0  # by the annotation GANG_HOLD_FOR, in seconds; 0: as the settings say


class Reach(StrEnum):
    """The hosts that a pod with chips may come to."""

    OWN = "own"
    """Its own: the admission policy or the webhook judged it."""
    STATIC = "static"
    """Hosts that no provisioner made: the policy or the webhook judged it so, and the functions make it no slice."""
    ONE_SLICE = "one slice"
    """Those of others, too, but all pods of its Job or group to those of one slice."""
    ANY = "any"
    """Those of others, each pod by itself: neither the admission policy nor the webhook judged it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingLeader:
    """A pod that leads a Job or a group, and cannot be scheduled."""

    replicated_job: str
    job_index: int
    node_selector: Pairs | None = None
    """The pod's node selector, which admission may have extended; None: there is no pod, use the template's."""
    labels: Pairs = ()
    """The pod's labels beyond the template's."""
    reach: Reach = Reach.OWN
    """The hosts that it may come to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicesWanted:
    """Leader pods of a JobSet cannot be scheduled; told when that changes."""

    workload: WorkloadRef
    requests: tuple[TemplateRequest, ...]
    waiting: tuple[WaitingLeader, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceDeclared:
    """A TPUNodeGroup is there, and its object stays until its slice is GONE; told as a WorkloadChanged is."""

    workload: WorkloadRef
    group: NodeGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadChanged:
    """A JobSet is in this state."""

    workload: WorkloadRef
    state: WorkloadState
    queue: str = ""
    """The Kueue queue that its label names."""
    template_error: str = ""
    """Why its templates cannot be parsed, so that no slice can be created; empty: they can."""
    notify: str = ""
    """Its annotation NOTIFY."""
    unserved: str = ""
    """Why none of the slices that it requests is made; empty: they may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupant:
    """A Job with pods on a slice's hosts; its JobSet was active when this was reported."""

    owner: Owner
    generation: int
    """The generation at which its JobSet was active."""
    replicated_job: str
    job_index: int
    pod_uid: str

    @property
    def job(self) -> str:
        """The name of the Job."""
        return self.owner.job_name(self.replicated_job, self.job_index)

    def workload_job(self, cluster: ClusterId) -> WorkloadJob:
        return WorkloadJob(
            cluster=cluster, owner=self.owner, replicated_job=self.replicated_job, job_index=self.job_index
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HostsChanged:
    """The hosts of a pool as a whole: how many there are, and whose pods are on them; told when that changes.

    Pods count that hold chips, and that a live workload of ours controls; its leader stands for a Job, if it is there.
    """

    slice_id: ClaimId
    attempt: int
    usable: int
    """Ready, open to new pods, and offering all their chips."""
    joined: int
    closed: int
    """Closed to new pods by the relay, long enough ago for pods that were under way to have arrived."""
    occupants: tuple[Occupant, ...]
    """In the order of their pods' UIDs."""
    sequence: int
    """The position of the relay's watches, comparable between pools: what has a lower one than is known is ignored. It
    only goes back if the API server's versions do: see `occupancy.lowered`."""
    maintained: int = 0
    """Whose machines Google maintains now."""
    announced: Upcoming | None = None
    """None: Google announces nothing of their machines."""
    sound: int = 0
    """Usable, or closed by the relay and usable otherwise; of a relay that does not tell: none."""
    keys: tuple[HostKey, ...] = ()
    """How many carry which key (`planning.keys`), the most frequent first, at most MOST_KEYS; of a relay that does not
    tell: none."""
    pods: tuple[JobPods, ...] = ()
    """Those of the occupants, in their order, of whose pods it is settled how they are."""
    answers: int | None = None
    """The number of the latest question, which this answers: reported after it, and, if it asked for that, once no new
    pod can come to the hosts, or at once if a Job is on them, or if there are none."""
    asked_at: datetime | None = None
    """That question's: after the database was set back, a number is used twice."""
    highest: int = 0
    """The highest number of a question that the relay or the nodes have seen: lower ones count no more; 0: none."""
    ends_by: datetime | None = None
    """Why it answers none yet: pods are being deleted there, the last of which has until then to end."""


class Family(StrEnum):
    """What the relay sees and the functions have on record, and that is compared: by digests, and by lists of them."""

    WORKLOADS = "WORKLOADS"
    """The workloads that have not ended, by UID: `standings.standing`."""
    DEMAND = "DEMAND"
    """The workloads whose leaders wait, by UID: `workloads.demand_digest`."""
    HOSTS = "HOSTS"
    """The pools with hosts, by `hosts.key_of`: `hosts.digest_of`."""


class Pinning(StrEnum):
    """By what pods with chips are kept to the hosts that are meant for them, as a pod shows that is not stored."""

    POLICY = "policy"
    WEBHOOK = "webhook"
    NOTHING = "nothing"
    REFUSED = "refused"
    """The webhook does not answer: no pod with chips is created."""

    @property
    def pins(self) -> bool:
        """Whether each pod with chips that comes to be has the keys of its hosts."""
        return self is not Pinning.NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """The relay is running and sees `count` TPU JobSets that have not ended."""

    count: int
    digests: Mapping[Family, int] = field(default_factory=dict, hash=False)
    """Of each family the sum of the digests: of workloads as they are seen, of the others as they were last told. One
    that is not there confirms nothing: a relay that starts leaves all out until it has told what it found."""
    first: bool = False  # of a relay that started: what happened before may have gone unreported
    pinning: Pinning | None = None
    gating: Gating | None = None  # of these two None: it is not known
    hands_across: bool = False  # whether it can say on hosts for which namespace they are
    mirrored: int | None = None  # the sum of the digests of the mirror's objects; None: it keeps none, or not yet


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """All that the relay sees of a family within a range of keys; sent on request, in several parts.

    Each part is complete for its range, and says nothing beyond it.
    """

    family: Family
    asked_at: datetime
    """The `asked_at` of the question: the relay read this list later."""
    after: str | None
    """The range begins after this key; None: with the first one."""
    up_to: str | None
    """The last key of the range; None: the range has no end."""
    digests: Mapping[str, int]
    """By key; 0: it is there, and the relay cannot read it."""
    part: int
    """From 0 on."""
    parts: int
    """The number of parts of the whole list."""
    sequence: int
    """As in HostsChanged."""

    def within(self, key: str) -> bool:
        """Return whether a key is in the range of this part."""
        return (self.after is None or key > self.after) and (self.up_to is None or key <= self.up_to)

    def unlike(self, recorded: Mapping[K, int]) -> list[str]:
        """Return the keys of the range that are not on record as they are listed, in ascending order."""
        within = {key: digest for key, digest in dict[str, int](recorded.items()).items() if self.within(key)}
        return sorted(key for key in within.keys() | self.digests.keys() if within.get(key) != self.digests.get(key))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The state of one JobSet, read from the API server because the relay was asked for it."""

    workload: WorkloadRef
    state: WorkloadState


@dataclass(frozen=True, slots=True, kw_only=True)
class Echo:
    """The answer to an EchoQuestion, with its fields, by the relay's own clock. Nothing else follows from it."""

    asked_at: datetime
    at: datetime
    by_updates: bool = False


Fact = SlicesWanted | SliceDeclared | WorkloadChanged | HostsChanged | Heartbeat | Listed | Answer | Echo | JoinToken
