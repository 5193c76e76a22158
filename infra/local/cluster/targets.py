"""What is served: the fixed table of verb, resource and content type, and the parsing of paths (pure)."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from infra.local.cluster import errors
from infra.local.cluster.errors import ApiError
from infra.local.cluster.resources import RESOURCES, Resource

JSON = "application/json"
PROTOBUF = "application/vnd.kubernetes.protobuf"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

_NOT_OURS = frozenset(
    {
        PROTOBUF,
        "application/yaml",
        "application/cbor",
        "application/apply-patch+cbor",
    }
)
"""Content types that a real API server accepts and this one does not: 501 instead of 415."""

_NO_BODY: tuple[str, ...] = ()
_CUSTOM_PATCHES = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
_CORE_PATCHES = (*_CUSTOM_PATCHES, STRATEGIC_MERGE_PATCH)

Verbs = Mapping[str, tuple[str, ...]]
"""Content types of the request body, by verb; empty for verbs without a body. DeleteOptions are always JSON."""


def _object_verbs(*, custom: bool = False, protobuf: bool = False, collection: bool = True) -> Verbs:
    verbs: dict[str, tuple[str, ...]] = {
        "create": (JSON, PROTOBUF) if protobuf else (JSON,),
        "delete": _NO_BODY,
        "deletecollection": _NO_BODY,
        "get": _NO_BODY,
        "list": _NO_BODY,
        "patch": _CUSTOM_PATCHES if custom else _CORE_PATCHES,
        "update": (JSON,),
        "watch": _NO_BODY,
    }
    if not collection:
        del verbs["deletecollection"]
    return MappingProxyType(verbs)


def _status_verbs(*, custom: bool = False) -> Verbs:
    patches = _CUSTOM_PATCHES if custom else _CORE_PATCHES
    return MappingProxyType({"get": _NO_BODY, "patch": patches, "update": (JSON,)})


SERVED: Mapping[tuple[str, str], Verbs] = MappingProxyType(
    {
        # kubectl create namespace sends protobuf since 1.31
        ("namespaces", ""): _object_verbs(protobuf=True, collection=False),
        ("namespaces", "status"): _status_verbs(),
        ("nodes", ""): _object_verbs(),
        ("nodes", "status"): _status_verbs(),
        ("pods", ""): _object_verbs(),
        ("pods", "status"): _status_verbs(),
        ("pods", "binding"): MappingProxyType({"create": (JSON,)}),
        ("pods", "eviction"): MappingProxyType({"create": (JSON, PROTOBUF)}),
        ("pods", "log"): MappingProxyType({"get": _NO_BODY}),
        ("services", ""): _object_verbs(),
        ("services", "status"): _status_verbs(),
        ("events", ""): _object_verbs(),
        ("jobs", ""): _object_verbs(protobuf=True),
        ("jobs", "status"): _status_verbs(),
        ("jobsets", ""): _object_verbs(custom=True),
        ("jobsets", "status"): _status_verbs(custom=True),
        # kubectl creates these in protobuf since 1.31
        ("serviceaccounts", ""): _object_verbs(protobuf=True),
        ("clusterroles", ""): _object_verbs(protobuf=True),
        ("clusterrolebindings", ""): _object_verbs(protobuf=True),
        ("roles", ""): _object_verbs(protobuf=True),
        ("rolebindings", ""): _object_verbs(protobuf=True),
        ("persistentvolumeclaims", ""): _object_verbs(),
        ("persistentvolumeclaims", "status"): _status_verbs(),
        ("persistentvolumes", ""): _object_verbs(),
        ("persistentvolumes", "status"): _status_verbs(),
        ("configmaps", ""): _object_verbs(protobuf=True),
        ("deployments", ""): _object_verbs(protobuf=True),
        ("deployments", "status"): _status_verbs(),
        ("daemonsets", ""): _object_verbs(),
        ("daemonsets", "status"): _status_verbs(),
        ("leases", ""): _object_verbs(),
        ("priorityclasses", ""): _object_verbs(protobuf=True),
        ("resourceflavors", ""): _object_verbs(custom=True),
        ("clusterqueues", ""): _object_verbs(custom=True),
        ("clusterqueues", "status"): _status_verbs(custom=True),
        ("localqueues", ""): _object_verbs(custom=True),
        ("localqueues", "status"): _status_verbs(custom=True),
        ("workloads", ""): _object_verbs(custom=True),
        ("workloads", "status"): _status_verbs(custom=True),
        ("workloadpriorityclasses", ""): _object_verbs(custom=True),
    }
)
"""By plural name and subresource."""

NOT_INSTALLED = frozenset({"limitranges", "resourcequotas"})
"""Requested by kubectl describe for nodes and namespaces, which accepts a 404: this cluster does not have them."""

_NAMESPACE_SUBRESOURCES = ("status", "finalize")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The target of a path. `namespace` and `name` are empty if the path has none."""

    resource: Resource
    namespace: str
    name: str
    subresource: str

    def verb(self, method: str, *, watch: bool) -> str:
        """Return the verb of a request. Raise ApiError 405 if the path does not allow the method."""
        if method == "GET":
            return "watch" if watch else "get" if self.name else "list"
        if method == "DELETE":
            return "delete" if self.name else "deletecollection"
        creates = method == "POST"
        whole = not self.subresource
        namespace_missing = self.resource.namespaced and not self.namespace
        if method not in _VERBS or (whole and creates is bool(self.name)) or namespace_missing:
            message = "the server does not allow this method on the requested resource"
            raise ApiError(405, "MethodNotAllowed", message)
        return _VERBS[method]

    def check(self, verb: str, content_type: str) -> None:
        """Raise ApiError 501 for anything not in the table, or 415 for a type that no API server accepts."""
        where = self.resource.plural + (f"/{self.subresource}" if self.subresource else "")
        verbs = SERVED.get((self.resource.plural, self.subresource), {})
        if verb not in verbs:
            raise errors.not_implemented(f'the verb "{verb}" on {where}')
        accepted = verbs[verb]
        unsaid = not content_type and verb != "patch"  # a body without a content type is JSON, as in the original
        if not accepted or content_type in accepted or unsaid:
            return
        if content_type in _NOT_OURS:
            raise errors.not_implemented(f'"{content_type}" in the verb "{verb}" on {where}')
        raise errors.unsupported_media_type(content_type, accepted)


def find(path: str) -> Target:
    """Parse a path. Raise ApiError 501 if it is not served, 404 for an API that clusters need not have."""
    match path.strip("/").split("/"):
        case ["api", "v1", *rest]:
            api_version = "v1"
        case ["apis", group, version, *rest]:
            api_version = f"{group}/{version}"
        case _:
            raise _unknown(path)
    namespace = ""
    if len(rest) >= 3 and rest[0] == "namespaces" and rest[2] not in _NAMESPACE_SUBRESOURCES:
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest, "", "", "")[:3]
    resource = RESOURCES.get(plural)
    if resource is None or resource.api_version != api_version or len(rest) > 3:
        raise _unknown(path)
    if namespace and not resource.namespaced:
        raise _unknown(path)
    return Target(resource=resource, namespace=namespace, name=name, subresource=subresource)


def _unknown(path: str) -> ApiError:
    """Return the error of an unknown path: 501, or 404 for APIs that kubectl describe treats as optional."""
    if not NOT_INSTALLED.isdisjoint(path.split("/")):
        message = f"the server could not find the requested resource (the local API server does not serve {path})"
        return ApiError(404, "NotFound", message)
    return errors.not_implemented(f"the path {path}")
