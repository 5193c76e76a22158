"""The relay's roll-out on a real API server, by the build's script: all is real but gcloud and the wait for a pod."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.kubernetes.overlay import NAMESPACE, account_of, write
from tests.cluster.asking import path
from tests.infra.relay.manifests import SHARED, a_relay, deployed, the
from tests.infra.sources import ROOT
from tests.kubernetes.cluster import Cluster, Json
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

CLUSTER = "demo"
GCLOUD = """#!/usr/bin/env bash
cp {kubeconfig} "$KUBECONFIG"
"""
KUBECTL = """#!/usr/bin/env bash
[[ "$1" == rollout ]] || exec {kubectl} "$@"
"""
EARLIER = {"ServiceAccount": account_of(CLUSTER), "ClusterRoleBinding": "tpu-slice-provisioner-relay"}
"""What releases up to 0.1 applied under the same names in every cluster."""
PINNING = "mutatingadmissionpolicies,mutatingadmissionpolicybindings"


@dataclass(frozen=True)
class Stage:
    """A control plane, and the sources of the build with the overlay of one cluster."""

    cluster: Cluster
    folder: Path

    def roll_out(self, **environment: str) -> None:
        script = self.folder / "infra" / "kubernetes" / "roll-out.sh"
        done = subprocess.run(
            ["setpriv", "--pdeathsig", "TERM", script, CLUSTER, "other", "us-east5", "c"],
            cwd=self.folder,
            env={"PATH": f"{self.folder}:{os.environ['PATH']}", "HOME": str(self.folder), **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")

    def get(self, *what: str) -> Json:
        said = self.cluster.kubectl("get", "-o", "json", *what)
        assert said.code == 0, said.error
        found: Json = json.loads(said.out)
        return found

    def apply(self, *manifests: Any) -> None:
        said = self.cluster.apply("-f", "-", stdin=yaml.safe_dump_all(manifests))
        assert said.code == 0, said.error

    def await_checks(self) -> None:
        """Wait until the API server's controller has said what it thinks of our policies: that changes them."""
        ours = [each["metadata"]["name"] for each in SHARED if each["kind"] == "ValidatingAdmissionPolicy"]
        root = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
        policies = [f"{root}/{name}" for name in ours]
        until(
            lambda: all("typeChecking" in self.cluster.api.read(each).get("status", {}) for each in policies),
            "the check of types",
        )

    def accounts(self) -> set[str]:
        found = self.get("serviceaccounts", "-n", NAMESPACE)["items"]
        return {each["metadata"]["name"] for each in found} - {"default"}


@pytest.fixture(scope="module")
def stage(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Return a cluster to which the relay is rolled out."""
    folder = tmp_path_factory.mktemp("roll-out")
    shutil.copytree(ROOT / "infra" / "kubernetes", folder / "infra" / "kubernetes")
    write(a_relay(cluster=CLUSTER, version="local"), folder / "build" / "relay" / CLUSTER)
    for name, script in (("gcloud", GCLOUD), ("kubectl", KUBECTL)):
        text = script.format(kubeconfig=cluster.plane.kubeconfig, kubectl=cluster.program)
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    one = Stage(cluster, folder)
    one.roll_out()
    yield one
    cluster.kubectl("delete", "deployment,networkpolicy", "--all", "-n", NAMESPACE)
    cluster.unpin()


def test_what_earlier_releases_had_in_every_cluster_is_replaced(stage: Stage, tmp_path: Path) -> None:
    stage.cluster.kubectl("delete", "clusterrolebinding", "tpu-slice-provisioner-relay", "--ignore-not-found")
    now = deployed(a_relay(cluster=CLUSTER, version="local"), tmp_path)
    earlier = yaml.safe_load(
        yaml.safe_dump([the("Namespace", now), *(the(kind, now, EARLIER[kind]) for kind in EARLIER)])
    )
    the("ServiceAccount", earlier)["metadata"]["name"] = "relay"
    the("ClusterRoleBinding", earlier)["subjects"][0]["name"] = "relay"
    stage.apply(*earlier)
    before = stage.accounts()
    assert "relay" in before

    stage.roll_out()
    assert stage.accounts() == before - {"relay"} | {account_of(CLUSTER)}
    binding = stage.get("clusterrolebinding", "tpu-slice-provisioner-relay")
    assert [subject["name"] for subject in binding["subjects"]] == [account_of(CLUSTER)]


def test_a_second_roll_out_changes_nothing(stage: Stage, tmp_path: Path) -> None:
    kinds = ",".join(sorted({each["kind"] for each in deployed(a_relay(), tmp_path)} - {"Deployment", "Namespace"}))

    def versions() -> dict[str, str]:
        found = [*stage.get(kinds, "-n", NAMESPACE)["items"], *stage.get(PINNING)["items"]]
        return {each["metadata"]["uid"]: each["metadata"]["resourceVersion"] for each in found}

    stage.await_checks()
    first = versions()
    generation = stage.get("deployment", "relay", "-n", NAMESPACE)["metadata"]["generation"]
    stage.roll_out()
    assert versions() == first
    assert stage.get("deployment", "relay", "-n", NAMESPACE)["metadata"]["generation"] == generation


def test_its_pod_is_admitted_where_pods_with_privileges_are_not(stage: Stage) -> None:
    pods = path("pods", NAMESPACE)
    selected = {"labelSelector": "app.kubernetes.io/name=relay"}
    until(lambda: stage.cluster.api.read(pods, **selected)["items"], "the relay's pod")
    spec = stage.get("deployment", "relay", "-n", NAMESPACE)["spec"]["template"]["spec"]
    weaker: tuple[Json, ...] = ({"hostNetwork": True}, {"securityContext": {}})
    for weakened in weaker:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "x-"}, "spec": {**spec, **weakened}}
        reply = stage.cluster.post(f"/api/v1/namespaces/{NAMESPACE}/pods?dryRun=All", pod)
        assert reply.refused.startswith("403: ")
        assert 'violates PodSecurity "restricted' in reply.refused


def test_jobs_are_pinned_unless_that_is_said_to_be_off(stage: Stage) -> None:
    stage.roll_out(_ADMISSION="no")
    assert stage.get(PINNING)["items"] == []
    stage.roll_out(_ADMISSION="yes")
    made = {(each["kind"], each["metadata"]["name"]) for each in stage.get(PINNING)["items"]}
    names = ("tpu-slice-provisioner", "tpu-slice-provisioner-gangs")
    kinds = ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
    assert made == {(kind, name) for kind in kinds for name in names}


def test_no_field_is_unknown_and_nothing_is_warned_of(stage: Stage, tmp_path: Path) -> None:
    manifests = yaml.safe_dump_all(deployed(a_relay(cluster=CLUSTER, version="local"), tmp_path))
    said = stage.cluster.kubectl(
        "apply",
        "--server-side",
        "--dry-run=server",
        "--validate=strict",
        "--warnings-as-errors",
        "-f",
        "-",
        stdin=manifests,
    )
    assert (said.code, said.error) == (0, "")
