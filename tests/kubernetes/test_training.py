"""The namespace of the training environment on a real API server: its level of Pod Security, and the examples' pods.

The queues are not here: the definitions of Kueue's kinds are not part of this repository.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.examples.stories import TRAINING, jobsets_in
from tests.infra.environments.configuration.configured import configured, outputs_of
from tests.kubernetes.cluster import Cluster

pytestmark = [
    pytest.mark.emulators,
    pytest.mark.enable_socket,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed"),
]

Json = dict[str, Any]
PODS: dict[str, Json] = {
    f"{jobset['metadata']['name']}-{job['name']}": job["template"]["spec"]["template"]["spec"]
    for manifest in jobsets_in(TRAINING)
    for jobset in yaml.safe_load_all(manifest.read_text())
    for job in jobset["spec"]["replicatedJobs"]
}


@pytest.fixture(scope="module")
def namespace(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Make the namespace and its accounts as Terraform planned them."""
    outputs = outputs_of(tmp_path_factory.mktemp("infrastructure"))
    plan = configured(tmp_path_factory.mktemp("configuration"), outputs).plan
    [made] = plan.all("kubernetes_namespace_v1").values()
    name, labels = made["metadata"][0]["name"], made["metadata"][0]["labels"]
    assert cluster.post("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}}).object
    for account in plan.all("kubernetes_service_account_v1").values():
        metadata = {key: account["metadata"][0][key] for key in ("name", "annotations")}
        assert cluster.post(f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": metadata}).object
    yield name
    assert cluster.kubectl("delete", "namespace", name, "--wait=false").code == 0


def tried(cluster: Cluster, namespace: str, spec: Json) -> str:
    """Return why the API server refuses such a pod, or nothing."""
    body = {"metadata": {"name": "tried"}, "spec": spec}
    return cluster.post(f"/api/v1/namespaces/{namespace}/pods?dryRun=All&fieldValidation=Strict", body).refused


@pytest.mark.parametrize("name", PODS)
def test_a_pod_of_the_examples_may_run(cluster: Cluster, namespace: str, name: str) -> None:
    assert tried(cluster, namespace, PODS[name]) == ""


@pytest.mark.parametrize("more", [{"hostNetwork": True}, {"hostPID": True}])
def test_a_pod_that_is_as_much_as_its_node_may_not(cluster: Cluster, namespace: str, more: Json) -> None:
    assert 'violates PodSecurity "baseline' in tried(cluster, namespace, PODS["device-check-workers"] | more)
