"""What the server has: discovery, and OpenAPI documents that say only which kinds can be patched how (pure)."""

from collections.abc import Sequence
from typing import Any

from tpu_standins.embedded.http import protobuf
from tpu_standins.embedded.store.kinds import Kind

Document = dict[str, Any]

VERSION = {"major": "1", "minor": "33", "gitVersion": "v1.33.0-embedded", "platform": "linux/amd64"}
"""A version of which kubectl 1.32 to 1.34 do not warn."""

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation", "force")
STATUS_VERBS = ("get", "patch", "update")
SUBRESOURCES = {
    "binding": ("Binding", "", "v1", "create"),
    "eviction": ("Eviction", "policy", "v1", "create"),
    "log": ("Pod", "", "", "get"),
    "token": ("TokenRequest", "authentication.k8s.io", "v1", "create"),
}
"""Kind, group, version and verb of the subresources beyond status."""


def answer(path: str, kinds: Sequence[Kind]) -> Document | None:
    """Return the document at a discovery path, or None if it is no discovery path."""
    versions = list(dict.fromkeys(kind.api_version for kind in kinds))
    groups = list(dict.fromkeys(version.partition("/")[0] for version in versions if "/" in version))
    match path.strip("/").split("/"):
        case ["version"]:
            return VERSION
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(each, versions) for each in groups]}
        case ["api" | "apis", *rest] if "/".join(rest) in versions:
            rows = [row for kind in kinds if kind.api_version == "/".join(rest) for row in _rows(kind)]
            return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "/".join(rest), "resources": rows}
        case ["openapi", "v3"]:
            return {"paths": {root: {"serverRelativeURL": f"/openapi/v3/{root}"} for root in map(_root, versions)}}
        case ["openapi", "v3", *rest] if "/".join(rest) in map(_root, versions):
            return _openapi([kind for kind in kinds if _root(kind.api_version) == "/".join(rest)])
        case _:
            return None


def _root(api_version: str) -> str:
    return f"apis/{api_version}" if "/" in api_version else f"api/{api_version}"


def _group(name: str, served: Sequence[str]) -> Document:
    mine = [version for version in served if version.partition("/")[0] == name]
    versions = [{"groupVersion": version, "version": version.partition("/")[2]} for version in mine]
    return {"kind": "APIGroup", "name": name, "versions": versions, "preferredVersion": versions[0]}


def _rows(kind: Kind) -> list[Document]:
    shared = {"singularName": "", "namespaced": kind.namespaced, "kind": kind.kind}
    more = {"shortNames": list(kind.short), "categories": list(kind.categories)}
    whole = {"name": kind.plural} | shared | {"singularName": kind.kind.lower(), "verbs": list(VERBS)}
    rows = [whole | {key: value for key, value in more.items() if value}]
    if kind.status:
        rows.append({"name": f"{kind.plural}/status"} | shared | {"verbs": list(STATUS_VERBS)})
    for subresource in kind.subresources:
        its_kind, group, version, verb = SUBRESOURCES[subresource]
        row = {"name": f"{kind.plural}/{subresource}"} | shared | {"kind": its_kind, "verbs": [verb]}
        rows.append(row | ({"group": group, "version": version} if group else {}))
    return rows


def _path(kind: Kind) -> str:
    return f"/{_root(kind.api_version)}/{'namespaces/{namespace}/' if kind.namespaced else ''}{kind.plural}/{{name}}"


def _named(kind: Kind) -> Document:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def openapi_v2(kinds: Sequence[Kind]) -> bytes:
    """Return the document of all kinds that old kubectl asks for, as `_openapi` in protobuf."""
    return protobuf.openapi(((_path(kind), _named(kind)) for kind in kinds), _PARAMETERS)


def _openapi(kinds: Sequence[Kind]) -> Document:
    """Return an OpenAPI v3 document without schemas: by it kubectl leaves validation to the server."""
    parameters = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in _PARAMETERS]
    patch = {"parameters": parameters, "responses": {"200": {"description": "OK"}}, "x-kubernetes-action": "patch"}
    paths = {_path(kind): {"patch": patch | {"x-kubernetes-group-version-kind": _named(kind)}} for kind in kinds}
    info = {"title": "Kubernetes", "version": "unversioned"}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": {}}}
