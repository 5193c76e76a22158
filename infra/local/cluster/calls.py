"""A request as the API reads it, and its answer."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from infra.local.cluster import errors
from infra.local.cluster.targets import JSON

_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_MOST_MANAGER_BYTES = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request. `content_type`, `accept` and `agent` as sent, the first without parameters."""

    method: str
    path: str
    params: Mapping[str, str]
    content_type: str
    accept: str
    body: bytes
    agent: str = ""

    def says(self, parameter: str) -> bool:
        """Whether a parameter is there and true."""
        return self.params.get(parameter) in _TRUE

    def is_dry(self) -> bool:
        """Whether to do all but store. ApiError 422 for an unknown directive."""
        asked = self.params.get("dryRun", "")
        if asked not in ("", "All"):
            raise self.refused(
                "dryRun", "FieldValueNotSupported", f'Unsupported value: "{asked}": supported values: "All"'
            )
        return bool(asked)

    def manager(self) -> str:
        """Name who writes: the fieldManager, else the program. ApiError 422 for a name that cannot be."""
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
        """Make the error of a wrong parameter, as of the options it belongs to."""
        options = {"POST": "CreateOptions", "PUT": "UpdateOptions", "DELETE": "DeleteOptions"}
        kind = options.get(self.method, "PatchOptions")
        return errors.invalid(kind, "meta.k8s.io", "", [errors.FieldError(parameter, reason, message)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response: an object to be written as JSON, the lines of a watch, or what is written as it is."""

    code: int = 200
    body: dict[str, Any] | AsyncIterator[bytes] | bytes
    media_type: str = JSON
    warnings: Sequence[str] = field(default_factory=tuple)
