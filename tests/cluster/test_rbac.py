"""What an account may: what it was granted, soon after it was, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.accounts import GROUP, Account, account, rule
from tests.cluster.asking import LIVE, Json, path
from tests.cluster.builders import pod
from tests.cluster.servers import Cluster
from tpu_standins.testing.waiting import until

pytestmark = LIVE


@pytest.fixture
def relay(cluster: Cluster, namespace: str) -> Iterator[Account]:
    made = account(cluster, namespace)
    yield made
    made.api.close()


def code(relay: Account, verb: str, where: str) -> int:
    methods = {"get": "GET", "list": "GET", "create": "POST", "patch": "PATCH", "delete": "DELETE", "update": "PUT"}
    body: Json | None = {} if verb in {"create", "patch", "update"} else None
    kind = "application/merge-patch+json" if verb == "patch" else "application/json"
    return relay.api.ask(methods[verb], where, body, kind=kind, dryRun="All").code


def allowed(relay: Account, verb: str, where: str) -> None:
    until(lambda: code(relay, verb, where) != 403, f"{verb} {where} to be allowed")


PODS, POD, LOG = (
    "/api/v1/namespaces/{ns}/pods",
    "/api/v1/namespaces/{ns}/pods/one",
    "/api/v1/namespaces/{ns}/pods/one/log",
)
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{ns}/jobsets"
ALL_PODS, NODES = "/api/v1/pods", "/api/v1/nodes"
CASES: dict[str, tuple[Json, tuple[str, str], tuple[tuple[str, str], ...]]] = {
    "a verb": (rule("list", "pods"), ("list", PODS), (("get", POD), ("create", PODS), ("list", NODES))),
    "all verbs": (rule("*", "pods"), ("delete", POD), (("get", LOG), ("list", JOBSETS))),
    "a resource of a group": (rule("list", "jobsets", "jobset.x-k8s.io"), ("list", JOBSETS), (("list", PODS),)),
    "all groups": (rule("list", "jobsets", "*"), ("list", JOBSETS), (("list", PODS),)),
    "all resources": (rule("get", "*"), ("get", LOG), (("list", PODS),)),
    "a subresource": (rule("get", "pods/log"), ("get", LOG), (("get", POD),)),
    "a name": (rule("get,list", "pods", resourceNames=["one"]), ("get", POD), (("list", PODS), ("get", POD + "-more"))),
    "a path": (
        {"nonResourceURLs": ["/metrics", "/logs/*"], "verbs": ["get"]},
        ("get", "/metrics"),
        (("list", PODS), ("get", "/configz")),
    ),
}
"""What is granted; a request that is allowed by it; requests that are not."""


@pytest.mark.parametrize("case", CASES)
def test_an_account_may_what_a_rule_names_and_nothing_else(relay: Account, case: str) -> None:
    granted, (verb, where), others = CASES[case]
    assert code(relay, verb, where.format(ns=relay.namespace)) == 403
    relay.grant(granted)
    allowed(relay, verb, where.format(ns=relay.namespace))
    assert {code(relay, *other[:1], other[1].format(ns=relay.namespace)) for other in others} == {403}


@pytest.mark.parametrize("subject", ["user", "accounts of the namespace", "all accounts"])
def test_a_subject_is_a_user_or_a_group_of_accounts(relay: Account, subject: str) -> None:
    kinds: dict[str, Json] = {
        "user": {"kind": "User", "name": relay.user},
        "accounts of the namespace": {"kind": "Group", "name": f"system:serviceaccounts:{relay.namespace}"},
        "all accounts": {"kind": "Group", "name": "system:serviceaccounts"},
    }
    relay.grant(
        rule("get", "persistentvolumes", resourceNames=[relay.namespace]), subject=kinds[subject] | {"apiGroup": GROUP}
    )
    allowed(relay, "get", path("persistentvolumes", name=relay.namespace))


def test_a_role_of_a_namespace_ends_at_its_border(cluster: Cluster, relay: Account) -> None:
    other = cluster.namespace()
    relay.grant(rule("list", "pods"), within=relay.namespace)
    allowed(relay, "list", path("pods", relay.namespace))
    assert (code(relay, "list", path("pods", other)), code(relay, "list", ALL_PODS)) == (403, 403)


def test_what_is_taken_back_is_refused_soon(cluster: Cluster, relay: Account) -> None:
    relay.grant(rule("list", "pods"))
    allowed(relay, "list", ALL_PODS)
    bindings = cluster.api.read(path("clusterrolebindings"))["items"]
    [mine] = [each for each in bindings if relay.namespace in {s.get("namespace") for s in each.get("subjects", ())}]
    assert cluster.api.delete(path("clusterrolebindings", name=mine["metadata"]["name"])).code == 200
    until(lambda: code(relay, "list", ALL_PODS) == 403, "the end of the right")


def test_a_refusal_says_who_may_not_do_what(relay: Account) -> None:
    refused = relay.api.get(NODES)
    assert refused.refusal == (403, "Forbidden")
    assert f'User "{relay.user}" cannot list resource "nodes" in API group ""' in refused.body["message"]


def test_a_watch_needs_a_right_of_its_own(relay: Account) -> None:
    relay.grant(rule("list", "pods"))
    allowed(relay, "list", ALL_PODS)
    assert relay.api.get(ALL_PODS, watch="true", timeoutSeconds=1).refusal == (403, "Forbidden")


def test_a_role_that_is_referred_to_stays_the_same(cluster: Cluster, relay: Account) -> None:
    relay.grant(rule("list", "pods"), within=relay.namespace)
    [bound] = cluster.api.read(path("rolebindings", relay.namespace))["items"]
    where = path("rolebindings", relay.namespace, bound["metadata"]["name"])
    other = {"roleRef": bound["roleRef"] | {"name": "other"}}
    assert cluster.api.patch(where, other).refusal == (422, "Invalid")


def test_everybody_reads_versions_and_what_is_served(relay: Account) -> None:
    assert {relay.api.get(where).code for where in ("/version", "/api", "/apis", "/apis/batch/v1", "/readyz")} == {200}


def test_the_administrator_may_everything(cluster: Cluster, namespace: str) -> None:
    assert cluster.api.post(path("pods", namespace), pod()).code == 201
