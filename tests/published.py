"""The facts that a relay publishes, on the Pub/Sub emulator."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

from google.cloud.pubsub_v1 import PublisherClient, SubscriberClient

from tpu_slices.domain.model.facts import Fact
from tpu_slices.wire.messages import decode_fact
from tpu_standins.patience import PATIENCE_SECONDS

LEASE_SECONDS = 600
"""As long as Pub/Sub allows: what is being looked at is not delivered again."""


def pulled(subscriber: Any, subscription: str) -> list[Any]:
    """Return the messages that a subscription has now, if any: a call that waits may be given some too late."""
    asked = {"subscription": subscription, "max_messages": 100, "return_immediately": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of return_immediately, which costs throughput
        received = subscriber.pull(request=asked, timeout=PATIENCE_SECONDS).received_messages
    if received:
        subscriber.acknowledge(subscription=subscription, ack_ids=[each.ack_id for each in received])
    return [each.message for each in received]


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
            ("updates-demo", "relay-demo"),
            ("questions-demo", "questions-demo"),
        ):
            where = f"projects/{self.project}/topics/{topic}"
            publisher.create_topic(name=where)
            self._subscriber.create_subscription(
                name=self._named(subscription), topic=where, ack_deadline_seconds=LEASE_SECONDS
            )

    def pull(self) -> list[Fact]:
        """Pull what was published meanwhile; return everything so far."""
        self.facts += [
            decode_fact(each.data, each.attributes) for each in pulled(self._subscriber, self._named("facts"))
        ]
        return self.facts

    def _named(self, subscription: str) -> str:
        return f"projects/{self.project}/subscriptions/{subscription}"
