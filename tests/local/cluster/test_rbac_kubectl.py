"""Accounts, roles and reviews through kubectl: an old version, and the server's version."""

import base64
import os
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import orjson
import pytest
import yaml

from infra.local.prerequisites import Prerequisite, find
from tests.local.cluster.served import Said, Served

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.timeout(60)]

SDK = find(os.environ)[Prerequisite.GCLOUD]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubectl:
    program: Path
    served: Served
    namespace: str

    def __call__(self, *arguments: str, token: str = "") -> Said:
        """Run kubectl as the administrator, or authenticated only by a token."""
        kubeconfig = self.served.kubeconfig
        if token:
            document = yaml.safe_load(kubeconfig.read_text())
            document["users"][0]["user"] = {"token": token}
            kubeconfig = kubeconfig.with_name("token.kubeconfig")
            kubeconfig.write_text(yaml.safe_dump(document))
        command = [str(self.program), f"--kubeconfig={kubeconfig}", f"--cache-dir={kubeconfig.parent}", *arguments]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=15, check=False
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def made(self, *arguments: str) -> None:
        said = self(*arguments)
        assert said.code == 0, said.error

    def token(self) -> str:
        """Create the account `relay` and return a token of it."""
        self.made("create", "serviceaccount", "relay", "--namespace", self.namespace)
        return self("create", "token", "relay", "--namespace", self.namespace, "--duration", "10m").out.strip()

    @property
    def account(self) -> str:
        return f"system:serviceaccount:{self.namespace}:relay"


@pytest.fixture(params=["kubectl.1.27", "kubectl.1.33"])
def kubectl(served: Served, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    program = (SDK or Path()) / "bin" / request.param
    if not program.exists():
        pytest.skip(f"the Google Cloud CLI brings no {request.param} here")
    kubectl = Kubectl(program=program, served=served, namespace=served.namespace())
    kubectl("get", "pods")  # caches discovery, so that users without permissions are refused the actual request
    yield kubectl
    served.kubectl("delete", "clusterrole,clusterrolebinding", "viewer", "--ignore-not-found")


def test_an_account_may_what_it_is_granted(kubectl: Kubectl) -> None:
    token = kubectl.token()
    refused = kubectl("get", "pods", "--all-namespaces", token=token)
    said = (
        f'pods is forbidden: User "{kubectl.account}" cannot list resource "pods" in API group "" at the cluster scope'
    )
    assert refused.error == f"Error from server (Forbidden): {said}\n"
    kubectl.made("create", "clusterrole", "viewer", "--verb=list", "--resource=pods")
    kubectl.made(
        *("create", "clusterrolebinding", "viewer", "--clusterrole=viewer"),
        f"--serviceaccount={kubectl.namespace}:relay",
    )
    assert "No resources found" in kubectl("get", "pods", "--all-namespaces", token=token).error


def test_a_role_is_granted_within_a_namespace(kubectl: Kubectl) -> None:
    within = ("--namespace", kubectl.namespace)
    kubectl.made("create", "role", "viewer", "--verb=get,list", "--resource=pods", *within)
    kubectl.made("create", "rolebinding", "viewer", "--role=viewer", "--user=ann", *within)
    assert kubectl("auth", "can-i", "list", "pods", *within, "--as=ann").out == "yes\n"
    assert kubectl("auth", "can-i", "list", "pods", "--as=ann").out.startswith("no")
    shown = kubectl("get", "rolebindings", *within, "--output=wide").out.splitlines()
    assert shown[0].split() == ["NAME", "ROLE", "AGE", "USERS", "GROUPS", "SERVICEACCOUNTS"]
    assert shown[1].split()[:2] == ["viewer", "Role/viewer"]
    assert "ann" in shown[1]


def test_one_is_told_who_one_is(kubectl: Kubectl) -> None:
    token = kubectl.token()
    assert "kubernetes-admin" in kubectl("auth", "whoami").out
    said = kubectl("auth", "whoami", token=token).out
    assert kubectl.account in said
    assert f"[system:serviceaccounts system:serviceaccounts:{kubectl.namespace} system:authenticated]" in said
    other = kubectl("auth", "whoami", "--as=ann", "--as-group=team").out
    assert other.split() == ["ATTRIBUTE", "VALUE", "Username", "ann", "Groups", "[team", "system:authenticated]"]


def test_one_is_told_what_one_may(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "*", "*").out == "yes\n"
    assert kubectl("auth", "can-i", "get", "pods", "--subresource=log", f"--as={kubectl.account}").out == "no\n"
    assert kubectl("auth", "can-i", "get", "/version", "--as=ann").out == "yes\n"
    listed = kubectl("auth", "can-i", "--list", "--as=ann").out
    assert "selfsubjectaccessreviews.authorization.k8s.io" in listed
    assert "pods" not in listed


def test_acting_as_another_must_be_allowed(kubectl: Kubectl) -> None:
    refused = kubectl("get", "pods", "--as=ann", token=kubectl.token())
    assert f'users "ann" is forbidden: User "{kubectl.account}" cannot impersonate resource "users"' in refused.error


def test_an_unknown_token_is_unauthorized(kubectl: Kubectl) -> None:
    refused = kubectl("get", "pods", token="made up")
    assert refused.error == "error: You must be logged in to the server (Unauthorized)\n"


def test_a_token_of_seconds_is_not_given(kubectl: Kubectl) -> None:
    kubectl.token()
    refused = kubectl("create", "token", "relay", "--namespace", kubectl.namespace, "--duration=30s")
    assert "may not specify a duration less than 10 minutes" in refused.error
    assert 'serviceaccounts "nobody" not found' in kubectl("create", "token", "nobody").error


def test_over_plain_http_the_local_parts_need_no_token(served: Served) -> None:
    with urlopen(f"{served.address}/api/v1/nodes", timeout=5) as answer:
        assert orjson.loads(answer.read())["kind"] == "NodeList"
    claimed = Request(f"{served.address}/api/v1/nodes", headers={"Authorization": "Bearer made-up"})
    with pytest.raises(HTTPError, match="401") as refused:
        urlopen(claimed, timeout=5)
    refused.value.close()


def test_over_tls_who_has_no_token_is_nobody(served: Served) -> None:
    cluster = yaml.safe_load(served.kubeconfig.read_text())["clusters"][0]["cluster"]
    trusted = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    with urlopen(f"{cluster['server']}/version", context=trusted, timeout=5) as answer:
        assert answer.status == 200
    with pytest.raises(HTTPError, match="403") as refused:
        urlopen(f"{cluster['server']}/api/v1/nodes", context=trusted, timeout=5)
    said = (
        'nodes is forbidden: User "system:anonymous" cannot list resource "nodes" in API group "" at the cluster scope'
    )
    with refused.value as answer:
        assert orjson.loads(answer.read())["message"] == said
