"""Refusals of the Kubernetes API as metav1.Status (k8s.io/apimachinery/pkg/api/errors; pure)."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from tpu_standins.clients import errors as clients


@dataclass(frozen=True, slots=True)
class FieldError:
    """One cause of an Invalid error (k8s.io/apimachinery/pkg/util/validation/field)."""

    field: str
    reason: str
    message: str


class ApiError(clients.ApiError):
    """A refusal, as clients have it, with metav1.StatusDetails."""

    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(code, reason, message)
        self.details = details or {}

    def status(self) -> dict[str, Any]:
        """Return the refusal as metav1.Status."""
        status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        status |= {"message": self.message, "reason": self.reason, "code": self.code}
        return status | ({"details": self.details} if self.details else {})


def required(path: str, why: str = "") -> FieldError:
    return FieldError(path, "FieldValueRequired", f"Required value: {why}")


def wrong(path: str, value: Any, why: str) -> FieldError:
    return FieldError(path, "FieldValueInvalid", f'Invalid value: "{value}": {why}')


def prohibited(path: str, why: str) -> FieldError:
    return FieldError(path, "FieldValueForbidden", f"Forbidden: {why}")


def choice(path: str, value: Any, allowed: Sequence[str]) -> Iterator[FieldError]:
    """Yield the error of a value that is none of those allowed."""
    if value not in allowed:
        listed = ", ".join(f'"{one}"' for one in sorted(allowed))
        yield FieldError(path, "FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {listed}')


def qualified(plural: str, group: str) -> str:
    return f"{plural}.{group}" if group else plural


def about(code: int, reason: str, what: tuple[str, str, str], text: str) -> ApiError:
    """Return an error about an object, given by kind or plural, group and name; `text` has a `%s` for it."""
    kind, group, name = what
    details = {key: value for key, value in (("name", name), ("group", group), ("kind", kind)) if value}
    return ApiError(code, reason, text.replace("%s", f'{qualified(kind, group)} "{name}"', 1), details)


def conflict(plural: str, group: str, name: str, why: str) -> ApiError:
    return about(409, "Conflict", (plural, group, name), f"Operation cannot be fulfilled on %s: {why}")


def forbidden(plural: str, group: str, name: str, why: str) -> ApiError:
    return about(403, "Forbidden", (plural, group, name), f"%s is forbidden: {why}")


def invalid(kind: str, group: str, name: str, causes: Iterable[FieldError]) -> ApiError:
    """Return the error of `errors.NewInvalid`; several causes are listed in brackets."""
    found = list(causes)
    texts = ", ".join(f"{cause.field}: {cause.message}" for cause in found)
    refusal = about(422, "Invalid", (kind, group, name), f"%s is invalid: {texts if len(found) == 1 else f'[{texts}]'}")
    refusal.details["causes"] = [asdict(cause) for cause in found]
    return refusal


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def not_implemented(what: str) -> ApiError:
    """Return the error for something that Kubernetes has and this server does not."""
    remedy = "use a real control plane for it (--kubeconfig, or make kubernetes)"
    return ApiError(501, "NotImplemented", f"the embedded API server does not implement {what}: {remedy}")


@contextmanager
def understood(kind: str) -> Iterator[None]:
    """Raise ApiError 400 where a field of an object has another type than the code expects."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        what = f"{type(error).__name__}: {error}"
        raise bad_request(f"{kind} cannot be handled as a {kind}: cannot unmarshal: {what}") from error
