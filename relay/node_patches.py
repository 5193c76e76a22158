"""The patches that nodes need: labels and taints for exclusive placement, and cordons. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from relay.closing import Closing
from relay.cluster_cache import ClusterCache
from relay.objects import NodePatch, Pool
from tpu_slices.ports.log_events import LogEvent


def needed_patches(cache: ClusterCache, closing: Closing) -> tuple[NodePatch, ...]:
    """Return one patch per node: what closes or opens it goes before its labels."""
    cordons = {each.node: each for pool in closing.pools for each in _cordons(pool, cache, closing)}
    labels = (
        NodePatch(node=host.node, pool=host.pool, patch=host.unlabeled, failure=LogEvent.NODE_LABEL_FAILED)
        for host in cache.hosts.unlabeled()
        if host.unlabeled is not None and host.node not in cordons
    )
    return (*cordons.values(), *labels)


def _cordons(pool: Pool, cache: ClusterCache, closing: Closing) -> Iterator[NodePatch]:
    """Yield what closes or opens hosts; hosts that a Job is on are not closed, unless its pods are to be evicted."""
    patches = tuple(closing.patches(pool, cache.hosts.of(pool)))
    if patches and closing.closes(pool) and closing.evicting(pool) is None and cache.occupants(pool):
        return
    for host, patch in patches:
        yield NodePatch(node=host.node, pool=pool, patch=patch, failure=LogEvent.NODE_CLOSE_FAILED)
