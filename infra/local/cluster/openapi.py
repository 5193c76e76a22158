"""OpenAPI documents: shown by `kubectl explain`, and by which kubectl relies on server-side validation (pure).

v3 has one document per group version; v2 has one for all, which kubectl before 1.28 requests and every kubectl
uses for strategic merge patches.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from infra.local.cluster import errors, gnostic
from infra.local.cluster.openapi_schemas import Dialect, definitions, group_version_kind
from infra.local.cluster.resources import RESOURCES, Resource
from infra.local.cluster.targets import SERVED

GNOSTIC = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_GNOSTIC_ASKED = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"  # invalid, but clients send it

Document = dict[str, Any]

_INFO = {"title": "Kubernetes", "version": "unversioned"}
_WRITES = ("dryRun", "fieldManager", "fieldValidation")
_OPERATIONS: Mapping[str, tuple[str, str, tuple[str, ...]]] = MappingProxyType(
    {
        "create": ("post", "post", _WRITES),
        "delete": ("delete", "delete", ("dryRun", "gracePeriodSeconds", "propagationPolicy")),
        "deletecollection": ("delete", "deletecollection", ("dryRun", "labelSelector", "fieldSelector")),
        "get": ("get", "get", ()),
        "list": ("get", "list", ("continue", "fieldSelector", "labelSelector", "limit", "watch")),
        "patch": ("patch", "patch", (*_WRITES, "force")),
        "update": ("put", "put", _WRITES),
    }
)
"""HTTP method, x-kubernetes-action and query parameters, by verb."""

_OF_COLLECTIONS = frozenset({"create", "deletecollection", "list"})


def answer(rest: list[str]) -> Document | None:
    """Return the document below /openapi, or None if there is none. Raise ApiError 404 for unknown group versions."""
    match rest:
        case ["v2"]:
            return v2()
        case ["v3"]:
            roots = dict.fromkeys(_root(resource.api_version) for resource in RESOURCES.values())
            return {"paths": {root: {"serverRelativeURL": f"/openapi/v3/{root}"} for root in roots}}
        case ["v3", *root]:
            return v3("/".join(root))
        case _:
            return None


@cache
def v3(root: str) -> Document:
    """Return the document of a group version, by its path without the leading slash. Raise ApiError 404 if unknown."""
    resources = [resource for resource in RESOURCES.values() if _root(resource.api_version) == root]
    if not resources:
        raise errors.ApiError(404, "NotFound", "the server could not find the requested resource")
    return {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": _paths(resources, Dialect(3)),
        "components": {"schemas": definitions(resources, Dialect(3))},
    }


@cache
def v2() -> Document:
    """Return the document of all group versions, as Swagger."""
    resources = list(RESOURCES.values())
    return {
        "swagger": "2.0",
        "info": _INFO,
        "paths": _paths(resources, Dialect(2)),
        "definitions": definitions(resources, Dialect(2)),
    }


@cache
def v2_protobuf() -> bytes:
    return gnostic.document(v2())


def wants_gnostic(accept: str) -> bool:
    return any(option.partition(";")[0].strip() in (GNOSTIC, _GNOSTIC_ASKED) for option in accept.split(","))


def _root(api_version: str) -> str:
    return f"apis/{api_version}" if "/" in api_version else f"api/{api_version}"


def _paths(resources: list[Resource], dialect: Dialect) -> Document:
    paths: Document = {}
    for resource in resources:
        for subresource in (sub for plural, sub in SERVED if plural == resource.plural):
            for verb in sorted(SERVED[resource.plural, subresource]):
                if verb in _OPERATIONS:
                    path = _path(resource, verb, subresource)
                    method, action, names = _OPERATIONS[verb]
                    paths.setdefault(path, {})[method] = _operation(resource, action, names, dialect)
    return paths


def _path(resource: Resource, verb: str, subresource: str) -> str:
    where = "namespaces/{namespace}/" if resource.namespaced else ""
    path = f"/{_root(resource.api_version)}/{where}{resource.plural}"
    if verb in _OF_COLLECTIONS and not subresource:
        return path
    return f"{path}/{{name}}" + (f"/{subresource}" if subresource else "")


def _operation(resource: Resource, action: str, names: tuple[str, ...], dialect: Dialect) -> Document:
    return {
        "parameters": [_parameter(name, dialect) for name in names],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": group_version_kind(resource),
    }


def _parameter(name: str, dialect: Dialect) -> Document:
    kind = {"type": {"force": "boolean", "watch": "boolean", "limit": "integer"}.get(name, "string")}
    return {"name": name, "in": "query"} | (kind if dialect.version == 2 else {"schema": kind})
