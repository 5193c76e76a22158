r"""Just enough of Kubernetes' protobuf to read the Namespace that `kubectl create namespace` sends (pure).

Facts: k8s.io/apimachinery runtime.Unknown behind the magic `k8s\0`; the field numbers of generated.proto of
meta/v1 and core/v1.
"""

from collections.abc import Iterator
from typing import Any

from infra.local.cluster import errors

_MAGIC = b"k8s\x00"


def namespace(body: bytes) -> dict[str, Any]:
    """Decode a v1 Namespace. ApiError 400 when it is not one, 501 for metadata beyond name and labels."""
    if not body.startswith(_MAGIC):
        raise errors.bad_request("provided data does not appear to be a protobuf message, expected prefix k8s")
    try:
        envelope = dict(_fields(body[len(_MAGIC) :]))
        kind = {number: value.decode() for number, value in _fields(envelope.get(1, b""))}
        if kind != {1: "v1", 2: "Namespace"}:
            raise errors.not_implemented(f"protobuf of {kind.get(1, '')} {kind.get(2, '')}")
        raw = dict(_fields(envelope.get(2, b"")))
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": _metadata(raw.get(1, b""))}
    except (IndexError, UnicodeDecodeError) as error:
        raise errors.bad_request(f"protobuf: {error}") from error


def _metadata(data: bytes) -> dict[str, Any]:
    names = {1: "name", 2: "generateName"}
    maps = {11: "labels", 12: "annotations"}
    metadata: dict[str, Any] = {}
    for number, value in _fields(data):
        if number in names and value:
            metadata[names[number]] = value.decode()
        elif number in maps:
            entry = dict(_fields(value))
            metadata.setdefault(maps[number], {})[entry[1].decode()] = entry.get(2, b"").decode()
        # The generated encoders write empty strings and the zero creationTimestamp (8) too.
        elif value and number != 8:
            raise errors.not_implemented(f"field {number} of ObjectMeta in protobuf")
    return metadata


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Split a message into field numbers and raw values; numbers are left as their varint's bytes."""
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
