"""A small Kubernetes cluster in memory: JobSets, their pods, and nodes, as relays see them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from relay import translate
from relay.hosts.occupants import HostPod
from relay.objects import WORKLOADS, Kind, Known, Pool, PoolKey, Workload, WorkloadName
from tpu_slices.domain.model.facts import Fact, Pinning, WorkloadState
from tpu_slices.domain.model.gangs import Gating
from tpu_slices.domain.model.observations import LegacyPool
from tpu_slices.domain.model.slices import ClaimId, ClusterId, Owner, OwnerKind, WorkloadUid
from tpu_slices.ports.backend import PoolOrder
from tpu_slices.ports.clock import Clock
from tpu_slices.wire.workloads import Json
from tpu_slices_simulator import objects
from tpu_slices_simulator.bootstrap import FakeBootstrap
from tpu_slices_simulator.live import LiveWorkload, Node, Pod, pod_seen
from tpu_slices_simulator.relays import FakeRelay
from tpu_slices_simulator.scheduler import Scheduler, beside

CORDONED: Json = {"spec": {"unschedulable": True}}
UNCORDONED: Json = {"spec": {"unschedulable": False}}
NOT_READY: Json = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}


class FakeCluster:
    """What happens in it is seen by the relays that run; `facts` are what they publish."""

    def __init__(self, clock: Clock, cluster: ClusterId) -> None:
        self.workloads: dict[WorkloadUid, LiveWorkload] = {}
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.followers: dict[str, Pod] = {}
        """The pods of Jobs beside their leaders, by UID: on all hosts but the leader's."""
        self.grace = timedelta(0)
        """How long pods that are deleted take to end, but for leaders, which end at once."""
        self.strangers: dict[str, Json] = {}
        """Pods of no workload, by UID."""
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
        self.scheduler = Scheduler(cluster)
        self.unusable_hosts = 0
        """How many hosts of each pool never become usable."""
        self._clock, self._cluster = clock, cluster
        self._version = 100
        self._pod_numbers = 0
        self.ends_pods = True
        """Whether kubelets end pods that are being deleted."""
        self.opens: Callable[[Pod], None] = lambda _: None
        """Called before the gate of a pod is removed."""
        self.pinning: Pinning | None = Pinning.POLICY
        self.gating: Gating | None = Gating.ANNOTATED
        """By what pods with chips are kept to their hosts, as far as the relay can tell."""
        self.mirrored: int | None = None
        """The digest of the mirror that its relay keeps; None: it keeps none."""
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

    def opens_pods(self) -> None:
        """Remove the gate of the pods that relays let go."""
        for relay in self.relays:
            for uid in relay.opens():
                if (pod := self.pods.get(uid)) is not None and pod.gated:
                    self.opens(pod)
                    pod.gated, pod.since = False, self._clock.now()
                    self.saw(pod)

    def is_made_again(self) -> None:
        """Let another cluster be in its place, with nothing in it; the relays in it know nothing of this one."""
        self.workloads, self.pods, self.followers, self.nodes, self.strangers = {}, {}, {}, {}, {}
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
            workloads = [each.seen for each in self.workloads.values() if each.kind is kind and not each.is_gone]
            leaders = (pod.seen for pod in self.pods.values() if pod.kind is kind)
            return [*workloads, *(each for each in leaders if each is not None)]
        pods = (pod.raw for pod in (*self.pods.values(), *self.followers.values()) if pod.kind is kind)
        seen = map(pod_seen, (*pods, *self.strangers.values()))
        return [each for each in seen if each is not None and each.kind is kind]

    def workload(self, owner: Owner) -> Json | None:
        found = self._named(WorkloadName(owner.namespace, owner.name, owner.kind))
        return found.raw if found else None

    def workload_named(self, name: WorkloadName) -> Workload | None:
        found = self._named(name)
        return found.seen if found else None

    def _named(self, name: WorkloadName) -> LiveWorkload | None:
        live = ((each, each.ref.owner) for each in self.workloads.values() if not each.is_gone)
        return next((each for each, owner in live if (owner.namespace, owner.name, owner.kind) == name), None)

    def nodes_of(self, pool: Pool) -> Collection[str]:
        return [node.name for node in self.nodes.values() if node.pool == pool]

    def chip_pods_on(self, node: str, *, exactly: bool) -> Sequence[HostPod]:  # noqa: ARG002 - nothing is late here
        pods = (pod.raw for pod in (*self.pods.values(), *self.followers.values()) if pod.node == node)
        strangers = (each for each in self.strangers.values() if each["spec"]["nodeName"] == node)
        return tuple(filter(None, map(translate.pod_on_a_host, (*pods, *strangers))))

    def saw(self, changed: LiveWorkload | Pod) -> None:
        """Show what has changed to the relays."""
        self._version += 1
        if isinstance(changed, LiveWorkload):
            changed.ref = replace(changed.ref, resource_version=self.version)
        if self.relays and (seen := changed.seen) is not None:
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
        if jobset.is_gone:
            self._lost(jobset.kind, jobset.ref.owner.uid, jobset.seen)
        else:
            self.saw(jobset)
        if jobset.state is not WorkloadState.ACTIVE:
            pods = (*self.pods.values(), *self.followers.values())
            for index in {pod.index for pod in pods if pod.jobset is jobset}:
                self.removes_pod(jobset, index)

    def is_pinned_by(self, pinning: Pinning) -> None:
        """Pin new pods by something, or by nothing; if by something, users make their waiting unpinned pods anew."""
        self.pinning = pinning
        unpinned = [pod for pod in self.pods.values() if pod.node is None and not pod.key and not pod.ended]
        for pod in unpinned if pinning.pins else ():
            self.removes_leader(pod)

    def creates_pods(self) -> None:
        present = {(pod.jobset.ref.owner.uid, pod.index) for pod in self.pods.values()}
        for uid, jobset in self.workloads.items():
            if jobset.state is WorkloadState.ACTIVE and not jobset.absent:
                for index in range(jobset.slices):
                    if (uid, index) not in present:
                        self.creates_pod(jobset, index)

    def creates_pod(self, jobset: LiveWorkload, index: int) -> Pod:
        """Let a leader wait, of the revision that its group's other pods are of, if there are any."""
        self._pod_numbers += 1
        owner, now = jobset.ref.owner, self._clock.now()
        uid = str(owner.uid) if owner.kind is OwnerKind.POD else f"pod-{self._pod_numbers:05}"
        pod = Pod(uid, jobset, index, created=now, since=now)
        pod.key = jobset.key_of(index, self._cluster) if self.pinning and self.pinning.pins else ""
        pod.gated = bool(pod.key) and bool(jobset.gang_of(index))
        pod.template = next(
            (each.template for each in beside(pod, self.followers) if each.ends_by is None), pod.template
        )
        self.pods[pod.uid] = pod
        self.saw(pod)
        return pod

    def removes_pod(self, jobset: LiveWorkload, index: int) -> None:
        """Delete the pods of a Job."""
        self.evicts_leader(jobset, index)
        for pod in self.followers.values():
            if pod.jobset is jobset and pod.index == index and pod.ends_by is None:
                pod.ends_by = self._clock.now() + self.grace
        self.pods_end()

    def removes_leader(self, pod: Pod) -> None:
        """Delete the leader of a Job, and none of its other pods; one by itself is its workload."""
        del self.pods[pod.uid]
        if pod.kind is Kind.PODS and not pod.jobset.state.ended:
            pod.jobset.state = WorkloadState.DELETED
        self._lost(pod.kind, pod.uid)

    def rolls_out(self, jobset: LiveWorkload) -> None:
        """Let pods that wait go, in whose place others are made of the template that there is now."""
        for pod in [pod for pod in self.pods.values() if pod.jobset is jobset and pod.node is None]:
            self.removes_leader(pod)

    def evicts_leader(self, jobset: LiveWorkload, index: int) -> None:
        """Let the leader of a Job be gone, and another wait in its place, while its other pods run on."""
        jobset.bound.discard(index)
        for pod in [pod for pod in self.pods.values() if pod.jobset is jobset and pod.index == index]:
            self.removes_leader(pod)

    def leader_succeeds(self, jobset: LiveWorkload, index: int) -> None:
        """Let the leader of a Job end with success; its other pods go on."""
        for pod in [pod for pod in self.pods.values() if pod.jobset is jobset and pod.index == index]:
            pod.ended = True
            self.saw(pod)

    def followers_succeed(self, jobset: LiveWorkload, index: int) -> None:
        """Let the other pods of a Job end with success."""
        for pod in [pod for pod in self.followers.values() if pod.jobset is jobset and pod.index == index]:
            self.removes_follower(pod)

    def removes_follower(self, pod: Pod) -> None:
        del self.followers[pod.uid]
        self._lost(pod.kind, pod.uid)

    def pods_end(self) -> None:
        """Let pods end whose grace is over, on hosts with a kubelet that ends them."""
        if not self.ends_pods:
            return
        now = self._clock.now()
        ended = [pod for pod in self.followers.values() if pod.ends_by is not None and now >= pod.ends_by]
        for pod in ended:
            if self._is_ready(pod.node):
                self.removes_follower(pod)

    def never_ends(self, pod: Pod) -> bool:
        """Return whether nothing ends a pod any more that is being deleted: its grace is over, and its host is away."""
        return pod.ends_by is not None and self._clock.now() >= pod.ends_by and not self._is_ready(pod.node)

    def _is_ready(self, node: str | None) -> bool:
        return node not in self.nodes or self.nodes[node].seen.ready

    def binds(self, jobset: LiveWorkload, pool: Pool, index: int) -> None:
        """Bind a leader to a host of a pool, which it shares with those who are there."""
        waiting = (pod for pod in self.pods.values() if (pod.jobset, pod.index) == (jobset, index))
        pod = next(waiting, None) or self.creates_pod(jobset, index)
        nodes, taken = sorted(self.nodes_of(pool)), self._taken()
        pod.node, pod.since = next((name for name in nodes if name not in taken), nodes[0]), self._clock.now()
        jobset.bound.add(index)
        self._followers_come(pod, [name for name in nodes if name != pod.node and not (pod.key and name in taken)])
        self.scheduler.bound(pod, pool)
        self.saw(pod)

    def _followers_come(self, leader: Pod, nodes: Sequence[str]) -> None:
        """Bind the other pods of a leader's Job to the hosts beside its own, but for those that are there."""
        there = {each.node: each.rank for each in beside(leader, self.followers)}
        missing = [rank for rank in range(1, len(nodes) + 1) if rank not in there.values()]
        for rank, node in zip(missing, [node for node in nodes if node not in there], strict=False):
            uid = f"{leader.uid}-{rank}"
            now = self._clock.now()
            made: dict[str, Any] = {"created": now, "since": now, "template": leader.template, "key": leader.key}
            self.followers[uid] = pod = Pod(uid, leader.jobset, leader.index, node, rank, **made)
            self.saw(pod)

    def schedules_pods(self) -> None:
        """Bind waiting leaders to free hosts, and those of their followers for which there was none before."""
        if not self.schedules:
            return
        for pod, pool in self.scheduler.places(self.pods, self.followers, self.nodes):
            self.binds(pod.jobset, pool, pod.index)
        for pod in [pod for pod in self.pods.values() if pod.key and pod.node in self.nodes and not pod.ended]:
            nodes, taken = self.nodes_of(self.nodes[pod.node or ""].pool), self._taken()
            if len(beside(pod, self.followers)) < len(nodes) - 1:
                self._followers_come(pod, [name for name in sorted(nodes) if name not in taken])

    def _taken(self) -> set[str]:
        """Return the names of the nodes with a pod that has chips."""
        pods = (*self.pods.values(), *self.followers.values())
        return {pod.node for pod in pods if pod.node is not None and not pod.ended}

    def binds_outside(self, pod: Pod, node: str) -> None:
        """Bind a leader to a host that is nobody's slice."""
        pod.node, pod.since = node, self._clock.now()
        pod.jobset.bound.add(pod.index)
        self.saw(pod)

    def stranger_comes(self, raw: Json) -> None:
        self.strangers[raw["metadata"]["uid"]] = raw
        self._version += 1
        if (seen := pod_seen(raw)) is not None:
            for relay in self.relays:
                relay.saw(seen.kind, seen)

    def stranger_goes(self, uid: str) -> None:
        if (seen := pod_seen(self.strangers.pop(uid))) is not None:
            self._lost(seen.kind, uid)

    # nodes

    def has_nodes(self, order: PoolOrder, generation: int = 0) -> None:
        """Let the nodes of a pool join, unless they are there; each generation has names of its own."""
        assert order.spec is not None
        for number in range(order.spec.hosts):
            node = objects.node_of(order, generation * order.spec.hosts + number)
            if node["metadata"]["name"] not in self.nodes:
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
            self._loses_pods(name)
            for uid in [uid for uid, each in self.strangers.items() if each["spec"]["nodeName"] == name]:
                self.stranger_goes(uid)
            self.loses_node(name)

    def _loses_pods(self, node: str) -> None:
        """Let the pods on a host be gone with it; a Job whose leader was there loses all."""
        for pod in [pod for pod in self.followers.values() if pod.node == node]:
            self.removes_follower(pod)
        for pod in [pod for pod in self.pods.values() if pod.node == node]:
            self.removes_pod(pod.jobset, pod.index)

    def loses_node(self, name: str) -> None:
        """Remove a Node object."""
        del self.nodes[name]
        self._lost(Kind.HOSTS, name)

    def machines_go(self, pool: Pool) -> None:
        """Let the machines of a pool go, and the pods on them; their Node objects stay until somebody deletes them."""
        for name in self.nodes_of(pool):
            self._loses_pods(name)
            self.other_pods = {key: each for key, each in self.other_pods.items() if each["spec"]["nodeName"] != name}
            self.changes_node(self.nodes[name], NOT_READY)

    def used_nodes(self) -> set[str]:
        """Return the nodes with pods that hold chips."""
        pods = (*self.pods.values(), *self.followers.values())
        return {pod.node for pod in pods if pod.node is not None and pod.node in self.nodes}

    def users_of(self, slice_: ClaimId, attempt: int) -> list[Pod]:
        """Return the pods that hold chips of the hosts of an attempt."""
        pool = PoolKey(slice_, attempt)
        pods = (pod for pod in (*self.pods.values(), *self.followers.values()) if not pod.ended)
        return [pod for pod in pods if pod.node in self.nodes and self.nodes[pod.node].pool == pool]
