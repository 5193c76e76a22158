import base64
import json
import queue
import threading
from collections import Counter
from datetime import timedelta
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import grpc
import pytest
from google import pubsub_v1
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport

from infra.local import messaging
from infra.local.addresses import Addresses
from infra.local.messaging import Messaging, Subscription
from tpu_slices.flows.receive import DELIVERED_AGAIN
from tpu_standins.patience import PATIENCE_SECONDS

TABLE = messaging.read().of_cluster("demo")

A_ROW = """
    topic: requests-demo
    ack_deadline_seconds: 60
    minimum_backoff_seconds: 1
    maximum_backoff_seconds: 60
"""


def a_table(row: str) -> Messaging:
    return messaging.parsed(f"topics: [requests-demo]\nsubscriptions:\n  some:{row}\nschedules: {{}}\n")


def addresses(pubsub: str, project: str, functions: str = "http://127.0.0.1:1") -> Addresses:
    return Addresses(
        project=project,
        location="us-central2",
        cluster_id="demo",
        pubsub=pubsub,
        firestore="unused",
        gke="unused",
        buttons="unused",
        proxy_port=0,
        proxy_buttons="unused",
        functions={name: f"{functions}/{name}" for name in TABLE.functions},
        folder=Path("unused"),
    )


def test_the_cluster_is_filled_in_everywhere() -> None:
    names = {*TABLE.topics, *(each.name for each in TABLE.subscriptions), *(each.topic for each in TABLE.subscriptions)}
    assert "facts-demo" in names
    assert not [name for name in names if "{" in name]


def test_every_topic_is_read_by_someone() -> None:
    assert {each.topic for each in TABLE.subscriptions} == set(TABLE.topics)


def test_each_function_has_its_topics() -> None:
    assert {(each.function, each.topic) for each in TABLE.subscriptions if each.function} == {
        ("receive", "facts-demo"),
        ("reconcile", "requests-demo"),
        ("reconcile", "cloud-operations"),
        ("notify", "notifications-demo"),
        ("sweep", "ticks-demo"),
        ("sweep", "project-ticks"),
    }


@pytest.mark.parametrize("row", TABLE.subscriptions, ids=lambda each: each.name)
def test_a_row_keeps_within_what_pubsub_accepts(row: Subscription) -> None:
    """Limits: google.pubsub.v1 Subscription, RetryPolicy, DeadLetterPolicy; 60 s is a function's longest run."""
    assert 60 <= row.ack_deadline_seconds <= 600
    assert 0 <= row.minimum_backoff_seconds <= row.maximum_backoff_seconds <= 600
    assert row.max_delivery_attempts is None or 5 <= row.max_delivery_attempts <= 100


def test_nothing_is_given_up_silently() -> None:
    assert {each.topic for each in TABLE.subscriptions if not each.dead_letter_topic} == {"dead-letters"}


def test_a_cluster_is_ticked_for_each_minute_and_the_project_each_quarter_of_an_hour() -> None:
    assert {each.topic: each.minutes for each in TABLE.schedules} == {"ticks-demo": 1, "project-ticks": 15}


@pytest.mark.parametrize("cron", ["0 * * * *", "* 1 * * *", "*/0 * * * *", "each minute"])
def test_a_schedule_that_is_not_one_of_minutes_is_not_guessed(cron: str) -> None:
    with pytest.raises(ValueError, match="neither each minute nor each few minutes"):
        assert messaging.Schedule(name="a", topic="b", cron=cron, data="c").minutes


def test_a_schedule_carries_data() -> None:
    """Without data, functions-framework would respond with 400."""
    assert all(each.data for each in TABLE.schedules)


@pytest.mark.parametrize(
    ("row", "error"),
    [
        (A_ROW + "    colour: blue\n", "colour"),
        (A_ROW.replace("requests-demo", "winks"), "winks"),
        (A_ROW + "    max_delivery_attempts: 5\n", "go together"),
        (A_ROW.replace("    ack_deadline_seconds: 60\n", ""), "ack_deadline_seconds"),
    ],
    ids=["unknown column", "unknown topic", "half a dead letter policy", "absent column"],
)
def test_a_wrong_table_is_refused(row: str, error: str) -> None:
    with pytest.raises((TypeError, ValueError), match=error):
        a_table(row)


@pytest.mark.emulators
@pytest.mark.enable_socket
def test_the_emulator_holds_the_table_as_written(pubsub_emulator: str, project_id: str) -> None:
    here = addresses(pubsub_emulator, project_id)
    messaging.create(TABLE, here)
    with grpc.insecure_channel(pubsub_emulator) as channel:
        client = pubsub_v1.SubscriberClient(transport=SubscriberGrpcTransport(channel=channel))
        held = {each.name: each for each in client.list_subscriptions(project=f"projects/{project_id}")}
    assert len(held) == len(TABLE.subscriptions)
    for row in TABLE.subscriptions:
        made = held[f"projects/{project_id}/subscriptions/{row.name}"]
        assert made.topic == f"projects/{project_id}/topics/{row.topic}"
        assert made.ack_deadline_seconds == row.ack_deadline_seconds
        assert made.dead_letter_policy.dead_letter_topic.rpartition("/")[2] == (row.dead_letter_topic or "")
        assert made.push_config.push_endpoint == (
            f"http://127.0.0.1:1/{row.function}/projects/{project_id}/topics/{row.topic}" if row.function else ""
        )
        assert "expiration_policy" in made
        assert not made.expiration_policy.ttl


class RefusedAtFirst(BaseHTTPRequestHandler):
    """Refuses each message a few times, and notes those that it takes."""

    refusals = 4
    seen: ClassVar[Counter[str]] = Counter()
    taken: ClassVar[queue.SimpleQueue[str]] = queue.SimpleQueue()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        data = base64.b64decode(body["message"]["data"]).decode()
        self.seen[data] += 1
        refused = self.seen[data] <= self.refusals
        self.send_response(HTTPStatus.SERVICE_UNAVAILABLE if refused else HTTPStatus.NO_CONTENT)
        self.end_headers()
        if not refused:
            self.taken.put(data)


@pytest.mark.emulators
@pytest.mark.enable_socket
def test_every_message_arrives_however_often_each_was_refused(pubsub_emulator: str, project_id: str) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), RefusedAtFirst) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        here = addresses(pubsub_emulator, project_id, f"http://127.0.0.1:{server.server_port}")
        messaging.create(TABLE, here)
        sent = {f"message {number}" for number in range(5)}
        with grpc.insecure_channel(pubsub_emulator) as channel:
            client = pubsub_v1.PublisherClient(transport=PublisherGrpcTransport(channel=channel))
            messages = [pubsub_v1.types.PubsubMessage(data=each.encode()) for each in sent]
            client.publish(topic=here.topic_path("facts-demo"), messages=messages)
        taken: set[str] = set()
        while taken != sent:  # one of them may come twice
            taken.add(RefusedAtFirst.taken.get(timeout=PATIENCE_SECONDS))
        server.shutdown()


def test_a_fact_whose_receive_was_killed_comes_back_while_its_repetition_still_requests_the_slices() -> None:
    [facts] = (each for each in TABLE.subscriptions if each.function == "receive")

    pause = timedelta(seconds=facts.ack_deadline_seconds + facts.maximum_backoff_seconds)

    assert 3 * pause <= DELIVERED_AGAIN  # two of these deliveries may be lost with their instances, too
