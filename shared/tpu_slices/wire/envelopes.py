"""Decodes the CloudEvents that functions-framework passes for Pub/Sub messages, by push or by Eventarc."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from tpu_slices.ports.errors import Permanent

_SOURCE = re.compile(r"//pubsub\.googleapis\.com/projects/[^/]+/topics/([^/]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """One delivery of a message."""

    id: str
    data: bytes
    attributes: Mapping[str, str]
    topic: str
    """The topic's name, without its project."""
    published_at: datetime


def incoming(source: str, data: object) -> Incoming:
    """Return the message of a CloudEvent `google.cloud.pubsub.topic.v1.messagePublished` from its `source` and `data`.

    A push body as Pub/Sub sends it (converted by functions-framework 3.10, which drops subscription, ordering key
    and delivery attempt) and Eventarc's binary form have `data.message.{data,attributes,messageId,publishTime}` in
    common; nothing else is read. Raise Permanent if it is no such event.
    """
    topic = _SOURCE.fullmatch(source)
    if topic is None:
        raise Permanent(f'source: "{source}" names no topic: the path of the push endpoint must end in its full name')
    message = _mapping(_mapping(data, "data").get("message"), "data.message")
    return Incoming(
        id=_text(message, "messageId"),
        data=_bytes(message.get("data", "")),
        attributes=_attributes(message.get("attributes") or {}),
        topic=topic[1],
        published_at=_time(_text(message, "publishTime")),
    )


def _mapping(value: object, field: str) -> Mapping[object, object]:
    if not isinstance(value, Mapping):
        raise Permanent(f"{field}: expected an object, not {type(value).__name__}")
    return value


def _text(message: Mapping[object, object], key: str) -> str:
    value = message.get(key)
    if not isinstance(value, str) or not value:
        raise Permanent(f"data.message.{key}: expected text, not {value!r}")
    return value


def _bytes(encoded: object) -> bytes:
    try:
        return base64.b64decode(str(encoded), validate=True)
    except (binascii.Error, ValueError) as bad:
        raise Permanent(f"data.message.data: invalid base64: {bad}") from bad


def _attributes(value: object) -> Mapping[str, str]:
    attributes = _mapping(value, "data.message.attributes")
    return {str(key): str(text) for key, text in attributes.items()}


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError as bad:
        raise Permanent(f"data.message.publishTime: {bad}") from bad
    if time.tzinfo is None:
        raise Permanent(f'data.message.publishTime: "{text}" has no time zone')
    return time
