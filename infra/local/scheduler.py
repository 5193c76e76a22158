"""The stand-in for Cloud Scheduler: publishes a schedule's message at a given interval, however long a minute is."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import grpc
from google import pubsub_v1
from google.api_core.exceptions import GoogleAPIError
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport

from infra.local.addresses import Addresses
from infra.local.messaging import Schedule
from tpu_standins.patience import ATTEMPT_SECONDS

logger = logging.getLogger(__name__)

RECONNECTING = (("grpc.initial_reconnect_backoff_ms", 200), ("grpc.max_reconnect_backoff_ms", 1_000))
"""Otherwise the pauses between attempts to connect rise to minutes."""


@contextmanager
def scheduled(schedule: Schedule, addresses: Addresses, interval_seconds: float) -> Iterator[None]:
    """Publish at each interval until the block is left. A failure is logged, and the next tick tries again."""
    with grpc.insecure_channel(addresses.pubsub, options=RECONNECTING) as channel:
        publisher = pubsub_v1.PublisherClient(transport=PublisherGrpcTransport(channel=channel))

        def tick() -> None:
            publisher.publish(
                topic=addresses.topic_path(schedule.topic),
                messages=[pubsub_v1.types.PubsubMessage(data=schedule.data.encode())],
                retry=None,  # pauses of up to a minute; the next tick comes sooner
                timeout=ATTEMPT_SECONDS,
            )

        with repeated(tick, interval_seconds):
            yield


@contextmanager
def repeated(tick: Callable[[], None], interval_seconds: float) -> Iterator[None]:
    """Call `tick` periodically in a thread, for the first time after one interval, until the block is left."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(interval_seconds):
            try:
                tick()
            except GoogleAPIError as error:
                logger.warning("What is scheduled failed, and comes again: %s", error)

    thread = threading.Thread(target=run, name="scheduler", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
