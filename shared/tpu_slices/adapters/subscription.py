"""A Pub/Sub subscription that is pulled: a stream of messages, opened again whenever it breaks."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from concurrent import futures
from typing import Protocol

import structlog
from google.api_core.exceptions import GoogleAPICallError
from google.cloud.pubsub_v1 import SubscriberClient, types

from tpu_slices.ports.log_events import LogEvent

_log = structlog.get_logger()

LONGEST_PAUSE = 30.0
LEASE_SECONDS = 10
"""How long a message is ours without a word from us: what a relay that died had taken comes back so soon."""


class Delivery(Protocol):
    """As `google.cloud.pubsub_v1.subscriber.message.Message`."""

    @property
    def message_id(self) -> str: ...

    @property
    def data(self) -> bytes: ...

    @property
    def attributes(self) -> Mapping[str, str]: ...

    def ack(self) -> None: ...

    def nack(self) -> None: ...


class Subscription:
    """`projects/P/subscriptions/S`; `handle` is called in threads, `at_once` at most, and acks or nacks each."""

    def __init__(self, path: str, at_once: int, handle: Callable[[Delivery], None], chance: random.Random) -> None:
        self._path = path
        self._handle = handle
        self._flow = types.FlowControl(max_messages=at_once, max_duration_per_lease_extension=LEASE_SECONDS)
        self._chance = chance
        self._stopping = threading.Event()

    def run(self) -> None:
        """Deliver until it is stopped; a stream that breaks is opened again after a rising pause."""
        failures = 0
        with SubscriberClient() as client:
            while not self._stopping.is_set():
                stream = client.subscribe(self._path, callback=self._handle, flow_control=self._flow)
                try:
                    failures = 0 if self._stays(stream) else failures + 1
                except GoogleAPICallError as error:
                    failures += 1
                    _log.warning(LogEvent.SUBSCRIPTION_INTERRUPTED, subscription=self._path, error=str(error))
                self._stopping.wait(min(LONGEST_PAUSE, 0.5 * 2.0 ** min(failures, 16)) * self._chance.uniform(0.5, 1))

    def stop(self) -> None:
        """End `run` soon. From any thread."""
        self._stopping.set()

    def _stays(self, stream: futures.Future[None]) -> bool:
        """Wait until it is time to stop; False where the stream ended before that, an error where it broke."""
        while not self._stopping.is_set():
            try:
                stream.result(timeout=0.5)
            except futures.TimeoutError:
                continue
            return False
        stream.cancel()
        return True
