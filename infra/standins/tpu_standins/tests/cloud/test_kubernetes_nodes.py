"""Nodes through the official client, against a small API server."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tpu_standins.clients.labels import HOST
from tpu_standins.cloud.hosts import TERMINATION
from tpu_standins.cloud.kubernetes_nodes import KubernetesNodes
from tpu_standins.cloud.nodes import NodesUnavailableError
from tpu_standins.tests.gke.node_api import NodeApi, kubeconfig, serving

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]


def _a_node(**changes: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "host", "labels": {HOST: "true", "cloud.google.com/gke-nodepool": "pool"}},
        "spec": {
            "providerID": "gce://p/z/host",
            "taints": [{"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}],
        },
        "status": {
            "allocatable": {"cpu": "1", "google.com/tpu": "4"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
        **changes,
    }


@pytest.fixture
def api() -> NodeApi:
    return NodeApi()


@pytest.fixture
def nodes(api: NodeApi, tmp_path: Path) -> Iterator[KubernetesNodes]:
    with serving(api) as url, closing(KubernetesNodes(kubeconfig(url, tmp_path / "kubeconfig"))) as connected:
        yield connected


def test_a_node_is_registered_whole(api: NodeApi, nodes: KubernetesNodes) -> None:
    nodes.register(_a_node())
    assert api.nodes == {"host": _a_node()}


def test_a_node_that_stands_already_is_made_like_it(api: NodeApi, nodes: KubernetesNodes) -> None:
    nodes.register(_a_node(status={"conditions": [{"type": "Ready", "status": "False"}]}))
    nodes.register(_a_node())
    assert api.nodes == {"host": _a_node()}


def test_a_silent_kubelet_is_unknown_and_one_that_is_gone_does_not_come_back(
    api: NodeApi, nodes: KubernetesNodes
) -> None:
    nodes.register(_a_node())
    nodes.silence("host")
    assert nodes.standing() == {"host": "Unknown"}
    nodes.remove("host")
    nodes.silence("host")
    assert not api.nodes


def test_an_update_changes_spec_and_status(api: NodeApi, nodes: KubernetesNodes) -> None:
    nodes.register(_a_node())
    nodes.update(
        _a_node(
            spec={"unschedulable": True, "taints": []}, status={"conditions": [{"type": "Ready", "status": "False"}]}
        )
    )
    assert api.nodes["host"]["spec"]["unschedulable"] is True
    assert api.nodes["host"]["status"]["conditions"] == [{"type": "Ready", "status": "False"}]


def test_an_update_registers_a_node_that_somebody_deleted(api: NodeApi, nodes: KubernetesNodes) -> None:
    nodes.update(_a_node())
    assert list(api.nodes) == ["host"]


def test_an_update_keeps_the_taints_of_others_and_moves_the_notice_alone(api: NodeApi, nodes: KubernetesNodes) -> None:
    nodes.register(_a_node())
    own, notice = _a_node()["spec"]["taints"], {"key": TERMINATION, "effect": "NoSchedule"}
    others = [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]
    api.nodes["host"]["spec"]["taints"] = [*own, *others]
    nodes.update(_a_node(spec={"taints": [*own, notice]}))
    assert api.nodes["host"]["spec"]["taints"] == [*own, *others, notice]
    nodes.update(_a_node(spec={"taints": own}))
    assert api.nodes["host"]["spec"]["taints"] == [*own, *others]


@pytest.mark.parametrize("evictions", [True, False], ids=["by eviction", "by deletion where there is no eviction"])
def test_a_drained_node_loses_its_pods_and_no_others(api: NodeApi, nodes: KubernetesNodes, evictions: bool) -> None:
    api.evictions = evictions
    nodes.register(_a_node())
    api.bind("mine", "host")
    api.bind("another", "elsewhere")
    nodes.drain("host")
    assert (list(api.nodes), list(api.pods)) == (["host"], ["another"])
    assert (api.evicted_pods, api.deleted_pods) == ((["mine"], []) if evictions else ([], ["mine"]))


def test_the_pods_of_daemonsets_are_left_to_go_with_their_node(api: NodeApi, nodes: KubernetesNodes) -> None:
    nodes.register(_a_node())
    api.bind("agent", "host", owner="DaemonSet")
    nodes.drain("host")
    assert list(api.pods) == ["agent"]


def test_a_removed_node_leaves_its_pods_to_the_cluster(api: NodeApi, nodes: KubernetesNodes) -> None:
    nodes.register(_a_node())
    api.bind("mine", "host")
    nodes.remove("host")
    assert (api.nodes, list(api.pods)) == ({}, ["mine"])


def test_removing_what_is_gone_is_fine(nodes: KubernetesNodes) -> None:
    nodes.remove("host")


def test_a_server_that_refuses_is_temporary(api: NodeApi, nodes: KubernetesNodes) -> None:
    api.refusing = True
    with pytest.raises(NodesUnavailableError):
        nodes.register(_a_node())


def test_a_server_that_is_not_there_is_temporary(api: NodeApi, tmp_path: Path) -> None:
    with serving(api) as url:
        where = kubeconfig(url, tmp_path / "kubeconfig")
    with closing(KubernetesNodes(where)) as gone, pytest.raises(NodesUnavailableError):
        gone.remove("host")


def test_a_server_that_returns_elsewhere_is_found_by_the_kubeconfig(api: NodeApi, tmp_path: Path) -> None:
    where = tmp_path / "kubeconfig"
    with serving(api) as url:
        kubeconfig(url, where)
    with closing(KubernetesNodes(where)) as nodes, serving(api) as url:
        kubeconfig(url, where)
        with pytest.raises(NodesUnavailableError):
            nodes.register(_a_node())
        nodes.register(_a_node())
    assert list(api.nodes) == ["host"]


def test_only_the_nodes_of_local_hosts_are_ours(api: NodeApi, nodes: KubernetesNodes) -> None:
    nodes.register(_a_node())
    for label in (HOST, "cloud.google.com/gke-nodepool"):
        api.nodes[label] = {"metadata": {"name": label, "labels": {label: "true"}}}
    assert nodes.standing() == {"host": "True"}
