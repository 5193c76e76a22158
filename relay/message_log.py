"""What was said and heard, one line each, with the JobSet by whose UID its journey can be followed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import structlog

from tpu_slices.ports.log_events import LogEvent
from tpu_slices.wire.messages import Message

_log = structlog.get_logger()

_ABOUT = ("kind", "owner_kind", "owner", "owner_uid", "slice")
_UNNOTED = {"Heartbeat"}


def noted(send: Callable[[Sequence[Message]], None]) -> Callable[[Sequence[Message]], None]:
    """Send as `send` does, and note each message that was taken."""

    def send_and_note(messages: Sequence[Message]) -> None:
        send(messages)
        for message in messages:
            if message.attributes["kind"] not in _UNNOTED:
                _log.info(LogEvent.FACT_PUBLISHED, **about(message.attributes))

    return send_and_note


def about(attributes: Mapping[str, str]) -> Mapping[str, str]:
    """Give what a message is about, by its attributes."""
    return {name: attributes[name] for name in _ABOUT if name in attributes}
