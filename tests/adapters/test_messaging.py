"""What Pub/Sub and Cloud Scheduler have of a cluster: on the emulator, and over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from google.api_core.exceptions import PermissionDenied, ServiceUnavailable
from google.auth.credentials import AnonymousCredentials
from google.auth.transport.requests import AuthorizedSession
from google.cloud.pubsub_v1 import PublisherClient, SubscriberClient

from infra.local import messaging
from tests.infra.loopback import Request, Response, refusal, serving
from tests.local.stack.test_messaging import addresses
from tpu_slices.adapters.messaging import CloudScheduler, DeployedMessaging
from tpu_slices.app.settings import Settings
from tpu_slices.app.wiring import build_messaging
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.messaging import RUNS
from tpu_slices.wire.topics import Topic

pytestmark = pytest.mark.enable_socket

DEMO = ClusterId("demo")


@dataclass
class Deployed:
    """The table for one cluster on the emulator, and what looks at it."""

    project: str
    publisher: Any
    subscriber: Any
    looks: Any

    def missing(self) -> tuple[str, ...]:
        found: tuple[str, ...] = self.looks.missing(DEMO)
        return found


@pytest.fixture
def deployed(pubsub_emulator: str, project_id: str, monkeypatch: pytest.MonkeyPatch) -> Deployed:
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", pubsub_emulator)
    messaging.create(messaging.read().of_cluster(DEMO), addresses(pubsub_emulator, project_id))
    looks = build_messaging(Settings(project=project_id, emulated=True))
    return Deployed(project_id, PublisherClient(), SubscriberClient(), looks)


@pytest.mark.emulators
def test_nothing_is_missing_of_a_cluster_for_which_the_table_was_made(deployed: Deployed) -> None:
    assert deployed.missing() == ()
    assert deployed.looks.schedule(DEMO) == RUNS


@pytest.mark.emulators
def test_of_another_cluster_all_is_missing(deployed: Deployed) -> None:
    other = ClusterId("other")
    assert deployed.looks.missing(other) == tuple(
        missing
        for topic in Topic
        for missing in (f"topic {topic.of(other)}", f"subscription {topic.subscription(other)}")
    )


@pytest.mark.emulators
@pytest.mark.parametrize("topic", Topic)
def test_a_topic_or_a_subscription_that_was_deleted_is_named(deployed: Deployed, topic: Topic) -> None:
    name, at = topic.subscription(DEMO), f"projects/{deployed.project}/topics/{topic.of(DEMO)}"
    subscription = f"projects/{deployed.project}/subscriptions/{name}"
    deployed.subscriber.delete_subscription(subscription=subscription)
    assert deployed.missing() == (f"subscription {name}",)
    deployed.subscriber.create_subscription(name=subscription, topic=at)
    assert deployed.missing() == ()
    deployed.publisher.delete_topic(topic=at)
    deployed.publisher.create_topic(name=at)
    [detached] = deployed.missing()
    assert detached == f"subscription {name} to the topic {topic.of(DEMO)}, not to _deleted-topic_"


class Refusing:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def get_topic(self, **_: object) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (PermissionDenied("no"), Permanent),  # type: ignore[no-untyped-call]  # google.api_core has no types
        (ServiceUnavailable("later"), Temporary),  # type: ignore[no-untyped-call]
    ],
)
def test_what_is_refused_is_an_error_and_nothing_that_is_missing(error: Exception, raised: type[Exception]) -> None:
    with pytest.raises(raised, match=r"Pub/Sub.*(no|later)"):
        DeployedMessaging(Refusing(error), None, "shop", lambda _: None).missing(DEMO)


@dataclass
class Scheduler:
    """Two regions, the second of which has the jobs."""

    jobs: dict[str, str] = field(default_factory=dict)
    refuses: int = 0
    url: str = ""

    def answer(self, request: Request) -> Response:
        at = "/v1/projects/shop/locations"
        if self.refuses:
            return refusal(self.refuses, "no")
        if request.path == at:
            return Response({"locations": [{"locationId": each} for each in ("europe-west4", "us-central1")]})
        job = request.path.removeprefix(f"{at}/us-central1/jobs/")
        return Response({"state": self.jobs[job]}) if job in self.jobs else refusal(404, "no such job")


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    made = Scheduler()
    with serving(made.answer) as made.url:
        yield made


def state(scheduler: Scheduler) -> str | None:
    with AuthorizedSession(AnonymousCredentials()) as session:  # type: ignore[no-untyped-call]
        jobs = CloudScheduler(session, "shop", scheduler.url)
        return DeployedMessaging(None, None, "shop", jobs.state).schedule(DEMO)


@pytest.mark.parametrize("found", ["ENABLED", "PAUSED"])
def test_a_job_is_found_in_whatever_region_it_is(scheduler: Scheduler, found: str) -> None:
    scheduler.jobs = {"ticks-demo": found, "ticks-other": "DISABLED"}
    assert state(scheduler) == found


def test_a_job_that_no_region_has_is_missing(scheduler: Scheduler) -> None:
    scheduler.jobs = {"ticks-other": "ENABLED"}
    assert state(scheduler) is None


@pytest.mark.parametrize(("status", "error"), [(403, Permanent), (503, Temporary)])
def test_a_scheduler_that_refuses_tells_nothing(scheduler: Scheduler, status: int, error: type[Exception]) -> None:
    scheduler.refuses = status
    with pytest.raises(error, match=f"Cloud Scheduler: {status} no"):
        state(scheduler)
