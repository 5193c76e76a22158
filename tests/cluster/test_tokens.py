"""Tokens: whose they are, for whom, and when they are void."""

from __future__ import annotations

import base64

import orjson
import pytest

from tests.cluster.accounts import Account, account, rule, token_of
from tests.cluster.asking import LIVE, done, path
from tests.cluster.builders import meta
from tests.cluster.servers import Cluster
from tpu_standins.testing.waiting import until

pytestmark = LIVE

NODES = "/api/v1/nodes"
PARTS = ("/version", 200), (NODES, 403)


def unauthorized(cluster: Cluster, token: str) -> None:
    asked = cluster.api.with_token(token)
    until(lambda: asked.get(NODES).refusal == (401, "Unauthorized"), "the token to be void")
    asked.close()


@pytest.fixture
def relay(cluster: Cluster, namespace: str) -> Account:
    return account(cluster, namespace)


def test_one_is_of_its_account(relay: Account) -> None:
    refused = relay.api.get(NODES)
    assert refused.code == 403
    assert relay.user in refused.body["message"]
    relay.api.close()


def test_one_is_a_jwt_with_its_account_its_audience_and_its_end(relay: Account) -> None:
    _, body, _ = relay.api.token.split(".")
    claims = orjson.loads(base64.urlsafe_b64decode(body + "=="))
    assert (claims["sub"], claims["exp"] - claims["iat"]) == (relay.user, 600)
    assert claims["aud"] == [claims["iss"]]
    assert claims["kubernetes.io"]["serviceaccount"]["name"] == "relay"


@pytest.mark.parametrize("token", ["nonsense", "a.b.c"])
def test_an_unknown_one_is_refused(cluster: Cluster, token: str) -> None:
    unauthorized(cluster, token)


def test_one_with_other_claims_is_refused(cluster: Cluster, relay: Account) -> None:
    head, body, signature = relay.api.token.split(".")
    claims = base64.urlsafe_b64decode(body + "==").replace(b":relay", b":admin")
    forged = base64.urlsafe_b64encode(claims).rstrip(b"=").decode()
    unauthorized(cluster, f"{head}.{forged}.{signature}")


def test_one_for_another_audience_is_not_for_the_api_server(cluster: Cluster, relay: Account) -> None:
    unauthorized(cluster, token_of(cluster.api, relay.namespace, relay.name, audiences=["vault"]))


def test_one_is_void_once_its_account_is_gone_even_if_another_has_the_name(cluster: Cluster, relay: Account) -> None:
    assert relay.api.get(NODES).code == 403
    done(cluster.api.delete(path("serviceaccounts", relay.namespace, relay.name)))
    unauthorized(cluster, relay.api.token)
    cluster.api.create(path("serviceaccounts", relay.namespace), meta(relay.name))
    another = cluster.api.with_token(token_of(cluster.api, relay.namespace, relay.name))
    until(lambda: another.get(NODES).code == 403, "the new token to count")
    unauthorized(cluster, relay.api.token)
    another.close()
    relay.api.close()


def test_one_of_less_than_ten_minutes_is_not_given(cluster: Cluster, relay: Account) -> None:
    token = path("serviceaccounts", relay.namespace, relay.name, "token")
    assert cluster.api.post(token, {"spec": {"expirationSeconds": 599}}).refusal == (422, "Invalid")


def test_none_is_given_for_an_account_that_is_not_there(cluster: Cluster, namespace: str) -> None:
    token = path("serviceaccounts", namespace, "nobody", "token")
    assert cluster.api.post(token, {"spec": {}}).refusal == (404, "NotFound")


def test_one_may_ask_for_a_token_only_with_the_right_to(relay: Account) -> None:
    token = path("serviceaccounts", relay.namespace, relay.name, "token")
    assert relay.api.post(token, {"spec": {}}).refusal == (403, "Forbidden")
    relay.grant(rule("create", "serviceaccounts/token"), within=relay.namespace)
    until(lambda: relay.api.post(token, {"spec": {}}).code == 201, "the right")
    relay.api.close()


@pytest.mark.parametrize(("where", "code"), PARTS)
def test_without_one_nobody_knows_who_asks(cluster: Cluster, where: str, code: int) -> None:
    nobody = cluster.api.with_token("")
    answer = nobody.get(where)
    assert answer.code == code
    assert code == 200 or 'User "system:anonymous"' in answer.body["message"]
    nobody.close()
