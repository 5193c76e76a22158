"""The topics that each cluster has of its own, as infra/messaging.yaml names them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from tpu_slices.domain.model.slices import ClusterId, cluster_id
from tpu_slices.ports.errors import Permanent

OPERATIONS = "cloud-operations"
PROJECT_TICKS = "project-ticks"
"""The topics that the project has once: each event of one has all clusters looked at."""


class Topic(StrEnum):
    """What a topic of a cluster carries, with which its name begins."""

    FACTS = "facts"
    """Of the cluster's relay, which alone may publish there."""
    REQUESTS = "requests"
    """To reconcile a slice."""
    UPDATES = "updates"
    """What the cluster's relay writes to objects, most of it as Events."""
    QUESTIONS = "questions"
    """To the cluster's relay, which no update may delay."""
    NOTIFICATIONS = "notifications"
    """Of its workloads, to targets outside of it."""
    TICKS = "ticks"
    """Each has the cluster swept."""

    def of(self, cluster: ClusterId) -> str:
        """Return the name of the cluster's topic."""
        return f"{self}-{cluster}"

    def subscription(self, cluster: ClusterId) -> str:
        """Return the name of the one subscription to the cluster's topic."""
        return f"{_READ_BY[self]}-{cluster}"

    def cluster(self, topic: str) -> ClusterId:
        """Return the cluster whose topic has this name; raise Permanent if it is another topic."""
        begins = self.of(ClusterId(""))
        if not topic.startswith(begins) or topic == begins:
            raise Permanent(f'topic: "{topic}" is not a topic for {self}, {begins}CLUSTER')
        try:
            return cluster_id(topic.removeprefix(begins))
        except ValueError as error:
            raise Permanent(f"topic: {error}") from error


_READ_BY: Mapping[Topic, str] = MappingProxyType(
    {
        Topic.FACTS: "receive-facts",
        Topic.REQUESTS: "reconcile-requests",
        Topic.UPDATES: "relay",
        Topic.QUESTIONS: "questions",
        Topic.NOTIFICATIONS: "notify",
        Topic.TICKS: "sweep-ticks",
    }
)
"""How the name of the subscription to each begins: a function's is pushed to it, the relay pulls the others."""
