"""The cluster as the relay sees it now, and what follows from it. No clock, and no record of what was published."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from enum import Enum, auto
from typing import TypeVar

from relay.objects import (
    LEADERS_OF,
    WORKLOADS,
    Hardware,
    Host,
    Kind,
    Known,
    Leader,
    Place,
    Pool,
    PoolKey,
    Seen,
    Unparseable,
    Workload,
    WorkloadName,
)
from tpu_slices.domain.model.facts import Occupant, TemplateRequest, WaitingLeader, WorkloadState
from tpu_slices.domain.model.observations import LegacyPool
from tpu_slices.domain.model.slices import ClusterId, Owner, OwnerKind, SliceId, WorkloadJob, WorkloadUid, slice_id
from tpu_slices.domain.reconciling.adoption import job_named
from tpu_slices.wire.workloads import beyond_template

K = TypeVar("K", bound=Hashable)
M = TypeVar("M", bound=Hashable)
Maker = WorkloadUid | WorkloadName | None


class Awaited(Enum):
    """How many of a workload's slices have a leader that waits for them."""

    NONE = auto()
    SOME = auto()
    ALL = auto()


class ClusterCache:
    """Objects by identity, with indexes from one kind to another."""

    def __init__(self, cluster: ClusterId) -> None:
        self._cluster = cluster
        self._workloads: dict[str, Workload] = {}
        self._leaders: dict[str, Leader] = {}
        self.hosts = HostIndex()
        self._uids: dict[WorkloadName, WorkloadUid] = {}
        self._pods: defaultdict[WorkloadName, set[str]] = defaultdict(set)
        self._pods_on_node: defaultdict[str, set[str]] = defaultdict(set)
        self._unparseable: dict[WorkloadUid, Kind] = {}

    def put(self, seen: Seen) -> Known | None:
        """Store an object as it is now; return what it was before, None if it is new."""
        match seen:
            case Workload():
                before: Known | None = self._workloads.get(seen.identity)
                if seen.parse_error is not None and isinstance(before, Workload):
                    seen = replace(seen, requests=before.requests)  # legacy pools are mapped to its Jobs by them
                self._workloads[seen.identity] = seen
                self._uids[seen.name] = seen.ref.owner.uid
                self._unparseable.pop(seen.ref.owner.uid, None)
            case Leader():
                before = self.drop(Kind.LEADERS, seen.identity)
                self._leaders[seen.identity] = seen
                self._pods[seen.workload].add(seen.identity)
                if seen.node is not None:
                    self._pods_on_node[seen.node].add(seen.identity)
            case Host():
                before = self.hosts.put(seen)
            case Unparseable():
                before = self._keep(seen)
        return before

    def _keep(self, unparseable: Unparseable[Kind]) -> Known | None:
        """Keep the last state of an object that could be parsed, without its demand; return what it was before."""
        match self._known(unparseable):
            case Workload() as workload:
                self._workloads[unparseable.identity] = replace(workload, parse_error=unparseable.parse_error)
                return workload
            case Leader() as leader:
                return self.put(replace(leader, waiting=False))
            case None if unparseable.kind in WORKLOADS:
                self._unparseable[WorkloadUid(unparseable.identity)] = unparseable.kind
                return None
            case host:
                return host

    def _known(self, unparseable: Unparseable[Kind]) -> Known | None:
        match unparseable.kind:
            case Kind.JOBSETS | Kind.JOBS | Kind.LEADER_WORKER_SETS | Kind.NODE_GROUPS:
                return self._workloads.get(unparseable.identity)
            case Kind.LEADERS | Kind.GROUP_LEADERS:
                return self._leaders.get(unparseable.identity)
            case Kind.HOSTS:
                return self.hosts.get(unparseable.identity)

    def drop(self, kind: Kind, identity: str) -> Known | None:
        """Remove an object; return what it was, None if it is not known."""
        match kind:
            case Kind.JOBSETS | Kind.JOBS | Kind.LEADER_WORKER_SETS | Kind.NODE_GROUPS:
                self._unparseable.pop(WorkloadUid(identity), None)
                workload = self._workloads.pop(identity, None)
                if workload is not None and self._uids.get(workload.name) == identity:
                    del self._uids[workload.name]
                return workload
            case Kind.LEADERS | Kind.GROUP_LEADERS:
                leader = self._leaders.pop(identity, None)
                if leader is not None:
                    discard(self._pods, leader.workload, identity)
                    discard(self._pods_on_node, leader.node or "", identity)
                return leader
            case Kind.HOSTS:
                return self.hosts.drop(identity)

    def identities(self, kind: Kind) -> frozenset[str]:
        match kind:
            case Kind.JOBSETS | Kind.JOBS | Kind.LEADER_WORKER_SETS | Kind.NODE_GROUPS:
                known = {uid for uid, each in self._workloads.items() if each.ref.owner.kind is WORKLOADS[kind]}
                return frozenset(known | {uid for uid, of in self._unparseable.items() if of is kind})
            case Kind.LEADERS | Kind.GROUP_LEADERS:
                return frozenset(uid for uid, each in self._leaders.items() if LEADERS_OF[each.workload.kind] is kind)
            case Kind.HOSTS:
                return self.hosts.names

    def workload(self, uid: WorkloadUid) -> Workload | None:
        return self._workloads.get(uid)

    def workload_of(self, leader: Leader) -> Workload | None:
        """Return a leader's workload, by name; None for a pod that is left over from an earlier one of that name."""
        uid = self._uids.get(leader.workload)
        if uid is None or leader.workload_uid not in {None, uid}:
            return None
        return self._workloads[uid]

    def leaders_of(self, workload: Workload) -> Iterator[Leader]:
        leaders = (self._leaders[pod] for pod in self._pods.get(workload.name, ()))
        return (leader for leader in leaders if self._is_of(leader, workload))

    def _is_of(self, leader: Leader, workload: Workload) -> bool:
        found = self.workload_of(leader)
        return found is not None and found.ref.owner.uid == workload.ref.owner.uid

    def leader_pod(self, job: WorkloadJob) -> Leader | None:
        """Return the leader pod of a Job, preferably one that waits, then one that is bound; None if there is none."""
        workload = self._workloads.get(job.owner.uid)
        leaders = self.leaders_of(workload) if workload else ()
        place = Place(job.replicated_job, job.job_index)
        own = (leader for leader in leaders if leader.place == place)
        return max(own, key=lambda leader: (leader.waiting, leader.node is not None, leader.pod_uid), default=None)

    def waiting(self, uid: WorkloadUid) -> Mapping[Place, Leader]:
        """Return one waiting leader per Job of a workload; none unless it is active, parseable and served by us."""
        workload = self._workloads.get(uid)
        waiting = self._waiting(workload) if workload else ()
        return {leader.place: leader for leader in sorted(waiting, key=lambda leader: leader.pod_uid)}

    def awaits(self, workload: Workload) -> Awaited:
        """Return how many of a workload's leaders wait; counts no further than needed, as there may be thousands."""
        if next(self._waiting(workload), None) is None:
            return Awaited.NONE
        if len(self._pods.get(workload.name, ())) < workload.slices:
            return Awaited.SOME
        places: set[Place] = set()
        for each in self._waiting(workload):
            places.add(each.place)
            if len(places) >= workload.slices:
                return Awaited.ALL
        return Awaited.SOME

    def _waiting(self, workload: Workload) -> Iterator[Leader]:
        if not workload.served or workload.parse_error is not None or workload.state is not WorkloadState.ACTIVE:
            return iter(())
        asked = {request.replicated_job for request in workload.requests}
        return (each for each in self.leaders_of(workload) if each.waiting and each.place.replicated_job in asked)

    def live_standings(self) -> Mapping[WorkloadUid, str]:
        """Return the standings of TPU workloads that have not ended, whoever serves them; empty of unparseable ones."""
        live = (each for each in self._workloads.values() if each.tellable and not each.state.ended)
        return dict.fromkeys(self._unparseable, "") | {each.ref.owner.uid: each.standing for each in live}

    def groups(self) -> Iterator[Workload]:
        """Return the TPUNodeGroups, also those that may not be told of yet."""
        return (each for each in self._workloads.values() if each.ref.owner.kind.declares)

    def lacks_chips(self, slice_id: SliceId) -> bool:
        """Return whether a host of a slice is Ready, and offers fewer chips than it has."""
        pools = (pool for pool in self.hosts.pools() if isinstance(pool, PoolKey) and pool.slice_id == slice_id)
        return any(host.chips_missing for pool in pools for host in self.hosts.of(pool))

    def made_for(self, workload: Workload) -> frozenset[Pool]:
        """Return the pools with hosts that were made for a workload."""
        return self.hosts.made_for(workload.ref.owner.uid, workload.name)

    def occupants(self, pool: Pool) -> tuple[Occupant, ...]:
        """Return the Jobs whose leaders are bound to a pool's hosts, in the order of their pods' UIDs."""
        leaders = (self._leaders[pod] for pod in sorted(self.leaders_on(pool)))
        occupants = (self._occupant(leader) for leader in leaders)
        return tuple(occupant for occupant in occupants if occupant is not None)

    def passed_over(self, pool: Pool) -> tuple[Leader, ...]:
        """Return the leader pods on a pool's hosts that do not count as occupants."""
        leaders = (self._leaders[pod] for pod in sorted(self.leaders_on(pool)))
        return tuple(leader for leader in leaders if self._occupant(leader) is None)

    def _occupant(self, leader: Leader) -> Occupant | None:
        workload = self.workload_of(leader)
        return occupant_of(leader, workload) if workload is not None else None

    def leaders_on(self, pool: Pool) -> frozenset[str]:
        """Return the UIDs of the leader pods on a pool's hosts, whether or not they count as occupants."""
        return frozenset(pod for host in self.hosts.of(pool) for pod in self._pods_on_node.get(host.node, ()))

    def pools_of(self, name: WorkloadName) -> frozenset[Pool]:
        """Return the pools that leaders of the JobSets of this name are bound to, and these JobSets' legacy pools."""
        leaders = (self._leaders[pod] for pod in self._pods.get(name, ()))
        return self.pools_at(*(leader.node for leader in leaders)) | self.hosts.legacy_pools(name)

    def pools_at(self, *nodes: str | None) -> frozenset[Pool]:
        """Return the pools that these nodes belong to."""
        hosts = (self.hosts.get(node) for node in nodes)
        return frozenset(host.pool for host in hosts if host is not None)

    def maker(self, pool: Pool) -> Workload | None:
        """Return the workload that a pool was made for; None if it is not known."""
        if isinstance(pool, LegacyPool):
            return self._workloads.get(self._uids.get(WorkloadName(pool.namespace, pool.jobset), ""))
        uids = (host.workload_uid for host in self.hosts.of(pool))
        return self._workloads.get(next((uid for uid in uids if uid), ""))

    def key_of(self, pool: Pool) -> PoolKey | None:
        """Return the slice and attempt of a pool; for a legacy pool those of its Job, None if that is not known."""
        if isinstance(pool, PoolKey):
            return pool
        workload = self.maker(pool)
        job = job_named(pool.job, self._cluster, workload.ref, workload.requests) if workload else None
        return PoolKey(slice_id(job), 0) if job else None

    def legacy_pool(self, key: PoolKey) -> Pool | None:
        """Return the legacy pool of a slice; the key itself if there is none.

        None: a pool may be the slice's, but its JobSet is gone, or another one has its name, so nobody can tell.
        """
        legacy = [pool for pool in self.hosts.pools() if isinstance(pool, LegacyPool)]
        known = next((pool for pool in legacy if self.key_of(pool) == key), None)
        if known is not None:
            return known
        return None if any(may_be_of(pool, key.slice_id, self._cluster) for pool in legacy) else key


def leaders_in_demand(workload: Workload, waiting: Mapping[Place, Leader]) -> Iterator[WaitingLeader]:
    """Yield the leaders that wait, in the order of their Jobs, without the labels that their templates have."""
    requests = {request.replicated_job: request for request in workload.requests}
    return (beyond_template(waiting[place].asks, requests[place.replicated_job]) for place in sorted(waiting))


def mounted_claims(waiting: Mapping[Place, Leader]) -> Mapping[str, tuple[str, ...]]:
    """Return the PersistentVolumeClaims that leaders mount, by replicatedJob; none of them is empty."""
    mounted: defaultdict[str, set[str]] = defaultdict(set)
    for place, leader in waiting.items():
        if leader.claims:
            mounted[place.replicated_job].update(leader.claims)
    return {replicated_job: tuple(sorted(names)) for replicated_job, names in mounted.items()}


def occupant_of(leader: Leader, workload: Workload) -> Occupant | None:
    """Return the Job of a leader pod of this workload; None if the pod does not count.

    It counts if the workload is active and ours, has such a Job with chips, and the pod is controlled by that Job and
    requests what the Job's template does: a workload's requests are those of its templates with chips only.

    A tenant may write a pod with the labels of another's leader. Such a pod must neither keep hosts from being deleted
    nor pass for the Job whose labels it has, so everything that can be compared is.
    """
    if leader.workload_uid not in {None, workload.ref.owner.uid}:
        return None
    place = leader.place
    request = next((each for each in workload.requests if each.replicated_job == place.replicated_job), None)
    if not workload.served or workload.state is not WorkloadState.ACTIVE or request is None:
        return None
    if place.job_index >= request.replicas or leader.hardware != _hardware(request):
        return None
    if leader.job != workload.ref.owner.job_name(*place):
        return None
    return Occupant(
        owner=workload.ref.owner,
        generation=workload.ref.generation,
        replicated_job=place.replicated_job,
        job_index=place.job_index,
        pod_uid=leader.pod_uid,
    )


def _hardware(request: TemplateRequest) -> Hardware:
    return Hardware(request.chips_per_pod, request.accelerator, request.topology)


def may_be_of(pool: LegacyPool, slice_: SliceId, cluster: ClusterId) -> bool:
    """Return whether a slice may be that of the pool's Job: but for the JobSet's UID, its ID follows from names."""
    replicated_job, _, index = pool.job.removeprefix(f"{pool.jobset}-".lower()).rpartition("-")
    if not index.isdecimal():
        return False
    owner = Owner(kind=OwnerKind.JOBSET, namespace=pool.namespace, name=pool.jobset, uid=WorkloadUid(""))
    job = WorkloadJob(cluster=cluster, owner=owner, replicated_job=replicated_job, job_index=int(index))
    return slice_id(job).rpartition("-")[0] == slice_.rpartition("-")[0]


class HostIndex:
    """Hosts by the names of their nodes. An index has no entry for what has no hosts."""

    def __init__(self) -> None:
        self._hosts: dict[str, Host] = {}
        self._nodes: defaultdict[Pool, set[str]] = defaultdict(set)
        self._made_for: defaultdict[Maker, set[str]] = defaultdict(set)
        self._unlabeled: set[str] = set()

    def put(self, host: Host) -> Host | None:
        """Store a host as it is now; return what it was before, None if it is new."""
        before = self.drop(host.node)
        self._hosts[host.node] = host
        self._nodes[host.pool].add(host.node)
        self._made_for[_maker(host)].add(host.node)
        if host.unlabeled is not None:
            self._unlabeled.add(host.node)
        return before

    def drop(self, node: str) -> Host | None:
        """Remove a host; return what it was, None if it is not known."""
        host = self._hosts.pop(node, None)
        if host is not None:
            discard(self._nodes, host.pool, node)
            discard(self._made_for, _maker(host), node)
            self._unlabeled.discard(node)
        return host

    def get(self, node: str | None) -> Host | None:
        return self._hosts.get(node or "")

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._hosts)

    def of(self, pool: Pool) -> tuple[Host, ...]:
        """Return the hosts of a pool."""
        return tuple(self._hosts[node] for node in self._nodes.get(pool, ()))

    def pools(self) -> tuple[Pool, ...]:
        """Return the pools that have hosts."""
        return tuple(self._nodes)

    def made_for(self, uid: WorkloadUid, name: WorkloadName) -> frozenset[Pool]:
        """Return the pools with hosts that were made for a workload."""
        nodes = (*self._made_for.get(uid, ()), *self._made_for.get(name, ()))
        return frozenset(self._hosts[node].pool for node in nodes)

    def legacy_pools(self, name: WorkloadName) -> frozenset[Pool]:
        """Return the legacy pools with hosts that were made for a JobSet of this name."""
        return frozenset(self._hosts[node].pool for node in self._made_for.get(name, ()))

    def legacy_pool(self, name: str) -> LegacyPool:
        """Return the legacy pool of this name; without hosts, one that nothing else is known of."""
        named = (pool for pool in self._nodes if isinstance(pool, LegacyPool) and pool.name == name)
        return next(named, LegacyPool(name=name, namespace="", jobset="", job=""))

    def unlabeled(self) -> tuple[Host, ...]:
        """Return the hosts that lack the label or the taint of JobSet's exclusive placement."""
        return tuple(self._hosts[node] for node in sorted(self._unlabeled))


def _maker(host: Host) -> Maker:
    """Return whom the pool was made for: a legacy pool has the JobSet's name only."""
    return (
        WorkloadName(host.pool.namespace, host.pool.jobset) if isinstance(host.pool, LegacyPool) else host.workload_uid
    )


def discard(index: dict[K, set[M]], key: K, member: M) -> None:
    """Remove a member from an index, and the key with its last member."""
    members = index.get(key)
    if members is None:
        return
    members.discard(member)
    if not members:
        del index[key]
