"""Logs as Cloud Logging reads them from standard output: one JSON line per event.

Source of the special keys `severity`, `message` and `logging.googleapis.com/trace`: Cloud Logging's documentation of
structured logging.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog


def configure() -> None:
    """Write every event as one JSON line to standard output."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            _severity,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            structlog.processors.ExceptionRenderer(structlog.tracebacks.ExceptionDictTransformer(show_locals=False)),
            structlog.processors.EventRenamer("message"),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stdout),
        cache_logger_on_first_use=False,
    )


def _severity(_: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    event["severity"] = {"warn": "WARNING", "exception": "ERROR"}.get(method, method.upper())
    return event
