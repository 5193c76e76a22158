"""What the relay may do with bootstrap tokens, and that hosts can use them, on a real API server.

Where a request would change something it is a dry run with the relay's own token, so that each is of the same objects.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client, config

from infra.kubernetes.overlay import NAMESPACE, account_of
from relay.joining.tokens import GROUP, Tokens, secret_of
from relay.node_groups.calls import SelfManagedCluster as Calls
from tests.builders import a_token
from tests.cluster.accounts import token_of
from tests.cluster.asking import Answer, Api, path
from tests.infra.relay.manifests import a_relay, deployed
from tests.kubernetes.cluster import Cluster, Json
from tpu_slices.domain.model.joining import JoinEnded, JoinQuestion
from tpu_slices.domain.model.slices import ClaimId
from tpu_slices.ports.errors import Temporary
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

CLUSTER = "joins"
SYSTEM = "kube-system"
SLICE = ClaimId("tpu-llama-0-ni2rmqnzkqh7a")
OF_SLICES = "The relay may create and delete bootstrap tokens of slices only"
FOR_NODES = "may be of the group system:bootstrappers:kubeadm:default-node-token only"
HALF_AN_HOUR = "may live for half an hour at most"


def a_secret(**changes: Any) -> Json:
    """Return the Secret of a token as the relay makes it."""
    expires_at = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=30)
    return secret_of(replace(a_token(slice_id=SLICE, expires_at=expires_at), **changes))


def with_data(secret: Json, **changes: str | None) -> Json:
    """Return a Secret with other data, whose keys have `_` for `-`; None: without it."""
    given = {key.replace("_", "-"): value for key, value in changes.items()}
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in given.items() if value is not None}
    kept = {key: value for key, value in secret["data"].items() if key not in given}
    return {**secret, "data": {**kept, **encoded}}


def with_metadata(secret: Json, **changes: Any) -> Json:
    return {**secret, "metadata": {**secret["metadata"], **changes}}


def later(minutes: int) -> str:
    return f"{datetime.now(UTC) + timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}"


REFUSED: Mapping[str, tuple[Callable[[], Json], str]] = {
    "a Secret of another type": (lambda: {**a_secret(), "type": "Opaque"}, OF_SLICES),
    "the token of a ServiceAccount": (
        lambda: with_metadata(
            {**a_secret(), "type": "kubernetes.io/service-account-token"},
            annotations={"kubernetes.io/service-account.name": "default"},
        ),
        OF_SLICES,
    ),
    "a token without labels": (lambda: with_metadata(a_secret(), labels={}), OF_SLICES),
    "a token of no slice": (
        lambda: with_metadata(a_secret(), labels={"app.kubernetes.io/managed-by": "tpu-slice-provisioner"}),
        OF_SLICES,
    ),
    "a token of another group": (
        lambda: with_data(a_secret(), auth_extra_groups="system:bootstrappers:admins"),
        FOR_NODES,
    ),
    "a token of two groups": (
        lambda: with_data(
            a_secret(), auth_extra_groups="system:bootstrappers:kubeadm:default-node-token,system:bootstrappers:x"
        ),
        FOR_NODES,
    ),
    "a token of no group": (lambda: with_data(a_secret(), auth_extra_groups=None), FOR_NODES),
    "a token of more than that": (lambda: with_data(a_secret(), more="x"), FOR_NODES),
    "a token for a day": (lambda: with_data(a_secret(), expiration=later(60 * 24)), HALF_AN_HOUR),
    "a token of a time with a zone": (
        lambda: with_data(a_secret(), expiration="2026-11-24T20:00:00+00:00"),
        HALF_AN_HOUR,
    ),
    "a token for good": (lambda: with_data(a_secret(), expiration=None), HALF_AN_HOUR),
}
"""Each is made by its own test, as it says until when it lives."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    admin: Api
    relay: Api
    calls: Calls

    def created(self, secret: Json, namespace: str = SYSTEM) -> Answer:
        return self.relay.post(path("secrets", namespace), secret, dryRun="All")

    def refused(self, what: str) -> bool:
        """Return whether the policy, not the roles alone, keeps the relay from making a Secret."""
        make, message = REFUSED[what]
        answer = self.created(make())
        return answer.refusal == (403, "Forbidden") and message in answer.body["message"]

    def is_restricted(self) -> bool:
        return self.created(a_secret()).code == 201 and self.refused("a Secret of another type")

    def tokens(self) -> list[str]:
        found = self.admin.read(f"{path('secrets', SYSTEM)}?fieldSelector=type=bootstrap.kubernetes.io/token")
        return [each["metadata"]["name"] for each in found["items"]]


@pytest.fixture(scope="module")
def stage(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    relay = replace(a_relay(CLUSTER), hosts_in="projects/demo-project/locations/us-central1")
    manifests = [each for each in deployed(relay, tmp_path_factory.mktemp("relay")) if each["kind"] != "Deployment"]
    applied = cluster.apply("-f", "-", stdin=yaml.safe_dump_all(manifests))
    assert (applied.code, applied.error) == (0, "")
    with closing(Api(cluster.plane.kubeconfig)) as admin:
        token = token_of(admin, NAMESPACE, account_of(CLUSTER))
        with closing(admin.with_token(token)) as as_relay:
            one = Stage(admin=admin, relay=as_relay, calls=Calls(client_with(cluster.plane.kubeconfig, token)))
            until(one.is_restricted, "the roles and the policy to take effect")
            yield one


def client_with(kubeconfig: Path, token: str) -> client.ApiClient:
    """Return the official client as the relay's ServiceAccount."""
    given = client.Configuration()
    load: Any = config.load_kube_config  # it has no types
    load(str(kubeconfig), client_configuration=given)
    given.api_key, given.refresh_api_key_hook = {"BearerToken": f"Bearer {token}"}, None
    return client.ApiClient(given)


def test_the_relay_may_make_a_token(stage: Stage) -> None:
    assert stage.created(a_secret()).code == 201


@pytest.mark.parametrize("what", REFUSED)
def test_it_may_make_no_other_secret(what: str, stage: Stage) -> None:
    assert stage.refused(what)


def test_a_token_whose_time_cannot_be_read_is_refused(stage: Stage) -> None:
    assert stage.created(with_data(a_secret(), expiration="2026-11-24 20:00:00 ")).refusal == (422, "Invalid")


@pytest.mark.parametrize("what", REFUSED)
def test_others_may(what: str, stage: Stage) -> None:
    """Without the policy Kubernetes would take each of these requests."""
    make, _ = REFUSED[what]
    secret = make()
    if secret["type"] == "kubernetes.io/service-account-token":
        secret = with_metadata(secret, name="made-by-an-admin")
    assert stage.admin.post(path("secrets", SYSTEM), secret, dryRun="All").code == 201


def test_it_may_make_none_in_another_namespace(stage: Stage) -> None:
    assert stage.created(a_secret(), NAMESPACE).code == 403


def test_it_may_read_no_secret(stage: Stage) -> None:
    stage.admin.create(path("secrets", SYSTEM), with_metadata(a_secret(token="aaaaaa.0123456789abcdef")))
    try:
        assert stage.relay.get(path("secrets", SYSTEM)).code == 403
        assert stage.relay.get(path("secrets", SYSTEM, "bootstrap-token-aaaaaa")).code == 403
    finally:
        stage.admin.delete(path("secrets", SYSTEM, "bootstrap-token-aaaaaa"))


def test_it_may_delete_no_other_secret(stage: Stage) -> None:
    stage.admin.create(path("secrets", SYSTEM), {"metadata": {"name": "passwords"}, "type": "Opaque"})
    try:
        with pytest.raises(Temporary):
            stage.calls.delete_tokens("app.kubernetes.io/managed-by!=tpu-slice-provisioner")
        assert stage.admin.get(path("secrets", SYSTEM, "passwords")).code == 200
    finally:
        stage.admin.delete(path("secrets", SYSTEM, "passwords"))


def test_a_token_is_made_handed_out_again_and_removed(stage: Stage) -> None:
    tokens = Tokens(stage.calls, lambda: datetime.now(UTC))
    question = JoinQuestion(slice_id=SLICE, attempt=1, asked_at=datetime.now(UTC))
    [made], [again] = tokens.answer(question), tokens.answer(question)
    [other] = tokens.answer(replace(question, attempt=2))
    assert made.token == again.token != other.token
    names = {f"bootstrap-token-{each.token.partition('.')[0]}" for each in (made, other)}
    assert set(stage.tokens()) == names
    tokens.end(JoinEnded(slice_id=SLICE, attempt=1))
    assert stage.tokens() == [f"bootstrap-token-{other.token.partition('.')[0]}"]
    tokens.end(JoinEnded(slice_id=SLICE, attempt=2))
    assert stage.tokens() == []
    assert made.ca_hashes == stage.calls.ca_hashes()
    assert len(made.ca_hashes) == 1


def test_a_host_with_the_token_is_one_that_joins_until_it_is_removed(stage: Stage) -> None:
    tokens = Tokens(stage.calls, lambda: datetime.now(UTC))
    [made] = tokens.answer(JoinQuestion(slice_id=SLICE, attempt=3, asked_at=datetime.now(UTC)))
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    where = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    with closing(stage.admin.with_token(made.token)) as host:
        until(lambda: host.post(where, review).code == 201, "the token to be known")
        who = host.post(where, review).body["status"]["userInfo"]
        assert who["username"] == f"system:bootstrap:{made.token.partition('.')[0]}"
        assert GROUP in who["groups"]
        tokens.end(JoinEnded(slice_id=SLICE, attempt=3))
        until(lambda: host.post(where, review).code == 401, "the token to be gone")


def test_kubernetes_has_nothing_to_say_of_the_expressions(stage: Stage) -> None:
    """It checks their types by what it knows of Secrets, and writes what it finds into the policy's status."""
    policy = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/tpu-slice-provisioner-relay-secrets"

    def status() -> Json:
        found: Json = stage.admin.read(policy).get("status", {})
        return found

    until(lambda: "typeChecking" in status(), "the check of types")
    assert status()["typeChecking"] == {}
