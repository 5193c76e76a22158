"""What Pub/Sub and Cloud Scheduler have of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from google.api_core.exceptions import Forbidden, GoogleAPIError, NotFound, Unauthorized
from google.auth.exceptions import GoogleAuthError
from google.cloud.pubsub_v1 import PublisherClient, SubscriberClient

from tpu_slices.adapters import rest
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.wire.topics import Topic

URL = "https://cloudscheduler.googleapis.com"


def connect() -> tuple[Any, Any]:
    """Return clients that look at topics and at subscriptions. Temporary: there are no credentials."""
    try:
        return PublisherClient(), SubscriberClient()
    except GoogleAuthError as error:
        raise Temporary(str(error)) from error


class DeployedMessaging:
    """The port `Messaging` in one project, by Pub/Sub's own clients."""

    def __init__(self, publisher: Any, subscriber: Any, project: str, schedules: Callable[[str], str | None]) -> None:
        self._publisher = publisher
        self._subscriber = subscriber
        self._project = project
        self._schedules = schedules

    def missing(self, cluster: ClusterId) -> tuple[str, ...]:
        return tuple(self._missing(cluster))

    def schedule(self, cluster: ClusterId) -> str | None:
        return self._schedules(Topic.TICKS.of(cluster))

    def _missing(self, cluster: ClusterId) -> Iterator[str]:
        for each in Topic:
            topic, subscription = each.of(cluster), each.subscription(cluster)
            path = f"projects/{self._project}/topics/{topic}"
            if _found(self._publisher.get_topic, topic=path) is None:
                yield f"topic {topic}"
            at = f"projects/{self._project}/subscriptions/{subscription}"
            found = _found(self._subscriber.get_subscription, subscription=at)
            if found is None:
                yield f"subscription {subscription}"
            elif found.topic != path:
                yield f"subscription {subscription} to the topic {topic}, not to {found.topic.rpartition('/')[2]}"


class CloudScheduler:
    """The jobs of one project, wherever they are: their region is not known here."""

    def __init__(self, session: Any, project: str, url: str = URL) -> None:
        self._session = session
        self._at = f"{url}/v1/projects/{project}/locations"

    def state(self, job: str) -> str | None:
        """Return the state of a job; None: no region has one of that name."""
        for region in self._ask("").get("locations", []):
            with suppress(rest.Missing):
                return str(self._ask(f"/{region['locationId']}/jobs/{job}").get("state", ""))
        return None

    def _ask(self, path: str) -> Any:
        return rest.ask(self._session, "Cloud Scheduler", "GET", f"{self._at}{path}")


def _found(get: Callable[..., Any], **named: str) -> Any:
    """Return what a call of Pub/Sub finds; None: it is not there."""
    try:
        return get(request=named, timeout=rest.TIMEOUT)
    except NotFound:
        return None
    except (Forbidden, Unauthorized) as refused:
        raise Permanent(f"Pub/Sub: {refused}") from refused
    except GoogleAPIError as error:
        raise Temporary(f"Pub/Sub does not answer: {error}") from error
