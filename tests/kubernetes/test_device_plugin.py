"""The device plugin's manifests on a real API server, which knows every field of them, and its controllers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
import yaml

from tests.cluster.asking import Api, done, path
from tests.infra.compute.test_device_plugin import EXAMPLE
from tests.infra.relay.manifests import built
from tests.kubernetes.cluster import Cluster, Json
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

PODS = f"{path('pods', 'kube-system')}?labelSelector=k8s-app%3Dtpu-device-plugin"
LABELS = {"cloud.google.com/gke-tpu-accelerator": "tpu7x"}
TAINTS = [{"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}]


@pytest.fixture(scope="module")
def admin(cluster: Cluster) -> Iterator[Api]:
    manifests = yaml.safe_dump_all(built(EXAMPLE))
    applied = cluster.kubectl("apply", "--server-side", "--validate=strict", "-f", "-", stdin=manifests)
    assert (applied.code, applied.error) == (0, "")
    with closing(Api(cluster.plane.kubeconfig)) as api:
        yield api
        deleted = cluster.kubectl("delete", "--wait=false", "-f", "-", stdin=manifests)
        assert deleted.code == 0


def a_node(name: str, labels: Json) -> Json:
    return {"metadata": {"name": name, "labels": labels}, "spec": {"taints": TAINTS}}


def test_a_host_of_a_slice_gets_one_whatever_its_taints_and_other_nodes_none(admin: Api) -> None:
    for node in (a_node("plugin-host", LABELS), a_node("plugin-none", {})):
        admin.create(path("nodes"), node)

    def meant_for() -> list[str]:
        terms = [
            pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            for pod in admin.read(PODS)["items"]
        ]
        return [field["values"][0] for each in terms for field in each["nodeSelectorTerms"][0]["matchFields"]]

    try:
        until(lambda: meant_for() == ["plugin-host"], "the plugin's pod")
    finally:
        for name in ("plugin-host", "plugin-none"):
            done(admin.delete(path("nodes", name=name)))
