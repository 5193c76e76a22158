"""The topics, subscriptions and schedules of infra/messaging.yaml, parsed, and created on the Pub/Sub emulator."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import yaml
from google import pubsub_v1
from google.api_core.exceptions import AlreadyExists, NotFound
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport

from infra.local.addresses import Addresses

TABLE = Path(__file__).parents[1] / "messaging.yaml"
_EACH = re.compile(r"\*(?:/([1-9]\d?))? \* \* \* \*")
EMULATED_ATTEMPTS = 100
"""What Pub/Sub allows at most. See `_request` for why the emulator tries a push so often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """One subscription; without a function it is a pull subscription. The two dead-letter fields go together."""

    name: str
    topic: str
    ack_deadline_seconds: int
    minimum_backoff_seconds: int
    maximum_backoff_seconds: int
    function: str | None = None
    max_delivery_attempts: int | None = None
    dead_letter_topic: str | None = None

    def __post_init__(self) -> None:
        if (self.max_delivery_attempts is None) != (self.dead_letter_topic is None):
            raise ValueError(f"{self.name}: max_delivery_attempts and dead_letter_topic go together")


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A message published periodically; `cron` is Cloud Scheduler's expression."""

    name: str
    topic: str
    cron: str
    data: str

    @property
    def minutes(self) -> int:
        """Return after how many minutes it comes again. Raises ValueError if its expression says anything else."""
        found = _EACH.fullmatch(self.cron)
        if found is None:
            raise ValueError(f'{self.name}: "{self.cron}" is neither each minute nor each few minutes')
        return int(found[1] or 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Messaging:
    """The whole table. Names may contain `{cluster}`, which `of_cluster` replaces."""

    topics: tuple[str, ...]
    subscriptions: tuple[Subscription, ...]
    schedules: tuple[Schedule, ...]

    def __post_init__(self) -> None:
        used = {each.topic for each in self.subscriptions} | {each.topic for each in self.schedules}
        used |= {each.dead_letter_topic for each in self.subscriptions if each.dead_letter_topic}
        if unknown := used - set(self.topics):
            raise ValueError(f"no such topics: {sorted(unknown)}")

    @property
    def functions(self) -> tuple[str, ...]:
        return tuple(sorted({each.function for each in self.subscriptions if each.function}))

    def of_cluster(self, cluster_id: str) -> "Messaging":
        def filled(text: str) -> str:
            return text.replace("{cluster}", cluster_id)

        return replace(
            self,
            topics=tuple(map(filled, self.topics)),
            subscriptions=tuple(
                replace(each, name=filled(each.name), topic=filled(each.topic)) for each in self.subscriptions
            ),
            schedules=tuple(replace(each, name=filled(each.name), topic=filled(each.topic)) for each in self.schedules),
        )

    def own_of(self, cluster_id: str) -> "Own":
        """Return what exists for this cluster alone."""
        filled, shared = self.of_cluster(cluster_id), {each for each in self.topics if "{cluster}" not in each}
        return Own(
            topics=tuple(each for each in filled.topics if each not in shared),
            subscriptions=tuple(each for each in filled.subscriptions if each.topic not in shared),
            schedules=tuple(each for each in filled.schedules if each.topic not in shared),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """A cluster's part of the table, which names topics that are not in it."""

    topics: tuple[str, ...]
    subscriptions: tuple[Subscription, ...]
    schedules: tuple[Schedule, ...]


def parsed(text: str) -> Messaging:
    """Parse the table. Raise TypeError for unknown or missing columns, ValueError for inconsistent rows."""
    table: Mapping[str, Any] = yaml.safe_load(text)
    return Messaging(
        topics=tuple(table["topics"]),
        subscriptions=tuple(Subscription(name=name, **row) for name, row in table["subscriptions"].items()),
        schedules=tuple(Schedule(name=name, **row) for name, row in table["schedules"].items()),
    )


def read() -> Messaging:
    return parsed(TABLE.read_text())


def create(messaging: Messaging, addresses: Addresses) -> None:
    """Create the topics and subscriptions that the emulator does not have yet."""
    with grpc.insecure_channel(addresses.pubsub) as channel:
        publisher = pubsub_v1.PublisherClient(transport=PublisherGrpcTransport(channel=channel))
        for topic in messaging.topics:
            with suppress(AlreadyExists):
                publisher.create_topic(name=addresses.topic_path(topic))
        subscriber = pubsub_v1.SubscriberClient(transport=SubscriberGrpcTransport(channel=channel))
        for each in messaging.subscriptions:
            with suppress(AlreadyExists):
                subscriber.create_subscription(request=_request(each, addresses))


def remove(own: Own, addresses: Addresses) -> None:
    """Delete the topics and subscriptions of a cluster that the emulator has."""
    with grpc.insecure_channel(addresses.pubsub) as channel:
        subscriber = pubsub_v1.SubscriberClient(transport=SubscriberGrpcTransport(channel=channel))
        for each in own.subscriptions:
            with suppress(NotFound):
                subscriber.delete_subscription(subscription=f"projects/{addresses.project}/subscriptions/{each.name}")
        publisher = pubsub_v1.PublisherClient(transport=PublisherGrpcTransport(channel=channel))
        for topic in own.topics:
            with suppress(NotFound):
                publisher.delete_topic(topic=addresses.topic_path(topic))


def _request(row: Subscription, addresses: Addresses) -> pubsub_v1.types.Subscription:
    """Return the request for one subscription.

    Pushed ones have no retry policy on the emulator, and so many attempts that a function may be down for 100 s: with
    a policy it never again delivers some of the messages that failed three times (seen with pubsub-emulator 0.8.20:
    five messages, an endpoint that is down for 5 s); without one it tries each again after a second.
    """
    request = pubsub_v1.types.Subscription(
        name=f"projects/{addresses.project}/subscriptions/{row.name}",
        topic=addresses.topic_path(row.topic),
        ack_deadline_seconds=row.ack_deadline_seconds,
        expiration_policy=pubsub_v1.types.ExpirationPolicy(),  # no ttl: never expires
    )
    if row.function:
        request.push_config.push_endpoint = addresses.endpoint(row.function, row.topic)
    else:
        request.retry_policy.minimum_backoff = timedelta(seconds=row.minimum_backoff_seconds)
        request.retry_policy.maximum_backoff = timedelta(seconds=row.maximum_backoff_seconds)
    if row.dead_letter_topic:
        request.dead_letter_policy = pubsub_v1.types.DeadLetterPolicy(
            dead_letter_topic=addresses.topic_path(row.dead_letter_topic),
            max_delivery_attempts=EMULATED_ATTEMPTS if row.function else row.max_delivery_attempts,
        )
    return request
