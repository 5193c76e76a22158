import pytest

from infra.local.cluster.objects import RESOURCES, ApiError, Object
from infra.local.cluster.selectors import selection

POD: Object = {
    "metadata": {"name": "one", "namespace": "team", "labels": {"app": "train", "tier": "a"}},
    "spec": {"nodeName": "host"},
    "status": {"phase": "Running"},
}


def chosen(labels: str = "", fields: str = "", namespace: str = "") -> bool:
    return selection(RESOURCES["pods"], labels, fields, namespace)(POD)


@pytest.mark.parametrize(
    ("labels", "matches"),
    [
        ("", True),
        ("app=train", True),
        ("app==train", True),
        ("app=serve", False),
        ("app!=serve", True),
        ("other!=x", True),
        ("app in (serve, train)", True),
        ("app in (serve)", False),
        ("app notin (serve),tier=a", True),
        ("app", True),
        ("other", False),
        ("!other", True),
        ("!app", False),
        ("app=train,tier=b", False),
        ("other=", False),
    ],
)
def test_labels_choose(labels: str, *, matches: bool) -> None:
    assert chosen(labels) is matches


@pytest.mark.parametrize(
    ("fields", "matches"),
    [
        ("metadata.name=one", True),
        ("metadata.namespace!=team", False),
        ("spec.nodeName=host,status.phase=Running", True),
        ("spec.nodeName=", False),
        ("status.phase!=Pending", True),
    ],
)
def test_fields_choose(fields: str, *, matches: bool) -> None:
    assert chosen(fields=fields) is matches


def test_namespaces_choose() -> None:
    assert chosen(namespace="team")
    assert not chosen(namespace="default")


@pytest.mark.parametrize("labels", ["a=b=c", "in (x)", "a in x", ",", "a b"])
def test_a_label_selector_that_cannot_be_read_is_refused(labels: str) -> None:
    with pytest.raises(ApiError, match="unable to parse requirement"):
        chosen(labels)


def test_a_field_that_cannot_be_selected_is_refused() -> None:
    with pytest.raises(ApiError, match=r"field label not supported: spec\.containers"):
        chosen(fields="spec.containers=x")
