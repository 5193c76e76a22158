"""Triton's manifests on a real API server, which knows every field of what is plain Kubernetes.

The kinds of the mesh and of Managed Prometheus are not here: their definitions are not part of this repository.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from infra.environments.triton.serving.overlay import Serving, Version, write
from tests.infra.relay.manifests import Json, built
from tests.kubernetes.cluster import Cluster

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

NAMESPACE = "vision"
ABSENT = {"Gateway", "VirtualService", "DestinationRule", "PeerAuthentication", "PodMonitoring"}
"""The kinds that this API server does not have."""


@dataclass(frozen=True)
class Applied:
    cluster: Cluster
    manifests: list[Json]
    """Without those of the absent kinds."""
    warnings: str
    """Of the API server."""


def apply(cluster: Cluster, manifests: list[Json]) -> str:
    """Apply manifests as the build does; return what the API server warns of."""
    options = ("--server-side", "--validate=strict", "--filename", "-")
    said = cluster.kubectl("apply", *options, stdin=together(manifests))
    assert said.code == 0, said.error
    return said.error


def together(manifests: list[Json]) -> str:
    return orjson.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}).decode()


@pytest.fixture(scope="module")
def applied(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Applied]:
    """Apply an environment with a canary, as its build does."""
    folder: Path = tmp_path_factory.mktemp("triton")
    models = Version(repository="gs://shop-models/model_repository")
    canary = Version(repository="gs://shop-models/next")
    ranges = ("192.0.2.0/24",)
    serving = Serving(
        project="shop", stable=models, canary=canary, canary_weight=5, namespace=NAMESPACE, source_ranges=ranges
    )
    write(serving, folder)
    manifests = built(folder)
    assert {each["kind"] for each in manifests} >= ABSENT
    plain = [each for each in manifests if each["kind"] not in ABSENT]
    yield Applied(cluster, plain, apply(cluster, plain))
    assert cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false").code == 0


def test_every_field_is_known_and_every_value_is_taken(applied: Applied) -> None:
    assert applied.warnings == ""
    said = applied.cluster.kubectl("get", "--filename", "-", stdin=together(applied.manifests))
    assert (said.code, said.error) == (0, "")


@pytest.mark.parametrize("deployment", ["triton-server-stable", "triton-server-canary", "istio-ingressgateway"])
def test_its_pods_are_admitted_where_pod_security_is_restricted(applied: Applied, deployment: str) -> None:
    """They are before the mesh adds its containers, whose settings are the mesh's."""
    namespace = f"restricted-{deployment}"
    enforce = {"pod-security.kubernetes.io/enforce": "restricted"}
    metadata = {"name": namespace, "labels": enforce}
    assert not applied.cluster.post("/api/v1/namespaces", {"metadata": metadata}).refused
    [template] = (
        each["spec"]["template"]
        for each in applied.manifests
        if each["metadata"]["name"] == deployment and each["kind"] == "Deployment"
    )
    account = {"metadata": {"name": template["spec"]["serviceAccountName"]}}
    assert not applied.cluster.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", account).refused
    pod = {"metadata": {**template["metadata"], "name": "one"}, "spec": template["spec"]}
    assert not applied.cluster.post(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod).refused
    assert applied.cluster.kubectl("delete", "namespace", namespace, "--wait=false").code == 0


def test_what_is_applied_again_leaves_the_gateways_size_to_its_autoscaler(applied: Applied) -> None:
    name = ("deployment/istio-ingressgateway", "--namespace", NAMESPACE)
    assert applied.cluster.kubectl("scale", *name, "--replicas", "4").code == 0
    apply(applied.cluster, applied.manifests)
    assert applied.cluster.kubectl("get", *name, "-o", "jsonpath={.spec.replicas}").out == "4"
