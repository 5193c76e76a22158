"""What one test alone uses of a cluster that others share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from tpu_standins.clients.api import Api
from tpu_standins.testing.parts import POOL, add_node, found, items, waited

TEST = "test"
"""Label of a test's nodes."""


@dataclass(frozen=True)
class Place:
    """A namespace, and nodes of the same name, that one test alone uses."""

    api: Api
    name: str
    host_labels: ClassVar[Mapping[str, str]] = {}
    """Labels of its nodes beside TEST."""

    def add_pools(self, *pools: str, hosts: int = 2) -> None:
        for pool in pools:
            for host in range(hosts):
                labels = {TEST: self.name, **self.host_labels}
                add_node(self.api, f"{self.name}-{pool}-{host}", f"{self.name}-{pool}", **labels)

    def pools_with(self, label: str, value: str) -> set[str]:
        """Return the pools in which the pods with a label are."""
        pods = [pod for pod in items(self.api, "pods", self.name) if pod["metadata"]["labels"][label] == value]
        return {self.api.get("nodes", None, pod["spec"]["nodeName"])["metadata"]["labels"][POOL] for pod in pods}


def namespace_for(api: Api, test: str) -> str:
    """Create a namespace for a test, with the account that pods need; return its name."""
    name = f"t{abs(hash(test)) % 10**8}"
    api.create("namespaces", {"metadata": {"name": name}})
    waited(lambda: found(api, "serviceaccounts", name, "default"), "the account of pods")
    return name
