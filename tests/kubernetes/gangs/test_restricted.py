"""What a relay that was taken over may do to pods: let those of gangs go, and nothing else, on a real API server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import pytest
import yaml

from infra.kubernetes.overlay import NAMESPACE, account_of
from infra.local.relay_account import manifests
from relay.cluster import Cluster as Calls
from relay.connection import Connection
from tests.cluster.accounts import token_of
from tests.cluster.asking import Answer, Api, done, path
from tests.kubernetes.cluster import Cluster, Json
from tpu_slices.domain.model.gangs import GANG
from tpu_slices.ports.errors import Permanent
from tpu_standins.kubeconfig import for_token_file
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

CLUSTER = "demo"
OTHER = "kueue.x-k8s.io/topology"
ONLY = "Of pods the relay may take the scheduling gate"
STRATEGIC = "application/strategic-merge-patch+json"


def pod(name: str, *gates: str) -> Json:
    metadata = {"name": name, "labels": {"team": "a"}, "annotations": {"note": "one"}, "finalizers": ["team/keep"]}
    spec = {
        "schedulingGates": [{"name": each} for each in gates],
        "containers": [{"name": "main", "image": "main:1", "resources": {"limits": {"google.com/tpu": "4"}}}],
        "activeDeadlineSeconds": 600,
        "tolerations": [{"key": "team", "operator": "Exists", "effect": "NoSchedule"}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


OPEN: Json = {"spec": {"schedulingGates": [{"$patch": "delete", "name": GANG}]}}


def with_(changes: Mapping[str, Any], **metadata: Any) -> Json:
    return {"metadata": metadata, "spec": {**OPEN["spec"], **changes}}


HOSTILE: Mapping[str, Any] = {
    "another image": with_({"containers": [{"name": "main", "image": "evil:1"}]}),
    "another image alone": {"spec": {"containers": [{"name": "main", "image": "evil:1"}]}},
    "a selector": with_({"nodeSelector": {"google.com/tpu-slice-key": "u.j0"}}),
    "a toleration more": [{"op": "add", "path": "/spec/tolerations/-", "value": {"key": "a", "operator": "Exists"}}],
    "a shorter deadline": with_({"activeDeadlineSeconds": 1}),
    "a label": with_({}, labels={"team": "b"}),
    "a label less": with_({}, labels={"team": None}),
    "an annotation": with_({}, annotations={"note": "two"}),
    "no finalizer": with_({}, finalizers=None) | {"metadata": {"$deleteFromPrimitiveList/finalizers": ["team/keep"]}},
    "another's gate": {"spec": {"schedulingGates": [{"$patch": "delete", "name": OTHER}]}},
    "all gates": {"spec": {"schedulingGates": [{"$patch": "replace"}]}},
}


@pytest.fixture(scope="module")
def admin(cluster: Cluster) -> Iterator[Api]:
    applied = cluster.apply("-f", "-", stdin=yaml.safe_dump_all(manifests(CLUSTER)))
    assert (applied.code, applied.error) == (0, "")
    with closing(Api(cluster.plane.kubeconfig)) as api:
        api.create(path("pods", "default"), pod("held", GANG, OTHER))
        api.create(path("pods", "default"), pod("plain"))
        yield api
        for name in ("held", "plain"):
            done(api.patch(path("pods", "default", name), {"metadata": {"finalizers": None}}))


@pytest.fixture(scope="module")
def relay(admin: Api) -> Iterator[Api]:
    with closing(admin.with_token(token_of(admin, NAMESPACE, account_of(CLUSTER)))) as api:
        until(lambda: patched(api, HOSTILE["a label"]).code == 403, "the policy to take effect")
        until(lambda: patched(api, OPEN).code == 200, "the role to take effect")
        yield api


def patched(api: Api, patch: Any, name: str = "held") -> Answer:
    kind = "application/json-patch+json" if isinstance(patch, list) else STRATEGIC
    return api.patch(path("pods", "default", name), patch, kind, dryRun="All")


def test_the_relay_may_take_the_gate_of_gangs_off(relay: Api) -> None:
    answer = patched(relay, OPEN)
    assert answer.code == 200
    assert answer.body["spec"]["schedulingGates"] == [{"name": OTHER}]


def test_to_take_it_off_where_it_is_not_changes_nothing(relay: Api) -> None:
    assert patched(relay, OPEN, "plain").code == 200


@pytest.mark.parametrize("patch", HOSTILE.values(), ids=HOSTILE)
def test_it_may_change_nothing_else_of_a_pod(relay: Api, admin: Api, patch: Any) -> None:
    answer = patched(relay, patch)
    assert answer.code == 403
    assert ONLY in answer.body["message"]
    assert patched(admin, patch).code == 200


@pytest.mark.usefixtures("relay")
def test_the_relays_own_patch_opens_a_pod_and_no_other_of_its_name(admin: Api, cluster: Cluster, tmp_path: Any) -> None:
    (tmp_path / "token").write_text(token_of(admin, NAMESPACE, account_of(CLUSTER)))
    (tmp_path / "config").write_text(for_token_file(cluster.plane.kubeconfig.read_text(), tmp_path / "token"))
    uid = admin.read(path("pods", "default", "held"))["metadata"]["uid"]
    with Connection({"KUBECONFIG": str(tmp_path / "config")}) as connection:
        calls = Calls(connection)
        with pytest.raises(Permanent):
            calls.open_pod("default", "held", "another")
        assert len(admin.read(path("pods", "default", "held"))["spec"]["schedulingGates"]) == 2
        for _ in range(2):
            calls.open_pod("default", "held", uid)
        calls.open_pod("default", "gone", uid)
    assert admin.read(path("pods", "default", "held"))["spec"]["schedulingGates"] == [{"name": OTHER}]
