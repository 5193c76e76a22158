"""The publisher on Google Cloud Pub/Sub. Its client (google.cloud.pubsub_v1) ships no types: they are declared here."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from concurrent import futures
from datetime import datetime
from typing import Protocol

from google.api_core import exceptions
from google.api_core.retry import Retry, if_exception_type
from google.cloud.pubsub_v1 import PublisherClient, types

from tpu_slices.domain.model.facts import HostsChanged
from tpu_slices.domain.model.joining import JoinToken
from tpu_slices.domain.model.notifications import Notification
from tpu_slices.domain.model.questions import AnyQuestion, EchoQuestion
from tpu_slices.domain.model.slices import ClaimId, ClusterId, SliceId, WorkloadUid
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.publisher import AnyMirror, NodeGroupUpdate, SliceUpdate, WorkloadUpdate
from tpu_slices.wire.messages import (
    Message,
    encode_answer,
    encode_echo_request,
    encode_join_request,
    encode_mirror,
    encode_node_group,
    encode_notification,
    encode_question,
    encode_reconcile_request,
    encode_report,
    encode_update,
)
from tpu_slices.wire.topics import Topic

PATIENCE = 20.0
"""Seconds within which Pub/Sub must accept all messages of a call."""
GATHERED = 0.001
"""Seconds for which the client gathers messages of one topic: ten times as many by default, in which a pod waits."""

_RETRYABLE = if_exception_type(
    exceptions.Aborted,
    exceptions.Cancelled,
    exceptions.DeadlineExceeded,
    exceptions.InternalServerError,
    exceptions.ResourceExhausted,
    exceptions.ServiceUnavailable,
    exceptions.Unknown,
)
"""The errors after which the client itself retries a publish by default (google.pubsub.v1.Publisher)."""


class PubSubClient(Protocol):
    """The part of `google.cloud.pubsub_v1.PublisherClient` that is used; the future's result is the message id."""

    def publish(self, topic: str, data: bytes, **attributes: str) -> futures.Future[str]: ...


class PubSubPublisher:
    """The port `Publisher` on the topics that each cluster has in one project."""

    def __init__(self, publisher: PubSubClient, project: str, patience: float = PATIENCE) -> None:
        self._publisher = publisher
        self._project = project
        self._patience = patience

    def request_reconcile(
        self,
        cluster: ClusterId,
        slices: Collection[ClaimId | SliceId],
        waiting: WorkloadUid | None = None,
        *,
        ended: bool = False,
    ) -> None:
        requests = (encode_reconcile_request(cluster, slice_, waiting, ended=ended) for slice_ in slices)
        self._publish(Topic.REQUESTS, cluster, requests)

    def pass_on(self, cluster: ClusterId, slice_: SliceId, answer: HostsChanged) -> None:
        self._publish(Topic.REQUESTS, cluster, [encode_answer(cluster, slice_, answer)])

    def request_echo(self, cluster: ClusterId, asked_at: datetime) -> None:
        self._publish(Topic.REQUESTS, cluster, [encode_echo_request(cluster, asked_at)])

    def request_join(self, cluster: ClusterId, token: JoinToken) -> None:
        self._publish(Topic.REQUESTS, cluster, [encode_join_request(cluster, token)])

    def announce(self, cluster: ClusterId, updates: Collection[SliceUpdate]) -> None:
        self._publish(Topic.UPDATES, cluster, (encode_update(cluster, update) for update in updates))

    def announce_workloads(self, cluster: ClusterId, updates: Collection[WorkloadUpdate]) -> None:
        self._publish(Topic.UPDATES, cluster, (encode_report(cluster, update) for update in updates))

    def announce_node_group(self, cluster: ClusterId, update: NodeGroupUpdate) -> None:
        self._publish(Topic.UPDATES, cluster, [encode_node_group(cluster, update)])

    def announce_mirror(self, cluster: ClusterId, told: Collection[AnyMirror]) -> None:
        self._publish(Topic.UPDATES, cluster, (encode_mirror(cluster, each) for each in told))

    def notify(self, cluster: ClusterId, notifications: Collection[Notification]) -> None:
        self._publish(Topic.NOTIFICATIONS, cluster, map(encode_notification, notifications))

    def try_updates(self, cluster: ClusterId, asked_at: datetime) -> None:
        self._publish(
            Topic.UPDATES, cluster, [encode_question(cluster, EchoQuestion(asked_at=asked_at, by_updates=True))]
        )

    def ask(self, cluster: ClusterId, questions: Collection[AnyQuestion]) -> None:
        self._publish(Topic.QUESTIONS, cluster, (encode_question(cluster, question) for question in questions))

    def _publish(self, topic: Topic, cluster: ClusterId, messages: Iterable[Message]) -> None:
        name = topic.of(cluster)
        try:
            encoded = list(messages)
        except ValueError as error:
            raise Permanent(f"{name}: {error}") from error
        publish(self._publisher, f"projects/{self._project}/topics/{name}", encoded, self._patience)


def connect_publisher(patience: float = PATIENCE) -> PubSubClient:
    """Return a client that drops a message after `patience` seconds; with PUBSUB_EMULATOR_HOST it uses the emulator.

    By default the client keeps each message for ten minutes: during an outage of Pub/Sub the messages of all our
    retries would accumulate, and after it all of them would be published, including outdated ones.
    """
    retry = Retry(predicate=_RETRYABLE, initial=0.1, maximum=patience / 2, timeout=patience)
    client: PubSubClient = PublisherClient(
        batch_settings=types.BatchSettings(max_latency=GATHERED),
        publisher_options=types.PublisherOptions(retry=retry, timeout=patience),
    )
    return client


def publish(publisher: PubSubClient, topic: str, messages: Iterable[Message], patience: float) -> None:
    """Publish all messages to `projects/P/topics/T` and wait until they are accepted; raise Temporary if one is not.

    The client itself retries what can be retried. If the caller retries after an error, messages that were accepted
    before it are published twice; this is harmless, as messages are requests or facts.
    """
    sent = [publisher.publish(topic, message.data, **message.attributes) for message in messages]
    done, late = futures.wait(sent, timeout=patience)
    for outcome in done:
        if (error := outcome.exception()) is not None:
            raise Temporary(f"{topic}: not published: {error}") from error
    if late:
        raise Temporary(f"{topic}: {len(late)} of {len(sent)} messages were not accepted within {patience:g} s")
