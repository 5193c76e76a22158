"""What the log sink of a control plane publishes."""

import json
from typing import Any

from google.cloud.pubsub_v1 import SubscriberClient

from infra.local.patience import PATIENCE_SECONDS
from tests.waiting import until


def first_entry(subscriber: SubscriberClient, subscription: str) -> dict[str, Any]:
    """Return the first entry, however long it takes: a pull may also come back with nothing."""

    def pulled() -> Any:
        return subscriber.pull(subscription=subscription, max_messages=1, timeout=PATIENCE_SECONDS).received_messages

    (message,) = until(pulled, "a log entry")
    return dict(json.loads(message.message.data))
