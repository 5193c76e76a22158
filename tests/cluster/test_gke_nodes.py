"""The GKE stand-in's Nodes on an API server: it registers, updates, drains and removes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cluster.asking import LIVE, Answer, Json, done, path
from tests.cluster.builders import POOL, TPU, bound
from tests.cluster.servers import Cluster, unique
from tpu_standins.clients.labels import HOST
from tpu_standins.cloud.hosts import TERMINATION
from tpu_standins.cloud.kubernetes_nodes import KubernetesNodes
from tpu_standins.cloud.nodes import NodesUnavailableError
from tpu_standins.testing.waiting import until

pytestmark = LIVE

CHIPS = {"key": TPU, "value": "present", "effect": "NoSchedule"}
NOTICE = {"key": TERMINATION, "effect": "NoSchedule"}
READY = [{"type": "Ready", "status": "True"}]


def host(**changes: Any) -> Json:
    name = unique("host")
    manifest = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {POOL: "pool", HOST: "true"}},
        "spec": {"providerID": f"gce://p/z/{name}", "taints": [CHIPS]},
        "status": {"allocatable": {"cpu": "1", TPU: "4"}, "conditions": READY},
    }
    return {**manifest, **changes}


def done_at_last(act: Callable[[], None]) -> None:
    """Do something as the keeper of nodes does, who comes back after a conflict, or if the server was busy."""

    def tried() -> bool:
        try:
            act()
        except NodesUnavailableError:
            return False
        return True

    until(tried, "an answer that is no conflict")


@pytest.fixture
def nodes(cluster: Cluster) -> Iterator[KubernetesNodes]:
    connected = KubernetesNodes(cluster.kubeconfig)
    yield connected
    connected.close()


def standing(cluster: Cluster, node: Json) -> Json:
    return cluster.api.read(path("nodes", name=node["metadata"]["name"]))


def taints(cluster: Cluster, node: Json) -> list[str]:
    """Return the keys of a node's taints, but for those of the node controller."""
    keys = [taint["key"] for taint in standing(cluster, node)["spec"].get("taints") or ()]
    return [key for key in keys if not key.startswith("node.kubernetes.io/")]


def test_a_node_is_registered_whole(cluster: Cluster, nodes: KubernetesNodes) -> None:
    node = host()
    done_at_last(lambda: nodes.register(node))
    found = standing(cluster, node)
    assert found["metadata"]["labels"].items() >= node["metadata"]["labels"].items()
    assert (found["spec"]["providerID"], taints(cluster, node)) == (node["spec"]["providerID"], [TPU])
    assert found["status"]["allocatable"].items() >= {TPU: "4"}.items()
    assert [each["status"] for each in found["status"]["conditions"] if each["type"] == "Ready"] == ["True"]


def test_a_silent_kubelet_is_unknown(nodes: KubernetesNodes) -> None:
    node = host()
    done_at_last(lambda: nodes.register(node))
    done_at_last(lambda: nodes.silence(node["metadata"]["name"]))
    assert nodes.standing()[node["metadata"]["name"]] == "Unknown"


def test_those_of_local_hosts_are_known_to_stand_and_no_others(cluster: Cluster, nodes: KubernetesNodes) -> None:
    mine, other = host(), host()
    done_at_last(lambda: nodes.register(mine))
    del other["metadata"]["labels"][HOST]
    cluster.api.create(path("nodes"), other)
    found = nodes.standing()
    assert found[mine["metadata"]["name"]] == "True"
    assert other["metadata"]["name"] not in found


def test_one_that_stands_already_is_made_like_it(cluster: Cluster, nodes: KubernetesNodes) -> None:
    node = host(status={"conditions": [{"type": "Ready", "status": "False"}]})
    done_at_last(lambda: nodes.register(node))
    done_at_last(lambda: nodes.register(node | {"status": {"conditions": READY}}))
    conditions = {each["type"]: each["status"] for each in standing(cluster, node)["status"]["conditions"]}
    assert conditions["Ready"] == "True"


def test_an_update_changes_spec_and_status(cluster: Cluster, nodes: KubernetesNodes) -> None:
    node = host()
    done_at_last(lambda: nodes.register(node))
    spec = node["spec"] | {"unschedulable": True}
    status = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
    done_at_last(lambda: nodes.update(node | {"spec": spec, "status": status}))
    found = standing(cluster, node)
    assert found["spec"]["unschedulable"] is True
    assert {each["type"]: each["status"] for each in found["status"]["conditions"]}["Ready"] == "Unknown"


def test_an_update_registers_one_that_somebody_deleted(cluster: Cluster, nodes: KubernetesNodes) -> None:
    node = host()
    done_at_last(lambda: nodes.update(node))
    assert standing(cluster, node)["spec"]["providerID"] == node["spec"]["providerID"]


def test_an_update_keeps_the_taints_of_others_and_moves_the_notice_alone(
    cluster: Cluster, nodes: KubernetesNodes
) -> None:
    node = host()
    done_at_last(lambda: nodes.register(node))
    where = path("nodes", name=node["metadata"]["name"])
    until(lambda: taints(cluster, node) == [TPU], "the node's own taint")
    others = [*standing(cluster, node)["spec"]["taints"], {"key": "example.com/mine", "effect": "NoExecute"}]
    done(cluster.api.patch(where, {"spec": {"taints": others}}))
    for noticed in (True, False):
        spec = node["spec"] | {"taints": [CHIPS, NOTICE] if noticed else [CHIPS]}
        done_at_last(lambda: nodes.update(node | {"spec": spec}))  # noqa: B023 - at once
        assert taints(cluster, node) == [TPU, "example.com/mine", *([TERMINATION] if noticed else [])]


def ends(pod: Answer) -> bool:
    """Return whether a pod is being deleted, or is gone already: kubelets are fast."""
    return pod.code == 404 or "deletionTimestamp" in done(pod)["metadata"]


def test_a_drained_node_loses_its_pods_and_no_others(cluster: Cluster, nodes: KubernetesNodes, namespace: str) -> None:
    one, other = host(), host()
    for name, node in (("mine", one), ("another", other)):
        done_at_last(lambda: nodes.register(node))  # noqa: B023 - at once
        cluster.api.create(path("pods", namespace), bound(name, node["metadata"]["name"]))
    done_at_last(lambda: nodes.drain(one["metadata"]["name"]))
    assert ends(cluster.api.get(path("pods", namespace, "mine")))
    assert not ends(cluster.api.get(path("pods", namespace, "another")))


def test_removing_one_is_done_once_or_twice(cluster: Cluster, nodes: KubernetesNodes) -> None:
    node = host()
    done_at_last(lambda: nodes.register(node))
    name = node["metadata"]["name"]
    for _ in range(2):
        done_at_last(lambda: nodes.remove(name))
        until(lambda: cluster.api.get(path("nodes", name=name)).code == 404, "its end")


def test_one_that_is_refused_comes_later(nodes: KubernetesNodes) -> None:
    with pytest.raises(NodesUnavailableError):
        nodes.register(host(metadata={"name": "Upper"}))
