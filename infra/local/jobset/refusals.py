"""What JobSet's webhooks refuse, and with which code and words."""

from collections.abc import Sequence
from dataclasses import dataclass

from infra.local.clients.reviews import Refused


@dataclass(frozen=True, slots=True)
class FieldError:
    """One cause of an Invalid error: `k8s.io/apimachinery/pkg/util/validation/field`.Error."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def invalid_value(path: str, value: object, why: str) -> FieldError:
    shown = f'"{value}"' if isinstance(value, str) else value
    return FieldError(path, f"Invalid value: {shown}: {why}")


def internal(message: str) -> FieldError:
    """Return the webhook's error without a field: `field.InternalError(nil, err)`."""
    return FieldError("<nil>", f"Internal error: {message}")


def refuse(name: str, causes: Sequence[FieldError]) -> None:
    """Raise Refused 422 if there are causes; several are listed in brackets."""
    if causes:
        texts = [str(cause) for cause in causes]
        listed = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
        raise Refused(422, "Invalid", f'JobSet.jobset.x-k8s.io "{name}" is invalid: {listed}')


def forbidden(message: str) -> Refused:
    return Refused(403, "Forbidden", message)
