"""What the log sink of a control plane publishes."""

import json
from typing import Any

from google.cloud.pubsub_v1 import SubscriberClient

from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.testing.waiting import until


def first_entry(subscriber: SubscriberClient, subscription: str) -> dict[str, Any]:
    """Return the first entry, however long it takes: a pull may also come back with nothing."""

    def pulled() -> Any:
        return subscriber.pull(subscription=subscription, max_messages=1, timeout=PATIENCE_SECONDS).received_messages

    (message,) = until(pulled, "a log entry")
    return dict(json.loads(message.message.data))
