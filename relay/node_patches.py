"""The patches that nodes need: labels and taints for exclusive placement, cordons and keys. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from relay.cluster_cache import ClusterCache
from relay.hosts.closing import Closing
from relay.objects import Pool
from tpu_slices.ports.log_events import LogEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePatch:
    """A JSON merge patch that a host needs."""

    node: str
    pool: Pool
    patch: Mapping[str, Any]
    failure: LogEvent
    """What is logged if the API server refuses it."""


def needed_patches(cache: ClusterCache, closing: Closing, now: datetime) -> tuple[NodePatch, ...]:
    """Return one patch per node: what closes or opens it goes before its labels."""
    cordons = {each.node: each for pool in closing.pools for each in _cordons(pool, cache, closing, now)}
    labels = (
        NodePatch(node=host.node, pool=host.pool, patch=host.unlabeled, failure=LogEvent.NODE_LABEL_FAILED)
        for host in cache.hosts.unlabeled()
        if host.unlabeled is not None and host.node not in cordons
    )
    return (*cordons.values(), *labels)


def _cordons(pool: Pool, cache: ClusterCache, closing: Closing, now: datetime) -> Iterator[NodePatch]:
    """Yield what closes or opens hosts; hosts that a Job is on are not closed, unless its pods are to be evicted."""
    patches = tuple(closing.patches(pool, cache.hosts.of(pool), now))
    if patches and closing.closes(pool) and closing.evicting(pool) is None and cache.occupants(pool):
        return
    for host, patch in patches:
        yield NodePatch(node=host.node, pool=pool, patch=patch, failure=LogEvent.NODE_CLOSE_FAILED)
