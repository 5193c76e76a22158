"""Preflight inside a self-managed cluster, by a real kubectl and API server: what it lacks, until its remedies ran."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from infra.preflight import kubectl as asking
from infra.preflight.findings import Finding, Severity
from infra.preflight.kubectl import Kubectl
from infra.preflight.manifests import FOLDER, manifests
from infra.preflight.questions import of_api_server
from tests.builders import joining_by_kubeadm
from tests.infra.compute.test_device_plugin import EXAMPLE
from tests.infra.relay.manifests import built
from tests.kubernetes.cluster import Cluster, Json
from tpu_slices.domain.model.clusters import PoolSettings
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

SERVER = "10.0.0.2:6443"
NAMESPACE: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tpu-slice-provisioner"}}
"""Other tests of this cluster put things into it, and leave it there."""
NODE: Json = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "for-relay", "labels": {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}},
}
NETWORK: Json = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "a-network", "namespace": "kube-system"},
    "spec": {
        "selector": {"matchLabels": {"app": "network"}},
        "template": {
            "metadata": {"labels": {"app": "network"}},
            "spec": {
                "containers": [{"name": "agent", "image": "network"}],
                "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}],
                "volumes": [{"name": "cni", "hostPath": {"path": "/etc/cni/net.d"}}],
            },
        },
    },
}
INFO: Json = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "cluster-info", "namespace": "kube-public"},
    "data": {"kubeconfig": yaml.safe_dump({"clusters": [{"cluster": {"server": f"https://{SERVER}"}}]})},
}
FOR_ANYBODY: list[Json] = [
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "cluster-info-is-read", "namespace": "kube-public"},
        "rules": [
            {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["cluster-info"], "verbs": ["get"]}
        ],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "cluster-info-is-read", "namespace": "kube-public"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "cluster-info-is-read"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:anonymous"}],
    },
]
READY = '{"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Test", "message": "it is"}]}}'


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let preflight wait for the API server as long as tests do."""
    monkeypatch.setattr(asking, "TIMEOUT", int(PATIENCE_SECONDS))


def found(cluster: Cluster, kubeconfig: Path | None = None) -> list[Finding]:
    """Return what preflight finds inside a cluster that kubectl reaches with a kubeconfig."""
    kubectl = Kubectl((str(cluster.program), "--kubeconfig", str(kubeconfig or cluster.plane.kubeconfig)))
    settings = joining_by_kubeadm()
    assert settings.pools.compute is not None
    compute = replace(settings.pools.compute, kubernetes=None)
    return list(of_api_server(kubectl, replace(settings, pools=PoolSettings(compute=compute)), tuple(manifests())))


def applied(cluster: Cluster, *objects: Json) -> None:
    done = cluster.apply("-f", "-", stdin=yaml.safe_dump_all(objects))
    assert done.code == 0, done.error


@pytest.fixture
def bare(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster that has JobSet, the relay's namespace, and nothing of what this test adds, nor afterwards."""
    assert cluster.apply("-f", "-", stdin=yaml.safe_dump(NAMESPACE)).code == 0
    _without_what_is_added(cluster)
    yield cluster
    _without_what_is_added(cluster)


def _without_what_is_added(cluster: Cluster) -> None:
    added = yaml.safe_dump_all([NODE, NETWORK, INFO, *FOR_ANYBODY, *built(EXAMPLE)])
    cluster.unpin()
    for objects in (["-f", "-"], ["-f", str(FOLDER / "job-environment.yaml")]):
        deleted = cluster.kubectl("delete", "--ignore-not-found", *objects, stdin=added)
        assert deleted.code == 0, deleted.error


def test_a_bare_cluster_lacks_each_thing_and_has_it_once_the_remedies_ran(bare: Cluster) -> None:
    missing = until(lambda: lacking(bare), "what a test before it added to go")
    for said in (
        "No node takes the relay",
        "There is no TPU device plugin",
        "No DaemonSet mounts /etc/cni/net.d",
        "Jobs of several hosts get no environment",
        "Pods are not pinned to slices",
        "cluster-info cannot be read without credentials",
    ):
        assert [message for message in missing if said in message], (said, missing)

    for each in ("job-environment.yaml", "admission.yaml"):
        assert bare.apply("-f", str(FOLDER / each)).code == 0
    applied(bare, NODE, NETWORK, INFO, *FOR_ANYBODY, *built(EXAMPLE))
    assert bare.kubectl("patch", "node", "for-relay", "--subresource=status", "-p", READY).code == 0
    until(lambda: len(found(bare)) == 1, "a node without the taint of one that is not ready")
    [kept_off] = found(bare)
    assert kept_off.severity is Severity.ERROR
    assert "kube-system/a-network does not tolerate the taint google.com/tpu" in kept_off.message
    _, *patch = shlex.split(kept_off.remedies[0])
    assert bare.kubectl(*patch).code == 0
    until(lambda: found(bare) == [], "nothing to be found any more")


def lacking(bare: Cluster) -> list[str]:
    """Return what preflight says, once that is as much as it says of a bare cluster."""
    missing = [finding.message for finding in found(bare)]
    return missing if len(missing) == 6 else []


def test_where_kubectl_reaches_no_api_server_that_is_all_it_says(bare: Cluster, tmp_path: Path) -> None:
    elsewhere = tmp_path / "kubeconfig"
    known = yaml.safe_load(bare.plane.kubeconfig.read_text())
    for each in known["clusters"]:
        each["cluster"]["server"] = "https://127.0.0.1:1"
    elsewhere.write_text(yaml.safe_dump(known))
    [unreachable] = found(bare, elsewhere)
    assert "The API server does not answer" in unreachable.message
    assert "(--context names another one)" in unreachable.message
