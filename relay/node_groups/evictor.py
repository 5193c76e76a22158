"""Evicts the pods from the closed hosts of TPUNodeGroups that were deleted, as `kubectl drain` does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from relay.cluster_cache import ClusterCache
from relay.hosts.closing import Closing
from relay.hosts.job_pods import has_ended
from relay.objects import Pool
from relay.translate import controller_of
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent

_log = structlog.get_logger()

MIRROR = "kubernetes.io/config.mirror"
"""The annotation of a pod that a kubelet runs by itself: it cannot be evicted."""


@dataclass(frozen=True, slots=True)
class Eviction:
    """A pool whose pods are evicted: its hosts that are closed, and whether all are."""

    pool: Pool
    nodes: tuple[str, ...]
    whole: bool


class Pods(Protocol):
    """As `relay.cluster.Cluster`: raises Temporary or Permanent if the API server refuses."""

    def pods_on(self, node: str) -> Sequence[Mapping[str, Any]]: ...

    def evict(self, namespace: str, pod: str) -> None: ...


def evictions(cache: ClusterCache, closing: Closing) -> tuple[Eviction, ...]:
    """Return the pools whose pods are to be evicted; a pod that is evicted too early comes back to an open host."""
    found = []
    for pool in closing.pools:
        hosts = cache.hosts.of(pool) if closing.evicting(pool) is not None else ()
        closed = tuple(host.node for host in hosts if host.cordoned)
        if closed:
            found.append(Eviction(pool, closed, whole=len(closed) == len(hosts)))
    return tuple(found)


def stays(pod: Mapping[str, Any]) -> bool:
    """Return whether a v1 Pod stays on its node: it has ended, or its controller or its kubelet would bring it back."""
    metadata = pod["metadata"]
    controller = controller_of(metadata)
    by_daemon_set = controller is not None and controller.kind == "DaemonSet"
    return has_ended(pod) or by_daemon_set or MIRROR in (metadata.get("annotations") or {})


class Evictor:
    """Looks again and again, until no pod is left or the time for it is over."""

    def __init__(
        self,
        needed: Callable[[], Sequence[Eviction]],  # raises Temporary
        pods: Pods,
        evicted: Callable[[Pool], None],
        look_every: float = 2.0,
    ) -> None:
        self._needed = needed
        self._pods = pods
        self._evicted = evicted
        self._look_every = look_every
        self._failed: set[Pool] = set()
        self._stopping = threading.Event()

    def run(self) -> None:
        """Evict pods until `stop` is called."""
        while not self._stopping.wait(self._look_every):
            self.look()

    def stop(self) -> None:
        self._stopping.set()

    def look(self) -> None:
        """Evict what is still there, and tell of each pool that has none left."""
        try:
            needed = self._needed()
        except Temporary:
            return
        self._failed &= {each.pool for each in needed}
        for each in needed:
            try:
                left = [pod for node in each.nodes for pod in self._pods.pods_on(node) if not stays(pod)]
                self._evict(left)
                if not left and each.whole:
                    self._evicted(each.pool)
            except (Temporary, Permanent) as trouble:
                if each.pool not in self._failed:
                    _log.warning(LogEvent.EVICTION_FAILED, pool=str(each.pool), error=str(trouble))
                self._failed.add(each.pool)

    def _evict(self, pods: Sequence[Mapping[str, Any]]) -> None:
        """Ask for the eviction of those that are not going yet; a disruption budget may refuse it for a while."""
        for pod in pods:
            if "deletionTimestamp" not in pod["metadata"]:
                self._pods.evict(pod["metadata"]["namespace"], pod["metadata"]["name"])
