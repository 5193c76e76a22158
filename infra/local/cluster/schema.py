"""The fields each kind has: decoding a request strictly, as the API server does under fieldValidation.

Core kinds are described by the models of the official client (`openapi_types`, `attribute_map`), JobSet by
`jobset_schema`. Core kinds complain as Go's decoder does (400), custom ones as a CRD's schema (422).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from kubernetes import client

from infra.local.cluster import errors, jobset_schema
from infra.local.cluster.errors import FieldError
from infra.local.cluster.resources import Resource

_QUANTITY_FIELDS = frozenset({"limits", "requests", "capacity", "allocatable", "overhead", "allocatedResources"})
_QUANTITY = re.compile(r"^[+-]?(\d+(\.\d*)?|\.\d+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?$")
_QUANTITY_RULE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_CONTAINER = re.compile(r"^(List|Dict)\[(?:str, )?(.*)\]$")
_SCALARS: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "datetime": (str,),
    "int": (int,),
    "bool": (bool,),
    "float": (int, float),
    "IntOrString": (int, str),
    "Quantity": (int, float, str),
}
_SCHEMA_NAMES = {"str": "string", "datetime": "string", "int": "integer", "bool": "boolean", "float": "number"}
_GO_NAMES = {"str": "string", "datetime": "time.Time", "int": "int32", "bool": "bool", "float": "float64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    type: str
    required: bool


@dataclass(slots=True)
class Decoded:
    """What a body says: the object without unknown fields and nulls, and what was dropped or is missing."""

    object: dict[str, Any] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    problems: list[FieldError] = field(default_factory=list)


def decode(resource: Resource, body: Any) -> Decoded:
    """Read a body as an object of `resource`. ApiError 400 when it is another kind or a core type is wrong."""
    if not isinstance(body, dict):
        raise errors.bad_request(f"couldn't get version/kind; json parse error: expected an object of {resource.kind}")
    for key, expected in (("apiVersion", resource.api_version), ("kind", resource.kind)):
        if body.get(key, expected) != expected:
            raise errors.bad_request(
                f"the {'API version' if key == 'apiVersion' else key} in the data ({body[key]}) does not match "
                f"the expected {'API version' if key == 'apiVersion' else key} ({expected})"
            )
    decoder = _Decoder(resource)
    decoder.decoded.object = decoder.object(root(resource), body, "") | {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
    }
    return decoder.decoded


def root(resource: Resource) -> str:
    """Name the shape of a resource's objects."""
    if resource.custom:
        return resource.kind
    return "CoreV1Event" if resource.plural == "events" else f"V1{resource.kind}"


@cache
def shape(name: str) -> Mapping[str, Property]:
    """List the properties of an object type, by JSON name."""
    if name in jobset_schema.SHAPES:
        return {
            key.rstrip("!"): Property(type=kind, required=key.endswith("!"))
            for key, kind in jobset_schema.SHAPES[name].items()
        }
    model = getattr(client, name)
    return {
        model.attribute_map[attribute]: Property(
            type=_type(model.attribute_map[attribute], kind),
            required=model.model_fields[attribute].is_required(),
        )
        for attribute, kind in model.openapi_types.items()
    }


def _type(key: str, declared: str) -> str:
    """Tell apart what `openapi_types` writes alike: quantities are strings there, int-or-string is object."""
    if key in _QUANTITY_FIELDS and declared == "Dict[str, str]":
        return "Dict[str, Quantity]"
    return "IntOrString" if declared == "object" and key in ("port", "targetPort") else declared


class _Decoder:
    def __init__(self, resource: Resource) -> None:
        self._resource = resource
        self.decoded = Decoded()

    def object(self, name: str, value: dict[str, Any], path: str) -> dict[str, Any]:
        properties = shape(name)
        clean = {}
        for key, item in value.items():
            where = f"{path}.{key}" if path else key
            if key not in properties:
                self.decoded.unknown.append(where)
            elif item is not None:
                clean[key] = self._value(properties[key].type, item, where, name)
                self._limits(f"{name}.{key}", item, where)
        if self._resource.custom or not path.startswith("status"):
            self.decoded.problems += [
                FieldError(f"{path}.{key}" if path else key, "FieldValueRequired", "Required value")
                for key, known in properties.items()
                if known.required and key not in clean and key != "metadata"
            ]
        return clean

    def _value(self, kind: str, value: Any, path: str, owner: str) -> Any:
        if container := _CONTAINER.match(kind):
            return self._container(container[1], container[2], value, (path, owner))
        if kind in _SCALARS:
            return self._scalar(kind, value, path, owner)
        if kind == "object":
            return value
        if not isinstance(value, dict):
            self._mismatch(kind, value, path, owner)
            return value
        return self.object(kind, value, path)

    def _container(self, outer: str, inner: str, value: Any, where: tuple[str, str]) -> Any:
        path, owner = where
        if outer == "List" and isinstance(value, list):
            return [self._value(inner, item, f"{path}[{i}]", owner) for i, item in enumerate(value)]
        if outer == "Dict" and isinstance(value, dict):
            kept = ((key, item) for key, item in value.items() if item is not None)
            return {key: self._value(inner, item, f"{path}.{key}", owner) for key, item in kept}
        self._mismatch(outer, value, path, owner)
        return value

    def _scalar(self, kind: str, value: Any, path: str, owner: str) -> Any:
        fits = isinstance(value, _SCALARS[kind]) and (kind == "bool" or not isinstance(value, bool))
        if not fits:
            self._mismatch(kind, value, path, owner)
        elif kind == "Quantity":
            if not _QUANTITY.match(str(value)):
                self._quantity(value, path)
            return str(value)
        return value

    def _limits(self, name: str, value: Any, path: str) -> None:
        allowed = jobset_schema.ENUMS.get(name)
        if allowed and value not in allowed:
            listed = ", ".join(f'"{one}"' for one in allowed)
            message = f'Unsupported value: "{value}": supported values: {listed}'
            self.decoded.problems.append(FieldError(path, "FieldValueNotSupported", message))
        least = jobset_schema.MINIMUMS.get(name)
        if least is not None and isinstance(value, int) and value < least:
            message = f"Invalid value: {value}: {path} in body should be greater than or equal to {least}"
            self.decoded.problems.append(FieldError(path, "FieldValueInvalid", message))

    def _quantity(self, value: Any, path: str) -> None:
        if not self._resource.custom:
            raise self._undecodable(_QUANTITY_RULE)
        message = f'Invalid value: "{value}": {path} in body should match the format of a quantity'
        self.decoded.problems.append(FieldError(path, "FieldValueInvalid", message))

    def _mismatch(self, kind: str, value: Any, path: str, owner: str) -> None:
        got = _json_type(value)
        if not self._resource.custom:
            bare = re.sub(r"\[\d+\]", "", path)
            struct = re.sub(r"^(Core)?V1", "", owner)
            expected = _GO_NAMES.get(kind, "v1." + re.sub(r"^V1", "", kind))
            seen = {"integer": "number", "boolean": "bool"}.get(got, got)
            raise self._undecodable(
                f"json: cannot unmarshal {seen} into Go struct field {struct}.{bare} of type {expected}"
            )
        expected = {"List": "array", "Dict": "object"}.get(kind, _SCHEMA_NAMES.get(kind, "object"))
        message = f'Invalid value: "{got}": {path} in body must be of type {expected}: "{got}"'
        self.decoded.problems.append(FieldError(path, "FieldValueTypeInvalid", message))

    def _undecodable(self, why: str) -> errors.ApiError:
        kind, version = self._resource.kind, self._resource.version
        return errors.bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {why}')


def _json_type(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return "null"
