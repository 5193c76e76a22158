"""Keeps the cluster's Node objects in sync with the hosts: the port, an in-memory implementation, and the keeper."""

import logging
from collections.abc import Mapping
from typing import Protocol

from infra.local.gke.hosts import Appearance, Manifest, node
from infra.local.gke.state import State

_log = logging.getLogger(__name__)


class NodesUnavailableError(Exception):
    """The API server did not accept a request. Temporary: it is retried."""


class Nodes(Protocol):
    """Node objects of one cluster. Each method is safe to repeat and raises NodesUnavailableError."""

    def register(self, node: Manifest) -> None:
        """Create the Node, or update an existing one of that name."""

    def update(self, node: Manifest) -> None:
        """Set labels, status, cordon and termination notice of the Node as given; register it if it is gone.

        Taints and labels that others have added since it was registered are kept.
        """

    def drain(self, name: str) -> None:
        """Evict the pods bound to the Node, each with its own grace period."""

    def remove(self, name: str) -> None:
        """Delete the Node if it exists. The cluster garbage-collects its pods, with the condition that says so."""


class RememberedNodes:
    """Nodes in memory, by name, for a control plane without a cluster."""

    def __init__(self) -> None:
        self.nodes: dict[str, Manifest] = {}

    def register(self, node: Manifest) -> None:
        self.nodes[node["metadata"]["name"]] = node

    def update(self, node: Manifest) -> None:
        self.register(node)

    def drain(self, name: str) -> None:
        """Do nothing: there are no pods."""

    def remove(self, name: str) -> None:
        self.nodes.pop(name, None)


class NodeKeeper:
    """Remembers what it last sent to the API server, and sends only changes. Not thread-safe."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._told: dict[str, Appearance] = {}

    @property
    def standing(self) -> frozenset[tuple[str, int]]:
        """Return name and life of the hosts whose Node exists in the API."""
        return frozenset((name, seen.life) for name, seen in self._told.items())

    def follow(self, state: State, wanted: Mapping[str, Appearance]) -> bool:
        """Bring the API to the wanted state; return False if some of it must be retried."""
        try:
            for name in [name for name, seen in self._told.items() if not _same_vm(seen, wanted.get(name))]:
                self._nodes.remove(name)
                del self._told[name]
            for name, seen in wanted.items():
                self._tell(state, name, seen)
        except NodesUnavailableError as error:
            _log.warning("nodes are out of date: %s", error)
            return False
        return True

    def _tell(self, state: State, name: str, seen: Appearance) -> None:
        told = self._told.get(name)
        if told == seen:
            return
        host = state.hosts[name]
        manifest = node(host, state.pools[host.pool], seen)
        if told is None:
            self._nodes.register(manifest)
        else:
            self._nodes.update(manifest)
        if seen.drains:
            self._nodes.drain(name)
        self._told[name] = seen


def _same_vm(told: Appearance, wanted: Appearance | None) -> bool:
    return wanted is not None and wanted.life == told.life
