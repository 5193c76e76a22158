"""Slices: their specs, their owners, and the names of their node pools."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from functools import lru_cache
from typing import NewType, Self, TypeGuard

from tpu_slices.domain.catalogue.machines import Placement
from tpu_slices.domain.catalogue.topology import Topology
from tpu_slices.domain.model.texts import duration

ClusterId = NewType("ClusterId", str)  # the name of a cluster's settings document and of its topic
WorkloadUid = NewType("WorkloadUid", str)  # metadata.uid, as the relay read it from the API server
ClaimId = NewType("ClaimId", str)  # derived from the Job
SliceId = NewType("SliceId", str)  # of the claim that it was made for, and its number: never used again
PoolName = NewType("PoolName", str)  # ClaimId and attempt: the name of a node pool

LAST_ATTEMPT = 9999
"""The last attempt that fits into a pool name; beyond it an operator must act."""
SLICES_PER_WORKLOAD = 2_000
"""The most slices of one workload: its record lists them, and a report reads them all."""

Pairs = tuple[tuple[str, str], ...]
"""Keys and values sorted by key: an immutable, hashable mapping."""

_SLICE_ID = re.compile(r"tpu-[a-z0-9]([-a-z0-9]{0,15}[a-z0-9])?-[a-z2-7]{13}")
_NUMBERED = re.compile(rf"(?P<claim>{_SLICE_ID.pattern})-(?P<number>0|[1-9][0-9]{{0,4}})")
_CLUSTER_ID = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_PREFIX = "tpu"
_READABLE = 17  # tpu-<17>-<13>-<4>: 40 characters, GKE's limit for the name of a node pool
_DIGEST_BITS = 65
_FINGERPRINT_VERSION = "v1"


class CapacityKind(StrEnum):
    """How the hosts are provisioned and billed."""

    ON_DEMAND = "ON_DEMAND"
    SPOT = "SPOT"
    RESERVATION = "RESERVATION"
    FLEX_START = "FLEX_START"  # GKE adds the hosts when it has them, and takes them back after a while


@dataclass(frozen=True, slots=True)
class Capacity:
    kind: CapacityKind = CapacityKind.ON_DEMAND
    reservation: str | None = None
    """`R`, or `projects/P/reservations/R` where another project shares it; a part of one ends in
    `/reservationBlocks/B` or `/reservationBlocks/B/reservationSubBlocks/S`."""
    max_run_duration: timedelta | None = None
    """How long GKE leaves flex-start hosts to the slice, from their start on; None: it is not flex-start."""

    @property
    def reservation_itself(self) -> str | None:
        """The reservation without its block and sub-block."""
        return self.reservation.partition("/reservationBlocks/")[0] if self.reservation else None


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a slice's hosts with the effect NoSchedule."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class Network:
    """An additional node network and its subnetwork, by their names or full paths."""

    network: str
    subnetwork: str

    def __str__(self) -> str:
        return f"{self.network}:{self.subnetwork}"


class OwnerKind(StrEnum):
    """The kinds of Kubernetes objects that slices are made for, each with its API."""

    api_version: str

    def __new__(cls, kind: str, api_version: str) -> Self:
        member = str.__new__(cls, kind)
        member._value_ = kind
        member.api_version = api_version
        return member

    JOBSET = "JobSet", "jobset.x-k8s.io/v1alpha2"
    JOB = "Job", "batch/v1"
    LEADER_WORKER_SET = "LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1"
    POD = "Pod", "v1"  # by itself, where the setting `serve` says so
    TPU_NODE_GROUP = "TPUNodeGroup", "tpu.google.com/v1alpha1"
    SPARE = "Spare", ""  # no object: the settings ask for it, until a claim gets it

    @property
    def declares(self) -> bool:
        """Whether its object itself is the demand for a slice, until it is deleted: no pod waits for one."""
        return self is OwnerKind.TPU_NODE_GROUP

    @property
    def stays(self) -> bool:
        """Whether its slices stay in their namespace, and it gets none of another.

        A group's leader may be judged before it has a key: it requires hosts made for its LeaderWorkerSet, by name.
        """
        return self in {OwnerKind.LEADER_WORKER_SET, OwnerKind.TPU_NODE_GROUP, OwnerKind.SPARE}

    @property
    def is_spare(self) -> bool:
        """Whether its slice is made beside demand: for whoever needs such next."""
        return self is OwnerKind.SPARE


OF_OTHERS = "a workload of another namespace"
"""What people of a namespace are told in place of the name of a workload of another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The Kubernetes object that slices are made for, as the relay read it from the API server."""

    kind: OwnerKind
    namespace: str
    name: str
    uid: WorkloadUid

    @property
    def full_name(self) -> str:
        """`NAMESPACE/NAME`."""
        return f"{self.namespace}/{self.name}"

    def told_in(self, namespace: str) -> str:
        """Return how people of a namespace are told of it: those of another one learn nobody's name."""
        return self.full_name if namespace == self.namespace else OF_OTHERS

    def job_name(self, replicated_job: str, job_index: int) -> str:
        """Return the name of one of its Jobs, or of a group's leader pod, as its controller builds it."""
        match self.kind:
            case OwnerKind.JOBSET:
                return f"{self.name}-{replicated_job}-{job_index}"
            case OwnerKind.JOB | OwnerKind.TPU_NODE_GROUP | OwnerKind.POD:
                return self.name
            case OwnerKind.LEADER_WORKER_SET | OwnerKind.SPARE:
                return f"{self.name}-{job_index}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadJob:
    """What a slice is made for: a JobSet's Job, a Job or pod by itself, a LeaderWorkerSet's group, a TPUNodeGroup."""

    cluster: ClusterId
    owner: Owner
    replicated_job: str
    """Empty unless the owner is a JobSet."""
    job_index: int
    """The index of the Job in its replicatedJob, or of the group in its LeaderWorkerSet; else 0."""

    @property
    def job_name(self) -> str:
        return self.owner.job_name(self.replicated_job, self.job_index)

    @classmethod
    def declared(cls, cluster: ClusterId, owner: Owner) -> Self:
        """Return what the slice of a TPUNodeGroup is made for: the group itself."""
        return cls(cluster=cluster, owner=owner, replicated_job="", job_index=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceRequest:
    """What a TPUNodeGroup requests of its instances on Compute Engine; None or empty: as the cluster's settings say."""

    template: str | None = None
    """Its own, `projects/P/{global,regions/R}/instanceTemplates/T`: nothing else is requested then."""
    image: str | None = None
    boot_disk_gb: int | None = None
    boot_disk_type: str | None = None
    subnetwork: str | None = None
    scopes: tuple[str, ...] = ()
    """OAuth scopes of the service account."""
    network_tags: tuple[str, ...] = ()
    metadata: Pairs = ()
    kubernetes: str | None = None
    """The minor version of Kubernetes to join with, such as 1.36."""
    control_plane: str | None = None
    """HOST:PORT of the API server to join; None: no host joins by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RungSpec:
    """A rung of a ladder as it is for the pods of a slice."""

    place: str
    """Its name in the settings."""
    zone: str
    capacity: Capacity
    taints: tuple[Taint, ...] = ()
    lasts: timedelta | None = None
    """How long a workload asks there before it steps on; None: until it is refused first."""
    against: str = ""
    """Why no slice is made there for these pods; empty: it may be."""

    @property
    def how(self) -> str:
        """What it is, as in `spot in us-east5-b`."""
        how = self.capacity.kind.lower().replace("_", "-")
        return f"{how} {self.capacity.reservation or ''}".rstrip() + f" in {self.zone}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceSpec:
    """What to create for a slice: the tenant's request and the hosts that follow from it."""

    accelerator: str
    topology: Topology
    machine_type: str
    hosts: int
    chips_per_host: int
    placement: Placement | None
    boot_disk: str
    zone: str
    capacity: Capacity = Capacity()
    node_labels: Pairs = ()
    """Labels that the hosts get in addition to ours: for the tenant's selectors, or copied from the pod."""
    copied_labels: tuple[str, ...] = ()
    """The keys among them that the tenant requested to be copied."""
    taints: tuple[Taint, ...] = ()
    service_account: str | None = None
    """The node service account that the tenant requested; None: the one in the settings."""
    networks: tuple[Network, ...] | None = None
    """The additional networks that the tenant requested; None: those in the settings."""
    exclusive_nodes: bool = False
    """The relay labels the hosts for JobSet's placement by node selector: GKE rejects its label on a pool."""
    workload_policy: str | None = None
    """The workload policy that the tenant requested; None: the one in the settings, if the placement is by one."""
    instance: InstanceRequest | None = None
    """Of a TPUNodeGroup only."""
    scatters: bool = False
    """Whether its pods could come to several slices: nothing pins them, and nothing else keeps them together."""
    key: str = ""
    """That of the hosts (`planning.keys`): the pods that they are for have it; empty: they have none."""
    jobs: int = 1
    """How many Jobs have the slice: several, of one pod each, share it."""
    jobset_chips: int = 0
    """The chips of all slices that its JobSet requests."""
    caveat: str = ""
    """What may go wrong although the slice is made, with the remedy; empty: nothing is known."""
    fingerprint: str = ""
    """Of the tenant's request only, so that a change of settings never rebuilds a slice."""
    ladder: str = ""
    """The name of its ladder, and a digest of that; empty: it has one place, as its request and the settings say."""
    rungs: tuple[RungSpec, ...] = ()
    rung: int = 0
    """The index of the rung that its place is."""
    expected: timedelta | None = None
    """How long its Job runs, as the workload says; None: it does not say."""
    crosses: bool = False
    """Whether its hosts may come to claims of other namespaces (`capacity.crossing`), as it was decided when made."""
    takes: bool = False
    """Whether its claim may get hosts that another namespace had."""

    @property
    def chips(self) -> int:
        return self.hosts * self.chips_per_host

    @property
    def is_flex_start(self) -> bool:
        return self.capacity.kind is CapacityKind.FLEX_START

    @property
    def place(self) -> str:
        """The name of its place in the settings; empty: it has none."""
        return self.rungs[self.rung].place if self.rung < len(self.rungs) else ""

    @property
    def standing(self) -> str:
        """Its place and rung, as in `spot-east (rung 2 of 4)`; empty: it has no ladder."""
        return f"{self.place} (rung {self.rung + 1} of {len(self.rungs)})" if self.place else ""

    @property
    def how(self) -> str:
        """How and where it is made, as in `spot in us-east5-b`."""
        return RungSpec(place="", zone=self.zone, capacity=self.capacity).how

    @property
    def run_duration(self) -> str | None:
        """How long GKE leaves the hosts to the slice, as text; None: for good."""
        longest = self.capacity.max_run_duration
        return None if longest is None else duration(longest)


def at_rung(spec: SliceSpec, index: int) -> SliceSpec:
    """Return the spec at a rung of its ladder: the first from there on that its pods can use, else the last before."""
    open_ = [number for number, each in enumerate(spec.rungs) if not each.against]
    if not open_:
        return spec
    number = next((each for each in open_ if each >= index), open_[-1])
    rung = spec.rungs[number]
    return replace(spec, zone=rung.zone, capacity=rung.capacity, taints=rung.taints, rung=number)


def is_at(made_as: SliceSpec, place: SliceSpec | RungSpec) -> bool:
    """Return whether a slice is where another one is asked for, whatever rung of which ladder it was made at."""
    return (made_as.zone, made_as.capacity) == (place.zone, place.capacity)


def is_earlier_form(made_as: SliceSpec, ladder: str) -> bool:
    """Return whether a slice was made by a ladder of the same name with other rungs."""
    return made_as.ladder != ladder and made_as.ladder.partition("@")[0] == ladder.partition("@")[0]


def cluster_id(text: str) -> ClusterId:
    """Return the ID of a cluster. ValueError: with a dot or a slash, its documents could be another cluster's."""
    if not _CLUSTER_ID.fullmatch(text):
        raise ValueError(
            f'"{text}" is not the ID of a cluster: up to 63 of a-z, 0-9 and -, beginning with a letter and not '
            "ending with -"
        )
    return ClusterId(text)


@lru_cache(maxsize=1_000)
def claim_id(job: WorkloadJob) -> ClaimId:
    """Return the id of a Job's claim: readable, and unique by 65 bits over cluster, UID, replicated job and index."""
    identity = chr(0).join((job.cluster, job.owner.uid, job.replicated_job, str(job.job_index)))
    return ClaimId(f"{_PREFIX}-{_readable(job)}-{_digest(identity)}")


def is_claim_id(text: str) -> TypeGuard[ClaimId]:
    """Return whether a text could have come from `claim_id`."""
    return _SLICE_ID.fullmatch(text) is not None


def slice_id(claim: ClaimId, attempt: int) -> SliceId:
    """Return the id of a slice: that of the claim that it was made for, and its number."""
    return SliceId(f"{claim}-{attempt}")


def is_slice_id(text: str) -> TypeGuard[SliceId]:
    """Return whether a text could have come from `slice_id`."""
    return _NUMBERED.fullmatch(text) is not None


def pool_name(slice_: ClaimId, attempt: int) -> PoolName:
    """Return the pool name of an attempt, 1 to LAST_ATTEMPT: up to 40 characters of `[a-z]([-a-z0-9]*[a-z0-9])?`."""
    if not 1 <= attempt <= LAST_ATTEMPT:
        raise ValueError(f"attempt {attempt} of {slice_} is not within 1 to {LAST_ATTEMPT}")
    return PoolName(f"{slice_}-{attempt}")


def attempt_named(pool: str) -> tuple[ClaimId, int] | None:
    """Return the slice and the attempt that a pool's name is of; None if it is not a name of ours."""
    named = _NUMBERED.fullmatch(pool)
    number = int(named["number"]) if named is not None else 0
    return (ClaimId(named["claim"]), number) if named is not None and 1 <= number <= LAST_ATTEMPT else None


def fingerprint(*asked: str) -> str:
    """Return a digest of a tenant's request; set as a label of the pool at its creation and only ever compared."""
    return f"{_FINGERPRINT_VERSION}-{_digest(chr(0).join(asked))}"


def same_request(label: str | None, spec: SliceSpec) -> bool:
    """Return whether a pool's fingerprint label matches; one that is missing or of another version does."""
    if label is None or label.partition("-")[0] != _FINGERPRINT_VERSION:
        return True
    return label == spec.fingerprint


def _readable(job: WorkloadJob) -> str:
    tail = f"-{job.replicated_job}-{job.job_index}" if job.replicated_job else f"-{job.job_index}"
    if len(tail) > _READABLE // 2:
        tail = f"-{job.job_index}"
    head = re.sub(r"[^a-z0-9]+", "-", job.owner.name.lower())[: _READABLE - len(tail)].strip("-")
    return f"{head}{re.sub(r'[^a-z0-9]+', '-', tail.lower())}".strip("-")


def _digest(text: str) -> str:
    """Return 65 bits of SHA-256 as 13 characters of a to z and 2 to 7."""
    raw = base64.b32encode(hashlib.sha256(text.encode()).digest()).decode().lower()
    return raw[: _DIGEST_BITS // 5]
