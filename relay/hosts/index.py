"""The hosts that the relay sees, by the names of their nodes, by pool, and by whom the pools were made for. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from typing import TypeVar

from relay.objects import Host, Pool, WorkloadName
from tpu_slices.domain.model.observations import LegacyPool
from tpu_slices.domain.model.slices import WorkloadUid

K = TypeVar("K", bound=Hashable)
M = TypeVar("M", bound=Hashable)
Maker = WorkloadUid | WorkloadName | None


class HostIndex:
    """Hosts by the names of their nodes. An index has no entry for what has no hosts."""

    def __init__(self) -> None:
        self._hosts: dict[str, Host] = {}
        self._nodes: defaultdict[Pool, set[str]] = defaultdict(set)
        self._made_for: defaultdict[Maker, set[str]] = defaultdict(set)
        self._keyed: defaultdict[str, set[str]] = defaultdict(set)
        self._unlabeled: set[str] = set()

    def put(self, host: Host) -> Host | None:
        """Store a host as it is now; return what it was before, None if it is new."""
        before = self.drop(host.node)
        self._hosts[host.node] = host
        self._nodes[host.pool].add(host.node)
        self._made_for[_maker(host)].add(host.node)
        self._keyed[host.key].add(host.node)
        if host.unlabeled is not None:
            self._unlabeled.add(host.node)
        return before

    def drop(self, node: str) -> Host | None:
        """Remove a host; return what it was, None if it is not known."""
        host = self._hosts.pop(node, None)
        if host is not None:
            discard(self._nodes, host.pool, node)
            discard(self._made_for, _maker(host), node)
            discard(self._keyed, host.key, node)
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

    def keyed(self, key: str) -> frozenset[Pool]:
        """Return the pools with hosts that carry a key."""
        return frozenset(self._hosts[node].pool for node in self._keyed.get(key, ()) if key)

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
