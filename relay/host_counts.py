"""What was published of each pool's hosts, and which changes are published at once. Pure: time is passed in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from relay.objects import Host, Pool, PoolKey
from tpu_slices.domain.model.facts import HostsChanged, Occupant
from tpu_slices.domain.model.hosts import MOST_KEYS, HostKey, of_all
from tpu_slices.domain.model.pods import JobPods
from tpu_slices.domain.records.hosts import Hosts, digest_of


@dataclass(frozen=True, slots=True)
class Count:
    """The hosts of one pool."""

    hosts: Hosts
    whole: bool
    """Every host that the slice should have is usable; False if there are no hosts."""
    ours: int = field(default=0, compare=False)
    """The hosts that the relay cordoned."""

    @property
    def all_closed(self) -> bool:
        return 0 < self.hosts.joined == self.hosts.closed

    def fact(self, key: PoolKey, sequence: int) -> HostsChanged:
        """Return the report of this count as that of a slice's attempt."""
        return HostsChanged(
            slice_id=key.slice_id,
            attempt=key.attempt,
            usable=self.hosts.usable,
            joined=self.hosts.joined,
            closed=self.hosts.closed,
            maintained=self.hosts.maintained,
            announced=self.hosts.announced,
            sound=self.hosts.sound,
            keys=self.hosts.keys,
            pods=self.hosts.pods,
            occupants=self.hosts.occupants,
            sequence=sequence,
        )

    def with_pods(self, pods: tuple[JobPods, ...]) -> Count:
        return replace(self, hosts=replace(self.hosts, pods=pods)) if pods else self

    def differs_at_once(self, earlier: Count) -> bool:
        """Return whether a change from an earlier count must not wait; that leaders left may."""
        return self._urgent != earlier._urgent or not {*self.hosts.occupants} <= {*earlier.hosts.occupants}

    @property
    def _urgent(self) -> tuple[object, ...]:
        keys = frozenset(each.key for each in self.hosts.keys)
        return self.whole, self.all_closed, self.hosts.joined > 0, keys


def count_of(hosts: Sequence[Host], closed: int, occupants: tuple[Occupant, ...]) -> Count:
    """Return the count of a pool with these hosts."""
    usable = sum(host.usable for host in hosts)
    expected = max((host.expected or 0 for host in hosts), default=0) or len(hosts)
    maintained = sum(host.maintained for host in hosts)
    known = Hosts(
        usable=usable,
        joined=len(hosts),
        closed=closed,
        maintained=maintained,
        announced=of_all(host.announced for host in hosts),
        sound=sum(host.sound for host in hosts),
        keys=_keys(hosts),
        occupants=occupants,
    )
    return Count(known, whole=0 < expected <= usable, ours=sum(host.closed_for is not None for host in hosts))


def _keys(hosts: Sequence[Host]) -> tuple[HostKey, ...]:
    """Return how many hosts carry which key, the most frequent ones, always in the same order."""
    counted = Counter(host.key for host in hosts)
    found = sorted(counted.items(), key=lambda each: (-each[1], each[0]))
    return tuple(HostKey(*each) for each in found[:MOST_KEYS])


class PublishedCounts:
    """The last published count of each pool with hosts, and under which slices it was published.

    A legacy pool belongs to a JobSet by name: to another slice once the JobSet was created anew. Its count is then
    published under both slices, so that whoever is on its hosts is known before it is deleted for the earlier one.
    """

    def __init__(self, count_every: timedelta, vacated_after: timedelta) -> None:
        self._count_every = count_every
        self._vacated_after = vacated_after
        self._last: dict[Pool, tuple[Count, datetime]] = {}
        self._keys: dict[Pool, frozenset[PoolKey]] = {}
        self._digests: dict[PoolKey, int] = {}

    @property
    def digests(self) -> Mapping[PoolKey, int]:
        """The digests of all pools with hosts."""
        return self._digests

    def legacy_pool(self, key: PoolKey) -> Pool | None:
        """Return the legacy pool that was published as this slice's attempt 0; None if there is none."""
        return next((pool for pool, keys in self._keys.items() if key in keys and pool != key), None)

    def last(self, pool: Pool) -> Count | None:
        """Return what was published last; None if the pool is new."""
        known = self._last.get(pool)
        return known[0] if known else None

    def due(self, pool: Pool, key: PoolKey | None, count: Count, now: datetime) -> datetime | None:
        """Return when a count must be published; None if it is published already, or for an unknown slice."""
        known = self._last.get(pool)
        if count.hosts.joined and key is not None and key not in self._keys.get(pool, ()):
            return now
        if known is None or count == known[0]:
            return None
        if count.differs_at_once(known[0]):
            return now
        left = count.hosts.occupants != known[0].hosts.occupants
        return now + self._vacated_after if left else known[1] + self._count_every

    def published(self, pool: Pool, key: PoolKey | None, count: Count, now: datetime) -> Sequence[PoolKey]:
        """Record that a count is published now; return the slices and attempts under which it must be."""
        keys = self._keys.pop(pool, frozenset()) | ({key} if key else set())
        for each in keys:
            self._digests.pop(each, None)
            if digest := digest_of(each.slice_id, each.attempt, count.hosts):
                self._digests[each] = digest
        self._last.pop(pool, None)
        if keys and count.hosts.joined:
            self._last[pool], self._keys[pool] = (count, now), keys
        return sorted(keys)
