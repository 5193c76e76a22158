"""What hosts join with: Secrets, the bootstrap tokens among them, and the authority that proves the API server."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from tests.cluster.asking import LIVE, TABLE, Api, Json, done, path
from tests.cluster.builders import meta
from tests.cluster.servers import Cluster, unique
from tpu_standins.testing.waiting import until

pytestmark = LIVE

SYSTEM = "kube-system"
SECRET = "0123456789abcdef"
NODES = "/api/v1/nodes"


def encoded(**texts: str) -> Json:
    return {key.replace("_", "-"): base64.b64encode(text.encode()).decode() for key, text in texts.items()}


def bootstrap_token(id_: str, **changes: str) -> Json:
    """Return the Secret of a bootstrap token; keys of `changes` have `_` for `-`."""
    end = datetime.now(UTC) + timedelta(minutes=30)
    data = {
        "token_id": id_,
        "token_secret": SECRET,
        "expiration": f"{end:%Y-%m-%dT%H:%M:%SZ}",
        "usage_bootstrap_authentication": "true",
        "auth_extra_groups": "system:bootstrappers:tests",
        **changes,
    }
    return meta(f"bootstrap-token-{id_}") | {"type": "bootstrap.kubernetes.io/token", "data": encoded(**data)}


@contextmanager
def host(cluster: Cluster, **changes: str) -> Iterator[Api]:
    """Make a token; yield the API server asked with it, and remove it."""
    id_ = unique("")[-6:]
    cluster.api.create(path("secrets", SYSTEM), bootstrap_token(id_, **changes))
    asked = cluster.api.with_token(f"{id_}.{SECRET}")
    try:
        yield asked
    finally:
        asked.close()
        cluster.api.delete(path("secrets", SYSTEM, f"bootstrap-token-{id_}"))


def void(asked: Api) -> bool:
    return asked.get(NODES).refusal == (401, "Unauthorized")


def test_a_bootstrap_token_is_who_it_says_until_it_is_removed(cluster: Cluster) -> None:
    with host(cluster) as asked:
        until(lambda: asked.get(NODES).code == 403, "the token to be known")
        assert f'User "system:bootstrap:{asked.token[:6]}"' in asked.get(NODES).body["message"]
        done(cluster.api.delete(path("secrets", SYSTEM, f"bootstrap-token-{asked.token[:6]}")))
        until(lambda: void(asked), "the token to be void")


def test_its_groups_may_what_they_are_granted(cluster: Cluster) -> None:
    name = unique("joining")
    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:bootstrappers:tests"}
    cluster.api.create(path("clusterroles"), meta(name) | {"rules": rules})
    cluster.api.create(path("clusterrolebindings"), meta(name) | {"roleRef": role, "subjects": [subject]})
    with host(cluster) as asked:
        until(lambda: asked.get(NODES).code == 200, "the token's group to be granted")
    done(cluster.api.delete(path("clusterrolebindings", name=name)))  # others' tokens have this group, too


@pytest.mark.parametrize(
    "changes",
    [
        {"token_secret": "another-secret-0"},
        {"expiration": "2020-01-01T00:00:00Z"},
        {"usage_bootstrap_authentication": "false"},
    ],
    ids=["of another secret", "that has expired", "for something else"],
)
def test_a_token_is_void(cluster: Cluster, changes: dict[str, str]) -> None:
    with host(cluster, **changes) as wrong, host(cluster) as right:
        until(lambda: not void(right), "a token made after it to be known")
        assert void(wrong)


def test_each_namespace_has_the_authority_that_proves_the_server(cluster: Cluster, namespace: str) -> None:
    where = path("configmaps", namespace, "kube-root-ca.crt")
    until(lambda: cluster.api.get(where).code == 200, "the authority to be published")
    known = yaml.safe_load(cluster.kubeconfig.read_text())["clusters"][0]["cluster"]["certificate-authority-data"]
    published = cluster.api.read(where)["data"]["ca.crt"].strip().encode()
    assert hashlib.sha256(published).digest() == hashlib.sha256(base64.b64decode(known).strip()).digest()


class TestSecrets:
    def test_one_is_opaque_unless_it_says_otherwise(self, cluster: Cluster, namespace: str) -> None:
        made = cluster.api.create(path("secrets", namespace), meta("one") | {"data": encoded(a="b")})
        assert (made["type"], made["data"]) == ("Opaque", {"a": "Yg=="})

    def test_its_data_are_base64(self, cluster: Cluster, namespace: str) -> None:
        refused = cluster.api.post(path("secrets", namespace), meta("one") | {"data": {"a": "?"}})
        assert refused.refusal == (400, "BadRequest")

    def test_its_type_is_for_good(self, cluster: Cluster, namespace: str) -> None:
        cluster.api.create(path("secrets", namespace), meta("one"))
        refused = cluster.api.patch(path("secrets", namespace, "one"), {"type": "example.com/other"})
        assert (refused.refusal, refused.fields) == ((422, "Invalid"), {"type"})

    def test_those_of_a_type_are_found(self, cluster: Cluster, namespace: str) -> None:
        for name, more in (("plain", {}), ("typed", {"type": "example.com/own"})):
            cluster.api.create(path("secrets", namespace), meta(name) | more)
        found: list[Any] = cluster.api.read(path("secrets", namespace), fieldSelector="type=example.com/own")["items"]
        assert [each["metadata"]["name"] for each in found] == ["typed"]

    def test_a_row_counts_its_data(self, cluster: Cluster, namespace: str) -> None:
        cluster.api.create(path("secrets", namespace), meta("one") | {"data": encoded(a="1", b="2")})
        shown = cluster.api.read(path("secrets", namespace), accept=TABLE)
        assert [each["name"] for each in shown["columnDefinitions"]] == ["Name", "Type", "Data", "Age"]
        assert shown["rows"][0]["cells"][:3] == ["one", "Opaque", 2]

    def test_those_with_a_label_are_removed_at_once(self, cluster: Cluster, namespace: str) -> None:
        for name, labels in (("ours", {"of": "us"}), ("theirs", {})):
            cluster.api.create(path("secrets", namespace), meta(name, labels=labels))
        done(cluster.api.delete(path("secrets", namespace), labelSelector="of=us"))
        left = cluster.api.read(path("secrets", namespace))["items"]
        assert [each["metadata"]["name"] for each in left] == ["theirs"]
