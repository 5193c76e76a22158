"""The relay's roll-out to the clusters of a project, with stand-ins for gcloud and kubectl."""

from __future__ import annotations

import shutil
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.infra.sources import ROOT, STEPS
from tests.infra.tools import Tools, tools

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

BLUE, RED = "b --location us-central2 --project shop", "r --location us-east5 --project other"
OPEN = "--format value(controlPlaneEndpointsConfig.dnsEndpointConfig.allowExternalTraffic)"
WITH_POLICIES = '{"resources": [{"name": "mutatingadmissionpolicies"}]}'
CONFIGURATION = "infra/kubernetes/webhook-configuration.yaml"
HAS_WEBHOOK = f"kubectl get --ignore-not-found --filename {CONFIGURATION} --output name"
TRIED = "kubectl create --dry-run=server --filename infra/kubernetes/pod-with-chips.json"
BY_POLICY = ["kubectl apply --server-side --filename build/relay/red/admission.yaml", HAS_WEBHOOK]
NOT_BY_POLICY = ["kubectl delete --ignore-not-found --filename build/relay/red/admission.yaml"]


def by_webhook(cluster: str) -> list[str]:
    """Return the calls by which the webhook comes to a cluster."""
    return [
        f"kubectl apply --server-side --kustomize build/relay/{cluster}/webhook",
        "kubectl rollout status deployment/webhook --namespace tpu-slice-provisioner --timeout 5m",
        f"kubectl apply --server-side --filename {CONFIGURATION}",
        TRIED,
    ]


def not_by_webhook(cluster: str) -> list[str]:
    """Return the calls by which it goes: first the API server calls it no more."""
    return [
        f"kubectl delete --ignore-not-found --filename {CONFIGURATION}",
        f"kubectl delete --ignore-not-found --kustomize build/relay/{cluster}/webhook",
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the sources of a project with two clusters, whose overlays are written."""
    source = tmp_path / "source"
    shutil.copytree(ROOT / "infra" / "kubernetes", source / "infra" / "kubernetes")
    (source / "build" / "relay").mkdir(parents=True)
    (source / "build" / "clusters").write_text("blue shop us-central2 b\nred other us-east5 r\n")
    return source


@pytest.fixture
def made(tmp_path: Path) -> Tools:
    return tools(tmp_path / "tools", "gcloud", "kubectl", "sleep")


def roll_out(made: Tools, folder: Path, admission: str = "yes", worker_pool: str = "") -> CompletedProcess[str]:
    return made.run(STEPS["roll-out"]["script"], folder, _APPLY="yes", _ADMISSION=admission, _WORKER_POOL=worker_pool)


def of(cluster: str, endpoint: str = "--dns-endpoint") -> list[str]:
    """Return the calls by which the relay comes to a cluster."""
    place = BLUE if cluster == "blue" else RED
    return [
        f"gcloud container clusters describe {place} {OPEN}",
        f"gcloud container clusters get-credentials {place} {endpoint}",
        f"kubectl apply --server-side --kustomize build/relay/{cluster}",
        "kubectl rollout status deployment/relay --namespace tpu-slice-provisioner --timeout 5m",
        "kubectl delete serviceaccount relay --namespace tpu-slice-provisioner --ignore-not-found",
        "kubectl get --raw /apis/admissionregistration.k8s.io/v1",
    ]


def test_every_cluster_gets_its_overlay_and_loses_what_earlier_releases_had(made: Tools, folder: Path) -> None:
    rolled = roll_out(made, folder)

    assert rolled.returncode == 0, rolled.stderr
    assert made.calls == [*of("blue"), *by_webhook("blue"), *of("red"), *by_webhook("red")]


def test_pods_are_pinned_where_the_api_server_can(made: Tools, folder: Path) -> None:
    made.answer("--raw /apis/admissionregistration.k8s.io/v1 build/relay/red/kubeconfig", WITH_POLICIES)
    rolled = roll_out(made, folder)

    assert rolled.returncode == 0, rolled.stderr
    assert made.calls == [*of("blue"), *by_webhook("blue"), *of("red"), *BY_POLICY, *not_by_webhook("red")]


def test_the_webhook_ends_once_the_policy_has_taken_its_place(made: Tools, folder: Path) -> None:
    made.answer("--raw /apis/admissionregistration.k8s.io/v1 build/relay/red/kubeconfig", WITH_POLICIES)
    made.answer(f"{HAS_WEBHOOK} build/relay/red/kubeconfig", "mutatingwebhookconfiguration/tpu-slice-provisioner")
    rolled = roll_out(made, folder)

    assert rolled.returncode == 0, rolled.stderr
    assert made.calls[-5:] == [*BY_POLICY, "sleep 30", *not_by_webhook("red")]


def test_a_webhook_that_does_not_answer_is_called_no_more_and_the_cluster_is_named(made: Tools, folder: Path) -> None:
    made.answer(
        f"{TRIED} build/relay/blue/kubeconfig", 'failed calling webhook "pods.tpu-slice-provisioner.google.com"'
    )
    rolled = roll_out(made, folder)

    assert rolled.returncode == 1
    assert "blue: the API server gets no answer of the webhook" in rolled.stderr
    assert rolled.stderr.endswith("Not rolled out to: blue\n")
    first, *rest = [call for call in made.calls[len(of("blue")) :] if call not in {TRIED, "sleep 2"}][3:]
    assert first == f"kubectl delete --ignore-not-found --filename {CONFIGURATION}"
    assert rest == [*of("red"), *by_webhook("red")[:-1]]


def test_pinning_is_removed_where_it_was_on(made: Tools, folder: Path) -> None:
    made.answer("--raw /apis/admissionregistration.k8s.io/v1 build/relay/red/kubeconfig", WITH_POLICIES)

    assert roll_out(made, folder, admission="no").returncode == 0
    assert made.calls == [
        *(*of("blue"), *not_by_webhook("blue")),
        *(*of("red"), *NOT_BY_POLICY, *not_by_webhook("red")),
    ]


def test_another_word_for_it_is_refused_before_anything_is_applied(made: Tools, folder: Path) -> None:
    rolled = roll_out(made, folder, admission="false")

    assert rolled.returncode == 1
    assert '_ADMISSION is yes or no, not "false"' in rolled.stderr
    assert made.calls == []


def test_from_a_private_pool_a_cluster_whose_dns_endpoint_is_off_is_reached_by_its_address(
    made: Tools, folder: Path
) -> None:
    made.answer(f"describe {BLUE}", "True\\n")
    rolled = roll_out(made, folder, worker_pool="projects/shop/locations/us-central1/workerPools/w")

    assert rolled.returncode == 0, rolled.stderr
    assert made.calls == [*of("blue"), *by_webhook("blue"), *of("red", "--internal-ip"), *by_webhook("red")]


@pytest.mark.parametrize(
    "what", ["describe b ", "get-credentials b ", "apply --server-side", "rollout", "delete", "get --raw"]
)
def test_a_cluster_that_fails_keeps_no_other_from_its_relay_and_is_named(what: str, made: Tools, folder: Path) -> None:
    made.answer("describe r ")
    made.answer("get-credentials r ")
    made.answer("/red/kubeconfig")
    made.fail(what)
    rolled = roll_out(made, folder)

    assert rolled.returncode == 1
    assert rolled.stderr.endswith("Not rolled out to: blue\n")
    assert made.calls[-10:] == [*of("red"), *by_webhook("red")]


def test_all_clusters_that_fail_are_named(made: Tools, folder: Path) -> None:
    made.fail("rollout")
    assert roll_out(made, folder).stderr.endswith("Not rolled out to: blue red\n")


def test_no_command_for_one_cluster_can_reach_another(made: Tools, folder: Path) -> None:
    """A kubeconfig that get-credentials did not write is not another cluster's."""
    for overlay in ("red", "red/webhook"):
        made.answer(f"kubectl apply --server-side --kustomize build/relay/{overlay} build/relay/red/kubeconfig")
    made.fail("kubectl apply --server-side --kustomize build/relay/red")

    assert roll_out(made, folder).returncode == 0
