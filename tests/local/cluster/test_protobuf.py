import pytest

from infra.local.cluster.objects import ApiError
from infra.local.cluster.protobuf import namespace


def field(number: int, value: bytes) -> bytes:
    assert len(value) < 128
    return bytes([number << 3 | 2, len(value)]) + value


def body(kind: bytes, metadata: bytes) -> bytes:
    """What kubectl sends: runtime.Unknown behind the magic."""
    raw = field(1, metadata) + field(2, b"") + field(3, field(1, b""))
    return b"k8s\x00" + field(1, field(1, b"v1") + field(2, kind)) + field(2, raw) + field(3, b"") + field(4, b"")


def test_a_namespace_is_read() -> None:
    label = field(11, field(1, b"team") + field(2, b"a"))
    metadata = field(1, b"research") + field(2, b"") + field(3, b"") + field(8, b"") + label
    assert namespace(body(b"Namespace", metadata)) == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "research", "labels": {"team": "a"}},
    }


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"{}", 400),
        (b"k8s\x00\x0a\x7f", 400),
        (b"k8s\x00\xff", 400),
        (body(b"Pod", field(1, b"x")), 501),
        (body(b"Namespace", field(1, b"x") + field(14, b"finalizer")), 501),
    ],
)
def test_anything_else_is_refused(data: bytes, code: int) -> None:
    with pytest.raises(ApiError) as refused:
        namespace(data)
    assert refused.value.code == code
