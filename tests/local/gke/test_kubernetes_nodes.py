"""Nodes through the official client, against a small API server."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.local.gke.kubernetes_nodes import KubernetesNodes
from infra.local.gke.nodes import NodesUnavailableError
from tests.local.gke.node_api import NodeApi, serving

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]


def _a_node(**changes: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "host", "labels": {"cloud.google.com/gke-nodepool": "pool"}},
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
def url(api: NodeApi) -> Iterator[str]:
    with serving(api) as address:
        yield address


@pytest.fixture
def nodes(url: str) -> Iterator[KubernetesNodes]:
    connected = KubernetesNodes.at(url)
    yield connected
    connected.close()


def test_a_node_is_registered_whole(api: NodeApi, nodes: KubernetesNodes) -> None:
    nodes.register(_a_node())
    assert api.nodes == {"host": _a_node()}


def test_a_node_that_stands_already_is_made_like_it(api: NodeApi, nodes: KubernetesNodes) -> None:
    nodes.register(_a_node(status={"conditions": [{"type": "Ready", "status": "False"}]}))
    nodes.register(_a_node())
    assert api.nodes == {"host": _a_node()}


def test_an_update_changes_spec_and_status(api: NodeApi, nodes: KubernetesNodes) -> None:
    nodes.register(_a_node())
    nodes.update(_a_node(spec={"unschedulable": True}, status={"conditions": [{"type": "Ready", "status": "False"}]}))
    assert api.nodes["host"]["spec"]["unschedulable"] is True
    assert api.nodes["host"]["status"]["conditions"] == [{"type": "Ready", "status": "False"}]


def test_an_update_registers_a_node_that_somebody_deleted(api: NodeApi, nodes: KubernetesNodes) -> None:
    nodes.update(_a_node())
    assert list(api.nodes) == ["host"]


def test_a_removed_node_takes_its_pods_with_it_and_no_others(api: NodeApi, nodes: KubernetesNodes) -> None:
    nodes.register(_a_node())
    api.bind("mine", "host")
    api.bind("another", "elsewhere")
    nodes.remove("host")
    assert (api.nodes, api.deleted_pods, list(api.pods)) == ({}, ["mine"], ["another"])


def test_removing_what_is_gone_is_fine(nodes: KubernetesNodes) -> None:
    nodes.remove("host")


def test_a_server_that_refuses_is_temporary(api: NodeApi, nodes: KubernetesNodes) -> None:
    api.refusing = True
    with pytest.raises(NodesUnavailableError):
        nodes.register(_a_node())


def test_a_server_that_is_not_there_is_temporary(api: NodeApi) -> None:
    with serving(api) as url:
        gone = KubernetesNodes.at(url)
    with pytest.raises(NodesUnavailableError):
        gone.remove("host")
    gone.close()


def test_a_kubeconfig_says_where_too(api: NodeApi, url: str, tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    config.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "local", "cluster": {"server": url}}],
                "users": [{"name": "nobody", "user": {}}],
                "contexts": [{"name": "local", "context": {"cluster": "local", "user": "nobody"}}],
                "current-context": "local",
            }
        )
    )
    found = KubernetesNodes.from_kubeconfig(str(config))
    found.register(_a_node())
    found.close()
    assert list(api.nodes) == ["host"]
