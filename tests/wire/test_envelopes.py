import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import functions_framework
import pytest
from flask import Flask
from flask.testing import FlaskClient

from tpu_slices.domain.model.facts import SlicesWanted
from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.envelopes import Incoming, cluster_of, incoming
from tpu_slices.wire.messages import decode_fact

EVENTS = Path(__file__).parents[1] / "events"
TOPIC = "projects/demo-project/topics/facts-demo"
SOURCE = f"//pubsub.googleapis.com/{TOPIC}"

MESSAGE: Mapping[str, Any] = {
    "data": "e30=",
    "messageId": "17",
    "publishTime": "2026-11-01T12:00:00Z",
    "attributes": {"kind": "Heartbeat"},
}


def body(name: str) -> dict[str, Any]:
    contents: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_text())
    return contents


@pytest.fixture
def door(tmp_path: Path) -> FlaskClient:
    """Functions-framework as deployed, with a function that answers what it was handed."""
    program = tmp_path / "main.py"
    program.write_text(
        "import functions_framework, json, pathlib\n"
        "@functions_framework.cloud_event\n"
        "def door(event):\n"
        "    seen = json.dumps({'source': event['source'], 'data': event.data})\n"
        f"    pathlib.Path({str(tmp_path / 'seen.json')!r}).write_text(seen)\n"
    )
    create_app: Callable[..., Flask] = functions_framework.create_app  # it has no annotations
    return create_app(target="door", source=str(program), signature_type="cloudevent").test_client()


def handed_over(tmp_path: Path) -> Incoming:
    seen = json.loads((tmp_path / "seen.json").read_text())
    return incoming(seen["source"], seen["data"])


def assert_is_the_recorded_message(message: Incoming) -> None:
    assert (message.id, message.topic) == ("17", "facts-demo")
    assert message.published_at == datetime(2026, 11, 1, 12, 0, 0, 250_000, tzinfo=UTC)
    assert isinstance(decode_fact(message.data, message.attributes), SlicesWanted)


def test_a_push_is_opened(door: FlaskClient, tmp_path: Path) -> None:
    answer = door.post(f"/{TOPIC}", json=body("push_body"))
    assert answer.status_code == 200
    assert_is_the_recorded_message(handed_over(tmp_path))


def test_an_eventarc_delivery_is_opened(door: FlaskClient, tmp_path: Path) -> None:
    headers = {
        "ce-id": "17",
        "ce-source": SOURCE,
        "ce-specversion": "1.0",
        "ce-type": "google.cloud.pubsub.topic.v1.messagePublished",
        "ce-time": "2026-11-01T12:00:00.25Z",
    }
    answer = door.post("/", json=body("eventarc_body"), headers=headers)
    assert answer.status_code == 200
    assert_is_the_recorded_message(handed_over(tmp_path))


def test_a_push_to_a_path_without_the_topic_is_refused(door: FlaskClient, tmp_path: Path) -> None:
    door.post("/", json=body("push_body"))
    with pytest.raises(Permanent, match="names no topic: the path of a push endpoint must end in its full name"):
        handed_over(tmp_path)


def test_a_message_of_attributes_alone_has_empty_data() -> None:
    message = incoming(SOURCE, {"message": {**MESSAGE, "data": ""}})
    assert (message.data, message.attributes) == (b"", {"kind": "Heartbeat"})


def test_a_message_may_have_no_attributes() -> None:
    message = incoming(SOURCE, {"message": {**MESSAGE, "attributes": None}})
    assert message.attributes == {}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (None, "data: expected an object, not NoneType"),
        ({}, r"data\.message: expected an object"),
        ({"message": {**MESSAGE, "messageId": ""}}, r"data\.message\.messageId: expected text"),
        ({"message": {**MESSAGE, "data": "e30"}}, r"data\.message\.data: no base64"),
        ({"message": {**MESSAGE, "publishTime": "soon"}}, r"data\.message\.publishTime: Invalid isoformat"),
        ({"message": {**MESSAGE, "publishTime": "2026-11-01T12:00:00"}}, "has no time zone"),
        ({"message": {**MESSAGE, "attributes": ["kind"]}}, r"data\.message\.attributes: expected an object"),
    ],
)
def test_an_event_that_is_no_message_says_which_field_and_why(data: object, says: str) -> None:
    with pytest.raises(Permanent, match=says):
        incoming(SOURCE, data)


def test_the_cluster_is_known_from_the_topic() -> None:
    assert cluster_of("facts-demo") == "demo"
    assert cluster_of("facts-my-facts-2") == "my-facts-2"


@pytest.mark.parametrize("topic", ["reconcile-requests", "facts-", "old-facts-demo"])
def test_another_topic_names_no_cluster(topic: str) -> None:
    with pytest.raises(Permanent, match="is no topic of facts"):
        cluster_of(topic)
