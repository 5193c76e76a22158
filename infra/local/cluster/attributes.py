"""The attributes of a request that authorization uses: derived from method, path and query alone (pure).

Facts: k8s.io/apiserver/pkg/endpoints/request/requestinfo.go. The path need not be one that is served.
"""

from collections.abc import Mapping
from dataclasses import dataclass

_NAMESPACE_SUBRESOURCES = ("status", "finalize")
_VERBS = {"POST": "create", "GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_TRUE = ("1", "t", "T", "TRUE", "true", "True")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """authorizer.Attributes. `resource` is empty for a non-resource path, `path` for a resource."""

    verb: str
    path: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def combined(self) -> str:
        """Return the resource with its subresource."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def read(method: str, path: str, params: Mapping[str, str]) -> Attributes:
    """Return the attributes of a request. A field selector on metadata.name counts as the object's name."""
    match path.strip("/").split("/"):
        case ["api", version, resource, *rest]:
            group = ""
        case ["apis", group, version, resource, *rest]:
            pass
        case _:
            return Attributes(verb=method.lower(), path=path)
    namespace = ""
    if resource == "namespaces" and rest:
        namespace = rest[0]
        if len(rest) > 1 and rest[1] not in _NAMESPACE_SUBRESOURCES:
            resource, rest = rest[1], rest[2:]
    name, subresource = (*rest, "", "")[:2]
    verb = _VERBS.get(method, method.lower())
    if not name:
        verb = _collection_verb(verb, params)
        name = _selected(params) if verb in ("list", "watch", "deletecollection") else ""
    return Attributes(
        verb=verb,
        group=group,
        version=version,
        resource=resource,
        subresource=subresource,
        namespace=namespace,
        name=name,
    )


def _collection_verb(verb: str, params: Mapping[str, str]) -> str:
    if verb == "get":
        return "watch" if params.get("watch") in _TRUE else "list"
    return "deletecollection" if verb == "delete" else verb


def _selected(params: Mapping[str, str]) -> str:
    """Return the name that a field selector requires, or an empty string."""
    for term in params.get("fieldSelector", "").split(","):
        key, _, value = term.replace("==", "=").partition("=")
        if key == "metadata.name":
            return value
    return ""
