"""What the local stack provides for the relay's pod, on a local cluster."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from infra.kubernetes.overlay import NAMESPACE, account_of
from infra.local.addresses import Addresses
from infra.local.relay_account import manifests, open_account, relay_account
from tests.local.served import Served, serving
from tpu_standins.clients.api import Api
from tpu_standins.clients.errors import ApiError
from tpu_standins.clients.labels import OURS
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.real]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served")) as one:
        yield one


def addresses(served: Served, folder: Path, cluster: str) -> Addresses:
    where = Addresses(
        project="unused",
        location="unused",
        cluster_id=cluster,
        pubsub="unused",
        firestore="unused",
        gke="unused",
        buttons="unused",
        proxy_port=0,
        proxy_buttons="unused",
        functions={},
        folder=folder,
    )
    for written in (where.kubeconfig, where.proxy_kubeconfig):  # no proxy is needed here
        written.write_text(served.direct.read_text())
    return where


def who(kubeconfig: Path) -> str:
    """Return whom a refusal names: the user that a kubeconfig authenticates as."""
    with closing(Api.of(kubeconfig)) as api, pytest.raises(ApiError, match='User "') as refused:
        api.list("priorityclasses")
    return str(refused.value).partition('User "')[2].partition('"')[0]


def user(where: Addresses) -> str:
    return f"system:serviceaccount:{NAMESPACE}:{account_of(where.cluster_id)}"


def test_the_relay_speaks_as_its_service_account(served: Served, tmp_path: Path) -> None:
    where = addresses(served, tmp_path, "speaks")
    with relay_account(where):
        assert who(where.relay_kubeconfig) == user(where)
        assert where.relay_token.stat().st_mode & 0o077 == 0


def test_the_relay_may_there_what_its_role_says(served: Served, tmp_path: Path) -> None:
    where = addresses(served, tmp_path, "may")
    with relay_account(where), closing(Api.of(where.relay_kubeconfig)) as api:
        assert api.list("jobsets")["kind"] == "JobSetList"
        with pytest.raises(ApiError, match="cannot create resource") as refused:
            api.create("namespaces", {"metadata": {"name": "of-its-own"}})
        assert refused.value.code == 403


def test_what_is_there_already_is_taken_and_set_right(served: Served, tmp_path: Path) -> None:
    where = addresses(served, tmp_path, "there")
    open_account(where)
    served.kubectl("delete", "clusterrolebinding", "tpu-slice-provisioner-relay")
    served.kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=privileged", "--overwrite")
    open_account(where)
    labels = served.json("get", "namespace", NAMESPACE)["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    assert served.kubectl("get", "clusterrolebinding", "tpu-slice-provisioner-relay").code == 0


def test_what_is_applied_is_marked_as_ours() -> None:
    applied = manifests("demo")
    roles = {f"{scope}{part}" for scope in ("Cluster", "") for part in ("Role", "RoleBinding")}
    policies = {f"{kind}AdmissionPolicy{part}" for kind in ("Mutating", "Validating") for part in ("", "Binding")}
    others = {"CustomResourceDefinition", "Namespace", "ServiceAccount"}
    assert {each["kind"] for each in applied} == others | roles | policies
    assert all(OURS.items() <= each["metadata"]["labels"].items() for each in applied)


def test_its_token_is_renewed(served: Served, tmp_path: Path) -> None:
    where = addresses(served, tmp_path, "renewed")
    with relay_account(where, renew_every=0.1):
        first = where.relay_token.read_text()
        until(lambda: where.relay_token.read_text() != first, "another token")
        assert who(where.relay_kubeconfig) == user(where)


def test_a_token_that_cannot_be_renewed_now_is_renewed_later(
    served: Served, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    where = addresses(served, tmp_path, "later")
    account = ("serviceaccount", account_of("later"), "--namespace", NAMESPACE)
    with relay_account(where, renew_every=0.1):
        served.kubectl("delete", *account)
        until(lambda: f"The token of {account_of('later')} was not renewed" in caplog.text, "a warning")
        served.kubectl("create", *account)
        before = where.relay_token.read_text()
        until(lambda: where.relay_token.read_text() != before, "another token")
        assert who(where.relay_kubeconfig) == user(where)
