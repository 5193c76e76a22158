"""TPUNodeGroups, whose CustomResourceDefinition the relay's manifests for a self-managed cluster bring."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.asking import LIVE, Json, done, path
from tests.cluster.servers import PATIENT, REAL_ALONE, Cluster
from tests.node_groups import SAMPLES, changed, crd, two_hosts
from tpu_standins.testing.waiting import until

pytestmark = LIVE

FINALIZER = "example.com/held"
CONDITION = {"type": "Ready", "status": "False", "reason": "Provisioning", "lastTransitionTime": "2026-01-01T00:00:00Z"}


def where(namespace: str, name: str = "", part: str = "") -> str:
    root = f"/apis/tpu.google.com/v1alpha1/namespaces/{namespace}/tpunodegroups"
    return "/".join(filter(None, (root, name, part)))


@pytest.fixture(scope="module")
def serving() -> set[str]:
    return set()


@pytest.fixture
def namespace(cluster: Cluster, namespace: str, serving: set[str]) -> str:
    """The namespace of a test, on a server that serves the kind."""
    if cluster.name not in serving:
        cluster.api.create(path("customresourcedefinitions"), crd())
        tried = of(namespace, two_hosts())
        until(lambda: cluster.api.post(where(namespace), tried, dryRun="All").code == 201, "the kind to be served")
        cluster.knows("tng")
        serving.add(cluster.name)
    return namespace


def of(namespace: str, group: Json) -> Json:
    return group | {"metadata": group["metadata"] | {"namespace": namespace}}


def conditions(*true: str, **ready: Any) -> Json:
    others = [CONDITION | {"type": each, "status": "True", "reason": "Ready", "message": ""} for each in true]
    return {"status": {"conditions": [CONDITION | {"message": "so"} | ready, *others], "nodeSummary": {"ready": 1}}}


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_manifest_of_its_users_is_applied_as_it_is(cluster: Cluster, namespace: str, sample: str) -> None:
    said = cluster.kubectl("apply", "-f", "-", stdin=of(namespace, SAMPLES[sample]))
    assert (said.code, said.out) == (0, f"tpunodegroup.tpu.google.com/{SAMPLES[sample]['metadata']['name']} created\n")


def test_kubectl_shows_its_shape_and_how_far_it_is(cluster: Cluster, namespace: str) -> None:
    group = two_hosts("shown")
    cluster.api.create(where(namespace), of(namespace, group))
    done(cluster.api.patch(where(namespace, "shown", "status"), conditions()))
    said = cluster.kubectl("get", "tng", "-n", namespace)
    header, row = (line.split() for line in said.out.splitlines())
    assert header == ["NAME", "TOPOLOGY", "NODES", "USABLE", "READY", "REASON", "AGE"]
    assert row[:6] == ["shown", "2x2x2", "2", "1", "False", "Provisioning"]


def test_who_waits_for_it_is_told(cluster: Cluster, namespace: str) -> None:
    cluster.api.create(where(namespace), of(namespace, two_hosts("awaited")))
    done(cluster.api.patch(where(namespace, "awaited", "status"), conditions(status="True", reason="Ready")))
    waiting = ("wait", "tng/awaited", "-n", namespace, "--for=condition=Ready", PATIENT)
    assert cluster.kubectl(*waiting).code == 0


def test_its_status_is_written_apart_from_its_spec(cluster: Cluster, namespace: str) -> None:
    made = cluster.api.create(where(namespace), of(namespace, two_hosts("apart")) | conditions())
    assert "status" not in made
    written = done(cluster.api.patch(where(namespace, "apart", "status"), conditions() | {"spec": {"nodeCount": 3}}))
    assert (written["status"]["nodeSummary"], written["spec"]["nodeCount"]) == ({"ready": 1}, 2)
    assert written["metadata"]["generation"] == 1


def test_it_stays_until_who_holds_it_lets_it_go(cluster: Cluster, namespace: str) -> None:
    cluster.api.create(where(namespace), of(namespace, two_hosts("held")))
    done(cluster.api.patch(where(namespace, "held"), {"metadata": {"finalizers": [FINALIZER]}}))
    going = done(cluster.api.delete(where(namespace, "held")))
    assert going["metadata"]["deletionTimestamp"]
    assert going["metadata"]["generation"] == 2
    done(cluster.api.patch(where(namespace, "held"), {"metadata": {"finalizers": None}}))
    assert cluster.api.get(where(namespace, "held")).code == 404


@REAL_ALONE
def test_its_rules_are_checked(cluster: Cluster, namespace: str) -> None:
    """Ours says of each write that it checks none: infra/standins/tpu_standins/tests/embedded/test_limits.py."""
    refused = cluster.api.post(where(namespace), of(namespace, changed(two_hosts(), targetSizePolicyMode="INDIVIDUAL")))
    assert refused.refusal == (422, "Invalid")
    assert refused.warnings == ()
