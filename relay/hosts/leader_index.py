"""The leader pods that the relay sees, by UID, by workload, by Job and by node. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from relay.hosts.index import discard
from relay.objects import Kind, Leader, Place, WorkloadName


class LeaderIndex:
    """Leader pods by UID. An index has no entry for what has no pods."""

    def __init__(self) -> None:
        self._leaders: dict[str, Leader] = {}
        self._of: defaultdict[WorkloadName, set[str]] = defaultdict(set)
        self._at: defaultdict[tuple[WorkloadName, Place], set[str]] = defaultdict(set)
        self._on: defaultdict[str, set[str]] = defaultdict(set)
        self._waiting: defaultdict[tuple[WorkloadName, str], set[str]] = defaultdict(set)
        self._running: defaultdict[tuple[WorkloadName, str], set[int]] = defaultdict(set)

    def put(self, leader: Leader) -> Leader | None:
        """Store a pod as it is now; return what it was before, None if it is new."""
        before = self.drop(leader.identity)
        self._leaders[leader.identity] = leader
        self._of[leader.workload].add(leader.identity)
        self._at[leader.workload, leader.place].add(leader.identity)
        if leader.node is not None:
            self._on[leader.node].add(leader.identity)
        if leader.waiting:
            self._waiting[leader.workload, leader.place.replicated_job].add(leader.identity)
        if not leader.ended:
            self._running[leader.workload, leader.place.replicated_job].add(leader.place.job_index)
        return before

    def drop(self, uid: str) -> Leader | None:
        """Remove a pod; return what it was, None if it is not known."""
        leader = self._leaders.pop(uid, None)
        if leader is not None:
            name, place = leader.workload, leader.place
            discard(self._of, name, uid)
            discard(self._at, (name, place), uid)
            discard(self._on, leader.node or "", uid)
            discard(self._waiting, (name, place.replicated_job), uid)
            if all(each.ended for each in self.at(name, place)):
                discard(self._running, (name, place.replicated_job), place.job_index)
        return leader

    def get(self, uid: str) -> Leader | None:
        return self._leaders.get(uid)

    def all(self) -> Iterator[Leader]:
        return iter(self._leaders.values())

    def uids(self, kind: Kind) -> frozenset[str]:
        return frozenset(uid for uid, each in self._leaders.items() if each.kind is kind)

    def count(self, name: WorkloadName) -> int:
        return len(self._of.get(name, ()))

    def of(self, name: WorkloadName) -> Iterator[Leader]:
        return (self._leaders[uid] for uid in self._of.get(name, ()))

    def at(self, name: WorkloadName, place: Place) -> Iterator[Leader]:
        """Return the pods of one Job or group."""
        return (self._leaders[uid] for uid in self._at.get((name, place), ()))

    def on(self, node: str) -> Iterator[Leader]:
        """Return the pods on a node."""
        return (self._leaders[uid] for uid in self._on.get(node, ()))

    def waiting(self, name: WorkloadName, replicated_job: str) -> Iterator[Leader]:
        """Return the pods of a replicatedJob, or of a workload without such, that wait."""
        return (self._leaders[uid] for uid in self._waiting.get((name, replicated_job), ()))

    def running(self, name: WorkloadName, replicated_job: str) -> Iterator[Iterator[Leader]]:
        """Yield the pods of each Job of a replicatedJob that has pods that have not ended, the first Job first."""
        for index in sorted(self._running.get((name, replicated_job), ())):
            yield (each for each in self.at(name, Place(replicated_job, index)) if not each.ended)
