"""What an API server's refusals mean, and when to come back. Pure."""

from __future__ import annotations

from http.client import responses

import orjson
from kubernetes.client.exceptions import ApiException

LONGEST_PAUSE = 30.0
LONGEST_WORDS = 500
"""Of the server's own words, which may quote what a tenant wrote."""
GONE = 410
NOT_FOUND = 404
UNAUTHORIZED = 401


def rising_pause(first: float, failures: int) -> float:
    """Double the pause, in seconds, with each failure in a row; of very many the number itself would not fit."""
    return min(LONGEST_PAUSE, first * 2.0 ** min(failures, 16))


def asked_pause(error: Exception) -> float:
    """Give the seconds that a refusal asks us to stay away (Retry-After); never more than LONGEST_PAUSE."""
    headers = error.headers if isinstance(error, ApiException) else None
    asked = str((headers or {}).get("Retry-After", "")).strip()
    return min(LONGEST_PAUSE, float(asked[:9])) if asked.isascii() and asked.isdigit() else 0.0


def in_words(error: Exception, what: str) -> str:
    """Say in one line what went wrong with a list or watch of `what`."""
    if not isinstance(error, ApiException):
        return " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST_WORDS]
    known = responses.get(error.status or 0, "")
    text = f"{error.status} {_message(error) or error.reason or known}"
    if error.status == NOT_FOUND:
        text = f"the API server does not serve {what}: {text}"
    return " ".join(text.split())[:LONGEST_WORDS]


def _message(error: ApiException) -> str:
    """Give the message of a metav1.Status; a proxy, or an unknown path, has other words."""
    try:
        status = orjson.loads(error.body or b"")
    except orjson.JSONDecodeError:
        return ""
    return str(status.get("message") or "") if isinstance(status, dict) else ""
