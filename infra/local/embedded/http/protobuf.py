r"""The little protobuf that kubectl 1.31 and later send without need: `kubectl create namespace` and `serviceaccount`.

Facts: k8s.io/apimachinery runtime.Unknown after the magic number `k8s\0`: its field 1 has apiVersion and kind, its
field 2 the object, whose field 1 is the metadata, whose fields 1 and 3 are name and namespace.
"""

from collections.abc import Iterator
from typing import Any

from infra.local.embedded.store import errors

_MAGIC = b"k8s\x00"
_KINDS = ("Namespace", "ServiceAccount")


def decode(body: bytes) -> dict[str, Any]:
    """Decode an object that has only a name. Raise ApiError 400 if it is malformed, 501 for any other kind."""
    if not body.startswith(_MAGIC):
        raise errors.bad_request("provided data does not appear to be a protobuf message, expected prefix k8s")
    try:
        envelope = dict(_fields(body[len(_MAGIC) :]))
        said = {number: value.decode() for number, value in _fields(envelope[1])}
        if said.get(2) not in _KINDS:
            remedy = "add --dry-run=client -o yaml and pipe it to kubectl apply -f -"
            raise errors.not_implemented(f"protobuf of a {said.get(2)} ({remedy})")
        metadata = dict(_fields(dict(_fields(envelope[2]))[1]))
        names = {"name": metadata.get(1, b"").decode(), "namespace": metadata.get(3, b"").decode()}
    except (LookupError, UnicodeDecodeError) as error:
        raise errors.bad_request(f"protobuf: {error}") from error
    return {"apiVersion": said[1], "kind": said[2], "metadata": {key: name for key, name in names.items() if name}}


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and value of the fields with a length; the others are skipped."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        size, position = _varint(data, position)
        if tag & 7 == 2:
            yield tag >> 3, data[position : position + size]
            position += size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position
