"""What lives in the cluster in memory: workloads, and their pods, as relays see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from relay import translate
from relay.objects import WORKLOADS, Follower, Host, Kind, Leader, Pool, Workload
from relay.pods.reading import pod_of_a_group, pod_of_a_job
from tpu_slices.domain.model.facts import TemplateRequest, WorkloadRef, WorkloadState
from tpu_slices.domain.model.slices import ClusterId, OwnerKind, WorkloadJob
from tpu_slices.domain.planning.keys import key_of
from tpu_slices.domain.planning.sharing import share_slice, slices_of
from tpu_slices.wire.readers import READERS
from tpu_slices.wire.workloads import Json
from tpu_slices_simulator import objects


@dataclass(slots=True)
class LiveWorkload:
    """A JobSet in the cluster, or a workload of another kind: its state, and which of its Jobs have a bound leader."""

    ref: WorkloadRef
    manifest: Json
    """What its user wrote."""
    bound: set[int] = field(default_factory=set)
    """By their places among `jobs`."""
    state: WorkloadState = WorkloadState.ACTIVE
    absent: bool = False
    """Its pods are not created by themselves."""
    created: datetime | None = None
    key: str = ""
    """Of a pod by itself: the key that its hosts must carry; left out: that of a pod that nothing controls."""
    requests: tuple[TemplateRequest, ...] = field(init=False)
    jobs: Sequence[tuple[str, int]] = field(init=False)
    """The Jobs that need a slice, by replicatedJob and index."""
    asks: bool = field(init=False)
    """Whether its pods request TPU."""

    def __post_init__(self) -> None:
        if self.ref.owner.kind is OwnerKind.POD:
            self.key = self.key or f"{self.ref.owner.name}.pod"
        self._read()

    def _read(self) -> None:
        reader = READERS[self.ref.owner.kind]
        self.requests = reader.requests(self.raw)
        self.asks = reader.asks_for_tpu(self.manifest)
        self.jobs = [(each.replicated_job, index) for each in self.requests for index in range(slices_of(each))]
        self.ref = replace(self.ref, groups=reader.groups(self.manifest))

    def edit(self, manifest: Json) -> None:
        self.manifest = manifest
        self.ref = replace(self.ref, generation=self.ref.generation + 1)
        self._read()

    @property
    def kind(self) -> Kind:
        return next(kind for kind, owner in WORKLOADS.items() if owner is self.ref.owner.kind)

    @property
    def slices(self) -> int:
        """How many it needs: none once its pods request no TPU, which are no part of this world."""
        return len(self.jobs) if self.asks else 0

    def key_of(self, index: int, cluster: ClusterId) -> str:
        """Return the key of a Job, which its pods get where pods are pinned."""
        name, number = self.jobs[index]
        job = WorkloadJob(cluster=cluster, owner=self.ref.owner, replicated_job=name, job_index=number)
        request = self._request_of(index)
        return key_of(job, request.first_job, shared=share_slice(request), pod_key=request.pod_key)

    def shares_slice(self, index: int) -> bool:
        """Return whether the pods on the hosts of a Job's slice are of Jobs of their own."""
        return share_slice(self._request_of(index))

    def gang_of(self, index: int) -> str:
        """Return the gang that a Job is of; empty: of none."""
        return self._request_of(index).gang

    def _request_of(self, index: int) -> TemplateRequest:
        return next(each for each in self.requests if each.replicated_job == self.jobs[index][0])

    @property
    def served(self) -> bool:
        """Whether every Job has its slice."""
        return len(self.bound) >= self.slices

    @property
    def is_gone(self) -> bool:
        kept = (self.manifest.get("metadata") or {}).get("finalizers")
        return self.state in {WorkloadState.DELETED, WorkloadState.MISSING} and not kept

    @property
    def raw(self) -> Json:
        made = objects.aged(objects.workload(self.manifest, self.ref, self.state), self.created)
        return objects.pinned(made, self.key)

    @property
    def seen(self) -> Workload:
        seen = translate.workload(READERS[self.ref.owner.kind], self.raw)
        assert seen is not None, f"{self.ref.owner.full_name} requests no TPU"
        return seen


@dataclass(slots=True)
class Pod:
    """A pod on a slice; `index` is the place of its Job among the workload's, and `rank` its own on the slice."""

    uid: str
    jobset: LiveWorkload
    index: int
    node: str | None = None
    rank: int = 0
    """0: it is the leader."""
    ended: bool = False
    """With success."""
    ends_by: datetime | None = None
    """It is being deleted: when its grace is over."""
    created: datetime | None = None
    template: Json = field(default_factory=dict)
    """What it is made of; left out: that which its workload has now, which may be edited later."""
    key: str = ""
    """The key that its hosts must carry; empty: nothing pins it."""
    gated: bool = False
    """The scheduling gate of gangs holds it."""
    since: datetime | None = None
    """When its conditions changed last; None: nobody asks."""
    status: Json = field(default_factory=dict)
    """What its status has otherwise than that of a pod that runs, or waits."""

    def __post_init__(self) -> None:
        self.template = self.template or objects.template_of(self.jobset.manifest, self.job[0])

    @property
    def kind(self) -> Kind:
        of_kind = {OwnerKind.LEADER_WORKER_SET: Kind.GROUP_LEADERS, OwnerKind.POD: Kind.PODS}
        return of_kind.get(self.jobset.ref.owner.kind) or (Kind.LEADERS if self._indexed else Kind.UNINDEXED)

    @property
    def _indexed(self) -> bool:
        return objects.is_indexed(self.jobset.manifest, self.job[0])

    @property
    def job(self) -> tuple[str, int]:
        return self.jobset.jobs[self.index]

    @property
    def raw(self) -> Json:
        (name, index), rank = self.job, self.rank
        place = (name, rank, 0) if self.jobset.shares_slice(self.index) else (name, index, rank)
        made = objects.pod_of(self.template, self.jobset.ref.owner, place, self.uid, self.node)
        made = objects.pinned(objects.aged(made, self.created), self.key)
        if self.gated:
            made = objects.gated(made)
        if not self._indexed:
            made = objects.unindexed(made)
        if self.ended:
            made = objects.patched(made, {"status": {"phase": "Succeeded"}})
        if self.ends_by is not None:
            made = objects.patched(made, {"metadata": {"deletionTimestamp": self.ends_by.isoformat()}})
        return objects.patched(objects.changed(made, self.since), {"status": self.status})

    @property
    def seen(self) -> Leader | Follower | None:
        return pod_seen(self.raw)


@dataclass(slots=True)
class Node:
    raw: Json
    seen: Host

    @property
    def name(self) -> str:
        return self.seen.node

    @property
    def pool(self) -> Pool:
        return self.seen.pool


def pod_seen(raw: Json) -> Leader | Follower | None:
    """Return what a relay sees of a pod; None: nothing."""
    single = translate.pod_by_itself(raw)
    return single.leader if single is not None else pod_of_a_job(raw) or pod_of_a_group(raw)
