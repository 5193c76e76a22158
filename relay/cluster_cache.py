"""The cluster as the relay sees it now, and what follows from it. No clock, and no record of what was published."""

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
    """Every host that the slice should have is usable; False if there are no hosts."""


class Awaited(Enum):
    """How many of a JobSet's slices have a leader that waits for them."""

    NONE = auto()
    SOME = auto()
    ALL = auto()


@dataclass(frozen=True, slots=True)
class PodBinding:
    """A leader pod that is bound to a host of a pool."""

    pool: PoolKey
    occupant: Occupant
    owner: WorkloadUid | None
    """The JobSet that the pool was made for."""


class ClusterCache:
    """Objects by identity, with indexes from one kind to another."""

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
        """Store an object as it is now; return what it was before, None if it is new."""
        match seen:
            case JobSet():
                before: Known | None = self._jobsets.get(seen.identity)
                if seen.parse_error is not None and isinstance(before, JobSet):
                    seen = replace(seen, requests=before.requests)  # legacy pools are mapped to its Jobs by them
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
        """Keep the last state of an object that could be parsed, without its demand; return what it was before."""
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
        """Remove an object; return what it was, None if it is not known."""
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
        """Return a leader's JobSet, by name; None for a pod that is left over from an earlier JobSet of that name."""
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
        """Return one waiting leader per Job of a JobSet; none unless it is active, parseable and served by us."""
        jobset = self._jobsets.get(uid)
        waiting = self._waiting(jobset) if jobset else ()
        return {leader.place: leader for leader in sorted(waiting, key=lambda leader: leader.pod_uid)}

    def awaits(self, jobset: JobSet) -> Awaited:
        """Return how many of a JobSet's leaders wait; counts no further than needed, as there may be thousands."""
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
        """Yield the leaders that wait, in the order of their Jobs, without the labels that their templates have."""
        waiting = self.waiting(uid)
        requests = {request.replicated_job: request for request in self._jobsets[uid].requests} if waiting else {}
        for place in sorted(waiting):
            yield beyond_template(waiting[place].asks, requests[place.replicated_job])

    def claims(self, uid: WorkloadUid) -> Mapping[str, tuple[str, ...]]:
        """Return the PersistentVolumeClaims that the waiting leaders of a JobSet mount, by replicatedJob."""
        mounted: defaultdict[str, set[str]] = defaultdict(set)
        for place, leader in self.waiting(uid).items():
            mounted[place.replicated_job].update(leader.claims)
        return {replicated_job: tuple(sorted(names)) for replicated_job, names in mounted.items()}

    def unlabeled(self) -> tuple[Host, ...]:
        """Return the hosts that lack the label or the taint of JobSet's exclusive placement."""
        return tuple(self._hosts[node] for node in sorted(self._unlabeled))

    def live_uids(self) -> tuple[WorkloadUid, ...]:
        """Return the UIDs of TPU JobSets that have not ended, whoever serves them, and of unparseable JobSets."""
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
        """Return the slice and attempt of a pool; for a legacy pool those of its Job, None if that is not known."""
        if isinstance(pool, PoolKey):
            return pool
        jobset = self._jobsets.get(self._uids.get(JobSetName(pool.namespace, pool.jobset), ""))
        if jobset is None:
            return None
        job = job_named(pool.job, self._cluster, jobset.ref, jobset.requests)
        return PoolKey(slice_id(job), 0) if job else None

    def pods_on_node(self, node: str) -> frozenset[str]:
        """Return the UIDs of the leader pods that are bound to a node."""
        return frozenset(self._pods_on_node.get(node, ()))

    def binding(self, pod_uid: str) -> PodBinding | None:
        """Return a leader's pool and its Job; None if its node's pool is not known, or its JobSet is gone."""
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
    """Remove a member from an index, and the key with its last member."""
    members = index.get(key)
    if members is None:
        return
    members.discard(member)
    if not members:
        del index[key]
