"""What an API server's refusals mean, and when to retry. Pure."""

from __future__ import annotations

from http.client import responses

import orjson
from kubernetes.client.exceptions import ApiException

LONGEST_PAUSE = 30.0
LONGEST_WORDS = 500
"""The most characters of the server's own message, which may quote what a tenant wrote."""
GONE = 410
NOT_FOUND = 404
UNAUTHORIZED = 401


def rising_pause(first: float, failures: int) -> float:
    """Return the pause in seconds: doubled with each consecutive failure, up to LONGEST_PAUSE.

    The exponent is capped, as the power would overflow after very many failures.
    """
    return min(LONGEST_PAUSE, first * 2.0 ** min(failures, 16))


def asked_pause(error: Exception) -> float:
    """Return the seconds of a refusal's Retry-After, 0 if it has none; never more than LONGEST_PAUSE."""
    headers = error.headers if isinstance(error, ApiException) else None
    asked = str((headers or {}).get("Retry-After", "")).strip()
    return min(LONGEST_PAUSE, float(asked[:9])) if asked.isascii() and asked.isdigit() else 0.0


def in_words(error: Exception, what: str) -> str:
    """Return in one line what went wrong with a list or watch of `what`."""
    if not isinstance(error, ApiException):
        return " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST_WORDS]
    known = responses.get(error.status or 0, "")
    text = f"{error.status} {_message(error) or error.reason or known}"
    if error.status == NOT_FOUND:
        text = f"the API server does not serve {what}: {text}"
    return " ".join(text.split())[:LONGEST_WORDS]


def _message(error: ApiException) -> str:
    """Return the message of a metav1.Status; empty for other bodies, as of a proxy or an unknown path."""
    try:
        status = orjson.loads(error.body or b"")
    except orjson.JSONDecodeError:
        return ""
    return str(status.get("message") or "") if isinstance(status, dict) else ""
