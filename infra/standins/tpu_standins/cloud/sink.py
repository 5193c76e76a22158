"""The log sink: its filter, and its export to Pub/Sub."""

import contextlib
import json
import logging
import re
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from google.api_core.exceptions import GoogleAPIError
from google.cloud.pubsub_v1 import PublisherClient

from tpu_standins.cloud.timed import Entry
from tpu_standins.patience import PATIENCE_SECONDS

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Filter:
    """A sink's filter, applied as Cloud Logging would [doc:logging configure_export_v2]: the ends of operations.

    `types`: of the resources; `method`: found in the name of the method that began the operation.
    """

    service: str
    types: Collection[str]
    method: re.Pattern[str]

    def passes(self, entry: Mapping[str, Any]) -> bool:
        payload = entry.get("protoPayload", {})
        return (
            entry.get("resource", {}).get("type") in self.types
            and payload.get("serviceName") == self.service
            and self.method.search(payload.get("methodName", "")) is not None
            and entry.get("operation", {}).get("last") is True
        )


class PubSubSink:
    """Publishes to one topic, `projects/P/topics/T`; PUBSUB_EMULATOR_HOST selects the emulator, as for any client."""

    def __init__(self, topic: str, publisher: Any = None) -> None:
        self._topic = topic
        self._publisher = publisher or PublisherClient()

    def __call__(self, entry: Entry) -> None:
        """Publish an entry and wait for it; an entry that is refused is lost, as with a sink that lacks permission."""
        data = json.dumps(entry).encode()
        attributes = {"logging.googleapis.com/timestamp": entry["timestamp"]}
        try:
            self._publisher.publish(self._topic, data, **attributes).result(timeout=PATIENCE_SECONDS)
        except (GoogleAPIError, TimeoutError) as error:
            _log.warning("log entry %s was lost: %s", entry["insertId"], error)

    def close(self) -> None:
        self._publisher.stop()
        self._publisher.transport.close()


def sink(topic: str | None, closing: ExitStack) -> PubSubSink | None:
    """Return the sink of a topic, until all is closed; None: there is none."""
    return closing.enter_context(contextlib.closing(PubSubSink(topic))) if topic else None
