"""Log lines of the messages that were published and handled, with the workload whose UID they are traced by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import structlog

from tpu_slices.ports.log_events import LogEvent
from tpu_slices.wire.messages import Message

_log = structlog.get_logger()

_ABOUT = ("kind", "owner_kind", "owner", "owner_uid", "slice")
_UNLOGGED = {"Heartbeat"}


def noted(send: Callable[[Sequence[Message]], None]) -> Callable[[Sequence[Message]], None]:
    """Return a function that sends as `send` does, and logs each message that was accepted, except heartbeats."""

    def send_and_log(messages: Sequence[Message]) -> None:
        send(messages)
        for message in messages:
            if message.attributes["kind"] not in _UNLOGGED:
                _log.info(LogEvent.FACT_PUBLISHED, **about(message.attributes))

    return send_and_log


def about(attributes: Mapping[str, str]) -> Mapping[str, str]:
    """Return those attributes of a message that name what it is about."""
    return {name: attributes[name] for name in _ABOUT if name in attributes}
