r"""A decoder for the part of Kubernetes' protobuf in which kubectl creates objects since 1.31 (pure).

Facts: k8s.io/apimachinery runtime.Unknown after the magic number `k8s\0`; the field numbers of each group's
generated.proto, which `protobuf_messages` contains.
"""

from collections.abc import Iterator
from typing import Any

from infra.local.cluster import errors
from infra.local.cluster.protobuf_messages import KINDS, MESSAGES, Field

_MAGIC = b"k8s\x00"


def decode(body: bytes) -> dict[str, Any]:
    """Decode an object. Raise ApiError 400 if it is malformed, 501 for a kind or field that is not in the table."""
    if not body.startswith(_MAGIC):
        raise errors.bad_request("provided data does not appear to be a protobuf message, expected prefix k8s")
    try:
        envelope = dict(_fields(body[len(_MAGIC) :]))
        said = {number: value.decode() for number, value in _fields(envelope.get(1, b""))}
        api_version, kind = said.get(1, ""), said.get(2, "")
        if kind not in KINDS.get(api_version, ()):
            raise errors.not_implemented(f"protobuf of {api_version} {kind}")
        return {"apiVersion": api_version, "kind": kind} | _message(kind, envelope.get(2, b""))
    except (IndexError, UnicodeDecodeError) as error:
        raise errors.bad_request(f"protobuf: {error}") from error


def _message(name: str, data: bytes) -> dict[str, Any]:
    """Decode a message. The generated encoders also write unset fields, which JSON leaves out."""
    read: dict[str, Any] = {}
    for number, value in _fields(data):
        field = MESSAGES[name].get(number)
        if field is not None:
            _put(read, field, value)
        elif value:
            raise errors.not_implemented(f"field {number} of {name} in protobuf")
    return read


def _put(read: dict[str, Any], field: Field, value: bytes) -> None:
    match field.kind:
        case "map":
            entry = dict(_fields(value))
            read.setdefault(field.name, {})[entry[1].decode()] = entry.get(2, b"").decode()
        case "strings":
            read.setdefault(field.name, []).append(value.decode())
        case "string" if value:
            read[field.name] = value.decode()
        case "int" if value:
            read[field.name] = _varint(value, 0)[0]
        case "number":
            read[field.name] = _varint(value, 0)[0] if value else 0
        case "bool":
            read[field.name] = bool(value)
        case "string" | "int" | "ignored":
            return
        case message if field.repeated:
            read.setdefault(field.name, []).append(_message(message, value))
        case message:
            read[field.name] = _message(message, value)


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield a message's field numbers and raw values; numbers as the bytes of their varint, 0 as no bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        start = at
        match key & 7:
            case 0:
                number, at = _varint(data, at)
                yield key >> 3, data[start:at] if number else b""
            case 2:
                length, at = _varint(data, at)
                if at + length > len(data):
                    raise IndexError("message is cut short")
                yield key >> 3, data[at : at + length]
                at += length
            case wire:
                raise IndexError(f"wire type {wire} is not used by Kubernetes")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
