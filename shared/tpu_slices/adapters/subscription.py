"""A pull subscription of Pub/Sub: a stream of messages, reopened whenever it breaks."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from concurrent import futures
from typing import Protocol

import structlog
from google.api_core.exceptions import Forbidden, GoogleAPIError, NotFound, Unauthorized
from google.cloud.pubsub_v1 import SubscriberClient, types

from tpu_slices.ports.log_events import LogEvent

_log = structlog.get_logger()

LONGEST_PAUSE = 30.0
_LASTING = (Forbidden, NotFound, Unauthorized)
"""Somebody has to mend them. A refused role is PermissionDenied, which is Forbidden."""
LEASE_SECONDS = 10
"""By how much a message's lease is extended at a time: what a relay held when it died is redelivered this soon."""


class Delivery(Protocol):
    """The part of `google.cloud.pubsub_v1.subscriber.message.Message` that is used."""

    @property
    def message_id(self) -> str: ...

    @property
    def data(self) -> bytes: ...

    @property
    def attributes(self) -> Mapping[str, str]: ...

    def ack(self) -> None: ...

    def nack(self) -> None: ...


class Subscription:
    """`projects/P/subscriptions/S`; `handle` runs in at most `at_once` threads, and acks or nacks each message."""

    def __init__(self, path: str, at_once: int, handle: Callable[[Delivery], None], chance: random.Random) -> None:
        self.path = path
        self._handle = handle
        self._flow = types.FlowControl(max_messages=at_once, max_duration_per_lease_extension=LEASE_SECONDS)
        self._chance = chance
        self._stopping = threading.Event()

    def run(self) -> None:
        """Deliver until `stop` is called; reopen a broken stream after a pause that grows with each failure."""
        failures = 0
        with SubscriberClient() as client:
            while not self._stopping.is_set():
                stream = client.subscribe(self.path, callback=self._handle, flow_control=self._flow)
                try:
                    failures = 0 if self._stays(stream) else failures + 1
                except GoogleAPIError as error:
                    failures += 1
                    log = _log.error if isinstance(error, _LASTING) else _log.warning
                    log(LogEvent.SUBSCRIPTION_INTERRUPTED, subscription=self.path, error=str(error))
                self._stopping.wait(min(LONGEST_PAUSE, 0.5 * 2.0 ** min(failures, 16)) * self._chance.uniform(0.5, 1))

    def stop(self) -> None:
        """Make `run` return soon; may be called from any thread."""
        self._stopping.set()

    def _stays(self, stream: futures.Future[None]) -> bool:
        """Return True once `stop` is called, False if the stream ends before; raise the error that breaks it."""
        while not self._stopping.is_set():
            try:
                stream.result(timeout=0.5)
            except futures.TimeoutError:
                continue
            return False
        stream.cancel()
        return True
