"""Errors in Compute Engine's JSON: those of a call, and those of an operation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

_STATUS = {
    HTTPStatus.BAD_REQUEST: "INVALID_ARGUMENT",
    HTTPStatus.FORBIDDEN: "PERMISSION_DENIED",
    HTTPStatus.NOT_FOUND: "NOT_FOUND",
    HTTPStatus.CONFLICT: "ALREADY_EXISTS",
    HTTPStatus.PRECONDITION_FAILED: "FAILED_PRECONDITION",
    HTTPStatus.NOT_IMPLEMENTED: "UNIMPLEMENTED",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An error response. `rule` names the row that refused, `reason` is Compute's word for it."""

    code: HTTPStatus
    reason: str
    message: str
    rule: str

    def as_json(self) -> Mapping[str, Any]:
        error = {"message": self.message, "domain": "global", "reason": self.reason}
        status = {"status": _STATUS[self.code]} if self.code in _STATUS else {}
        return {"error": {"code": int(self.code), "message": self.message, "errors": [error], **status}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """An error of an operation or of an instance: `error.errors[]`, with the HTTP error that it stands for.

    `metadata`: of its ErrorInfo; empty: it has none.
    """

    code: str
    message: str
    http: HTTPStatus = HTTPStatus.BAD_REQUEST
    metadata: Mapping[str, str] = field(default_factory=dict)


def not_found(path: str, rule: str = "unknown-resource") -> Refusal:
    """Return Compute's answer for what does not exist (mattes/gce-deploy-action#1)."""
    message = f"The resource '{path}' was not found"
    return Refusal(code=HTTPStatus.NOT_FOUND, reason="notFound", message=message, rule=rule)


def not_implemented(what: str) -> Refusal:
    """Return the answer for what the stand-in does not cover; the original would have another."""
    message = f"{what} is not implemented by the local Compute Engine."
    return Refusal(code=HTTPStatus.NOT_IMPLEMENTED, reason="notImplemented", message=message, rule="not-covered")


def invalid(field_name: str, value: object, why: str, rule: str) -> Refusal:
    """Return Compute's answer for a value that is refused (hashicorp/terraform-provider-google#5252)."""
    message = f"Invalid value for field '{field_name}': '{value}'. {why}"
    return Refusal(code=HTTPStatus.BAD_REQUEST, reason="invalid", message=message, rule=rule)


def required(field_name: str, rule: str) -> Refusal:
    """Return Compute's answer for a field that is missing (hashicorp/terraform#18781)."""
    message = f"Required field '{field_name}' not specified"
    return Refusal(code=HTTPStatus.BAD_REQUEST, reason="required", message=message, rule=rule)
