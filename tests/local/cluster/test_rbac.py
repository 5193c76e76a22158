"""What rules allow, and the messages of refusals."""

from typing import Any

import pytest

from infra.local.cluster.attributes import Attributes
from infra.local.cluster.errors import ApiError
from infra.local.cluster.rbac import allows
from tests.local.cluster.guarded import ADMINISTRATOR, ANN, AS_ANN, GROUP, RELAY, Guarded, Header, bearer, rule

PODS = Attributes(verb="get", resource="pods", namespace="default", name="one")
LOG = Attributes(verb="get", resource="pods", subresource="log", name="one")
VERSION = Attributes(verb="get", path="/version")


def urls(*paths: str) -> dict[str, Any]:
    return {"nonResourceURLs": list(paths), "verbs": ["get"]}


def refusal(guarded: Guarded, method: str, path: str, *headers: Header) -> ApiError:
    with pytest.raises(ApiError) as refused:
        guarded.admitted(method, path, *headers)
    assert refused.value.code == 403
    return refused.value


@pytest.mark.parametrize(
    ("granted", "wanted", "allowed"),
    [
        (rule(["get"], ["pods"]), PODS, True),
        (rule(["*"], ["pods"]), PODS, True),
        (rule(["list", "get"], ["nodes", "pods"]), PODS, True),
        (rule(["list"], ["pods"]), PODS, False),
        (rule(["get"], ["nodes"]), PODS, False),
        (rule(["get"], ["pods"], "apps"), PODS, False),
        (rule(["get"], ["pods"], "*"), PODS, True),
        (rule(["get"], ["*"]), PODS, True),
        (rule(["get"], ["pods"]), LOG, False),
        (rule(["get"], ["pods/log"]), LOG, True),
        (rule(["get"], ["pods/log"]), PODS, False),
        (rule(["get"], ["*/log"]), LOG, True),
        (rule(["get"], ["*/status"]), LOG, False),
        (rule(["get"], ["*"]), LOG, True),
        (rule(["get"], ["pods"], resourceNames=["one"]), PODS, True),
        (rule(["get"], ["pods"], resourceNames=["two"]), PODS, False),
        (rule(["list"], ["pods"], resourceNames=["one"]), Attributes(verb="list", resource="pods"), False),
        (rule(["list"], ["pods"], resourceNames=["one"]), Attributes(verb="list", resource="pods", name="one"), True),
        (rule(["get"], ["*"]), VERSION, False),
        (urls("/version"), VERSION, True),
        (urls("/v*"), VERSION, True),
        (urls("*"), VERSION, True),
        (urls("/api", "/versions"), VERSION, False),
        (urls("*"), PODS, False),
        (urls("/version") | {"verbs": ["post"]}, VERSION, False),
    ],
)
def test_a_rule_allows_what_it_names(granted: dict[str, Any], wanted: Attributes, allowed: bool) -> None:
    assert allows(granted, wanted) is allowed


@pytest.mark.parametrize(
    "subject",
    [
        ANN,
        {"kind": "Group", "name": "system:authenticated", "apiGroup": GROUP},
        {"kind": "User", "name": "system:serviceaccount:default:relay", "apiGroup": GROUP},
        {"kind": "Group", "name": "system:serviceaccounts:default", "apiGroup": GROUP},
        RELAY,
    ],
)
def test_a_subject_is_a_user_a_group_or_an_account(subject: dict[str, str]) -> None:
    guarded = Guarded()
    guarded.grant(subject, rule(["list"], ["pods"]))
    sender = AS_ANN if subject["name"] in ("ann", "system:authenticated") else (bearer(guarded.account()),)
    guarded.admitted("GET", "/api/v1/pods", *sender)
    refusal(guarded, "GET", "/api/v1/nodes", *sender)


def test_a_role_of_a_namespace_ends_at_its_border() -> None:
    guarded = Guarded()
    guarded.grant(ANN, rule(["list"], ["pods"]), namespace="default")
    guarded.admitted("GET", "/api/v1/namespaces/default/pods", *AS_ANN)
    refusal(guarded, "GET", "/api/v1/namespaces/kube-system/pods", *AS_ANN)
    refusal(guarded, "GET", "/api/v1/pods", *AS_ANN)


def test_an_account_without_a_namespace_is_of_the_bindings() -> None:
    guarded = Guarded()
    token = guarded.account()
    guarded.grant({"kind": "ServiceAccount", "name": "relay"}, rule(["list"], ["pods"]), namespace="default")
    guarded.admitted("GET", "/api/v1/namespaces/default/pods", bearer(token))


def test_a_role_that_changes_counts_from_then_on() -> None:
    guarded = Guarded()
    guarded.grant(ANN, rule(["list"], ["pods"]))
    guarded.admitted("GET", "/api/v1/pods", *AS_ANN)
    role = guarded.world.objects.get("clusterroles", None, "one")
    guarded.world.objects.update("clusterroles", role | {"rules": []})
    refusal(guarded, "GET", "/api/v1/pods", *AS_ANN)


@pytest.mark.parametrize(
    ("method", "path", "said"),
    [
        (
            "GET",
            "/api/v1/pods",
            'pods is forbidden: User "ann" cannot list resource "pods" in API group "" at the cluster scope',
        ),
        (
            "GET",
            "/api/v1/namespaces/team/pods/one/log",
            (
                'pods "one" is forbidden: User "ann" cannot get resource "pods/log" in API group "" '
                'in the namespace "team"'
            ),
        ),
        (
            "POST",
            "/apis/jobset.x-k8s.io/v1alpha2/namespaces/team/jobsets",
            (
                'jobsets.jobset.x-k8s.io is forbidden: User "ann" cannot create resource "jobsets" '
                'in API group "jobset.x-k8s.io" in the namespace "team"'
            ),
        ),
        ("GET", "/metrics", 'forbidden: User "ann" cannot get path "/metrics"'),
    ],
)
def test_a_refusal_has_the_originals_words(method: str, path: str, said: str) -> None:
    assert refusal(Guarded(), method, path, *AS_ANN).message == said


def test_a_refusal_says_what_it_is_about() -> None:
    refused = refusal(Guarded(), "GET", "/apis/batch/v1/namespaces/team/jobs/work", *AS_ANN)
    assert refused.status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'jobs.batch "work" is forbidden: User "ann" cannot get resource "jobs" in API group "batch" '
        'in the namespace "team"',
        "reason": "Forbidden",
        "details": {"name": "work", "group": "batch", "kind": "jobs"},
        "code": 403,
    }


def test_a_binding_to_nothing_is_mentioned() -> None:
    guarded = Guarded()
    guarded.grant(ANN, rule(["list"], ["pods"]))
    guarded.world.objects.delete("clusterroles", None, "one")
    why = ': RBAC: clusterrole.rbac.authorization.k8s.io "one" not found'
    assert refusal(guarded, "GET", "/api/v1/pods", *AS_ANN).message.endswith(why)


def test_what_is_not_served_is_refused_all_the_same() -> None:
    refusal(Guarded(), "GET", "/apis/apps/v1/namespaces/team/deployments/relay", *AS_ANN)


def test_a_master_may_do_all() -> None:
    for method, path in (("DELETE", "/api/v1/nodes"), ("POST", "/local/faults"), ("GET", "/metrics")):
        Guarded().admitted(method, path, bearer(ADMINISTRATOR))
        Guarded().admitted(method, path, secure=False)


@pytest.mark.parametrize("path", ["/api", "/api/v1", "/apis", "/apis/batch/v1", "/openapi/v3", "/version"])
def test_whoever_is_known_may_discover(path: str) -> None:
    Guarded().admitted("GET", path, *AS_ANN)
    if path != "/version":
        refused = refusal(Guarded(), "GET", path)
        assert refused.message == f'forbidden: User "system:anonymous" cannot get path "{path}"'
