"""A request: what authorization and the verbs go by, and the answer (k8s.io/apiserver/pkg/endpoints/request; pure)."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import yaml

from infra.local.embedded.store import errors

JSON = "application/json"
PROTOBUF = "application/vnd.kubernetes.protobuf"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
PATCHES = (MERGE_PATCH, JSON_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)

_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}
_NAMESPACE_SUBRESOURCES = ("status", "finalize")
_MAX_BYTES = 3 * 1024 * 1024  # the API server's limit for a request body


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request. Without a resource it is for `path`. `params`, `content_type`, `accept` and `body` are as sent."""

    verb: str
    path: str
    group: str = ""
    version: str = ""
    plural: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    params: Mapping[str, str] = field(default_factory=dict)
    content_type: str = ""
    accept: str = ""
    body: bytes = b""

    def says(self, parameter: str) -> bool:
        """Return whether a parameter is present and true."""
        return self.params.get(parameter) in _TRUE

    def number(self, parameter: str) -> int | None:
        """Return a numeric parameter. Raise ApiError 400 if it is no number."""
        text = self.params.get(parameter)
        if not text:
            return None
        if not text.isdigit():
            raise errors.bad_request(f'strconv.ParseUint: parsing "{text}": invalid syntax ({parameter})')
        return int(text)

    def is_dry(self) -> bool:
        """Return whether it is a dry run. Raise ApiError 422 for an unknown directive."""
        asked = self.params.get("dryRun", "")
        if found := [] if asked in ("", "All") else list(errors.choice("dryRun", asked, ("All",))):
            kind = {"create": "CreateOptions", "update": "UpdateOptions", "delete": "DeleteOptions"}
            raise errors.invalid(kind.get(self.verb, "PatchOptions"), "meta.k8s.io", "", found)
        return bool(asked)

    def parsed(self) -> Any:
        """Parse the body as JSON, or YAML if it is to be applied. Raise ApiError 400 or 413."""
        if len(self.body) > _MAX_BYTES:
            raise errors.ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {_MAX_BYTES}")
        try:
            if self.content_type == APPLY_PATCH and not self.body.lstrip().startswith(b"{"):
                return yaml.safe_load(self.body)
            return orjson.loads(self.body)
        except (orjson.JSONDecodeError, yaml.YAMLError) as error:
            raise errors.bad_request(f"the object provided is unrecognized (must be of type json): {error}") from error

    def object(self) -> dict[str, Any]:
        """Parse a body that must be a JSON object. Raise ApiError 400 if it is not."""
        parsed = self.parsed()
        if not isinstance(parsed, dict) or not isinstance(parsed.get("metadata", {}), dict):
            raise errors.bad_request("the object provided is unrecognized (must be an object with metadata)")
        return parsed


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response: an object to be written as JSON, the lines of a watch, or raw bytes."""

    code: int = 200
    body: dict[str, Any] | AsyncIterator[bytes] | bytes
    media_type: str = JSON
    warnings: Sequence[str] = ()


def read(
    method: str, path: str, params: Mapping[str, str], headers: Mapping[str, str] | None = None, body: bytes = b""
) -> Request:
    """Return the request. A field selector on metadata.name counts as the object's name for authorization."""
    said = headers or {}
    content_type = said.get("content-type", "").partition(";")[0].strip()
    accept = said.get("accept", "")
    match path.strip("/").split("/"):
        case ["api", version, plural, *rest]:
            group = ""
        case ["apis", group, version, plural, *rest]:
            pass
        case _:
            return Request(verb=method.lower(), path=path, params=params, accept=accept)
    namespace = ""
    if plural == "namespaces" and rest:
        namespace = rest[0]
        if len(rest) > 1 and rest[1] not in _NAMESPACE_SUBRESOURCES:
            plural, rest = rest[1], rest[2:]
    name, subresource = (*rest, "", "")[:2]
    if len(rest) > 2:
        raise errors.not_implemented(f"the path {path}")
    verb = _VERBS.get(method, method.lower())
    if not name:
        verb = {"get": "watch" if params.get("watch") in _TRUE else "list", "delete": "deletecollection"}.get(
            verb, verb
        )
        name = _selected(params) if verb in ("list", "watch", "deletecollection") else ""
    elif verb == "get" and params.get("watch") in _TRUE:
        verb = "watch"
    return Request(
        verb=verb, path=path, group=group, version=version, plural=plural, subresource=subresource,
        namespace=namespace, name=name, params=params, content_type=content_type, accept=accept, body=body,
    )  # fmt: skip


def _selected(params: Mapping[str, str]) -> str:
    """Return the name that a field selector requires, or an empty string."""
    for term in params.get("fieldSelector", "").split(","):
        key, _, value = term.replace("==", "=").partition("=")
        if key == "metadata.name":
            return value
    return ""
