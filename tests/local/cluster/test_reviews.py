"""Reviews and token requests, and their responses."""

from datetime import timedelta
from typing import Any

import pytest

from infra.local.cluster import discovery
from infra.local.cluster.errors import ApiError
from tests.local.cluster.guarded import ADMINISTRATOR, ANN, AS_ANN, RELAY, Guarded, bearer, rule

ADMIN = bearer(ADMINISTRATOR)
AUTHORIZATION = "/apis/authorization.k8s.io/v1"
MAY_I = f"{AUTHORIZATION}/selfsubjectaccessreviews"
MAY_ANOTHER = f"{AUTHORIZATION}/subjectaccessreviews"
WHAT_MAY_I = f"{AUTHORIZATION}/selfsubjectrulesreviews"
TOKEN = "/api/v1/namespaces/default/serviceaccounts/relay/token"
LIST_PODS = {"resourceAttributes": {"verb": "list", "resource": "pods", "namespace": "default"}}


def refusal(path: str, body: Any) -> ApiError:
    guarded = Guarded()
    guarded.account()
    with pytest.raises(ApiError) as refused:
        guarded.review(path, body, ADMIN)
    return refused.value


def test_an_answer_says_by_which_binding() -> None:
    guarded = Guarded()
    token = guarded.account()
    assert guarded.review(MAY_I, {"spec": LIST_PODS}, bearer(token))["status"] == {"allowed": False}
    guarded.grant(RELAY, rule(["list"], ["pods"]))
    answer = guarded.review(MAY_I, {"spec": LIST_PODS}, bearer(token))
    assert (answer["kind"], answer["spec"]) == ("SelfSubjectAccessReview", LIST_PODS)
    assert answer["status"] == {
        "allowed": True,
        "reason": 'RBAC: allowed by ClusterRoleBinding "one" of ClusterRole "one" to ServiceAccount "relay/default"',
    }


def test_a_binding_of_a_namespace_is_named_with_it() -> None:
    guarded = Guarded()
    guarded.grant(ANN, rule(["list"], ["pods"]), namespace="default")
    answer = guarded.review(MAY_I, {"spec": LIST_PODS}, *AS_ANN)
    why = 'RBAC: allowed by RoleBinding "one/default" of Role "one" to User "ann"'
    assert answer["status"] == {"allowed": True, "reason": why}


def test_a_path_can_be_asked_for() -> None:
    def asked(path: str) -> bool:
        spec = {"nonResourceAttributes": {"verb": "get", "path": path}}
        allowed: bool = Guarded().review(MAY_I, {"spec": spec}, *AS_ANN)["status"]["allowed"]
        return allowed

    assert (asked("/version"), asked("/metrics")) == (True, False)


def test_one_may_be_asked_about_another_by_whoever_may_ask() -> None:
    guarded = Guarded()
    guarded.grant({"kind": "Group", "name": "team", "apiGroup": ANN["apiGroup"]}, rule(["list"], ["pods"]))

    def asked(**who: Any) -> bool:
        allowed: bool = guarded.review(MAY_ANOTHER, {"spec": LIST_PODS | who}, ADMIN)["status"]["allowed"]
        return allowed

    assert (asked(user="bob", groups=["team"]), asked(groups=["team"]), asked(user="bob")) == (True, True, False)
    with pytest.raises(ApiError, match='cannot create resource "subjectaccessreviews"'):
        guarded.review(MAY_ANOTHER, {"spec": LIST_PODS | {"user": "bob"}}, *AS_ANN)


def test_all_that_one_may_is_listed() -> None:
    guarded = Guarded()
    granted = rule(["list"], ["pods"], resourceNames=["one"])
    guarded.grant(ANN, granted, namespace="default")
    status = guarded.review(WHAT_MAY_I, {"spec": {"namespace": "default"}}, *AS_ANN)["status"]
    assert granted in status["resourceRules"]
    assert any("/version" in each["nonResourceURLs"] for each in status["nonResourceRules"])
    assert status["incomplete"] is False
    elsewhere = guarded.review(WHAT_MAY_I, {"spec": {"namespace": "kube-system"}}, *AS_ANN)["status"]
    assert granted not in elsewhere["resourceRules"]


def test_a_list_that_misses_a_role_says_so() -> None:
    guarded = Guarded()
    guarded.grant(ANN, rule(["list"], ["pods"]), namespace="default")
    guarded.world.objects.delete("roles", "default", "one")
    status = guarded.review(WHAT_MAY_I, {"spec": {"namespace": "default"}}, *AS_ANN)["status"]
    assert status["incomplete"] is True
    assert status["evaluationError"] == 'role.rbac.authorization.k8s.io "one" not found'


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_one_is_told_who_one_is(version: str) -> None:
    guarded = Guarded()
    answer = guarded.review(f"/apis/authentication.k8s.io/{version}/selfsubjectreviews", {}, *AS_ANN)
    assert answer["apiVersion"] == f"authentication.k8s.io/{version}"
    assert answer["status"] == {"userInfo": {"username": "ann", "groups": ["system:authenticated"]}}


def test_a_token_is_given_for_as_long_as_asked() -> None:
    guarded = Guarded()
    guarded.account()
    answer = guarded.review(TOKEN, {"spec": {"expirationSeconds": 600}}, ADMIN)
    assert answer["kind"] == "TokenRequest"
    assert answer["status"]["expirationTimestamp"] == "2026-01-01T00:10:00Z"
    token = answer["status"]["token"]
    assert guarded.user(bearer(token)).name == "system:serviceaccount:default:relay"
    guarded.world.now += timedelta(minutes=10)
    with pytest.raises(ApiError, match="Unauthorized"):
        guarded.user(bearer(token))


def test_a_token_lasts_an_hour_unless_asked() -> None:
    guarded = Guarded()
    guarded.account()
    answer = guarded.review(TOKEN, {"spec": {}}, ADMIN)
    assert answer["spec"]["expirationSeconds"] == 3600
    assert answer["status"]["expirationTimestamp"] == "2026-01-01T01:00:00Z"


def test_a_token_is_given_to_whoever_may_have_it() -> None:
    guarded = Guarded()
    token = guarded.account()
    with pytest.raises(ApiError, match='cannot create resource "serviceaccounts/token" in API group ""'):
        guarded.review(TOKEN, {"spec": {}}, bearer(token))
    guarded.grant(RELAY, rule(["create"], ["serviceaccounts/token"], resourceNames=["relay"]))
    assert guarded.review(TOKEN, {"spec": {}}, bearer(token))["status"]["token"] != token


@pytest.mark.parametrize(
    ("path", "body", "code", "why"),
    [
        (TOKEN, {"spec": {"expirationSeconds": 599}}, 422, "may not specify a duration less than 10 minutes"),
        (TOKEN, {"spec": {"expirationSeconds": 2**32 + 1}}, 422, "a duration larger than 2^32 seconds"),
        (TOKEN, {"spec": {"expirationSeconds": "1h"}}, 400, "cannot unmarshal string"),
        (TOKEN, {"spec": {"boundObjectRef": {"kind": "Pod"}}}, 501, "tokens bound to an object"),
        (TOKEN.replace("relay", "nobody"), {"spec": {}}, 404, 'serviceaccounts "nobody" not found'),
        (MAY_I, {"spec": {}}, 422, "exactly one of nonResourceAttributes or resourceAttributes must be specified"),
        (MAY_I, {}, 422, "spec: Required value"),
        (MAY_I, {"spec": LIST_PODS | {"nonResourceAttributes": {}}}, 422, "cannot be specified in combination with"),
        (MAY_I, {"kind": "Pod"}, 400, "does not match the expected kind"),
        (MAY_ANOTHER, {"spec": LIST_PODS}, 422, "at least one of user or group must be specified"),
        (WHAT_MAY_I, {"spec": {}}, 400, "no namespace on request"),
        (f"{MAY_I}/one", {"spec": LIST_PODS}, 405, "does not allow this method"),
    ],
)
def test_what_cannot_be_asked_so_is_refused(path: str, body: Any, code: int, why: str) -> None:
    refused = refusal(path, body)
    assert refused.code == code
    assert why in refused.message


def test_reviews_are_created_only() -> None:
    guarded = Guarded()
    with pytest.raises(ApiError, match="does not allow this method"):
        guarded.filters.answered(*guarded.admitted("GET", MAY_I, ADMIN))


def test_discovery_shows_them() -> None:
    listed = discovery.answer(AUTHORIZATION)
    assert listed is not None
    assert {row["name"]: row["verbs"] for row in listed["resources"]} == {
        "selfsubjectaccessreviews": ["create"],
        "selfsubjectrulesreviews": ["create"],
        "subjectaccessreviews": ["create"],
    }
