"""A request: what authorization and the verbs go by, and the answer (k8s.io/apiserver/pkg/endpoints/request; pure)."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
import yaml

from tpu_standins.embedded.http import protobuf
from tpu_standins.embedded.store import errors
from tpu_standins.embedded.store.kinds import Key, Kind, Object

JSON = "application/json"
PROTOBUF = "application/vnd.kubernetes.protobuf"
APPLY_PATCH = "application/apply-patch+yaml"
_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}
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

    @property
    def combined(self) -> str:
        """Return the resource with its subresource."""
        return f"{self.plural}/{self.subresource}" if self.subresource else self.plural

    @property
    def is_dry(self) -> bool:
        """Return whether it is a dry run. Raise ApiError 422 for an unknown directive."""
        asked = self.params.get("dryRun", "")
        if wrong := list(errors.choice("dryRun", asked or "All", ("All",))):
            raise errors.invalid(f"{self.verb.capitalize()}Options", "meta.k8s.io", "", wrong)
        return bool(asked)

    def key(self, kind: Kind) -> Key:
        return Key(kind.id, self.namespace if kind.namespaced else "", self.name)

    def asks(self, parameter: str) -> bool:
        """Return whether a parameter is present and true."""
        return self.params.get(parameter) in _TRUE

    def number(self, parameter: str) -> int | None:
        """Return a numeric parameter. Raise ApiError 400 if it is no number."""
        text = self.params.get(parameter)
        if text and not text.isdigit():
            raise errors.bad_request(f'strconv.ParseUint: parsing "{text}": invalid syntax ({parameter})')
        return int(text) if text else None

    def parsed(self) -> Any:
        """Parse the body. Raise ApiError 400 or 413."""
        if len(self.body) > _MAX_BYTES:
            raise errors.ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {_MAX_BYTES}")
        if self.content_type == PROTOBUF:
            return protobuf.decode(self.body)
        try:
            return (yaml.safe_load if self.content_type == APPLY_PATCH else orjson.loads)(self.body)
        except (orjson.JSONDecodeError, yaml.YAMLError) as error:
            raise errors.bad_request(f"the object provided is unrecognized (must be of type json): {error}") from error

    def object(self) -> Object:
        """Parse a body that must be an object. Raise ApiError 400 if it is not."""
        parsed = self.parsed()
        if isinstance(parsed, dict) and isinstance(parsed.get("metadata", {}), dict):
            return parsed
        raise errors.bad_request("the object provided is unrecognized (must be an object with metadata)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response: an object to be written as JSON, the lines of a watch, or raw bytes."""

    code: int = 200
    body: Object | AsyncIterator[bytes] | bytes
    media_type: str = JSON
    warning: str = ""


def read(method: str, path: str, params: Mapping[str, str], headers: Mapping[str, str], body: bytes) -> Request:
    """Return the request. A field selector on metadata.name counts as the object's name. Raise ApiError 501."""
    match path.strip("/").split("/"):
        case ["api", version, plural, *rest]:
            group = ""
        case ["apis", group, version, plural, *rest]:
            pass
        case _:
            return Request(verb=method.lower(), path=path, params=params, accept=headers.get("accept", ""))
    namespace = ""
    if plural == "namespaces" and rest:
        namespace = rest[0]
        if len(rest) > 1 and rest[1] != "status":
            plural, rest = rest[1], rest[2:]
    name, subresource = (*rest, "", "")[:2]
    if len(rest) > 2:
        raise errors.not_implemented(f"the path {path}")
    verb, watched = _VERBS.get(method, method.lower()), params.get("watch") in _TRUE
    if not name:
        verb = {"get": "list", "delete": "deletecollection"}.get(verb, verb)
        terms = (term.replace("==", "=").partition("=") for term in params.get("fieldSelector", "").split(","))
        selected = next((value for key, _, value in terms if key == "metadata.name"), "")
        name = selected if verb in ("list", "deletecollection") else ""
    return Request(
        verb="watch" if watched and verb in ("get", "list") else verb, path=path, group=group, version=version,
        plural=plural, subresource=subresource, namespace=namespace, name=name, params=params,
        content_type=headers.get("content-type", "").partition(";")[0].strip(), accept=headers.get("accept", ""),
        body=body,
    )  # fmt: skip
