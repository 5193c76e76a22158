"""Authentication and impersonation."""

import base64
from datetime import timedelta

import orjson
import pytest

from infra.local.cluster.authentication import AUDIENCE, User
from infra.local.cluster.errors import ApiError
from tests.local.cluster.guarded import ADMINISTRATOR, ANN, AS_ANN, RELAY, Guarded, Header, as_user, bearer, rule


def refusal(guarded: Guarded, *headers: Header, secure: bool = True) -> ApiError:
    with pytest.raises(ApiError) as refused:
        guarded.user(*headers, secure=secure)
    return refused.value


def test_the_administrator_is_a_master() -> None:
    assert Guarded().user(bearer(ADMINISTRATOR)) == User(
        name="kubernetes-admin", groups=("system:masters", "system:authenticated")
    )


def test_a_token_says_whose_it_is() -> None:
    guarded = Guarded()
    user = guarded.user(bearer(guarded.account()))
    account = guarded.world.objects.get("serviceaccounts", "default", "relay")
    assert (user.name, user.uid) == ("system:serviceaccount:default:relay", account["metadata"]["uid"])
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated")
    assert user.extra["authentication.kubernetes.io/credential-id"][0].startswith("JTI=")


def test_a_token_is_a_jwt_with_the_originals_claims() -> None:
    guarded = Guarded()
    head, body, _ = guarded.account().split(".")
    claims = orjson.loads(base64.urlsafe_b64decode(body + "=="))
    assert orjson.loads(base64.urlsafe_b64decode(head + "=="))["typ"] == "JWT"
    assert (claims["aud"], claims["iss"], claims["sub"]) == (
        [AUDIENCE],
        AUDIENCE,
        "system:serviceaccount:default:relay",
    )
    assert claims["exp"] - claims["iat"] == 3600
    assert claims["kubernetes.io"]["serviceaccount"]["name"] == "relay"


@pytest.mark.parametrize("secure", [True, False])
@pytest.mark.parametrize("token", ["nonsense", "a.b.c", "ä.b", ADMINISTRATOR + "x"])
def test_an_unknown_token_is_refused_wherever_it_comes(token: str, secure: bool) -> None:
    refused = refusal(Guarded(), ("Authorization", f"bearer {token}"), secure=secure)
    assert refused.status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }


def test_a_token_with_other_claims_is_refused() -> None:
    guarded = Guarded()
    head, body, signature = guarded.account().split(".")
    claims = base64.urlsafe_b64decode(body + "==").replace(b"default", b"elsewhere")
    forged = base64.urlsafe_b64encode(claims).rstrip(b"=").decode()
    assert refusal(guarded, bearer(f"{head}.{forged}.{signature}")).code == 401


def test_a_token_ends() -> None:
    guarded = Guarded()
    token = guarded.account()
    guarded.world.now += timedelta(seconds=3599)
    assert guarded.user(bearer(token)).uid
    guarded.world.now += timedelta(seconds=1)
    assert refusal(guarded, bearer(token)).code == 401


def test_a_token_dies_with_its_account_even_if_another_takes_the_name() -> None:
    guarded = Guarded()
    token = guarded.account()
    guarded.world.objects.delete("serviceaccounts", "default", "relay")
    assert refusal(guarded, bearer(token)).code == 401
    another = guarded.account()
    assert refusal(guarded, bearer(token)).code == 401
    assert guarded.user(bearer(another)).name == "system:serviceaccount:default:relay"


def test_a_token_for_others_is_not_for_the_api_server() -> None:
    guarded = Guarded()
    guarded.account()
    account = guarded.world.objects.get("serviceaccounts", "default", "relay")
    token, _ = guarded.authenticator.issue(account, ["vault"], 3600)
    assert refusal(guarded, bearer(token)).code == 401


def test_without_a_token_it_matters_which_way_one_came() -> None:
    nobody = User(name="system:anonymous", groups=("system:unauthenticated",))
    assert Guarded().user() == nobody
    assert Guarded().user(("Authorization", "Basic eDp5")) == nobody
    assert Guarded().user(("Authorization", "Basic eDp5"), secure=False) == nobody
    assert Guarded().user(secure=False) == User(
        name="system:unsecured", groups=("system:masters", "system:authenticated")
    )


@pytest.mark.parametrize(
    ("name", "groups", "then"),
    [
        ("ann", [], ("system:authenticated",)),
        ("ann", ["a", "b"], ("a", "b", "system:authenticated")),
        ("ann", ["system:unauthenticated"], ("system:unauthenticated",)),
        ("system:anonymous", [], ("system:unauthenticated",)),
        (
            "system:serviceaccount:team:relay",
            [],
            ("system:serviceaccounts", "system:serviceaccounts:team", "system:authenticated"),
        ),
    ],
)
def test_an_administrator_acts_as_another(name: str, groups: list[str], then: tuple[str, ...]) -> None:
    headers = [("Impersonate-Group", group) for group in groups]
    user = Guarded().user(bearer(ADMINISTRATOR), as_user(name), *headers)
    assert (user.name, user.groups) == (name, then)


def test_everything_about_another_can_be_said() -> None:
    more = (("Impersonate-Uid", "7"), ("Impersonate-Extra-Example.com%2Fscopes", "view"))
    user = Guarded().user(*AS_ANN, *more)
    assert (user.uid, user.extra) == ("7", {"example.com/scopes": ("view",)})


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        (
            [as_user("ann")],
            (
                'users "ann" is forbidden: User "system:serviceaccount:default:relay" cannot impersonate '
                'resource "users" in API group "" at the cluster scope'
            ),
        ),
        (
            [as_user("system:serviceaccount:team:other")],
            'cannot impersonate resource "serviceaccounts" in API group "" in the namespace "team"',
        ),
        ([as_user("bob"), ("Impersonate-Group", "system:masters")], 'groups "system:masters" is forbidden'),
        ([as_user("bob"), ("Impersonate-Uid", "7")], 'uids.authentication.k8s.io "7" is forbidden'),
        (
            [as_user("bob"), ("Impersonate-Extra-Scopes", "view")],
            'cannot impersonate resource "userextras/scopes" in API group "authentication.k8s.io"',
        ),
    ],
)
def test_acting_as_another_must_be_allowed_for_each_part(headers: list[Header], why: str) -> None:
    guarded = Guarded()
    token = guarded.account()
    guarded.grant(RELAY, rule(["impersonate"], ["users"], resourceNames=["bob"]))
    assert guarded.user(bearer(token), as_user("bob")).name == "bob"
    refused = refusal(guarded, bearer(token), *headers)
    assert refused.code == 403
    assert why in refused.message


def test_groups_need_a_user_to_be_of() -> None:
    refused = refusal(Guarded(), bearer(ADMINISTRATOR), ("Impersonate-Group", "team"))
    assert (refused.code, "without impersonating a user" in refused.message) == (500, True)


def test_who_acts_as_another_has_the_others_rights_only() -> None:
    guarded = Guarded()
    guarded.grant(ANN, rule(["list"], ["pods"]))
    guarded.admitted("GET", "/api/v1/pods", *AS_ANN)
    with pytest.raises(ApiError, match="cannot list resource"):
        guarded.admitted("GET", "/api/v1/nodes", *AS_ANN)
