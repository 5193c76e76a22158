"""A parsed request and its response."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from infra.local.cluster import errors
from infra.local.cluster.targets import JSON

_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_MOST_MANAGER_BYTES = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request. `content_type`, `accept` and `agent` are headers as sent, the first without parameters."""

    method: str
    path: str
    params: Mapping[str, str]
    content_type: str
    accept: str
    body: bytes
    agent: str = ""

    def says(self, parameter: str) -> bool:
        """Return whether a parameter is present and true."""
        return self.params.get(parameter) in _TRUE

    def is_dry(self) -> bool:
        """Return whether it is a dry run. Raise ApiError 422 for an unknown directive."""
        asked = self.params.get("dryRun", "")
        if asked not in ("", "All"):
            raise self.refused(
                "dryRun", "FieldValueNotSupported", f'Unsupported value: "{asked}": supported values: "All"'
            )
        return bool(asked)

    def manager(self) -> str:
        """Return the field manager: the parameter, else the client's program. Raise ApiError 422 if it is invalid."""
        said = self.params.get("fieldManager", "")
        if len(said.encode()) > _MOST_MANAGER_BYTES:
            why = f"Too long: may not be more than {_MOST_MANAGER_BYTES} bytes"
            raise self.refused("fieldManager", "FieldValueTooLong", why)
        if not said.isprintable():
            why = f"Invalid value: {said!r}: should only contain printable characters"
            raise self.refused("fieldManager", "FieldValueInvalid", why)
        program = self.agent.partition("/")[0]
        return said or "".join(filter(str.isprintable, program))[:_MOST_MANAGER_BYTES] or "unknown"

    def refused(self, parameter: str, reason: str, message: str) -> errors.ApiError:
        """Return the error of an invalid parameter, as an error of the options that it belongs to."""
        options = {"POST": "CreateOptions", "PUT": "UpdateOptions", "DELETE": "DeleteOptions"}
        kind = options.get(self.method, "PatchOptions")
        return errors.invalid(kind, "meta.k8s.io", "", [errors.FieldError(parameter, reason, message)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response: an object to be written as JSON, the lines of a watch, or raw bytes."""

    code: int = 200
    body: dict[str, Any] | AsyncIterator[bytes] | bytes
    media_type: str = JSON
    warnings: Sequence[str] = field(default_factory=tuple)
