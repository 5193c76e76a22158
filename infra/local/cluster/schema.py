"""Strict decoding of a request, as the API server does under fieldValidation (pure).

Core kinds report errors as Go's decoder does (400), custom ones as a CRD's schema does (422).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from infra.local.cluster import errors
from infra.local.cluster.errors import FieldError
from infra.local.cluster.resources import Resource
from infra.local.cluster.shapes import ENUMS, MAX_ITEMS, MINIMUMS, Type, root, shape

_QUANTITY = re.compile(r"^[+-]?(\d+(\.\d*)?|\.\d+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?$")
_QUANTITY_RULE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_SCALARS: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "datetime": (str,),
    "int": (int,),
    "bool": (bool,),
    "float": (int, float),
    "IntOrString": (int, str),
    "Quantity": (int, float, str),
}
_SCHEMA_NAMES = {
    "str": "string",
    "datetime": "string",
    "int": "integer",
    "bool": "boolean",
    "float": "number",
    "list": "array",
}
_GO_NAMES = {"str": "string", "datetime": "time.Time", "int": "int32", "bool": "bool", "float": "float64"}


@dataclass(slots=True)
class Decoded:
    """A decoded body: the object without unknown fields and nulls, the unknown fields, and the errors."""

    object: dict[str, Any] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    problems: list[FieldError] = field(default_factory=list)


def decode(resource: Resource, body: Any) -> Decoded:
    """Decode a body as `resource`. Raise ApiError 400 if it is another kind, or for wrong types in a core kind."""
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

    def _value(self, kind: Type, value: Any, path: str, owner: str) -> Any:
        match kind.form:
            case "scalar":
                return self._scalar(kind, value, path, owner)
            case "object" if isinstance(value, dict):
                return self.object(kind.name, value, path)
            case "list" if isinstance(value, list):
                assert kind.element is not None
                return [self._value(kind.element, item, f"{path}[{i}]", owner) for i, item in enumerate(value)]
            case "map" if isinstance(value, dict):
                assert kind.element is not None
                kept = ((key, item) for key, item in value.items() if item is not None)
                return {key: self._value(kind.element, item, f"{path}.{key}", owner) for key, item in kept}
            case "any":
                return value
            case _:
                self._mismatch(kind, value, path, owner)
                return value

    def _scalar(self, kind: Type, value: Any, path: str, owner: str) -> Any:
        fits = isinstance(value, _SCALARS[kind.name]) and (kind.name == "bool" or not isinstance(value, bool))
        if not fits:
            self._mismatch(kind, value, path, owner)
        elif kind.name == "Quantity":
            if not _QUANTITY.match(str(value)):
                self._quantity(value, path)
            return str(value)
        return value

    def _limits(self, name: str, value: Any, path: str) -> None:
        allowed = ENUMS.get(name)
        if allowed and value not in allowed:
            listed = ", ".join(f'"{one}"' for one in allowed)
            message = f'Unsupported value: "{value}": supported values: {listed}'
            self.decoded.problems.append(FieldError(path, "FieldValueNotSupported", message))
        most = MAX_ITEMS.get(name)
        if most is not None and isinstance(value, list) and len(value) > most:
            message = f"Too many: {len(value)}: must have at most {most} items"
            self.decoded.problems.append(FieldError(path, "FieldValueTooMany", message))
        least = MINIMUMS.get(name)
        if least is not None and isinstance(value, int) and value < least:
            message = f"Invalid value: {value}: {path} in body should be greater than or equal to {least}"
            self.decoded.problems.append(FieldError(path, "FieldValueInvalid", message))

    def _quantity(self, value: Any, path: str) -> None:
        if not self._resource.custom:
            raise self._undecodable(_QUANTITY_RULE)
        message = f'Invalid value: "{value}": {path} in body should match the format of a quantity'
        self.decoded.problems.append(FieldError(path, "FieldValueInvalid", message))

    def _mismatch(self, kind: Type, value: Any, path: str, owner: str) -> None:
        got = _json_type(value)
        if not self._resource.custom:
            bare = re.sub(r"\[\d+\]", "", path)
            struct = re.sub(r"^(Core)?V1", "", owner)
            seen = {"integer": "number", "boolean": "bool"}.get(got, got)
            raise self._undecodable(
                f"json: cannot unmarshal {seen} into Go struct field {struct}.{bare} of type {_go_name(kind)}"
            )
        expected = _SCHEMA_NAMES.get(kind.name or kind.form, "object")
        message = f'Invalid value: "{got}": {path} in body must be of type {expected}: "{got}"'
        self.decoded.problems.append(FieldError(path, "FieldValueTypeInvalid", message))

    def _undecodable(self, why: str) -> errors.ApiError:
        kind, version = self._resource.kind, self._resource.version
        return errors.bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {why}')


def _go_name(kind: Type) -> str:
    match kind.form:
        case "list" if kind.element:
            return "[]" + _go_name(kind.element)
        case "map" if kind.element:
            return "map[string]" + _go_name(kind.element)
        case _:
            return _GO_NAMES.get(kind.name, "v1." + re.sub(r"^V1", "", kind.name))


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
