"""The facts that a relay publishes, on the Pub/Sub emulator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from google.api_core.exceptions import DeadlineExceeded
from google.cloud.pubsub_v1 import PublisherClient, SubscriberClient

from tpu_slices.domain.model.facts import Fact
from tpu_slices.wire.messages import decode_fact

LEASE_SECONDS = 600
"""As long as Pub/Sub allows: what is being looked at is not delivered again."""


@dataclass
class Published:
    """The topics of a relay of the cluster `demo`, and what it has published so far."""

    project: str
    facts: list[Fact] = field(default_factory=list)
    _subscriber: Any = field(default_factory=SubscriberClient)

    def __post_init__(self) -> None:
        publisher = PublisherClient()
        for topic, subscription in (
            ("facts-demo", "facts"),
            ("slice-updates", "relay-demo"),
            ("relay-questions", "questions-demo"),
        ):
            where = f"projects/{self.project}/topics/{topic}"
            publisher.create_topic(name=where)
            self._subscriber.create_subscription(
                name=self._named(subscription), topic=where, ack_deadline_seconds=LEASE_SECONDS
            )

    def pull(self) -> list[Fact]:
        """Pull what was published meanwhile; return everything so far."""
        try:
            answer = self._subscriber.pull(subscription=self._named("facts"), max_messages=100, timeout=1, retry=None)
        except DeadlineExceeded:
            return self.facts
        received = answer.received_messages
        self.facts += [decode_fact(each.message.data, each.message.attributes) for each in received]
        if received:
            ids = [each.ack_id for each in received]
            self._subscriber.acknowledge(subscription=self._named("facts"), ack_ids=ids)
        return self.facts

    def _named(self, subscription: str) -> str:
        return f"projects/{self.project}/subscriptions/{subscription}"
