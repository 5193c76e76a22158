"""Refusals of an API server, as metav1.Status tells them, and its silence."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import orjson

_PASSING = (401, 408, 429)
_NOT_FOUND = 404


class ApiError(Exception):
    """A refused request: the HTTP code, and reason and message of metav1.Status."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message

    @property
    def passes(self) -> bool:
        """Return whether the same request may succeed later, although nothing changes in the cluster."""
        return self.code >= 500 or self.code in _PASSING


class Unreachable(ApiError):
    """Nobody answered, or not in time, or not as an API server does."""

    def __init__(self, why: str) -> None:
        super().__init__(503, "ServiceUnavailable", f"the API server does not answer: {why}")


def refusal(code: int, body: bytes) -> ApiError:
    """Return the error of a response; another body than a metav1.Status is its message."""
    status = _status(body)
    message = status.get("message") or f"the API server answers {code}: {body.decode(errors='replace').strip()}"
    return ApiError(code, str(status.get("reason") or ""), str(message))


def told(status: Mapping[str, Any]) -> ApiError:
    """Return the error that an ERROR event of a watch tells, a metav1.Status."""
    return ApiError(int(status.get("code") or 500), str(status.get("reason") or ""), str(status.get("message") or ""))


@contextmanager
def gone_already() -> Iterator[None]:
    """Ignore that something is not there, which was to be deleted or changed."""
    try:
        yield
    except ApiError as error:
        if error.code != _NOT_FOUND:
            raise


def _status(body: bytes) -> Mapping[str, Any]:
    try:
        status = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return status if isinstance(status, dict) and status.get("kind") == "Status" else {}
