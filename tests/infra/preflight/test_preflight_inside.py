"""What the API server of a self-managed cluster says: what hosts need to join, and to be of use."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.preflight import __main__ as preflight
from infra.preflight.answers import Answer, Denied, Found, Missing, Unreachable
from infra.preflight.findings import Finding, Severity
from infra.preflight.inside import (
    daemon_set_findings,
    environment_findings,
    joining_findings,
    minor_of,
    reachable,
    relay_findings,
    version_findings,
)
from infra.preflight.kubectl import Kubectl
from infra.preflight.kubernetes import admission_versions, api_findings
from infra.preflight.manifests import manifests
from tests.builders import joining_by_kubeadm, self_managed
from tpu_slices.domain.model.clusters import ComputeSettings, Join

TPU = {"key": "google.com/tpu", "value": "present", "operator": "Equal", "effect": "NoSchedule"}
EVERYTHING = {"operator": "Exists"}
COMPUTE = ComputeSettings(image="i", join=Join.KUBEADM, control_plane="10.0.0.2", kubernetes="1.34")


def severities(findings: Any) -> list[Severity]:
    return [finding.severity for finding in findings]


def a_daemon_set(name: str, *tolerations: Any, image: str = "i", mounts: str = "") -> dict[str, Any]:
    pod = {
        "containers": [{"image": image}],
        "tolerations": [*tolerations],
        "volumes": [{"name": "v", "hostPath": {"path": mounts}}],
    }
    return {"metadata": {"name": name, "namespace": "kube-system"}, "spec": {"template": {"spec": pod}}}


PLUGIN = a_daemon_set("tpu-device-plugin", EVERYTHING)
NETWORK = a_daemon_set("flannel", TPU, mounts="/etc/cni/net.d/")


def found(*daemon_sets: Any) -> list[Finding]:
    return list(daemon_set_findings("own", Found({"items": [*daemon_sets]})))


def test_what_can_be_used_is_no_finding() -> None:
    assert list(reachable(Found({}))) == []
    assert list(version_findings(COMPUTE, 36)) == []
    assert found(PLUGIN, NETWORK, a_daemon_set("logs")) == []
    assert list(environment_findings(36, [Found({}), Found({})])) == []


@pytest.mark.parametrize("answer", [Denied("Forbidden"), Unreachable("refused"), Missing()])
def test_an_api_server_that_does_not_answer_is_told_with_where_to_ask(answer: Answer) -> None:
    [finding] = reachable(answer)
    assert finding.severity is Severity.ERROR
    assert "Run this where `kubectl get --raw /version` answers" in finding.message


@pytest.mark.parametrize(
    ("told", "minor"), [({"major": "1", "minor": "36"}, 36), ({"minor": "31+"}, 31), ({"minor": ""}, 0), ({}, 0)]
)
def test_the_minor_version_is_read_as_vendors_write_it(told: dict[str, str], minor: int) -> None:
    assert minor_of(told) == minor


@pytest.mark.parametrize(("minor", "fits"), [(33, False), (34, True), (37, True), (38, False)])
def test_kubelets_are_no_newer_than_the_api_server_and_not_much_older(minor: int, fits: bool) -> None:
    findings = list(version_findings(COMPUTE, minor))
    assert (findings == []) is fits
    if not fits:
        assert findings[0].remedies == (f'compute: {{kubernetes: "1.{minor}"}}',)


def test_an_api_server_that_cannot_restrict_the_relay_is_an_error() -> None:
    [old] = version_findings(ComputeSettings(image="i"), 29)
    assert old.severity is Severity.ERROR
    assert "1.30" in old.message


def a_node(**changes: Any) -> dict[str, Any]:
    fields = {
        "metadata": {"labels": {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}},
        "spec": {"taints": [{"key": "soft", "effect": "PreferNoSchedule"}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "capacity": {"cpu": "8"}},
    }
    return {**fields, **changes}


@pytest.mark.parametrize(
    "node",
    [
        a_node(metadata={"labels": {"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64"}}),
        a_node(spec={"taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]}),
        a_node(status={"conditions": [{"type": "Ready", "status": "Unknown"}]}),
        a_node(status={"conditions": [{"type": "Ready", "status": "True"}], "capacity": {"google.com/tpu": "4"}}),
    ],
    ids=["arm", "tainted", "not ready", "with TPU"],
)
def test_the_relay_needs_a_node(node: Any) -> None:
    [finding] = relay_findings(Found({}), Found({"items": [node]}))
    assert "No node takes the relay" in finding.message
    assert list(relay_findings(Found({}), Found({"items": [node, a_node()]}))) == []


def test_the_relay_needs_its_namespace() -> None:
    [finding] = relay_findings(Missing(), Found({"items": [a_node()]}))
    assert finding.remedies == ("kubectl create namespace tpu-slice-provisioner",)


def test_without_a_device_plugin_no_slice_becomes_ready() -> None:
    [finding] = found(NETWORK)
    assert finding.severity is Severity.ERROR
    assert finding.remedies[0].endswith("--kustomize infra/kubernetes/device-plugin/overlays/own")


def test_a_device_plugin_is_known_by_its_image() -> None:
    assert found(NETWORK, a_daemon_set("chips", TPU, image="r/tpu-device-plugin@sha256:1")) == []


def test_without_a_daemon_set_of_a_network_the_image_must_bring_one() -> None:
    [finding] = found(PLUGIN)
    assert (finding.severity, "stay NotReady" in finding.message) == (Severity.WARNING, True)


@pytest.mark.parametrize(
    "tolerations",
    [
        [],
        [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}],
        [{"operator": "Exists", "effect": "NoExecute"}],
        [{"key": "google.com/tpu", "value": "other"}],
    ],
)
@pytest.mark.parametrize("name", ["kube-proxy", "flannel", "tpu-device-plugin"])
def test_what_hosts_need_must_tolerate_their_taint(name: str, tolerations: Sequence[Any]) -> None:
    others = [each for each in (PLUGIN, NETWORK) if each["metadata"]["name"] != name]
    [finding] = found(*others, a_daemon_set(name, *tolerations, mounts="/etc/cni/net.d" if name == "flannel" else ""))
    assert finding.severity is Severity.ERROR
    assert f"kube-system/{name} does not tolerate the taint google.com/tpu" in finding.message
    [patch] = json.loads(finding.remedies[0].partition("--patch ")[2].strip("'"))
    assert patch["value"] == [*tolerations, {"key": "google.com/tpu", "operator": "Exists"}]


@pytest.mark.parametrize("answers", [[Missing(), Found({})], [Found({}), Missing()]])
def test_a_missing_policy_for_the_environment_of_jobs_is_told_with_what_applies_it(answers: list[Answer]) -> None:
    [finding] = environment_findings(36, answers)
    assert finding.severity is Severity.WARNING
    assert finding.remedies == ("kubectl apply --server-side --filename infra/kubernetes/job-environment.yaml",)


def test_where_there_can_be_no_such_policy_pods_must_see_to_it() -> None:
    [finding] = environment_findings(35, [])
    assert (finding.severity, finding.remedies) == (Severity.WARNING, ())


def cluster_info(server: str) -> Found:
    return Found({"data": {"kubeconfig": yaml.safe_dump({"clusters": [{"cluster": {"server": server}}]})}})


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Missing(), "is missing"),
        (Denied("Forbidden"), "cannot be read without credentials: Forbidden"),
        (Found({"data": {}}), "names no server"),
        (Found({"data": {"kubeconfig": "{"}}), "names no server"),
        (cluster_info("https://10.9.9.9:6443"), "Hosts that join go to 10.9.9.9:6443"),
    ],
)
def test_hosts_must_find_the_control_plane_that_the_settings_name(answer: Answer, said: str) -> None:
    [finding] = joining_findings(joining_by_kubeadm(), answer)
    assert finding.severity is Severity.ERROR
    assert said in finding.message
    assert finding.remedies


@pytest.mark.parametrize("server", ["https://10.0.0.2:6443", "https://10.0.0.2", "https://10.0.0.2:6443/"])
def test_the_same_control_plane_is_known_whether_its_port_is_written_or_not(server: str) -> None:
    assert list(joining_findings(joining_by_kubeadm(), cluster_info(server))) == []


def test_hosts_that_join_otherwise_need_no_kubeadm() -> None:
    assert list(joining_findings(self_managed(), Missing())) == []


def test_an_api_server_of_gke_is_not_asked_for_what_only_self_managed_clusters_have() -> None:
    resources = Found({"resources": [{"kind": "ValidatingAdmissionPolicy"}]})
    served = dict.fromkeys(admission_versions(list(manifests())), resources)
    on_gke = [manifest for manifest in manifests() if manifest.on_gke]
    assert severities(api_findings(Found({}), served, on_gke)) == []
    assert {each.file for each in manifests()} > {each.file for each in on_gke} > {"admission.yaml"}


def kubectl_that(folder: Path, said: str, *, code: int = 0) -> Kubectl:
    """Return a program that says this, on standard error if it fails."""
    program = folder / "kubectl"
    program.write_text(f"#!/bin/sh\ncat >&{2 if code else 1} << 'EOF'\n{said}\nEOF\nexit {code}\n")
    program.chmod(0o755)
    return Kubectl((str(program),))


def test_what_kubectl_says_is_the_answer(tmp_path: Path) -> None:
    assert kubectl_that(tmp_path, '{"minor": "36"}').get("/version") == Found({"minor": "36"})
    assert isinstance(kubectl_that(tmp_path, "ok").get("/version"), Unreachable)
    assert isinstance(kubectl_that(tmp_path, "connection refused", code=1).get("/version"), Unreachable)
    assert isinstance(Kubectl((str(tmp_path / "none"),)).get("/version"), Unreachable)


def test_a_cluster_of_gke_and_a_file_that_cannot_be_read_are_no_question(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "blue.yaml"
    assert preflight.main(["inside", str(file)]) == preflight.CALLED_WRONGLY
    file.write_text("path: projects/shop/locations/us-central2/clusters/b\n")
    assert preflight.main(["inside", str(file)]) == preflight.CALLED_WRONGLY
    assert "is of a cluster of GKE, which `check` asks" in capsys.readouterr().err


def test_where_kubectl_reaches_nothing_it_says_where_to_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kubectl_that(tmp_path, "The connection to the server 10.0.0.2 was refused", code=1)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    file = tmp_path / "own.yaml"
    compute = {"image": "projects/i/global/images/i"}
    file.write_text(json.dumps({"path": "projects/shop/locations/us-central1", "compute": compute}))
    assert preflight.main(["inside", str(file), "--context", "own"]) == preflight.FATAL
    said = capsys.readouterr().out
    assert "cluster own, inside:" in said
    assert "Run this where `kubectl get --raw /version` answers for the cluster (--context names another one)" in said
