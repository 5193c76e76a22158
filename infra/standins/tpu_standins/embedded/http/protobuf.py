r"""The little protobuf without which kubectl does not work (pure).

Read: what `kubectl create namespace`, `serviceaccount` and `token` send since 1.31 (runtime.Unknown, generated.proto).
Written: an OpenAPI v2 document, which kubectl takes in no other format (openapiv2/OpenAPIv2.proto of gnostic).
"""

from collections.abc import Iterable, Iterator, Sequence

import orjson

from tpu_standins.embedded.store import errors
from tpu_standins.embedded.store.kinds import Object

_MAGIC = b"k8s\x00"
_KINDS = ("Namespace", "ServiceAccount", "TokenRequest")


def decode(body: bytes) -> Object:
    """Decode an object. Raise ApiError 400 if it is malformed, 501 for any other kind."""
    if not body.startswith(_MAGIC):
        raise errors.bad_request("provided data does not appear to be a protobuf message, expected prefix k8s")
    try:
        envelope = dict(_fields(body[len(_MAGIC) :]))
        kind = {number: value.decode() for number, value in _fields(envelope[1])}
        if kind.get(2) not in _KINDS:
            how = "add --dry-run=client -o yaml and pipe it to kubectl apply -f -"
            raise errors.not_implemented(f"protobuf of a {kind.get(2)} ({how})")
        parts = dict(_fields(envelope[2]))
        metadata = dict(_fields(parts.get(1, b"")))
        names = {key: metadata.get(number, b"").decode() for key, number in (("name", 1), ("namespace", 3))}
        obj: Object = {"apiVersion": kind[1], "kind": kind[2], "metadata": {k: v for k, v in names.items() if v}}
        if kind[2] == "TokenRequest":
            asked = list(_fields(parts.get(2, b"")))
            seconds = [_varint(value, 0)[0] for number, value in asked if number == 4]
            audiences = [value.decode() for number, value in asked if number == 1]
            obj["spec"] = {"audiences": audiences, "expirationSeconds": max(seconds, default=0)}
    except (LookupError, UnicodeDecodeError) as error:
        raise errors.bad_request(f"protobuf: {error}") from error
    return obj


def openapi(patches: Iterable[tuple[str, object]], parameters: Sequence[str]) -> bytes:
    """Return a document that says of each path, given with its kind, that PATCH takes these parameters."""
    query = b"".join(_message(8, _message(1, _message(2, _message(3, _parameter(name))))) for name in parameters)
    paths = b""
    for path, kind in patches:
        extension = _message(1, b"x-kubernetes-group-version-kind") + _message(2, _message(2, orjson.dumps(kind)))
        item = _message(8, query + _message(13, extension))
        paths += _message(2, _message(1, path.encode()) + _message(2, item))
    return _message(1, b"2.0") + _message(2, _message(1, b"Kubernetes") + _message(2, b"v1")) + _message(8, paths)


def _parameter(name: str) -> bytes:
    return _message(2, b"query") + _message(4, name.encode()) + _message(6, b"string")


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and value of the fields; a number is left encoded."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        size, after = _varint(data, position)
        position, end = (after, after + size) if tag & 7 == 2 else (position, after)
        yield tag >> 3, data[position:end]
        position = end


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position


def _message(number: int, value: bytes) -> bytes:
    size, written = len(value), bytearray([number << 3 | 2])
    while size > 0x7F:
        written.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([*written, size]) + value
