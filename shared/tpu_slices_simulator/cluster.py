"""A small Kubernetes cluster in memory: JobSets, their leader pods, and nodes, as relays see them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from relay import translate
from relay.objects import LEADERS_OF, WORKLOADS, Host, Kind, Known, Leader, Pool, PoolKey, Workload, WorkloadName
from tpu_slices.domain.model.facts import Fact, TemplateRequest, WorkloadRef, WorkloadState
from tpu_slices.domain.model.observations import LegacyPool
from tpu_slices.domain.model.slices import ClusterId, Owner, SliceId, WorkloadJob, WorkloadUid, slice_id
from tpu_slices.ports.backend import PoolOrder
from tpu_slices.ports.clock import Clock
from tpu_slices.wire.readers import READERS
from tpu_slices.wire.workloads import Json
from tpu_slices_simulator import objects
from tpu_slices_simulator.bootstrap import FakeBootstrap
from tpu_slices_simulator.relays import FakeRelay

CORDONED: Json = {"spec": {"unschedulable": True}}
UNCORDONED: Json = {"spec": {"unschedulable": False}}
NOT_READY: Json = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}


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
    requests: tuple[TemplateRequest, ...] = field(init=False)
    jobs: Sequence[tuple[str, int]] = field(init=False)
    """The Jobs that need a slice, by replicatedJob and index."""

    def __post_init__(self) -> None:
        self._read()

    def _read(self) -> None:
        reader = READERS[self.ref.owner.kind]
        self.requests = reader.requests(self.manifest)
        self.jobs = [(each.replicated_job, index) for each in self.requests for index in range(each.replicas)]
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
        return len(self.jobs)

    @property
    def served(self) -> bool:
        """Whether every Job has its slice."""
        return len(self.bound) == self.slices

    @property
    def raw(self) -> Json:
        return objects.workload(self.manifest, self.ref, self.state)

    @property
    def seen(self) -> Workload:
        seen = translate.workload(READERS[self.ref.owner.kind], self.raw)
        assert seen is not None, f"{self.ref.owner.full_name} requests no TPU"
        return seen


@dataclass(slots=True)
class Pod:
    """A leader pod; `index` is the place of its Job among the workload's."""

    uid: str
    jobset: LiveWorkload
    index: int
    node: str | None = None

    @property
    def kind(self) -> Kind:
        return LEADERS_OF[self.jobset.ref.owner.kind]

    @property
    def job(self) -> tuple[str, int]:
        return self.jobset.jobs[self.index]

    @property
    def raw(self) -> Json:
        template = objects.template_of(self.jobset.manifest, self.job[0])
        return objects.leader_pod(template, self.jobset.ref.owner, self.job, self.uid, self.node)

    @property
    def seen(self) -> Leader:
        return _leader(self.raw, self.kind)


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


class FakeCluster:
    """What happens in it is seen by the relays that run; `facts` are what they publish."""

    def __init__(self, clock: Clock, cluster: ClusterId) -> None:
        self.workloads: dict[WorkloadUid, LiveWorkload] = {}
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.strangers: dict[str, Json] = {}
        """Leader pods of no workload, by UID."""
        self.bootstrap = FakeBootstrap()
        self.other_pods: dict[str, Json] = {}
        """Pods that no relay watches, by `NAMESPACE/NAME`."""
        self.kept_by_budgets: set[str] = set()
        """Those that cannot be evicted, in the same form."""
        self.events: dict[str, Json] = {}
        """By their names."""
        self.relays: list[FakeRelay] = []
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
        self.runs_relays(1)

    # the relay

    def runs_relays(self, count: int) -> None:
        """Start or end relays until there are so many; one that starts lists everything first."""
        del self.relays[count:]
        while len(self.relays) < count:
            self.relays.append(FakeRelay(self._cluster, self, self._clock))

    def restart_relay(self) -> None:
        self.relays = self.relays[1:]
        self.runs_relays(len(self.relays) + 1)

    def facts(self) -> list[Fact]:
        """Return what relays publish now."""
        return [fact for relay in self.relays for fact in relay.facts()]

    def patches_nodes(self) -> None:
        """Apply the patches that relays ask for, as their node patchers would: what is based on an old state is not."""
        for relay in self.relays:
            for needed in relay.needed_patches():
                node = self.nodes.get(needed.node)
                if node is not None and needed.patch["metadata"]["resourceVersion"] == node.seen.version:
                    self.changes_node(node, needed.patch)

    def is_made_again(self) -> None:
        """Let another cluster be in its place, with nothing in it; the relays in it know nothing of this one."""
        self.workloads, self.pods, self.nodes, self.strangers = {}, {}, {}, {}
        self._version, count = 1, len(self.relays)
        self.relays = []
        self.runs_relays(count)

    # what the relay reads of it

    @property
    def version(self) -> str:
        return str(self._version)

    def listed(self, kind: Kind) -> Sequence[Known]:
        if kind is Kind.HOSTS:
            return [node.seen for node in self.nodes.values()]
        if kind in WORKLOADS:
            return [each.seen for each in self.workloads.values() if each.kind is kind and not _is_gone(each)]
        strangers = [_leader(each) for each in self.strangers.values() if kind is Kind.LEADERS]
        return [*(pod.seen for pod in self.pods.values() if pod.kind is kind), *strangers]

    def workload(self, owner: Owner) -> Json | None:
        found = self._named(WorkloadName(owner.namespace, owner.name, owner.kind))
        return found.raw if found else None

    def workload_named(self, name: WorkloadName) -> Workload | None:
        found = self._named(name)
        return found.seen if found else None

    def _named(self, name: WorkloadName) -> LiveWorkload | None:
        live = ((each, each.ref.owner) for each in self.workloads.values() if not _is_gone(each))
        return next((each for each, owner in live if (owner.namespace, owner.name, owner.kind) == name), None)

    def nodes_of(self, pool: Pool) -> Collection[str]:
        return [node.name for node in self.nodes.values() if node.pool == pool]

    def leaders_on(self, node: str) -> Mapping[str, str]:
        pods = {pod.uid: pod.jobset.ref.owner.full_name for pod in self.pods.values() if pod.node == node}
        return pods | {uid: uid for uid, each in self.strangers.items() if each["spec"]["nodeName"] == node}

    def saw(self, changed: LiveWorkload | Pod) -> None:
        """Show what has changed to the relays."""
        self._version += 1
        if isinstance(changed, LiveWorkload):
            changed.ref = replace(changed.ref, resource_version=self.version)
        if self.relays:
            seen = changed.seen
            for relay in self.relays:
                relay.saw(changed.kind, seen)

    def _lost(self, kind: Kind, identity: str, last: Workload | None = None) -> None:
        self._version += 1
        for relay in self.relays:
            relay.lost(kind, identity, last)

    # JobSets and their pods

    def puts(self, jobset: LiveWorkload) -> None:
        self.workloads[jobset.ref.owner.uid] = jobset
        self.saw(jobset)

    def changes(self, jobset: LiveWorkload) -> None:
        """Show a JobSet in its new state; one that is not active loses its pods."""
        if _is_gone(jobset):
            self._lost(jobset.kind, jobset.ref.owner.uid, jobset.seen)
        else:
            self.saw(jobset)
        if jobset.state is not WorkloadState.ACTIVE:
            for index in {pod.index for pod in self.pods.values() if pod.jobset is jobset}:
                self.removes_pod(jobset, index)

    def creates_pods(self) -> None:
        present = {(pod.jobset.ref.owner.uid, pod.index) for pod in self.pods.values()}
        for uid, jobset in self.workloads.items():
            if jobset.state is WorkloadState.ACTIVE and not jobset.absent:
                for index in range(jobset.slices):
                    if (uid, index) not in present:
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
            self._lost(pod.kind, pod.uid)

    def binds(self, jobset: LiveWorkload, pool: Pool, index: int) -> None:
        """Bind a leader to a host of a pool, which it shares with those who are there."""
        waiting = (pod for pod in self.pods.values() if (pod.jobset, pod.index) == (jobset, index))
        pod = next(waiting, None) or self.creates_pod(jobset, index)
        nodes = sorted(self.nodes_of(pool))
        taken = {each.node for each in self.pods.values()}
        pod.node = next((name for name in nodes if name not in taken), nodes[0])
        jobset.bound.add(index)
        self._last_pool[jobset.ref.owner.uid, index] = pool
        self.saw(pod)

    def schedules_pods(self) -> None:
        """Bind waiting leaders to free hosts: their own slice's, a sibling's, or those that they were on before."""
        waiting = [pod for pod in self.pods.values() if pod.node is None]
        free = self._free_pools() if waiting and self.schedules else {}
        for pod in sorted(waiting, key=lambda pod: pod.uid) if free else ():
            able = [pool for pool, owner in free.items() if self._may_use(pod, pool, owner)] if pod.node is None else ()
            if able:
                best = min(able, key=lambda pool: not self._own(pod, pool))
                self.binds(pod.jobset, best, pod.index)
                del free[best]

    def _own(self, pod: Pod, pool: Pool) -> bool:
        replicated_job, index = pod.job
        owner = pod.jobset.ref.owner
        job = WorkloadJob(cluster=self._cluster, owner=owner, replicated_job=replicated_job, job_index=index)
        return isinstance(pool, PoolKey) and pool.slice_id == slice_id(job)

    def _may_use(self, pod: Pod, pool: Pool, owner: str | None) -> bool:
        uid = pod.jobset.ref.owner.uid
        return self.crosses or owner == uid or self._last_pool.get((uid, pod.index)) == pool

    def _free_pools(self) -> dict[Pool, str | None]:
        """Return the pools whose hosts are all usable, open, and without a leader, with the UIDs of their workloads."""
        taken = {self.nodes[pod.node].pool for pod in self.pods.values() if pod.node in self.nodes}
        taken |= {node.pool for node in self.nodes.values() if not node.seen.usable}
        hosts = reversed(self.nodes.values())  # so that each pool's first host names its workload
        owners = {node.pool: node.seen.workload_uid for node in hosts if node.pool not in taken}
        pools = dict.fromkeys(node.pool for node in self.nodes.values())
        return {pool: owners[pool] for pool in pools if pool in owners}

    def binds_outside(self, pod: Pod, node: str) -> None:
        """Bind a leader to a host that is nobody's slice."""
        pod.node = node
        pod.jobset.bound.add(pod.index)
        self.saw(pod)

    def stranger_comes(self, raw: Json) -> None:
        self.strangers[raw["metadata"]["uid"]] = raw
        self._version += 1
        for relay in self.relays:
            relay.saw(Kind.LEADERS, _leader(raw))

    def stranger_goes(self, uid: str) -> None:
        del self.strangers[uid]
        self._lost(Kind.LEADERS, uid)

    # nodes

    def has_nodes(self, order: PoolOrder) -> None:
        """Let the nodes of a pool join, unless they are there."""
        assert order.spec is not None
        for number in range(order.spec.hosts):
            if f"{order.name}-{number}" not in self.nodes:
                node = objects.node_of(order, number)
                self.joins(node if number >= self.unusable_hosts else objects.patched(node, NOT_READY))

    def has_legacy_nodes(self, pool: LegacyPool, shape: Mapping[str, str], hosts: int) -> None:
        """Let the nodes of a pool of TPU Provisioner be there."""
        for number in range(hosts):
            self.joins(objects.legacy_node(pool, number, shape))

    def changes_node(self, node: Node, patch: Json) -> None:
        node.raw = objects.patched(node.raw, patch)
        self._shows_node(node)

    def joins(self, raw: dict[str, Any]) -> None:
        """Let a node join, as its kubelet registers it."""
        seen = translate.host(raw)
        assert seen is not None
        self.nodes[seen.node] = Node(raw, seen)
        self._shows_node(self.nodes[seen.node])

    def _shows_node(self, node: Node) -> None:
        self._version += 1
        node.raw = objects.patched(node.raw, {"metadata": {"resourceVersion": self.version}})
        seen = translate.host(node.raw)
        assert seen is not None
        node.seen = seen
        for relay in self.relays:
            relay.saw(Kind.HOSTS, seen)

    def loses_nodes(self, pool: Pool) -> None:
        """Remove the nodes of a pool, and the pods on them."""
        for name in self.nodes_of(pool):
            for pod in [pod for pod in self.pods.values() if pod.node == name]:
                self.removes_pod(pod.jobset, pod.index)
            for uid in [uid for uid, each in self.strangers.items() if each["spec"]["nodeName"] == name]:
                self.stranger_goes(uid)
            self.loses_node(name)

    def loses_node(self, name: str) -> None:
        """Remove a Node object."""
        del self.nodes[name]
        self._lost(Kind.HOSTS, name)

    def machines_go(self, pool: Pool) -> None:
        """Let the machines of a pool go, and the pods on them; their Node objects stay until somebody deletes them."""
        for name in self.nodes_of(pool):
            for pod in [pod for pod in self.pods.values() if pod.node == name]:
                self.removes_pod(pod.jobset, pod.index)
            self.other_pods = {key: each for key, each in self.other_pods.items() if each["spec"]["nodeName"] != name}
            self.changes_node(self.nodes[name], NOT_READY)

    def used_nodes(self) -> set[str]:
        """Return the nodes with a leader."""
        return {pod.node for pod in self.pods.values() if pod.node is not None and pod.node in self.nodes}

    def pods_on(self, slice_: SliceId, attempt: int) -> set[str]:
        pool = PoolKey(slice_, attempt)
        return {pod.uid for pod in self.pods.values() if pod.node in self.nodes and self.nodes[pod.node].pool == pool}


def _leader(raw: Json, kind: Kind = Kind.LEADERS) -> Leader:
    seen = translate.group_leader(raw) if kind is Kind.GROUP_LEADERS else translate.leader(raw)
    assert seen is not None
    return seen


def _is_gone(workload: LiveWorkload) -> bool:
    kept = (workload.manifest.get("metadata") or {}).get("finalizers")
    return workload.state in {WorkloadState.DELETED, WorkloadState.MISSING} and not kept
