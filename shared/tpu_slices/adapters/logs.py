"""Logs as Cloud Logging reads them from standard output: one JSON line per event.

`event` is the event's name (`tpu_slices.ports.log_events`), by which logs are filtered; `message` is the readable
text. Source of the special keys `severity`, `message`, `time` and `logging.googleapis.com/trace`: Cloud Logging's
documentation of structured logging.

A line about a JobSet has the JobSet's UID as the id of its trace (both are 32 hexadecimal digits): the JobSet alone
identifies the trace, from the relay's publish to the node pool, and no trace id has to be passed along.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import MutableMapping
from functools import partial
from typing import Any

import structlog

_TRACE = re.compile(r"[0-9a-f]{32}")


def configure(project: str, version: str) -> None:
    """Configure structlog to write every event as one JSON line to standard output.

    `project` holds the traces. Each line has `version`, what was deployed; "" is left out.
    """
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            _severity,
            partial(_traced, project),
            partial(_versioned, version),
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            structlog.processors.ExceptionRenderer(structlog.tracebacks.ExceptionDictTransformer(show_locals=False)),
            _message,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(),
        cache_logger_on_first_use=False,
    )


def trace_of(project: str, owner_uid: str) -> str:
    """Return the name of a JobSet's trace; its id is the UID, or a digest of the UID if that is not a UUID."""
    digits = owner_uid.replace("-", "").lower()
    if not _TRACE.fullmatch(digits):
        digits = hashlib.sha256(owner_uid.encode()).hexdigest()[:32]
    return f"projects/{project}/traces/{digits}"


def _traced(project: str, _: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    if uid := event.get("owner_uid"):
        event["logging.googleapis.com/trace"] = trace_of(project, str(uid))
    return event


def _versioned(version: str, _: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    if version:
        event["version"] = version
    return event


def _message(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add a message to an event that has none: its name, and the error if there is one."""
    error = event.get("error")
    event.setdefault("message", f"{event['event']}: {error}" if error else str(event["event"]))
    return event


def _severity(_: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    event["severity"] = {"warn": "WARNING", "exception": "ERROR"}.get(method, method.upper())
    return event
