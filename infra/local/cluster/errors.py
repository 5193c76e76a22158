"""Errors of the Kubernetes API as metav1.Status, as `k8s.io/apimachinery/pkg/api/errors` constructs them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class FieldError:
    """One cause of an Invalid error: `k8s.io/apimachinery/pkg/util/validation/field`.Error."""

    path: str
    reason: str  # FieldValueInvalid, FieldValueRequired, FieldValueForbidden, FieldValueNotSupported, ...
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class ApiError(Exception):
    """An error response. `details` is metav1.StatusDetails."""

    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details or {}

    def status(self) -> dict[str, Any]:
        """Return the error as metav1.Status."""
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        return status | ({"details": self.details} if self.details else {})


def qualified(plural: str, group: str) -> str:
    return f"{plural}.{group}" if group else plural


def not_found(plural: str, group: str, name: str) -> ApiError:
    details = {"name": name, "group": group, "kind": plural}
    return ApiError(404, "NotFound", f'{qualified(plural, group)} "{name}" not found', details)


def already_exists(plural: str, group: str, name: str) -> ApiError:
    details = {"name": name, "group": group, "kind": plural}
    return ApiError(409, "AlreadyExists", f'{qualified(plural, group)} "{name}" already exists', details)


def conflict(plural: str, group: str, name: str, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {qualified(plural, group)} "{name}": {why}'
    return ApiError(409, "Conflict", message, {"name": name, "group": group, "kind": plural})


def forbidden(plural: str, group: str, name: str, why: str) -> ApiError:
    message = f'{qualified(plural, group)} "{name}" is forbidden: {why}'
    return ApiError(403, "Forbidden", message, {"name": name, "group": group, "kind": plural})


def invalid(kind: str, group: str, name: str, causes: Sequence[FieldError]) -> ApiError:
    """Return the error of `errors.NewInvalid`; several causes are listed in brackets."""
    texts = [str(cause) for cause in causes]
    listed = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    details = {
        "name": name,
        "group": group,
        "kind": kind,
        "causes": [{"reason": c.reason, "message": c.message, "field": c.path} for c in causes],
    }
    return ApiError(422, "Invalid", f'{qualified(kind, group)} "{name}" is invalid: {listed}', details)


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def expired(message: str) -> ApiError:
    return ApiError(410, "Expired", message)


def not_implemented(what: str) -> ApiError:
    """Return the error for something that a real API server supports and this one does not."""
    return ApiError(501, "NotImplemented", f"the local API server does not implement {what}")


def unsupported_media_type(content_type: str, supported: Sequence[str]) -> ApiError:
    listed = ", ".join(supported)
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        f"{listed} (got {content_type or 'none'})"
    )
    return ApiError(415, "UnsupportedMediaType", message)
