"""Keeps the Node objects of hosts in sync with them: the port, an in-memory implementation, and the keeper."""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from tpu_standins.cloud.hosts import Appearance, Manifest, Readiness, ready_condition

_log = logging.getLogger(__name__)

LOOK_SECONDS = 2.0

Describe = Callable[[str, Appearance], Manifest]
"""From a host's name and what is to be seen of it to its Node."""


class NodesUnavailableError(Exception):
    """The API server did not accept a request. Temporary: it is retried."""


class Nodes(Protocol):
    """The Nodes of local hosts in one cluster. Each method is safe to repeat and raises NodesUnavailableError."""

    def standing(self) -> Mapping[str, str]:
        """Return the Nodes that exist: by name, the status of their condition Ready."""

    def register(self, node: Manifest) -> None:
        """Create the Node, or update an existing one of that name."""

    def update(self, node: Manifest) -> None:
        """Set labels, status, cordon and termination notice of the Node as given; register it if it is gone.

        A label that is None is removed. Taints and labels that others have added since it was registered are kept.
        """

    def drain(self, name: str) -> None:
        """Evict the pods bound to the Node, each with its own grace period."""

    def remove(self, name: str) -> None:
        """Delete the Node if it exists. The cluster garbage-collects its pods, with the condition that says so."""

    def silence(self, name: str) -> None:
        """Set the Node's Ready to Unknown, if it exists, as for a kubelet that posts nothing any more."""


class RememberedNodes:
    """Nodes in memory, by name, for a control plane without a cluster."""

    def __init__(self) -> None:
        self.nodes: dict[str, Manifest] = {}

    def standing(self) -> Mapping[str, str]:
        return {name: each["status"]["conditions"][0]["status"] for name, each in self.nodes.items()}

    def register(self, node: Manifest) -> None:
        self.nodes[node["metadata"]["name"]] = node

    def update(self, node: Manifest) -> None:
        self.register(with_labels_alone(node))

    def drain(self, name: str) -> None:
        """Do nothing: there are no pods."""

    def remove(self, name: str) -> None:
        self.nodes.pop(name, None)

    def silence(self, name: str) -> None:
        if name in self.nodes:
            self.nodes[name]["status"]["conditions"] = [ready_condition(Readiness.SILENT)]


class NodeKeeper:
    """Sends changes to the API server, and looks at intervals whether its Nodes are still so. Not thread-safe.

    | Node                                              | is then                      |
    |---------------------------------------------------|------------------------------|
    | gone: somebody deleted it, or etcd lost its data  | registered again             |
    | Ready otherwise than it was told                  | updated                      |
    | of no host: those of a control plane before this  | removed                      |
    """

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._told: dict[str, Appearance] = {}
        self._changed: set[str] = set()
        self._look_at = 0.0

    @property
    def standing(self) -> frozenset[tuple[str, int]]:
        """Return name and life of the hosts whose Node exists in the API."""
        return frozenset((name, seen.life) for name, seen in self._told.items())

    def follow(
        self,
        wanted: Mapping[str, Appearance],
        describe: Describe,
        now: float,
        leaving: frozenset[str] = frozenset(),
    ) -> bool:
        """Bring the API to the wanted state; return False if some of it must be retried.

        Hosts that are `leaving` are drained before they go, also if nobody looked while they were to drain.
        """
        try:
            if now >= self._look_at:
                self._look(wanted)
                self._look_at = now + LOOK_SECONDS
            for name in [name for name, seen in self._told.items() if not _same_vm(seen, wanted.get(name))]:
                if name in leaving and not self._told[name].drains:
                    self._nodes.drain(name)
                self._part(name)
                del self._told[name]
            for name, seen in wanted.items():
                self._tell(name, seen, describe)
        except NodesUnavailableError as error:
            _log.warning("nodes are out of date: %s", error)
            return False
        return True

    def _look(self, wanted: Mapping[str, Appearance]) -> None:
        standing = self._nodes.standing()
        for name in standing.keys() - self._told.keys() - wanted.keys():
            self._part(name)
        self._told = {name: seen for name, seen in self._told.items() if name in standing}
        self._changed = {name for name, seen in self._told.items() if standing[name] != seen.readiness.value[0]}

    def _part(self, name: str) -> None:
        """Do what is done with the Node of a VM that is gone."""
        self._nodes.remove(name)

    def _tell(self, name: str, seen: Appearance, describe: Describe) -> None:
        told = self._told.get(name)
        if told == seen and name not in self._changed:
            return
        manifest = describe(name, seen)
        if told is None:
            self._nodes.register(manifest)
        else:
            gone = told.labels.keys() - manifest["metadata"]["labels"].keys()
            self._nodes.update(without_labels(manifest, gone) if gone else manifest)
        if seen.drains:
            self._nodes.drain(name)
        self._told[name] = seen
        self._changed.discard(name)


def without_labels(manifest: Manifest, keys: Iterable[str]) -> Manifest:
    """Return a Node as a JSON merge patch that removes these labels, too."""
    metadata = manifest["metadata"]
    return {**manifest, "metadata": {**metadata, "labels": {**dict.fromkeys(keys), **metadata["labels"]}}}


def with_labels_alone(node: Manifest) -> Manifest:
    """Return a Node as it is made, by what `without_labels` returns."""
    labels = {key: value for key, value in node["metadata"]["labels"].items() if value is not None}
    return {**node, "metadata": {**node["metadata"], "labels": labels}}


def _same_vm(told: Appearance, wanted: Appearance | None) -> bool:
    return wanted is not None and wanted.life == told.life
