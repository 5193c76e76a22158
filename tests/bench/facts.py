"""What the relay has published, pulled from the Pub/Sub emulator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import grpc
from google import pubsub_v1
from google.api_core.exceptions import DeadlineExceeded
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport

from infra.local.addresses import Addresses
from tpu_slices.domain.model.facts import HostsChanged
from tpu_slices.wire.messages import decode_fact


@dataclass
class Facts:
    """All facts since the relay has started."""

    subscriber: pubsub_v1.SubscriberClient
    subscription: str
    hosts: dict[str, HostsChanged] = field(default_factory=dict)
    """The last fact of each slice's hosts."""

    @classmethod
    @contextmanager
    def of(cls, addresses: Addresses) -> Iterator[Facts]:
        name = f"projects/{addresses.project}/subscriptions/receive-facts-{addresses.cluster_id}"
        with grpc.insecure_channel(addresses.pubsub) as channel:
            yield cls(pubsub_v1.SubscriberClient(transport=SubscriberGrpcTransport(channel=channel)), name)

    def used_slices(self, hosts: int) -> set[str]:
        """Return the owners of slices with so many usable hosts whose leader runs on them, as told so far."""
        while self._pull():
            continue
        return {
            occupant.owner.name for fact in self.hosts.values() if fact.usable == hosts for occupant in fact.occupants
        }

    def _pull(self) -> bool:
        """Return whether there was a message."""
        try:
            answer = self.subscriber.pull(subscription=self.subscription, max_messages=500, timeout=2)
        except DeadlineExceeded:
            return False
        for each in answer.received_messages:
            fact = decode_fact(each.message.data, each.message.attributes)
            if isinstance(fact, HostsChanged):
                known = self.hosts.get(fact.slice_id, fact)
                self.hosts[fact.slice_id] = max(known, fact, key=lambda one: one.sequence)
        acks = [each.ack_id for each in answer.received_messages]
        if acks:
            self.subscriber.acknowledge(subscription=self.subscription, ack_ids=acks)
        return bool(acks)
