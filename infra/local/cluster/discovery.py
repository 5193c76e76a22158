"""Discovery: what `kubectl api-resources` requests, and the paths of the OpenAPI documents (pure)."""

from typing import Any

from infra.local.cluster import openapi
from infra.local.cluster.resources import RESOURCES, Resource
from infra.local.cluster.targets import SERVED
from infra.local.cluster.virtual_resources import VIRTUAL, Virtual

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
"""A version that kubectl 1.32 to 1.34 accept without a warning about version skew."""


def answer(path: str) -> dict[str, Any] | None:
    """Return the document at a discovery path, or None if it is not a discovery path."""
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
        case ["openapi", *rest]:
            return openapi.answer(rest)
        case _:
            return None


def _api_versions() -> list[str]:
    stored = [resource.api_version for resource in RESOURCES.values()]
    return list(dict.fromkeys([*stored, *(api_version for api_version, _ in VIRTUAL)]))


def _groups() -> list[str]:
    return list(dict.fromkeys(version.partition("/")[0] for version in _api_versions() if "/" in version))


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
    rows += [_virtual_row(each) for each in VIRTUAL.values() if each.api_version == api_version]
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
        "kind": {"binding": "Binding", "eviction": "Eviction"}.get(subresource, resource.kind),
        "verbs": sorted(SERVED[resource.plural, subresource]),
    }
    if subresource == "eviction":
        row |= {"group": "policy", "version": "v1"}  # by which kubectl drain recognises that eviction is supported
    if not subresource:
        optional = {"shortNames": resource.short_names, "categories": resource.categories}
        row |= {key: list(value) for key, value in optional.items() if value}
    return row


def _virtual_row(virtual: Virtual) -> dict[str, Any]:
    return {
        "name": virtual.name,
        "singularName": virtual.singular,
        "namespaced": bool(virtual.subresource),
        "kind": virtual.kind,
        "verbs": ["create"],
    }
