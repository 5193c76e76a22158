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
from tpu_slices.wire.envelopes import Incoming, incoming
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
def function(tmp_path: Path) -> FlaskClient:
    """Return a client of functions-framework as deployed, with a function that records its event."""
    program = tmp_path / "main.py"
    program.write_text(
        "import functions_framework, json, pathlib\n"
        "@functions_framework.cloud_event\n"
        "def function(event):\n"
        "    seen = json.dumps({'source': event['source'], 'data': event.data})\n"
        f"    pathlib.Path({str(tmp_path / 'seen.json')!r}).write_text(seen)\n"
    )
    create_app: Callable[..., Flask] = functions_framework.create_app  # it has no annotations
    return create_app(target="function", source=str(program), signature_type="cloudevent").test_client()


def received(tmp_path: Path) -> Incoming:
    seen = json.loads((tmp_path / "seen.json").read_text())
    return incoming(seen["source"], seen["data"])


def assert_is_the_recorded_message(message: Incoming) -> None:
    assert (message.id, message.topic) == ("17", "facts-demo")
    assert message.published_at == datetime(2026, 11, 1, 12, 0, 0, 250_000, tzinfo=UTC)
    assert isinstance(decode_fact(message.data, message.attributes), SlicesWanted)


def test_a_push_is_read(function: FlaskClient, tmp_path: Path) -> None:
    answer = function.post(f"/{TOPIC}", json=body("push_body"))
    assert answer.status_code == 200
    assert_is_the_recorded_message(received(tmp_path))


def test_an_eventarc_delivery_is_read(function: FlaskClient, tmp_path: Path) -> None:
    headers = {
        "ce-id": "17",
        "ce-source": SOURCE,
        "ce-specversion": "1.0",
        "ce-type": "google.cloud.pubsub.topic.v1.messagePublished",
        "ce-time": "2026-11-01T12:00:00.25Z",
    }
    answer = function.post("/", json=body("eventarc_body"), headers=headers)
    assert answer.status_code == 200
    assert_is_the_recorded_message(received(tmp_path))


def test_a_push_to_a_path_without_the_topic_is_refused(function: FlaskClient, tmp_path: Path) -> None:
    function.post("/", json=body("push_body"))
    with pytest.raises(Permanent, match="names no topic: the path of the push endpoint must end in its full name"):
        received(tmp_path)


def test_a_message_of_attributes_alone_has_empty_data() -> None:
    message = incoming(SOURCE, {"message": {**MESSAGE, "data": ""}})
    assert (message.data, message.attributes) == (b"", {"kind": "Heartbeat"})


def test_a_message_may_have_no_attributes() -> None:
    message = incoming(SOURCE, {"message": {**MESSAGE, "attributes": None}})
    assert message.attributes == {}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "data: expected an object, not NoneType"),
        ({}, r"data\.message: expected an object"),
        ({"message": {**MESSAGE, "messageId": ""}}, r"data\.message\.messageId: expected text"),
        ({"message": {**MESSAGE, "data": "e30"}}, r"data\.message\.data: invalid base64"),
        ({"message": {**MESSAGE, "publishTime": "soon"}}, r"data\.message\.publishTime: Invalid isoformat"),
        ({"message": {**MESSAGE, "publishTime": "2026-11-01T12:00:00"}}, "has no time zone"),
        ({"message": {**MESSAGE, "attributes": ["kind"]}}, r"data\.message\.attributes: expected an object"),
    ],
)
def test_a_malformed_event_is_an_error_that_names_the_field(data: object, message: str) -> None:
    with pytest.raises(Permanent, match=message):
        incoming(SOURCE, data)
