"""A small Kubernetes cluster in memory, under the relay's own fact queue: JobSets, their leader pods, and nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from relay.closing import CLOSED
from relay.fact_queue import FactQueue
from relay.lookups import Due
from relay.node_patches import needed_patches
from relay.objects import LEADERS_OF, WORKLOADS, Hardware, Host, Kind, Leader, Pool, PoolKey, Workload, WorkloadName
from tpu_slices.domain.model.facts import (
    Fact,
    FactQuestion,
    TemplateRequest,
    WaitingLeader,
    WorkloadRef,
    WorkloadState,
)
from tpu_slices.domain.model.observations import LegacyPool
from tpu_slices.domain.model.slices import ClusterId, SliceId, WorkloadJob, WorkloadUid, slice_id
from tpu_slices.ports.backend import PoolOrder
from tpu_slices.ports.clock import Clock


@dataclass(slots=True)
class LiveWorkload:
    """A JobSet in the cluster, or a workload of another kind: its state, and which of its Jobs have a bound leader."""

    ref: WorkloadRef
    requests: tuple[TemplateRequest, ...]
    bound: set[int] = field(default_factory=set)
    """By their places among `jobs`."""
    state: WorkloadState = WorkloadState.ACTIVE
    absent: bool = False
    """Its pods are not created by themselves."""

    @property
    def kind(self) -> Kind:
        return next(kind for kind, owner in WORKLOADS.items() if owner is self.ref.owner.kind)

    @property
    def jobs(self) -> Sequence[tuple[TemplateRequest, int]]:
        """The Jobs that need a slice, each with its template and its index among those of the template."""
        return [(each, index) for each in self.requests for index in range(each.replicas)][: self.ref.groups]

    @property
    def slices(self) -> int:
        return len(self.jobs)

    @property
    def served(self) -> bool:
        """Whether every Job has its slice."""
        return len(self.bound) == self.slices

    @property
    def seen(self) -> Workload:
        return Workload(ref=self.ref, state=self.state, requests=self.requests, served=True)


@dataclass(slots=True)
class Pod:
    """A leader pod; `index` is the place of its Job among the workload's."""

    uid: str
    jobset: LiveWorkload
    index: int
    node: str | None = None

    @property
    def job(self) -> tuple[TemplateRequest, int]:
        return self.jobset.jobs[self.index]

    @property
    def seen(self) -> Leader:
        owner, (request, index) = self.jobset.ref.owner, self.job
        job = owner.job_name(request.replicated_job, index)
        return Leader(
            pod=f"{job}-0-{self.uid[-5:]}",
            pod_uid=self.uid,
            workload=WorkloadName(owner.namespace, owner.name, owner.kind),
            workload_uid=owner.uid,
            job=job,
            asks=WaitingLeader(replicated_job=request.replicated_job, job_index=index),
            hardware=Hardware(request.chips_per_pod, request.accelerator, request.topology),
            claims=(),
            waiting=self.node is None,
            node=self.node,
        )


@dataclass(slots=True)
class Node:
    name: str
    pool: Pool
    made_for: WorkloadUid | None
    hosts: int
    usable: bool = True
    cordoned: bool = False
    closed_at: datetime | None = None
    """When the question was asked for which the relay cordoned it."""
    version: str = "1"

    @property
    def seen(self) -> Host:
        return Host(
            node=self.name,
            uid=f"uid-{self.name}",
            pool=self.pool,
            workload_uid=self.made_for,
            expected=self.hosts,
            usable=self.usable and not self.cordoned,
            cordoned=self.cordoned,
            closed_at=self.closed_at,
            version=self.version,
            unlabeled=None,
        )


class FakeCluster:
    """What happens in it is seen by the relay's fact queue, unless nobody watches; `facts` are what it publishes."""

    def __init__(self, clock: Clock, cluster: ClusterId) -> None:
        self.workloads: dict[WorkloadUid, LiveWorkload] = {}
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.watched = True
        """Whether the relay runs."""
        self.schedules = True
        """Whether waiting leaders are bound to free hosts."""
        self.crosses = False
        """Whether leaders are bound to hosts of other JobSets' slices, too."""
        self.unusable_hosts = 0
        """How many hosts of each pool never become usable."""
        self._clock, self._cluster = clock, cluster
        self._version = 100
        self._pod_numbers = 0
        self._last_pool: dict[tuple[WorkloadUid, int], Pool] = {}
        self.queue = FactQueue(cluster)
        self.restart_relay()

    # the relay

    def restart_relay(self) -> None:
        """Start a relay that knows nothing: it lists everything first."""
        self.queue = FactQueue(self._cluster)
        now = self._clock.now()
        for kind, objects in self._objects().items():
            self.queue.listed(kind, [each.seen for each in objects], str(self._version), now)

    def facts(self) -> list[Fact]:
        """Return what the relay publishes now."""
        if not self.watched:
            return []
        for kind in Kind:
            self.queue.bookmarked(kind, str(self._version), self._clock.now())
        return due_facts(self.queue, self._clock.now())

    def asked(self, question: FactQuestion) -> None:
        """Let the relay serve a question that facts answer, and patch what it asks of nodes."""
        if self.watched:
            self.queue.ask(question, self._clock.now())
            self.patches_nodes()

    def patches_nodes(self) -> None:
        """Apply the patches that the relay's fact queue asks for, as its node patcher would."""
        for needed in needed_patches(self.queue.cache, self.queue.closing):
            node, patch = self.nodes[needed.node], needed.patch
            marked = patch["metadata"].get("annotations", {}).get(CLOSED)
            node.cordoned = patch["spec"]["unschedulable"]
            node.closed_at = datetime.fromisoformat(marked) if marked else None
            self.saw(node)

    def _objects(self) -> dict[Kind, list[LiveWorkload] | list[Pod] | list[Node]]:
        live = [each for each in self.workloads.values() if not each.state.ended]
        pods = [(LEADERS_OF[pod.jobset.ref.owner.kind], pod) for pod in self.pods.values()]
        return {
            **{kind: [each for each in live if each.kind is kind] for kind in WORKLOADS},
            **{kind: [pod for of, pod in pods if of is kind] for kind in (Kind.LEADERS, Kind.GROUP_LEADERS)},
            Kind.HOSTS: list(self.nodes.values()),
        }

    def saw(self, changed: LiveWorkload | Pod | Node) -> None:
        self._version += 1
        if isinstance(changed, Node):
            changed.version = str(self._version)
        if self.watched:
            self.queue.saw(changed.seen, self._clock.now())

    def _lost(self, kind: Kind, identity: str, last: Workload | None = None) -> None:
        self._version += 1
        if self.watched:
            self.queue.lost(kind, identity, self._clock.now(), last)

    # JobSets and their pods

    def puts(self, jobset: LiveWorkload) -> None:
        self.workloads[jobset.ref.owner.uid] = jobset
        self.saw(jobset)

    def changes(self, jobset: LiveWorkload) -> None:
        """Show a JobSet in its new state; one that is not active loses its pods."""
        if jobset.state in {WorkloadState.DELETED, WorkloadState.MISSING}:
            self._lost(jobset.kind, jobset.ref.owner.uid, replace(jobset.seen, state=WorkloadState.DELETED))
        else:
            self.saw(jobset)
        if jobset.state is not WorkloadState.ACTIVE:
            for index in {pod.index for pod in self.pods.values() if pod.jobset is jobset}:
                self.removes_pod(jobset, index)

    def creates_pods(self) -> None:
        for jobset in self.workloads.values():
            if jobset.state is WorkloadState.ACTIVE and not jobset.absent:
                present = {pod.index for pod in self.pods.values() if pod.jobset is jobset}
                for index in sorted(set(range(jobset.slices)) - present):
                    self.creates_pod(jobset, index)

    def creates_pod(self, jobset: LiveWorkload, index: int) -> Pod:
        self._pod_numbers += 1
        pod = Pod(f"pod-{self._pod_numbers:05}", jobset, index)
        self.pods[pod.uid] = pod
        self.saw(pod)
        return pod

    def removes_pod(self, jobset: LiveWorkload, index: int) -> None:
        jobset.bound.discard(index)
        for pod in [pod for pod in self.pods.values() if pod.jobset is jobset and pod.index == index]:
            del self.pods[pod.uid]
            self._lost(LEADERS_OF[jobset.ref.owner.kind], pod.uid)

    def binds(self, jobset: LiveWorkload, pool: Pool, index: int) -> None:
        """Bind a leader to a host of a pool, which it shares with those who are there."""
        waiting = (pod for pod in self.pods.values() if (pod.jobset, pod.index) == (jobset, index))
        pod = next(waiting, None) or self.creates_pod(jobset, index)
        nodes = sorted(node.name for node in self.nodes.values() if node.pool == pool)
        taken = {each.node for each in self.pods.values()}
        pod.node = next((name for name in nodes if name not in taken), nodes[0])
        jobset.bound.add(index)
        self._last_pool[jobset.ref.owner.uid, index] = pool
        self.saw(pod)

    def schedules_pods(self) -> None:
        """Bind waiting leaders to free hosts: their own slice's, a sibling's, or those that they were on before."""
        waiting = [pod for pod in self.pods.values() if pod.node is None and self.schedules]
        for pod in sorted(waiting, key=lambda pod: pod.uid):
            free = [pool for pool in self._free_pools() if self._may_use(pod, pool)]
            if free:
                self.binds(pod.jobset, min(free, key=lambda pool: not self._own(pod, pool)), pod.index)

    def _own(self, pod: Pod, pool: Pool) -> bool:
        request, index = pod.job
        job = WorkloadJob(
            cluster=self._cluster,
            owner=pod.jobset.ref.owner,
            replicated_job=request.replicated_job,
            job_index=index,
        )
        return isinstance(pool, PoolKey) and pool.slice_id == slice_id(job)

    def _may_use(self, pod: Pod, pool: Pool) -> bool:
        uid = pod.jobset.ref.owner.uid
        owner = next(node.made_for for node in self.nodes.values() if node.pool == pool)
        return self.crosses or owner == uid or self._last_pool.get((uid, pod.index)) == pool

    def _free_pools(self) -> Iterator[Pool]:
        """Yield the pools whose hosts are all usable, open, and without a leader."""
        taken = {self.nodes[pod.node].pool for pod in self.pods.values() if pod.node in self.nodes}
        for pool in dict.fromkeys(node.pool for node in self.nodes.values()):
            nodes = [node for node in self.nodes.values() if node.pool == pool]
            if pool not in taken and all(node.seen.usable for node in nodes):
                yield pool

    # nodes

    def has_nodes(self, order: PoolOrder) -> None:
        """Let the nodes of a pool join, unless they are there."""
        assert order.spec is not None
        pool = PoolKey(order.slice_id, order.attempt)
        for number in range(order.spec.hosts):
            name = f"{order.name}-{number}"
            if name not in self.nodes:
                usable = number >= self.unusable_hosts
                self.nodes[name] = Node(name, pool, order.job.owner.uid, order.spec.hosts, usable=usable)
                self.saw(self.nodes[name])

    def has_legacy_nodes(self, pool: LegacyPool, hosts: int = 4) -> None:
        """Let the nodes of a pool of TPU Provisioner be there."""
        for number in range(hosts):
            node = Node(f"{pool.name}-{number}", pool, None, hosts)
            self.nodes[node.name] = node
            self.saw(node)

    def loses_nodes(self, pool: Pool) -> None:
        """Remove the nodes of a pool, and the pods on them."""
        for node in [node for node in self.nodes.values() if node.pool == pool]:
            for pod in [pod for pod in self.pods.values() if pod.node == node.name]:
                self.removes_pod(pod.jobset, pod.index)
            del self.nodes[node.name]
            self._lost(Kind.HOSTS, node.name)

    def used_nodes(self) -> set[str]:
        """Return the nodes with a leader."""
        return {pod.node for pod in self.pods.values() if pod.node is not None and pod.node in self.nodes}

    def pods_on(self, slice_: SliceId, attempt: int) -> set[str]:
        pool = PoolKey(slice_, attempt)
        return {pod.uid for pod in self.pods.values() if pod.node in self.nodes and self.nodes[pod.node].pool == pool}


def due_facts(queue: FactQueue, now: datetime) -> list[Fact]:
    """Return the facts that are due; nothing is looked up for them."""
    facts: list[Fact] = []
    while dues := queue.due(now):
        facts += facts_of(queue, dues)
    return facts


def facts_of(queue: FactQueue, dues: Sequence[Due]) -> list[Fact]:
    for due in dues:
        queue.resume(due.subject)
    return [fact for due in dues for fact in due.facts]
