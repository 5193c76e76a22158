"""Discovery: what `kubectl api-resources` asks, and enough of OpenAPI v3 for `kubectl apply` (pure).

kubectl 1.27 and later look in /openapi/v3 for a PATCH operation with `fieldValidation`; when they find one
they leave validation to the server.
"""

from typing import Any

from infra.local.cluster.errors import ApiError
from infra.local.cluster.resources import RESOURCES, Resource
from infra.local.cluster.targets import SERVED

VERSION = {
    "major": "1",
    "minor": "33",
    "gitVersion": "v1.33.0-local",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}
"""A version that kubectl 1.32 to 1.34 accept without a warning about skew."""


def answer(path: str) -> dict[str, Any] | None:
    """Answer a discovery path; None when it is none of them."""
    match path.strip("/").split("/"):
        case ["version"]:
            return VERSION
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(g) for g in _groups()]}
        case ["api", "v1"]:
            return _resources("v1")
        case ["apis", group] if group in _groups():
            return {"apiVersion": "v1"} | _group(group)
        case ["apis", group, version] if f"{group}/{version}" in _api_versions():
            return _resources(f"{group}/{version}")
        case ["openapi", "v3"]:
            roots = [_root(version) for version in _api_versions()]
            return {"paths": {root: {"serverRelativeURL": f"/openapi/v3/{root}"} for root in roots}}
        case ["openapi", "v3", *rest]:
            return _openapi("/".join(rest))
        case _:
            return None


def _api_versions() -> list[str]:
    return list(dict.fromkeys(resource.api_version for resource in RESOURCES.values()))


def _groups() -> list[str]:
    return list(dict.fromkeys(resource.group for resource in RESOURCES.values() if resource.group))


def _root(api_version: str) -> str:
    return f"apis/{api_version}" if "/" in api_version else f"api/{api_version}"


def _of(api_version: str) -> list[Resource]:
    return [resource for resource in RESOURCES.values() if resource.api_version == api_version]


def _group(name: str) -> dict[str, Any]:
    served = [version for version in _api_versions() if version.partition("/")[0] == name]
    versions = [{"groupVersion": version, "version": version.partition("/")[2]} for version in served]
    return {"kind": "APIGroup", "name": name, "versions": versions, "preferredVersion": versions[0]}


def _resources(api_version: str) -> dict[str, Any]:
    rows = [
        _row(resource, subresource)
        for resource in _of(api_version)
        for plural, subresource in SERVED
        if plural == resource.plural
    ]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": api_version,
        "resources": rows,
    }


def _row(resource: Resource, subresource: str) -> dict[str, Any]:
    row = {
        "name": resource.plural + (f"/{subresource}" if subresource else ""),
        "singularName": "" if subresource else resource.singular,
        "namespaced": resource.namespaced,
        "kind": "Binding" if subresource == "binding" else resource.kind,
        "verbs": sorted(SERVED[resource.plural, subresource]),
    }
    if not subresource:
        optional = {"shortNames": resource.short_names, "categories": resource.categories}
        row |= {key: list(value) for key, value in optional.items() if value}
    return row


def _openapi(root: str) -> dict[str, Any]:
    """Describe the PATCH of every resource of a group version. ApiError 404 for one that is not served."""
    api_version = next((version for version in _api_versions() if _root(version) == root), None)
    if api_version is None:
        raise ApiError(404, "NotFound", "the server could not find the requested resource")
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]},
        "paths": {_path(root, resource): {"patch": _patch(resource)} for resource in _of(api_version)},
        "components": {"schemas": {}},
    }


def _path(root: str, resource: Resource) -> str:
    where = "namespaces/{namespace}/" if resource.namespaced else ""
    return f"/{root}/{where}{resource.plural}/{{name}}"


def _patch(resource: Resource) -> dict[str, Any]:
    names = ("fieldManager", "fieldValidation")
    return {
        "parameters": [{"name": n, "in": "query", "schema": {"type": "string"}} for n in names],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": {
            "group": resource.group,
            "version": resource.version,
            "kind": resource.kind,
        },
    }
