import pytest

from infra.local.cluster.objects import ApiError
from infra.local.cluster.protobuf import decode


def field(number: int, value: bytes) -> bytes:
    assert len(value) < 128
    return bytes([number << 3 | 2, len(value)]) + value


def body(kind: bytes, metadata: bytes) -> bytes:
    """Return what kubectl sends: runtime.Unknown after the magic number."""
    raw = field(1, metadata) + field(2, b"") + field(3, field(1, b""))
    return b"k8s\x00" + field(1, field(1, b"v1") + field(2, kind)) + field(2, raw) + field(3, b"") + field(4, b"")


def test_a_namespace_is_read() -> None:
    label = field(11, field(1, b"team") + field(2, b"a"))
    metadata = field(1, b"research") + field(2, b"") + field(3, b"") + field(8, b"") + label
    assert decode(body(b"Namespace", metadata)) == {
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
        decode(data)
    assert refused.value.code == code


def test_the_empty_group_of_a_rule_is_kept() -> None:
    rule = field(1, b"list") + field(2, b"") + field(3, b"pods")
    raw = field(1, field(1, b"viewer")) + field(2, rule)
    said = field(1, b"rbac.authorization.k8s.io/v1") + field(2, b"ClusterRole")
    assert decode(b"k8s\x00" + field(1, said) + field(2, raw)) == {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "viewer"},
        "rules": [{"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}],
    }


def test_a_number_is_read() -> None:
    spec = field(1, b"me") + bytes([4 << 3, 0x90, 0x1C])
    said = field(1, b"authentication.k8s.io/v1") + field(2, b"TokenRequest")
    read = decode(b"k8s\x00" + field(1, said) + field(2, field(2, spec)))
    assert read["spec"] == {"audiences": ["me"], "expirationSeconds": 3600}
