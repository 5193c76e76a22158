"""The cluster as the relay sees it now, and what follows from it. No clock, and no record of what was published."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain, groupby
from operator import attrgetter

from relay.hosts.claims import Awaited, claims_of, gangs_of
from relay.hosts.followers import Followers
from relay.hosts.held import HeldPods
from relay.hosts.index import HostIndex
from relay.hosts.leader_index import LeaderIndex
from relay.hosts.legacy import may_be_of
from relay.hosts.occupants import is_controlled, is_live, occupant_of
from relay.hosts.stays import Stays
from relay.objects import (
    WORKLOADS,
    Follower,
    Host,
    JobPod,
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
from tpu_slices.domain.model.facts import Occupant
from tpu_slices.domain.model.observations import LegacyPool
from tpu_slices.domain.model.slices import ClaimId, ClusterId, WorkloadJob, WorkloadUid, claim_id
from tpu_slices.domain.reconciling.adoption import job_named
from tpu_slices.domain.records.hosts import job_of, jobs
from tpu_slices.wire.gangs import ALL

_INDEX = attrgetter("asks.job_index")


class ClusterCache:
    """Objects by identity, with indexes from one kind to another."""

    def __init__(self, cluster: ClusterId) -> None:
        self.cluster = cluster
        self._workloads: dict[str, Workload] = {}
        self._aside: dict[str, Workload] = {}
        """Those that request no TPU, and were never seen to; nothing is told of them."""
        self.leaders = LeaderIndex()
        self.followers = Followers()
        self.held = HeldPods()
        self.lacking_since: dict[str, datetime | None] = {}
        """Since when some pods of a Job whose pods all ran do not, by the pod of its occupant; None: all do."""
        self.hosts = HostIndex()
        self._uids: dict[WorkloadName, WorkloadUid] = {}
        self.stays = Stays()
        self._unparseable: dict[WorkloadUid, Kind] = {}

    def sets_aside(self, seen: Seen) -> bool:
        """Return whether an object is kept apart: a workload that requests no TPU, and was never seen to."""
        if not isinstance(seen, Workload) or seen.asks or seen.identity in self._workloads:
            return False
        self._aside[seen.identity] = seen
        return True

    def calls_up(self, users: Iterable[Occupant]) -> list[Workload]:
        """Store and return the workloads that were set aside, and of which pods hold chips: they requested TPU once."""
        found = [self._aside[uid] for uid in {each.owner.uid for each in users} if uid in self._aside]
        for each in found:
            self.put(each)
        return found

    def put(self, seen: Seen) -> Known | None:
        """Store an object as it is now; return what it was before, None if it is new."""
        match seen:
            case Workload():
                before: Known | None = self._workloads.get(seen.identity)
                if seen.parse_error is not None and isinstance(before, Workload):
                    seen = replace(seen, requests=before.requests)  # legacy pools are mapped to its Jobs by them
                self._workloads[seen.identity] = seen
                self._aside.pop(seen.identity, None)
                self._uids[seen.name] = seen.ref.owner.uid
                self._unparseable.pop(seen.ref.owner.uid, None)
            case Leader():
                before = self.leaders.put(seen)
                self.held.saw(seen)
            case Follower():
                before = self.followers.put(seen)
                self.held.saw(seen)
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
            case Kind.JOBSETS | Kind.JOBS | Kind.LEADER_WORKER_SETS | Kind.NODE_GROUPS | Kind.PODS:
                return self._workloads.get(unparseable.identity)
            case Kind.LEADERS | Kind.UNINDEXED | Kind.GROUP_LEADERS:
                return self.leaders.get(unparseable.identity) or self.followers.get(unparseable.identity)
            case Kind.HOSTS:
                return self.hosts.get(unparseable.identity)

    def drop(self, kind: Kind, identity: str) -> Known | None:
        """Remove an object; return what it was, None if it is not known."""
        match kind:
            case Kind.JOBSETS | Kind.JOBS | Kind.LEADER_WORKER_SETS | Kind.NODE_GROUPS | Kind.PODS:
                self._unparseable.pop(WorkloadUid(identity), None)
                self._aside.pop(identity, None)
                workload = self._workloads.pop(identity, None)
                if workload is not None and self._uids.get(workload.name) == identity:
                    del self._uids[workload.name]
                return workload
            case Kind.LEADERS | Kind.UNINDEXED | Kind.GROUP_LEADERS:
                self.lacking_since.pop(identity, None)
                pod = self.leaders.drop(identity) or self.followers.drop(identity)
                if pod is not None:
                    self.held.lost(pod)
                return pod
            case Kind.HOSTS:
                return self.hosts.drop(identity)

    def identities(self, kind: Kind) -> frozenset[str]:
        match kind:
            case Kind.JOBSETS | Kind.JOBS | Kind.LEADER_WORKER_SETS | Kind.NODE_GROUPS | Kind.PODS:
                stored = (*self._workloads.items(), *self._aside.items())
                known = {uid for uid, each in stored if each.ref.owner.kind is WORKLOADS[kind]}
                return frozenset(known | {uid for uid, of in self._unparseable.items() if of is kind})
            case Kind.LEADERS | Kind.UNINDEXED | Kind.GROUP_LEADERS:
                return self.leaders.uids(kind) | self.followers.identities(kind)
            case Kind.HOSTS:
                return self.hosts.names

    def workload(self, uid: WorkloadUid) -> Workload | None:
        return self._workloads.get(uid)

    def named(self, name: WorkloadName) -> Workload | None:
        """Return the workload that has a name."""
        return self._workloads.get(self._uids.get(name, ""))

    def is_unparseable(self, pod: JobPod) -> bool:
        """Return whether the object of a pod's workload may be one that could never be parsed."""
        uid, kind = pod.workload_uid, pod.workload.kind
        return uid in self._unparseable if uid else kind in {WORKLOADS[each] for each in self._unparseable.values()}

    def workload_of(self, leader: Leader) -> Workload | None:
        """Return a leader's workload, by name; None for a pod that is left over from an earlier one of that name."""
        uid = self._uids.get(leader.workload)
        workload = self._workloads[uid] if uid is not None else None
        return workload if workload is not None and leader.may_be_of(workload) else None

    def leaders_of(self, workload: Workload) -> Iterator[Leader]:
        return (leader for leader in self.leaders.of(workload.name) if self._is_of(leader, workload))

    def _is_of(self, leader: Leader, workload: Workload) -> bool:
        found = self.workload_of(leader)
        return found is not None and found.ref.owner.uid == workload.ref.owner.uid

    def leader_pod(self, job: WorkloadJob) -> Leader | None:
        """Return the leader pod of a Job, preferably one that waits, then one that is bound; None if there is none."""
        workload, place = self._workloads.get(job.owner.uid), Place(job.replicated_job, job.job_index)
        led = (self._leading(workload, place) or self.pods_of(workload, place)) if workload else ()
        return max(led, key=lambda leader: (leader.waiting, leader.node is not None, leader.pod_uid), default=None)

    def pods_of(self, workload: Workload, place: Place) -> Iterator[Leader]:
        """Yield the pods that the claim of this place is for: its leaders, and those of Jobs that share its slice."""
        if workload.shares_slice(place):
            return (each for each in self.leaders_of(workload) if each.place.replicated_job == place.replicated_job)
        return (leader for leader in self.leaders.at(workload.name, place) if self._is_of(leader, workload))

    def leads(self, leader: Leader) -> bool:
        """Return whether a pod leads: of Jobs that share a slice, those of the first that has not ended do."""
        workload = self.workload_of(leader)
        if workload is None or not workload.shares_slice(leader.place):
            return True
        return any(each.identity == leader.identity for each in self._leading(workload, leader.place))

    def _leading(self, workload: Workload, place: Place) -> Sequence[Leader]:
        """Return the pods that lead the claim of this place; where Jobs share its slice, none that nobody controls."""
        if not workload.shares_slice(place):
            return [*self.pods_of(workload, place)]
        for pods in self.leaders.running(workload.name, place.replicated_job):
            if own := [each for each in pods if self._is_of(each, workload) and is_controlled(each, workload)]:
                return own
        return ()

    def waiting(self, uid: WorkloadUid) -> Mapping[Place, Leader | None]:
        """Return one waiting leader per claim of a workload; none unless it is active, parseable and served by us.

        The claims of a gang wait with its first leader, or once it has quota: None stands for those without a pod.
        """
        if (workload := self._workloads.get(uid)) is None:
            return {}
        waiting = sorted(self._waiting(workload), key=lambda leader: leader.pod_uid)
        led = {workload.claimed(leader.place): leader for leader in waiting}
        gangs = gangs_of(workload, led) | ({ALL} if workload.reserved else set())
        return {**dict.fromkeys(place for gang in gangs for place in self._without_pods(workload, gang)), **led}

    def _without_pods(self, workload: Workload, gang: str) -> Iterator[Place]:
        """Yield the claims of a gang that have no leader pod, unless that may be as their Jobs are over."""
        places = (place for _, place in claims_of(workload, gang) if place.replicated_job not in workload.succeeded)
        return (place for place in places if next(self.pods_of(workload, place), None) is None)

    def awaits(self, workload: Workload) -> Awaited:
        """Return how many of a workload's leaders wait; counts no further than needed, as there may be thousands."""
        if workload.reserved or next(self._waiting(workload), None) is None:
            return Awaited.SOME if workload.reserved else Awaited.NONE
        if self.leaders.count(workload.name) < workload.slices:
            return Awaited.SOME
        places: set[Place] = set()
        for each in self._waiting(workload):
            places.add(workload.claimed(each.place))
            if len(places) >= workload.slices:
                return Awaited.ALL
        return Awaited.SOME

    def _waiting(self, workload: Workload) -> Iterator[Leader]:
        if not _may_ask(workload):
            return iter(())
        alone = (each.replicated_job for each in workload.requests if each.replicated_job not in workload.sharing)
        pods = (
            pod for name in alone for pod in self.leaders.waiting(workload.name, name) if self._is_of(pod, workload)
        )
        led = (each for name in sorted(workload.sharing) for each in self._leading(workload, Place(name, 0)))
        return (each for each in chain(pods, led) if each.waiting)

    def waits(self, workload: Workload, place: Place) -> bool:
        """Return whether the claim of a place waits, as `waiting` has it."""
        if not _may_ask(workload):
            return False
        if next(self.pods_of(workload, place), None) is not None:
            return any(each.waiting for each in self._leading(workload, place))
        gang = next(iter(gangs_of(workload, [place])), "")
        return place.replicated_job not in workload.succeeded and self.gang_waits(workload, gang)

    def gang_waits(self, workload: Workload, gang: str) -> bool:
        """Return whether a leader of a gang waits."""
        names = (each.replicated_job for each in workload.requests if gang and each.gang == gang)
        led = (pod for name in names for pod in self.leaders.waiting(workload.name, name))
        return any(self._is_of(each, workload) for each in led)

    def live_standings(self) -> Mapping[WorkloadUid, int]:
        """Return the standings of TPU workloads that have not ended, whoever serves them; 0 of unparseable objects."""
        live = (each for each in self._workloads.values() if each.tellable and not each.state.ended)
        return dict.fromkeys(self._unparseable, 0) | {each.ref.owner.uid: each.standing for each in live}

    def unserved(self) -> list[Leader]:
        """Return the leaders that get no slice, or do not ask for one, whatever their workloads are."""
        return [leader for leader in self.leaders.all() if leader.unserved is not None]

    def groups(self) -> Iterator[Workload]:
        """Return the TPUNodeGroups, also those that may not be told of yet."""
        return (each for each in self._workloads.values() if each.ref.owner.kind.declares)

    def lacks_chips(self, slice_id: ClaimId) -> bool:
        """Return whether a host of a slice is Ready, and offers fewer chips than it has."""
        pools = (pool for pool in self.hosts.pools() if isinstance(pool, PoolKey) and pool.slice_id == slice_id)
        return any(host.chips_missing for pool in pools for host in self.hosts.of(pool))

    def made_for(self, workload: Workload) -> frozenset[Pool]:
        """Return the pools with hosts that were made for a workload."""
        return self.hosts.made_for(workload.ref.owner.uid, workload.name)

    def occupants(self, pool: Pool) -> tuple[Occupant, ...]:
        """Return the Jobs with pods on a pool's hosts, in the order of the UIDs of the pods by which they are known.

        A Job is known by its leader, or, if that has left the hosts and came to no others, by what `stays` has.
        """
        led = self._led(pool)
        present = jobs(led)
        staying = (self._staying(each) for each in self.stays.of(pool)) if self.hosts.of(pool) else ()
        others = (each for each in staying if each is not None and job_of(each) not in present)
        return tuple(sorted((*led, *others), key=lambda occupant: occupant.pod_uid))

    def without_leader(self, pool: Pool, users: Iterable[Occupant]) -> list[Occupant]:
        """Return those of the Jobs with pods on a pool's hosts that have no leader there, of which the watch tells."""
        led = jobs(self._led(pool))
        return [each for each in users if job_of(each) not in led]

    def leader_waits(self, occupant: Occupant) -> bool:
        """Return whether a Job has a leader that waits for hosts."""
        waiting = self.waiting(occupant.owner.uid)
        return waiting.get(Place(occupant.replicated_job, occupant.job_index)) is not None

    def lacks_hosts(self, pool: Pool) -> bool:
        """Return whether a pool has fewer hosts that are Ready than its slice should."""
        hosts = self.hosts.of(pool)
        return sum(host.ready for host in hosts) < max((host.expected or 0 for host in hosts), default=0)

    def on_hosts(self, leader: Leader) -> Occupant | None:
        """Return the Job of a leader that is or was on a node; None if it is not live, or the leader on none."""
        return self._occupant(leader) if leader.node is not None else None

    def _led(self, pool: Pool) -> list[Occupant]:
        """Return the Jobs whose leaders are bound to a pool's hosts; of those that share it, the first there counts."""
        there: defaultdict[tuple[str | None, str], list[Leader]] = defaultdict(list)
        for host in self.hosts.of(pool):
            for leader in self.leaders.on(host.node):
                there[leader.workload_uid, leader.asks.replicated_job].append(leader)
        led = list[Occupant]()
        for (uid, name), leaders in there.items():
            workload = self._workloads.get(uid or "")
            shared = workload is not None and name in workload.sharing
            led += self._first_there(leaders) if shared else self._occupants(leaders)
        return led

    def _first_there(self, leaders: Iterable[Leader]) -> list[Occupant]:
        """Return what the pods of the first of these Jobs are on their hosts; there may be thousands of Jobs."""
        by_job = groupby(sorted(leaders, key=_INDEX), key=_INDEX)
        return next(filter(None, (self._occupants(pods) for _, pods in by_job)), [])

    def _occupants(self, leaders: Iterable[Leader]) -> list[Occupant]:
        return [occupant for each in leaders if (occupant := self._occupant(each)) is not None]

    def _occupant(self, leader: Leader) -> Occupant | None:
        workload = self.workload_of(leader)
        return occupant_of(leader, workload) if workload is not None else None

    def _staying(self, occupant: Occupant) -> Occupant | None:
        """Return a Job that stays without its leader, as of now; None if it is not live, or its leader is elsewhere."""
        workload = self._workloads.get(occupant.owner.uid)
        if workload is None or not is_live(workload):
            return None
        pods = self.pods_of(workload, Place(occupant.replicated_job, occupant.job_index))
        if any(self.hosts.get(leader.node) is not None for leader in pods):
            return None
        return replace(occupant, generation=workload.ref.generation)

    def leaders_at(self, node: str) -> list[Leader]:
        """Return the leader pods on a node."""
        return sorted(self.leaders.on(node), key=lambda leader: leader.pod_uid)

    def pools_of(self, name: WorkloadName) -> frozenset[Pool]:
        """Return the pools that the pods of the workload of this name are on, and its legacy pools."""
        led = self.pools_at(*(leader.node for leader in self.leaders.of(name)))
        return led | self.hosts.legacy_pools(name) | self.stays.pools_of(self._uids.get(name))

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
        job = job_named(pool.job, self.cluster, workload.ref, workload.requests) if workload else None
        return PoolKey(claim_id(job), 0) if job else None

    def legacy_pool(self, key: PoolKey) -> Pool | None:
        """Return the legacy pool of a slice; the key itself if there is none.

        None: a pool may be the slice's, but its JobSet is gone, or another one has its name, so nobody can tell.
        """
        legacy = [pool for pool in self.hosts.pools() if isinstance(pool, LegacyPool)]
        known = next((pool for pool in legacy if self.key_of(pool) == key), None)
        if known is not None:
            return known
        return None if any(may_be_of(pool, key.slice_id, self.cluster) for pool in legacy) else key


def _may_ask(workload: Workload) -> bool:
    return workload.parse_error is None and is_live(workload)
