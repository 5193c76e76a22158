"""Request bodies: from bytes to objects of the resource, under the client's fieldValidation (pure)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from infra.local.cluster import errors, protobuf
from infra.local.cluster.errors import FieldError
from infra.local.cluster.resources import Resource
from infra.local.cluster.schema import Decoded, decode
from infra.local.cluster.targets import PROTOBUF

_FIELD_VALIDATIONS = ("Ignore", "Warn", "Strict")
_MAX_BYTES = 3 * 1024 * 1024  # the API server's limit for a request body


@dataclass(frozen=True, slots=True)
class Body:
    """A decoded object and the warnings about it."""

    object: dict[str, Any]
    warnings: Sequence[str]


def parse(data: bytes, content_type: str) -> Any:
    """Parse the bytes of a body. Raise ApiError 400 if malformed, 413 if too large."""
    if len(data) > _MAX_BYTES:
        message = f"Request entity too large: limit is {_MAX_BYTES}"
        raise errors.ApiError(413, "RequestEntityTooLarge", message)
    if content_type == PROTOBUF:
        return protobuf.decode(data)
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise errors.bad_request(f"the object provided is unrecognized (must be of type json): {error}") from error


def parse_object(data: bytes, content_type: str) -> dict[str, Any]:
    """Parse a body that must be a JSON object. Raise ApiError 400 if it is not."""
    parsed = parse(data, content_type)
    if not isinstance(parsed, dict):
        raise errors.bad_request("the object provided is unrecognized (must be an object)")
    return parsed


def read(resource: Resource, body: Any, validation: str) -> Body:
    """Decode a new object. Raise ApiError 400 for unknown fields under Strict, 422 for missing ones."""
    decoded = decode(resource, body)
    if decoded.unknown and _mode(validation) == "Strict":
        kind, version = resource.kind, resource.version
        raise errors.bad_request(
            f'{kind} in version "{version}" cannot be handled as a {kind}: {_strict(decoded.unknown)}'
        )
    return _complete(resource, decoded, validation)


def read_patched(resource: Resource, body: Any, validation: str) -> Body:
    """Decode the result of a patch. Raise ApiError 422, naming the patch, for unknown fields under Strict."""
    decoded = decode(resource, body)
    if decoded.unknown and _mode(validation) == "Strict":
        shown = orjson.dumps(body).decode()
        why = f'Invalid value: "{shown}": {_strict(decoded.unknown)}'
        raise errors.invalid("", "", "", [FieldError("patch", "FieldValueInvalid", why)])
    return _complete(resource, decoded, validation)


def _complete(resource: Resource, decoded: Decoded, validation: str) -> Body:
    if decoded.problems:
        metadata = decoded.object.get("metadata")
        name = metadata.get("name", "") if isinstance(metadata, dict) else ""
        raise errors.invalid(resource.kind, resource.group, name, decoded.problems)
    warns = _mode(validation) == "Warn"
    return Body(decoded.object, [f'unknown field "{path}"' for path in decoded.unknown] if warns else [])


def _mode(validation: str) -> str:
    """Return the mode, if valid. The server's default has been Warn since Kubernetes 1.25."""
    mode = validation or "Warn"
    if mode not in _FIELD_VALIDATIONS:
        listed = ", ".join(f'"{one}"' for one in _FIELD_VALIDATIONS)
        why = f'Unsupported value: "{mode}": supported values: {listed}'
        cause = FieldError("fieldValidation", "FieldValueNotSupported", why)
        raise errors.invalid("CreateOptions", "meta.k8s.io", "", [cause])
    return mode


def _strict(unknown: Sequence[str]) -> str:
    return "strict decoding error: " + ", ".join(f'unknown field "{path}"' for path in unknown)
