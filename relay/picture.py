"""The cluster as the relay sees it now, and what follows from that. No time, no memory of what was said."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from relay.seen import Host, JobSet, JobSetName, Kind, Leader, PoolKey, Seen
from shared.domain.facts import JobSetState, Occupant, WaitingLeader
from shared.domain.slices import JobSetUid

K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Count:
    """The hosts of one pool."""

    usable: int
    joined: int
    whole: bool
    """All hosts that the slice has are usable. No hosts are never all."""


@dataclass(frozen=True, slots=True)
class Berth:
    """A leader on the hosts of a pool."""

    pool: PoolKey
    occupant: Occupant


class Picture:
    """Objects by identity, and the ways that lead from one to the others."""

    def __init__(self) -> None:
        self._jobsets: dict[str, JobSet] = {}
        self._leaders: dict[str, Leader] = {}
        self._hosts: dict[str, Host] = {}
        self._uids: dict[JobSetName, JobSetUid] = {}
        self._pods: defaultdict[JobSetName, set[str]] = defaultdict(set)
        self._nodes: defaultdict[PoolKey, set[str]] = defaultdict(set)
        self._aboard: defaultdict[str, set[str]] = defaultdict(set)

    def put(self, seen: Seen) -> Seen | None:
        """Take in an object as it is now; give what it was before."""
        match seen:
            case JobSet():
                before: Seen | None = self._jobsets.get(seen.identity)
                self._jobsets[seen.identity] = seen
                self._uids[seen.name] = seen.ref.uid
            case Leader():
                before = self.drop(Kind.LEADERS, seen.identity)
                self._leaders[seen.identity] = seen
                self._pods[seen.jobset].add(seen.identity)
                if seen.node is not None:
                    self._aboard[seen.node].add(seen.identity)
            case Host():
                before = self.drop(Kind.HOSTS, seen.identity)
                self._hosts[seen.identity] = seen
                self._nodes[seen.pool].add(seen.identity)
        return before

    def drop(self, kind: Kind, identity: str) -> Seen | None:
        """Forget an object; give what it was."""
        match kind:
            case Kind.JOBSETS:
                jobset = self._jobsets.pop(identity, None)
                if jobset is not None and self._uids.get(jobset.name) == identity:
                    del self._uids[jobset.name]
                return jobset
            case Kind.LEADERS:
                leader = self._leaders.pop(identity, None)
                if leader is not None:
                    _discard(self._pods, leader.jobset, identity)
                    _discard(self._aboard, leader.node or "", identity)
                return leader
            case Kind.HOSTS:
                host = self._hosts.pop(identity, None)
                if host is not None:
                    _discard(self._nodes, host.pool, identity)
                return host

    def identities(self, kind: Kind) -> frozenset[str]:
        match kind:
            case Kind.JOBSETS:
                return frozenset(self._jobsets)
            case Kind.LEADERS:
                return frozenset(self._leaders)
            case Kind.HOSTS:
                return frozenset(self._hosts)

    def jobset(self, uid: JobSetUid) -> JobSet | None:
        return self._jobsets.get(uid)

    def jobset_of(self, leader: Leader) -> JobSet | None:
        """Find a leader's JobSet by its name: a pod that is left over from an earlier JobSet of that name has none."""
        uid = self._uids.get(leader.jobset)
        if uid is None or leader.jobset_uid not in {None, uid}:
            return None
        return self._jobsets[uid]

    def leaders_of(self, jobset: JobSet) -> Iterator[Leader]:
        leaders = (self._leaders[pod] for pod in self._pods.get(jobset.name, ()))
        return (leader for leader in leaders if self.jobset_of(leader) is jobset)

    def waiting(self, uid: JobSetUid) -> tuple[WaitingLeader, ...]:
        """Name the leaders that ask us for a slice, each once, where their JobSet is active and served by us."""
        jobset = self._jobsets.get(uid)
        if jobset is None or not jobset.served or jobset.state is not JobSetState.ACTIVE:
            return ()
        places = {leader.place for leader in self.leaders_of(jobset) if leader.waiting}
        return tuple(sorted(places, key=lambda place: (place.replicated_job, place.job_index)))

    def live_uids(self) -> tuple[JobSetUid, ...]:
        """Name the TPU JobSets that have not ended, whoever serves them."""
        return tuple(sorted(jobset.ref.uid for jobset in self._jobsets.values() if not jobset.state.ended))

    def has_hosts(self, uid: JobSetUid) -> bool:
        return any(host.jobset_uid == uid for host in self._hosts.values())

    def count(self, pool: PoolKey) -> Count:
        hosts = [self._hosts[node] for node in self._nodes.get(pool, ())]
        usable = sum(host.usable for host in hosts)
        expected = max((host.expected or 0 for host in hosts), default=0) or len(hosts)
        return Count(usable, len(hosts), 0 < expected <= usable)

    def aboard(self, node: str) -> frozenset[str]:
        """Name the leader pods that are bound to a node."""
        return frozenset(self._aboard.get(node, ()))

    def berth(self, pod_uid: str) -> Berth | None:
        """Say on which pool of ours a leader is, and for whom; None where it is on none, or its JobSet is gone."""
        leader = self._leaders.get(pod_uid)
        host = self._hosts.get(leader.node or "") if leader else None
        jobset = self.jobset_of(leader) if leader else None
        if leader is None or host is None or jobset is None:
            return None
        occupant = Occupant(
            namespace=leader.jobset.namespace,
            jobset=leader.jobset.name,
            jobset_uid=jobset.ref.uid,
            job=leader.job,
            pod_uid=pod_uid,
        )
        return Berth(host.pool, occupant)


def _discard(index: dict[K, set[str]], key: K, member: str) -> None:
    """Take a member out of an index, and the key with the last of them."""
    members = index.get(key)
    if members is None:
        return
    members.discard(member)
    if not members:
        del index[key]
