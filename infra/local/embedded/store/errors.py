"""Refusals of the Kubernetes API as metav1.Status (k8s.io/apimachinery/pkg/api/errors; pure)."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from infra.local.clients import errors as clients


@dataclass(frozen=True, slots=True)
class FieldError:
    """One cause of an Invalid error (k8s.io/apimachinery/pkg/util/validation/field)."""

    path: str
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
    return FieldError(path, "FieldValueRequired", f"Required value: {why}" if why else "Required value")


def wrong(path: str, value: Any, why: str) -> FieldError:
    shown = f'"{value}"' if isinstance(value, str) else value
    return FieldError(path, "FieldValueInvalid", f"Invalid value: {shown}: {why}")


def prohibited(path: str, why: str) -> FieldError:
    return FieldError(path, "FieldValueForbidden", f"Forbidden: {why}")


def choice(path: str, value: Any, allowed: Sequence[str]) -> Iterator[FieldError]:
    """Yield the error of a value that is none of those allowed."""
    if value not in allowed:
        listed = ", ".join(f'"{one}"' for one in sorted(allowed))
        yield FieldError(path, "FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {listed}')


def qualified(plural: str, group: str) -> str:
    return f"{plural}.{group}" if group else plural


def _about(code: int, reason: str, what: tuple[str, str, str], before: str = "", after: str = "") -> ApiError:
    """Return an error about an object, given by kind (or plural), group and name."""
    kind, group, name = what
    details = {key: value for key, value in (("name", name), ("group", group), ("kind", kind)) if value}
    return ApiError(code, reason, f'{before}{qualified(kind, group)} "{name}"{after}', details)


def not_found(plural: str, group: str, name: str) -> ApiError:
    return _about(404, "NotFound", (plural, group, name), after=" not found")


def already_exists(plural: str, group: str, name: str) -> ApiError:
    return _about(409, "AlreadyExists", (plural, group, name), after=" already exists")


def conflict(plural: str, group: str, name: str, why: str) -> ApiError:
    before = "Operation cannot be fulfilled on "
    return _about(409, "Conflict", (plural, group, name), before=before, after=f": {why}")


def forbidden(plural: str, group: str, name: str, why: str) -> ApiError:
    return _about(403, "Forbidden", (plural, group, name), after=f" is forbidden: {why}")


def invalid(kind: str, group: str, name: str, causes: Iterable[FieldError]) -> ApiError:
    """Return the error of `errors.NewInvalid`; several causes are listed in brackets."""
    found = list(causes)
    texts = [f"{cause.path}: {cause.message}" for cause in found]
    listed = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    refusal = _about(422, "Invalid", (kind, group, name), after=f" is invalid: {listed}")
    refusal.details["causes"] = [{"reason": c.reason, "message": c.message, "field": c.path} for c in found]
    return refusal


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def expired(message: str) -> ApiError:
    return ApiError(410, "Expired", message)


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
