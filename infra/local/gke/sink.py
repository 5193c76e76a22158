"""The log sink's export to Pub/Sub."""

import json
import logging
from typing import Any

from google.api_core.exceptions import GoogleAPICallError
from google.cloud.pubsub_v1 import PublisherClient

from infra.local.gke.audit import Entry

_log = logging.getLogger(__name__)
_TIMEOUT = 10.0


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
            self._publisher.publish(self._topic, data, **attributes).result(timeout=_TIMEOUT)
        except (GoogleAPICallError, TimeoutError) as error:
            _log.warning("log entry %s was lost: %s", entry["insertId"], error)

    def close(self) -> None:
        self._publisher.stop()
        self._publisher.transport.close()
