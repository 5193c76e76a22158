"""The pods beside leaders, by identity and by their Jobs and groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from relay.hosts.index import discard
from relay.objects import Follower, Kind, Place, WorkloadName


class Followers:
    """What was last seen of each."""

    def __init__(self) -> None:
        self._pods: dict[str, Follower] = {}
        self._at: defaultdict[tuple[WorkloadName, Place], set[str]] = defaultdict(set)

    def put(self, seen: Follower) -> Follower | None:
        """Store a pod as it is now; return what it was before, None if it is new."""
        before = self.drop(seen.pod_uid)
        self._pods[seen.pod_uid] = seen
        self._at[seen.workload, seen.place].add(seen.pod_uid)
        return before

    def drop(self, identity: str) -> Follower | None:
        """Remove a pod; return what it was, None if it is not known."""
        found = self._pods.pop(identity, None)
        if found is not None:
            discard(self._at, (found.workload, found.place), identity)
        return found

    def get(self, identity: str) -> Follower | None:
        return self._pods.get(identity)

    def of(self, workload: WorkloadName, place: Place) -> Iterator[Follower]:
        """Yield the pods of a Job or group, as their labels say."""
        return (self._pods[each] for each in self._at.get((workload, place), ()))

    def identities(self, kind: Kind) -> frozenset[str]:
        return frozenset(uid for uid, each in self._pods.items() if each.kind is kind)
