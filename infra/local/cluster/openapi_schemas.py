"""Shapes as OpenAPI schemas, named and annotated as the API server publishes them (pure).

Core kinds refer to each other by definitions (`io.k8s.api.core.v1.PodSpec`); a custom kind is inlined completely,
as in a CRD's schema, except for its metadata.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from infra.local.cluster import patches, shapes, topology
from infra.local.cluster.resources import RESOURCES, Resource
from infra.local.cluster.shapes import Property, Type, shape

Schema = dict[str, Any]

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_META_SHAPES = frozenset(
    {
        "V1Condition",
        "V1LabelSelector",
        "V1LabelSelectorRequirement",
        "V1ListMeta",
        "V1ManagedFieldsEntry",
        "V1ObjectMeta",
        "V1OwnerReference",
    }
)
_KNOWN_HOMES = {
    "V1JobTemplateSpec": "io.k8s.api.batch.v1.",  # of CronJobs, which are not served
    "V1PodTemplateSpec": "io.k8s.api.core.v1.",  # of PodTemplates, as above
}
_PREFIX = re.compile(r"^(Core)?V\d+((alpha|beta)\d+)?")
_SCALARS: Mapping[str, Schema] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "bool": {"type": "boolean"},
    "float": {"type": "number"},
    "datetime": {"type": "string", "format": "date-time"},
}
_TEXTUAL: Mapping[str, str] = {
    "Quantity": "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "IntOrString": "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
}
"""Definitions of types that are a number or a string."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """An OpenAPI version: where definitions are, and how fields refer to them. v3 allows nothing beside a `$ref`."""

    version: Literal[2, 3]

    def refer(self, name: str) -> Schema:
        if self.version == 2:
            return {"$ref": f"#/definitions/{name}"}
        return {"allOf": [{"$ref": f"#/components/schemas/{name}"}]}

    def number_or_text(self) -> Schema:
        """Return the schema of a number or string, which v2 cannot express."""
        return {"type": "string"} if self.version == 2 else {"oneOf": [{"type": "string"}, {"type": "number"}]}


def definitions(resources: list[Resource], dialect: Dialect) -> dict[str, Schema]:
    """Return the schemas of the resources' objects, and of everything that they refer to."""
    made = {name: dialect.number_or_text() for name in _TEXTUAL.values()}
    for resource in resources:
        root = shapes.root(resource)
        for name in dict.fromkeys((*_referred(root, whole=resource.custom), root)):
            whole = resource.custom and name == root
            made[definition_name(resource, name)] = _Writer(dialect, whole=whole).object(name)
        made[definition_name(resource, root)]["x-kubernetes-group-version-kind"] = [group_version_kind(resource)]
    return made


def group_version_kind(resource: Resource) -> dict[str, str]:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def definition_name(resource: Resource, name: str) -> str:
    """Return a definition's name as in the original: by Go package, or by a CRD's reversed group."""
    if resource.custom and name == resource.kind:
        return ".".join([*reversed(resource.group.split(".")), resource.version, name])
    return _core_name(name)


def _core_name(name: str) -> str:
    return _homes().get(name, "io.k8s.api.core.v1.") + _bare(name)


def _bare(name: str) -> str:
    """Return a name without the official client's prefix: `V1Pod`, `CoreV1Event`, `V1alpha3Device`."""
    return _PREFIX.sub("", name)


@cache
def _homes() -> Mapping[str, str]:
    """Return the package of each shape: that of the first group that uses it, core first."""
    homes = dict.fromkeys(_META_SHAPES, _META) | _KNOWN_HOMES
    for resource in sorted(RESOURCES.values(), key=lambda each: (each.custom, bool(each.group))):
        if not resource.custom:
            home = f"io.k8s.api.{resource.group.partition('.')[0] or 'core'}.{resource.version}."
            for name in _referred(shapes.root(resource), whole=False):
                homes.setdefault(name, home)
    return homes


def _referred(root: str, *, whole: bool) -> list[str]:
    """Return the shapes for which `root` needs definitions: all that it uses, or (`whole`) only its metadata's."""
    seen: dict[str, None] = {}
    waiting = ["V1ObjectMeta"] if whole else [root]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen[name] = None
            waiting += [used for known in shape(name).values() for used in _objects(known.type)]
    return list(seen)


def _objects(kind: Type) -> Iterator[str]:
    if kind.form == "object":
        yield kind.name
    elif kind.element is not None:
        yield from _objects(kind.element)


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes schemas. `whole`: other shapes are inlined, as in a CRD."""

    dialect: Dialect
    whole: bool

    def object(self, name: str) -> Schema:
        fields = shape(name)
        schema: Schema = {"type": "object"}
        if text := shapes.description(name):
            schema["description"] = text
        schema["properties"] = {key: self._field(f"{name}.{key}", known) for key, known in fields.items()}
        if required := sorted(key for key, known in fields.items() if known.required):
            schema["required"] = required
        if name in topology.ATOMIC:
            schema["x-kubernetes-map-type"] = "atomic"
        return schema

    def _field(self, path: str, known: Property) -> Schema:
        schema = self._type(known.type)
        if known.description:
            schema["description"] = known.description
        if path in shapes.ENUMS:
            schema["enum"] = list(shapes.ENUMS[path])
        if path in shapes.SCHEMA_DEFAULTS:
            schema["default"] = shapes.SCHEMA_DEFAULTS[path]
        return schema | _merging(path, known.type, whole=self.whole)

    def _type(self, kind: Type) -> Schema:
        match kind.form:
            case "object" if self.whole and kind.name != "V1ObjectMeta":
                return self.object(kind.name)
            case "object":
                return self.dialect.refer(_core_name(kind.name))
            case "list" if kind.element:
                return {"type": "array", "items": self._type(kind.element)}
            case "map" if kind.element:
                return {"type": "object", "additionalProperties": self._type(kind.element)}
            case "scalar" if kind.name in _TEXTUAL and self.whole:
                return {"x-kubernetes-int-or-string": True}
            case "scalar" if kind.name in _TEXTUAL:
                return self.dialect.refer(_TEXTUAL[kind.name])
            case "scalar":
                return dict(_SCALARS[kind.name])
            case _:
                return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _merging(path: str, kind: Type, *, whole: bool) -> Schema:
    """Return the extensions on how a field is merged, by server-side apply and by strategic merge of core kinds."""
    schema: Schema = {}
    if path in topology.KEYED_LISTS:
        schema["x-kubernetes-list-type"] = "map"
        schema["x-kubernetes-list-map-keys"] = list(topology.KEYED_LISTS[path])
    elif kind.form == "list":
        schema["x-kubernetes-list-type"] = "set" if path in topology.SETS else "atomic"
    elif path in topology.ATOMIC:
        schema["x-kubernetes-map-type"] = "atomic"
    if kind.form == "list" and not whole and (strategy := patches.strategy(path)):
        key, how = strategy
        schema |= {"x-kubernetes-patch-strategy": how} | ({"x-kubernetes-patch-merge-key": key} if key else {})
    return schema
