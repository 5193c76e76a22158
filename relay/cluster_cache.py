"""The cluster as the relay sees it now, and what follows from that. No time, no memory of what was said."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TypeVar

from relay.objects import Host, JobSet, JobSetName, Kind, Known, Leader, Place, PoolKey, Seen, Unparseable
from tpu_slices.domain.model.facts import Occupant, WaitingLeader, WorkloadState
from tpu_slices.domain.model.observations import LegacyPool
from tpu_slices.domain.model.slices import ClusterId, Owner, OwnerKind, WorkloadUid, slice_id
from tpu_slices.domain.reconciling.adoption import job_named
from tpu_slices.wire.workloads import beyond_template

K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Count:
    """The hosts of one pool."""

    usable: int
    joined: int
    whole: bool
    """All hosts that the slice has are usable. No hosts are never all."""


class Awaited(Enum):
    """How many of a JobSet's slices are waited for."""

    NONE = auto()
    SOME = auto()
    ALL = auto()


@dataclass(frozen=True, slots=True)
class PodBinding:
    """A leader on the hosts of a pool."""

    pool: PoolKey
    occupant: Occupant
    owner: WorkloadUid | None
    """The JobSet that the pool was made for."""


class ClusterCache:
    """Objects by identity, and the ways that lead from one to the others."""

    def __init__(self, cluster: ClusterId) -> None:
        self._cluster = cluster
        self._jobsets: dict[str, JobSet] = {}
        self._leaders: dict[str, Leader] = {}
        self._hosts: dict[str, Host] = {}
        self._uids: dict[JobSetName, WorkloadUid] = {}
        self._pods: defaultdict[JobSetName, set[str]] = defaultdict(set)
        self._nodes: defaultdict[PoolKey | LegacyPool, set[str]] = defaultdict(set)
        self._pods_on_node: defaultdict[str, set[str]] = defaultdict(set)
        self._unlabeled: set[str] = set()
        self._unparseable: set[WorkloadUid] = set()

    def put(self, seen: Seen) -> Known | None:
        """Take in an object as it is now; give what it was before."""
        match seen:
            case JobSet():
                before: Known | None = self._jobsets.get(seen.identity)
                if seen.parse_error is not None and isinstance(before, JobSet):
                    seen = replace(seen, requests=before.requests)  # its pools keep their names
                self._jobsets[seen.identity] = seen
                self._uids[seen.name] = seen.ref.owner.uid
                self._unparseable.discard(seen.ref.owner.uid)
            case Leader():
                before = self.drop(Kind.LEADERS, seen.identity)
                self._leaders[seen.identity] = seen
                self._pods[seen.jobset].add(seen.identity)
                if seen.node is not None:
                    self._pods_on_node[seen.node].add(seen.identity)
            case Host():
                before = self.drop(Kind.HOSTS, seen.identity)
                self._hosts[seen.identity] = seen
                self._nodes[seen.pool].add(seen.identity)
                if seen.unlabeled is not None:
                    self._unlabeled.add(seen.identity)
            case Unparseable():
                before = self._keep(seen)
        return before

    def _keep(self, unparseable: Unparseable) -> Known | None:
        """Let an object be what it was when it could be read, but ask for nothing."""
        match self._known(unparseable):
            case JobSet() as jobset:
                self._jobsets[unparseable.identity] = replace(jobset, parse_error=unparseable.parse_error)
                return jobset
            case Leader() as leader:
                return self.put(replace(leader, waiting=False))
            case None if unparseable.kind is Kind.JOBSETS:
                self._unparseable.add(WorkloadUid(unparseable.identity))
                return None
            case host:
                return host

    def _known(self, unparseable: Unparseable) -> Known | None:
        match unparseable.kind:
            case Kind.JOBSETS:
                return self._jobsets.get(unparseable.identity)
            case Kind.LEADERS:
                return self._leaders.get(unparseable.identity)
            case Kind.HOSTS:
                return self._hosts.get(unparseable.identity)

    def drop(self, kind: Kind, identity: str) -> Known | None:
        """Forget an object; give what it was."""
        match kind:
            case Kind.JOBSETS:
                self._unparseable.discard(WorkloadUid(identity))
                jobset = self._jobsets.pop(identity, None)
                if jobset is not None and self._uids.get(jobset.name) == identity:
                    del self._uids[jobset.name]
                return jobset
            case Kind.LEADERS:
                leader = self._leaders.pop(identity, None)
                if leader is not None:
                    _discard(self._pods, leader.jobset, identity)
                    _discard(self._pods_on_node, leader.node or "", identity)
                return leader
            case Kind.HOSTS:
                host = self._hosts.pop(identity, None)
                if host is not None:
                    _discard(self._nodes, host.pool, identity)
                    self._unlabeled.discard(identity)
                return host

    def identities(self, kind: Kind) -> frozenset[str]:
        match kind:
            case Kind.JOBSETS:
                return frozenset(self._jobsets) | self._unparseable
            case Kind.LEADERS:
                return frozenset(self._leaders)
            case Kind.HOSTS:
                return frozenset(self._hosts)

    def jobset(self, uid: WorkloadUid) -> JobSet | None:
        return self._jobsets.get(uid)

    def jobset_of(self, leader: Leader) -> JobSet | None:
        """Find a leader's JobSet by its name: a pod that is left over from an earlier JobSet of that name has none."""
        uid = self._uids.get(leader.jobset)
        if uid is None or leader.jobset_uid not in {None, uid}:
            return None
        return self._jobsets[uid]

    def leaders_of(self, jobset: JobSet) -> Iterator[Leader]:
        leaders = (self._leaders[pod] for pod in self._pods.get(jobset.name, ()))
        return (leader for leader in leaders if self._is_of(leader, jobset))

    def _is_of(self, leader: Leader, jobset: JobSet) -> bool:
        found = self.jobset_of(leader)
        return found is not None and found.ref.owner.uid == jobset.ref.owner.uid

    def waiting(self, uid: WorkloadUid) -> Mapping[Place, Leader]:
        """Give a leader of each Job that asks us for a slice, where their JobSet is active and served by us."""
        jobset = self._jobsets.get(uid)
        waiting = self._waiting(jobset) if jobset else ()
        return {leader.place: leader for leader in sorted(waiting, key=lambda leader: leader.pod_uid)}

    def awaits(self, jobset: JobSet) -> Awaited:
        """Say how many of a JobSet's leaders wait; as soon as it is clear, for a JobSet may have thousands."""
        if next(self._waiting(jobset), None) is None:
            return Awaited.NONE
        if len(self._pods.get(jobset.name, ())) < jobset.slices:
            return Awaited.SOME
        return Awaited.ALL if len({each.place for each in self._waiting(jobset)}) >= jobset.slices else Awaited.SOME

    def _waiting(self, jobset: JobSet) -> Iterator[Leader]:
        asks = jobset.served and jobset.parse_error is None and jobset.state is WorkloadState.ACTIVE
        asked = {request.replicated_job for request in jobset.requests} if asks else set()
        return (each for each in self.leaders_of(jobset) if each.waiting and each.place.replicated_job in asked)

    def leaders_in_demand(self, uid: WorkloadUid) -> Iterator[WaitingLeader]:
        """Tell of the leaders that wait, in the order of their Jobs."""
        waiting = self.waiting(uid)
        requests = {request.replicated_job: request for request in self._jobsets[uid].requests} if waiting else {}
        for place in sorted(waiting):
            yield beyond_template(waiting[place].asks, requests[place.replicated_job])

    def claims(self, uid: WorkloadUid) -> Mapping[str, tuple[str, ...]]:
        """Name the volume claims that the waiting leaders of a JobSet mount, by replicatedJob."""
        mounted: defaultdict[str, set[str]] = defaultdict(set)
        for place, leader in self.waiting(uid).items():
            mounted[place.replicated_job].update(leader.claims)
        return {replicated_job: tuple(sorted(names)) for replicated_job, names in mounted.items()}

    def unlabeled(self) -> tuple[Host, ...]:
        """Give the hosts that must be marked for JobSet's placement, and are not."""
        return tuple(self._hosts[node] for node in sorted(self._unlabeled))

    def live_uids(self) -> tuple[WorkloadUid, ...]:
        """Name the TPU JobSets that have not ended, whoever serves them; and what cannot be read and may be one."""
        known = {jobset.ref.owner.uid for jobset in self._jobsets.values() if not jobset.state.ended}
        return tuple(sorted(known | self._unparseable))

    def has_hosts(self, uid: WorkloadUid) -> bool:
        return any(host.jobset_uid == uid for host in self._hosts.values())

    def count(self, pool: PoolKey | LegacyPool) -> Count:
        hosts = [self._hosts[node] for node in self._nodes.get(pool, ())]
        usable = sum(host.usable for host in hosts)
        expected = max((host.expected or 0 for host in hosts), default=0) or len(hosts)
        return Count(usable, len(hosts), 0 < expected <= usable)

    def key_of(self, pool: PoolKey | LegacyPool) -> PoolKey | None:
        """Name a pool by its slice; one that TPU Provisioner made by that of its Job, if there is such a JobSet."""
        if isinstance(pool, PoolKey):
            return pool
        jobset = self._jobsets.get(self._uids.get(JobSetName(pool.namespace, pool.jobset), ""))
        if jobset is None:
            return None
        job = job_named(pool.job, self._cluster, jobset.ref, jobset.requests)
        return PoolKey(slice_id(job), 0) if job else None

    def pods_on_node(self, node: str) -> frozenset[str]:
        """Name the leader pods that are bound to a node."""
        return frozenset(self._pods_on_node.get(node, ()))

    def binding(self, pod_uid: str) -> PodBinding | None:
        """Say on which pool of ours a leader is, and for whom; None where it is on none, or its JobSet is gone."""
        leader = self._leaders.get(pod_uid)
        host = self._hosts.get(leader.node or "") if leader else None
        jobset = self.jobset_of(leader) if leader else None
        pool = self.key_of(host.pool) if host else None
        if leader is None or pool is None or jobset is None:
            return None
        occupant = Occupant(
            owner=Owner(
                kind=OwnerKind.JOBSET,
                namespace=leader.jobset.namespace,
                name=leader.jobset.name,
                uid=jobset.ref.owner.uid,
            ),
            job=leader.job,
            pod_uid=pod_uid,
        )
        return PodBinding(pool, occupant, host.jobset_uid if host else None)


def _discard(index: dict[K, set[str]], key: K, member: str) -> None:
    """Take a member out of an index, and the key with the last of them."""
    members = index.get(key)
    if members is None:
        return
    members.discard(member)
    if not members:
        del index[key]
