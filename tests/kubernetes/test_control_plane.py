"""A control plane of Kubernetes' own programs, on this machine."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.kubernetes.cluster import USER, Cluster, Json
from tpu_standins.clients.api import Api
from tpu_standins.clients.cache import Cache, watching
from tpu_standins.clients.errors import ApiError
from tpu_standins.kubernetes.programs import NAMES, Programs
from tpu_standins.kubernetes.versions import numbers, pinned
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.processes import ProgramFailed
from tpu_standins.testing.leftovers import running_in, start_module
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

NAMESPACES = "/api/v1/namespaces"
PODS = f"{NAMESPACES}/default/pods"
NODE: Json = {
    "metadata": {"name": "host", "labels": {"only": "this"}},
    "status": {
        "capacity": {"cpu": "1", "memory": "1Gi", "pods": "2"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}
SERVICE: Json = {"metadata": {"name": "one"}, "spec": {"clusterIP": "None"}}
POD: Json = {
    "metadata": {"name": "pod"},
    "spec": {
        "containers": [{"name": "x", "image": "x:1"}],
        "nodeSelector": {"only": "this"},
        "tolerations": [{"operator": "Exists"}],
    },
}


def test_it_serves_the_version_of_its_programs(cluster: Cluster, programs: Programs) -> None:
    version = cluster.get("/version")
    assert version
    assert version["gitVersion"] == programs.version
    assert numbers(programs.version)[:2] == numbers(pinned())[:2]


def test_kubectl_reaches_it_as_its_administrator(cluster: Cluster) -> None:
    said = cluster.kubectl("auth", "whoami", "-o", "json")
    assert json.loads(said.out)["status"]["userInfo"]["groups"] == ["system:masters", "system:authenticated"]


def test_another_user_is_known_and_has_no_rights_of_its_own(cluster: Cluster, tmp_path: Path) -> None:
    kubeconfig = cluster.plane.write_kubeconfig(USER, tmp_path / "kubeconfig")
    said = cluster.kubectl("auth", "whoami", "-o", "json", kubeconfig=kubeconfig)
    assert json.loads(said.out)["status"]["userInfo"]["username"] == USER.name
    refused = cluster.kubectl("get", "pods", kubeconfig=kubeconfig)
    assert (refused.code, "Forbidden" in refused.error) == (1, True)


def test_its_secrets_are_readable_by_their_owner_only(cluster: Cluster) -> None:
    files = [path for path in cluster.plane.layout.folder.iterdir() if path.is_file()]
    assert len(files) >= 9
    assert {path.name for path in files if path.stat().st_mode & 0o077} == set()


def test_it_listens_on_loopback_only(cluster: Cluster) -> None:
    listening = [
        connection.laddr.ip
        for name in NAMES
        for connection in psutil.Process(cluster.child(name).process.pid).net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert set(listening) == {"127.0.0.1"}


@dataclass(frozen=True)
class Revived:
    """The control plane after a death of its API server, and a watch cache that was there before."""

    cluster: Cluster
    cache: Cache


@pytest.fixture(scope="module")
def revived(cluster: Cluster) -> Iterator[Revived]:
    """Kill the API server and start it again; meanwhile it is known to have exited, and not to answer."""
    with closing(Api.of(cluster.plane.kubeconfig)) as api, watching(api, ["services"]) as cache:
        assert cluster.post(NAMESPACES, {"metadata": {"name": "before"}}).object
        assert cluster.post(f"{NAMESPACES}/before/services", SERVICE).object
        killed = cluster.child("kube-apiserver")
        os.kill(killed.process.pid, signal.SIGKILL)
        assert killed.ended(within=PATIENCE_SECONDS)
        with pytest.raises(ProgramFailed, match="kube-apiserver exited"):
            cluster.processes.check()
        with pytest.raises(ApiError, match="the API server does not answer"):
            api.get("services", "before", "one")
        cluster.processes.end(killed)
        cluster.processes.wait_until_ready(*cluster.processes.start(killed.program))
        assert cluster.post(NAMESPACES, {"metadata": {"name": "after"}}).object
        assert cluster.post(f"{NAMESPACES}/after/services", SERVICE).object
        yield Revived(cluster, cache)


def test_a_killed_api_server_comes_back_with_its_objects_and_is_still_heard(revived: Revived) -> None:
    assert revived.cluster.get(f"{NAMESPACES}/before")
    account = f"{NAMESPACES}/after/serviceaccounts/default"
    until(lambda: revived.cluster.get(account), "the controllers' answer to a new namespace")


def test_a_watch_cache_goes_on_after_a_death_of_the_api_server(revived: Revived) -> None:
    def known() -> set[str]:
        return {each["metadata"]["namespace"] for each in revived.cache.stored("services")}

    until(lambda: {"before", "after"} <= known(), "the services")


def test_the_scheduler_binds_a_pod(cluster: Cluster) -> None:
    assert cluster.post("/api/v1/nodes", NODE).object
    assert cluster.post(PODS, POD).object

    def bound() -> bool:
        pod = cluster.get(f"{PODS}/pod")
        return pod is not None and pod["spec"].get("nodeName") == "host"

    until(bound, "a binding")


@pytest.mark.usefixtures("programs")
def test_no_process_is_left_when_the_parent_is_killed(tmp_path: Path) -> None:
    parent = start_module("tests.kubernetes.parent", tmp_path)
    assert parent.stdout
    assert parent.stdout.readline() == "ready\n", parent.communicate()[1]
    assert len(running_in(tmp_path)) == 1 + len(NAMES)
    parent.kill()
    parent.communicate()
    until(lambda: not running_in(tmp_path), "the end of all programs")
