"""The bus on Google Cloud Pub/Sub. Its client (google.cloud.pubsub_v1) ships no types: they are given here."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from concurrent import futures
from typing import Protocol

from google.api_core import exceptions
from google.api_core.retry import Retry, if_exception_type
from google.cloud.pubsub_v1 import PublisherClient, types

from tpu_slices.domain.model.facts import Question
from tpu_slices.domain.model.slices import ClusterId, SliceId
from tpu_slices.ports.errors import Temporary
from tpu_slices.ports.publisher import SliceUpdate, WorkloadUpdate
from tpu_slices.wire.messages import Message, encode_question, encode_reconcile_request, encode_report, encode_update

RECONCILE_REQUESTS = "reconcile-requests"
SLICE_UPDATES = "slice-updates"
PATIENCE = 20.0
"""Seconds within which everything that is said must be taken."""


_MAY_COME_RIGHT = if_exception_type(
    exceptions.Aborted,
    exceptions.Cancelled,
    exceptions.DeadlineExceeded,
    exceptions.InternalServerError,
    exceptions.ResourceExhausted,
    exceptions.ServiceUnavailable,
    exceptions.Unknown,
)
"""What the client itself tries again to publish (google.pubsub.v1.Publisher)."""


class PubSubClient(Protocol):
    """As `google.cloud.pubsub_v1.PublisherClient`; the future holds the message's id."""

    def publish(self, topic: str, data: bytes, **attributes: str) -> futures.Future[str]: ...


class PubSubPublisher:
    """The Bus, on topics of one project."""

    def __init__(self, publisher: PubSubClient, project: str, patience: float = PATIENCE) -> None:
        self._publisher = publisher
        self._project = project
        self._patience = patience

    def request_reconcile(self, cluster: ClusterId, slices: Collection[SliceId]) -> None:
        self._publish(RECONCILE_REQUESTS, (encode_reconcile_request(cluster, slice_) for slice_ in slices))

    def announce(self, cluster: ClusterId, updates: Collection[SliceUpdate]) -> None:
        self._publish(SLICE_UPDATES, (encode_update(cluster, update) for update in updates))

    def announce_workloads(self, cluster: ClusterId, updates: Collection[WorkloadUpdate]) -> None:
        self._publish(SLICE_UPDATES, (encode_report(cluster, update) for update in updates))

    def ask(self, cluster: ClusterId, questions: Collection[Question]) -> None:
        self._publish(SLICE_UPDATES, (encode_question(cluster, question) for question in questions))

    def _publish(self, topic: str, messages: Iterable[Message]) -> None:
        publish(self._publisher, f"projects/{self._project}/topics/{topic}", messages, self._patience)


def connect_publisher(patience: float = PATIENCE) -> PubSubClient:
    """Open a client that gives a message up when we do; PUBSUB_EMULATOR_HOST leads it elsewhere.

    Left to itself it keeps each message for ten minutes: while Pub/Sub is away it would pile up every try of ours, and
    when Pub/Sub is back say them all, the outdated ones too.
    """
    retry = Retry(predicate=_MAY_COME_RIGHT, initial=0.1, maximum=patience / 2, timeout=patience)
    client: PubSubClient = PublisherClient(publisher_options=types.PublisherOptions(retry=retry, timeout=patience))
    return client


def publish(publisher: PubSubClient, topic: str, messages: Iterable[Message], patience: float) -> None:
    """Publish to `projects/P/topics/T`, together, and wait until all are taken; Temporary where one is not.

    The client itself tries again what may be tried again. What was taken before an error is said twice when the
    caller comes back: messages are nudges or facts.
    """
    taken = [publisher.publish(topic, message.data, **message.attributes) for message in messages]
    done, late = futures.wait(taken, timeout=patience)
    for outcome in done:
        if (error := outcome.exception()) is not None:
            raise Temporary(f"{topic}: not published: {error}") from error
    if late:
        raise Temporary(f"{topic}: {len(late)} of {len(taken)} messages were not taken within {patience:g} s")
