"""The Pub/Sub client as the relay needs it: it gives a message up when the relay does."""

from __future__ import annotations

from google.api_core import exceptions
from google.api_core.retry import Retry, if_exception_type
from google.cloud.pubsub_v1 import PublisherClient, types

from shared.adapters.pubsub import Publisher

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


def connect_publisher(patience: float) -> Publisher:
    """Open the client; PUBSUB_EMULATOR_HOST leads it elsewhere.

    Left to itself it keeps each message for ten minutes: while Pub/Sub is away it would pile up every try of ours, and
    when Pub/Sub is back say them all, the outdated ones too.
    """
    retry = Retry(predicate=_MAY_COME_RIGHT, initial=0.1, maximum=patience / 2, timeout=patience)
    options = types.PublisherOptions(retry=retry, timeout=patience)
    client: Publisher = PublisherClient(publisher_options=options)
    return client
