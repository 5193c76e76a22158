"""An OpenAPI v2 document in protobuf, the only format that kubectl accepts at /openapi/v2 (pure).

Facts: the message `openapi.v2.Document` of gnostic (openapiv2/OpenAPIv2.proto); only the fields that `openapi`
produces are covered.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}
_LENGTH_DELIMITED = 2


def document(described: Mapping[str, Any]) -> bytes:
    """Encode a document."""
    info = described["info"]
    paths = _named(2, ((path, _path_item(item)) for path, item in described["paths"].items()))
    definitions = _named(1, ((name, _schema(schema)) for name, schema in described["definitions"].items()))
    return b"".join(
        [
            _text(1, described["swagger"]),
            _message(2, _text(1, info["title"]) + _text(2, info["version"])),
            _message(8, paths),
            _message(9, definitions),
        ]
    )


def _path_item(item: Mapping[str, Any]) -> bytes:
    return b"".join(_message(_METHODS[method], _operation(one)) for method, one in item.items())


def _operation(operation: Mapping[str, Any]) -> bytes:
    parameters = b"".join(_message(8, _query_parameter(one)) for one in operation["parameters"])
    return parameters + _extensions(13, operation)


def _query_parameter(parameter: Mapping[str, Any]) -> bytes:
    """Encode ParametersItem{Parameter{NonBodyParameter{QueryParameterSubSchema}}}."""
    query = _text(2, parameter["in"]) + _text(4, parameter["name"]) + _text(6, parameter["type"])
    return _message(1, _message(2, _message(3, query)))


def _schema(schema: Mapping[str, Any]) -> bytes:
    parts = [
        _text(1, schema.get("$ref", "")),
        _text(2, schema.get("format", "")),
        _text(4, schema.get("description", "")),
    ]
    if "default" in schema:
        parts.append(_message(5, _any(schema["default"])))
    parts += [_text(19, name) for name in schema.get("required", [])]
    parts += [_message(20, _any(value)) for value in schema.get("enum", [])]
    if "additionalProperties" in schema:
        parts.append(_message(21, _message(1, _schema(schema["additionalProperties"]))))
    if "type" in schema:
        parts.append(_message(22, _text(1, schema["type"])))
    if "items" in schema:
        parts.append(_message(23, _message(1, _schema(schema["items"]))))
    if "properties" in schema:
        properties = ((name, _schema(each)) for name, each in schema["properties"].items())
        parts.append(_message(25, _named(1, properties)))
    return b"".join(parts) + _extensions(31, schema)


def _extensions(number: int, described: Mapping[str, Any]) -> bytes:
    return _named(number, ((key, _any(value)) for key, value in described.items() if key.startswith("x-")))


def _any(value: Any) -> bytes:
    """Encode openapi.v2.Any, which contains YAML."""
    return _text(2, yaml.safe_dump(value, default_flow_style=True).removesuffix("...\n"))


def _named(number: int, values: Iterable[tuple[str, bytes]]) -> bytes:
    """Encode a map as name-value pairs."""
    return b"".join(_message(number, _text(1, name) + _message(2, value)) for name, value in values)


def _text(number: int, value: str) -> bytes:
    return _message(number, value.encode()) if value else b""


def _message(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | _LENGTH_DELIMITED) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])
