"""Namespaces, from the first to the last object in them."""

from __future__ import annotations

import pytest

from tests.cluster.asking import LIVE, done, path
from tests.cluster.builders import job, jobset, meta, pod
from tests.cluster.servers import Cluster, unique
from tests.waiting import until

pytestmark = LIVE


def test_nothing_is_created_in_a_namespace_that_is_not_there(cluster: Cluster) -> None:
    refused = cluster.api.post(path("events", "nowhere"), meta("one", namespace="nowhere") | {"involvedObject": {}})
    assert refused.refusal == (404, "NotFound")
    assert refused.body["details"]["kind"] == "namespaces"


def test_lists_of_a_namespace_that_is_not_there_are_empty(cluster: Cluster) -> None:
    assert cluster.api.read(path("pods", "nowhere"))["items"] == []


def test_it_goes_with_all_that_is_in_it(cluster: Cluster, namespace: str) -> None:
    for plural, obj in (("pods", pod()), ("jobs", job()), ("jobsets", jobset()), ("configmaps", meta("settings"))):
        cluster.api.create(path(plural, namespace), obj)
    answer = done(cluster.api.delete(path("namespaces", name=namespace)))
    assert (answer["kind"], answer["status"]["phase"]) == ("Namespace", "Terminating")
    until(lambda: cluster.api.get(path("namespaces", name=namespace)).code == 404, "its end")
    for plural in ("pods", "jobs", "jobsets", "configmaps"):
        assert cluster.api.read(path(plural, namespace))["items"] == []


def test_nothing_is_created_while_it_goes_and_the_refusal_says_why(cluster: Cluster, namespace: str) -> None:
    cluster.api.create(path("configmaps", namespace), meta("held", finalizers=["example.com/a"]))
    done(cluster.api.delete(path("namespaces", name=namespace)))
    refused = cluster.api.post(path("configmaps", namespace), meta("late"))
    assert refused.refusal == (403, "Forbidden")
    assert "NamespaceTerminating" in {each["reason"] for each in refused.body["details"]["causes"]}
    held = path("configmaps", namespace, "held")
    until(lambda: "deletionTimestamp" in cluster.api.read(held)["metadata"], "the deletion")
    done(cluster.api.patch(held, {"metadata": {"finalizers": None}}))
    until(lambda: cluster.api.get(path("namespaces", name=namespace)).code == 404, "its end")


@pytest.mark.parametrize("name", ["default", "kube-system"])
def test_the_first_namespaces_are_there_to_stay(cluster: Cluster, name: str) -> None:
    assert cluster.api.delete(path("namespaces", name=name)).refusal == (403, "Forbidden")


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-node-lease"])
def test_some_are_there_from_the_start(cluster: Cluster, name: str) -> None:
    until(lambda: cluster.api.get(path("namespaces", name=name)).code == 200, name)


def test_a_new_one_gets_an_account_for_its_pods(cluster: Cluster) -> None:
    name = unique("team")
    cluster.api.create(path("namespaces"), meta(name))
    account = path("serviceaccounts", name, "default")
    until(lambda: cluster.api.get(account).code == 200, "its default account")
