"""The function `notify`: a target that is down is tried again for an hour, and nobody is paged for an error of ours."""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import functions_framework
import pytest
from flask import Flask

from tests.adapters.delivery.test_delivery import SENT
from tests.builders import MINUTE, NOW
from tests.conftest import Lines
from tests.functions.test_handlers import an_event
from tpu_slices.app.notifying import GIVEN_UP_AFTER, handle_notify
from tpu_slices.domain.model.notifications import Notification
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.ports.deps import NotifyDeps
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.wire.messages import Message, encode_notification
from tpu_slices_simulator.fakes.clock import FakeClock

TOPIC = "notifications-demo"
MAIN = Path(__file__).parents[2] / "functions" / "main.py"


class Taken:
    """A delivery that raises what it is told to, and keeps what was taken."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.taken = [*errors], list[Notification]()

    def deliver(self, notification: Notification) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.taken.append(notification)


def deps(delivery: Taken, later: timedelta = timedelta(0)) -> NotifyDeps:
    return NotifyDeps(delivery=delivery, clock=FakeClock(NOW + later))


def test_a_notification_is_delivered_and_logged_by_names_alone(lines: Lines) -> None:
    delivery = Taken()
    handle_notify(an_event(TOPIC, encode_notification(SENT)), deps(delivery))
    assert delivery.taken == [SENT]
    [line] = [each for each in lines() if each["event"] == "notification.sent"]
    assert (line["target"], line["occasion"], line["owner"], line["cluster"]) == (
        "pager",
        "waiting",
        "research/llama",
        "demo",
    )
    assert "for 30 min" not in str(line)


def test_a_target_that_may_take_it_later_has_the_message_delivered_again(lines: Lines) -> None:
    with pytest.raises(Temporary):
        handle_notify(an_event(TOPIC, encode_notification(SENT)), deps(Taken(Temporary("it answers 503"))))
    assert [each["severity"] for each in lines() if each["event"] == "notification.delayed"] == ["WARNING"]


@pytest.mark.parametrize(
    ("error", "later"),
    [(Permanent("it answers 404"), 0 * MINUTE), (Temporary("it answers 503"), GIVEN_UP_AFTER + MINUTE)],
)
def test_what_no_target_will_take_is_given_up(error: Exception, later: timedelta, lines: Lines) -> None:
    handle_notify(an_event(TOPIC, encode_notification(SENT)), deps(Taken(error), later))
    [line] = [each for each in lines() if each["event"] == "notification.failed"]
    assert (line["severity"], line["error"], line["target"]) == ("ERROR", str(error), "pager")


@pytest.mark.parametrize(
    ("topic", "message", "error"),
    [
        ("facts-demo", encode_notification(SENT), "is not a topic for notifications"),
        ("notifications-blue", encode_notification(SENT), 'cluster: "demo" is not that of the topic'),
        (TOPIC, Message(b"{}", {"kind": "Notification", "version": "2"}), "Notification: "),
        (TOPIC, Message(b"{}", {"kind": "SlicesWanted", "version": "2"}), "attribute kind"),
    ],
)
def test_what_is_no_notification_of_the_topics_cluster_is_given_up(
    topic: str, message: Message, error: str, lines: Lines
) -> None:
    delivery = Taken()
    handle_notify(an_event(topic, message), deps(delivery))
    [line] = [each for each in lines() if each["event"] == "notification.failed"]
    assert error in line["error"]
    assert delivery.taken == []


def test_pub_sub_is_asked_to_deliver_again_by_429_which_is_no_error_of_the_function(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "demo-project")
    create_app: Callable[..., Flask] = functions_framework.create_app  # it has no annotations
    client = create_app(target="notify", source=str(MAIN), signature_type="cloudevent").test_client()
    delivery = Taken(Temporary("it answers 503"), Permanent("it answers 404"))
    monkeypatch.setattr(sys.modules["main"], "_notify_deps", lambda: deps(delivery))

    def push() -> int:
        message = encode_notification(replace(SENT, cluster=ClusterId("demo")))
        pushed: dict[str, Any] = {
            "messageId": "17",
            "publishTime": "2026-03-01T12:00:00.000Z",
            "data": base64.b64encode(message.data).decode(),
            "attributes": dict(message.attributes),
        }
        body = {"message": pushed, "subscription": "projects/demo-project/subscriptions/notify-demo"}
        return client.post(f"/projects/demo-project/topics/{TOPIC}", json=body).status_code

    assert [push(), push(), push()] == [429, 200, 200]
    assert delivery.taken == [SENT]
