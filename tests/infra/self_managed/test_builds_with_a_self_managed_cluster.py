"""What the builds do about a self-managed cluster, which they do not reach: they print what its operator runs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.infra.sources import DESTROY_STEPS, ROOT, STEPS
from tests.infra.tools import Tools, tools

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

KEPT = "gs://state/tpu-slice-provisioner/relays/own/b-1"
OF_GKE = [
    "kubectl apply --server-side --kustomize build/relay/blue",
    "kubectl rollout status deployment/relay --namespace tpu-slice-provisioner --timeout 5m",
    "kubectl apply --server-side --kustomize build/relay/blue/webhook",
    "kubectl rollout status deployment/webhook --namespace tpu-slice-provisioner --timeout 5m",
    "kubectl apply --server-side --filename infra/kubernetes/webhook-configuration.yaml",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the sources of a project with a self-managed cluster and one of GKE."""
    source = tmp_path / "source"
    shutil.copytree(ROOT / "infra" / "kubernetes", source / "infra" / "kubernetes")
    (source / "build" / "relay" / "own").mkdir(parents=True)
    (source / "build" / "clusters").write_text("own chips us-central1 -\nblue shop us-central2 b\n")
    (source / "build" / "objects").write_text("clusterrole.rbac.authorization.k8s.io/r\nnamespace/n\n")
    return source


@pytest.fixture
def made(tmp_path: Path) -> Tools:
    return tools(tmp_path / "tools", "gcloud", "kubectl", "slices")


def run(made: Tools, folder: Path, script: str, admission: str = "yes") -> CompletedProcess[str]:
    values = {
        "PROJECT_ID": "shop",
        "BUILD_ID": "b-1",
        "_STATE_BUCKET": "state",
        "_APPLY": "yes",
        "_ADMISSION": admission,
    }
    return made.run(script, folder, **values)


def printed(ran: CompletedProcess[str]) -> list[str]:
    """Return the commands that somebody is told to run."""
    assert ran.returncode == 0, ran.stderr
    return re.findall(r"^  (.+)$", ran.stdout, re.MULTILINE)


def test_what_is_to_be_applied_is_kept_and_the_commands_that_apply_it_are_printed(made: Tools, folder: Path) -> None:
    made.answer("kubectl kustomize build/relay/own", "kind: Namespace\\n")
    rolled = run(made, folder, STEPS["roll-out"]["script"])

    assert printed(rolled) == [
        f"gcloud storage cat {KEPT}/relay.yaml | kubectl apply --server-side --filename -",
        "kubectl rollout status deployment/relay --namespace tpu-slice-provisioner --timeout 5m",
        f"gcloud storage cat {KEPT}/admission.yaml | kubectl apply --server-side --filename - && sleep 30",
        f"gcloud storage cat {KEPT}/webhook-configuration.yaml | kubectl delete --ignore-not-found --filename -",
        f"gcloud storage cat {KEPT}/webhook.yaml | kubectl delete --ignore-not-found --filename -",
        f"gcloud storage cat {KEPT}/webhook.yaml | kubectl apply --server-side --filename - &&",
        "  kubectl rollout status deployment/webhook --namespace tpu-slice-provisioner --timeout 5m &&",
        f"  gcloud storage cat {KEPT}/webhook-configuration.yaml | kubectl apply --server-side --filename -",
        "python -m infra.preflight inside infra/clusters/shop/own.yaml",
        "slices --project shop doctor --cluster own",
    ]
    assert (folder / "build" / "relay" / "own" / "relay.yaml").read_text() == "kind: Namespace\n"
    built = "build/relay/own/relay.yaml build/relay/own/webhook.yaml"
    ours = "build/relay/own/admission.yaml infra/kubernetes/webhook-configuration.yaml"
    assert made.calls[:3] == [
        "kubectl kustomize build/relay/own",
        "kubectl kustomize build/relay/own/webhook",
        f"gcloud storage cp {built} {ours} {KEPT}/",
    ]


def test_nothing_is_applied_to_it_and_the_next_cluster_gets_its_relay(made: Tools, folder: Path) -> None:
    assert run(made, folder, STEPS["roll-out"]["script"]).returncode == 0
    assert [call for call in made.calls if "apply" in call or "rollout" in call] == OF_GKE


def test_without_pinning_its_removal_is_printed(made: Tools, folder: Path) -> None:
    commands = printed(run(made, folder, STEPS["roll-out"]["script"], admission="no"))
    assert [command for command in commands if "delete" in command] == [
        f"gcloud storage cat {KEPT}/{file}.yaml | kubectl delete --ignore-not-found --filename -"
        for file in ("admission", "webhook-configuration", "webhook")
    ]
    assert not any("apply" in command and "webhook" in command for command in commands)


@pytest.mark.parametrize("failing", ["kubectl kustomize", "gcloud storage cp"])
def test_if_it_cannot_be_kept_the_build_fails_and_names_it(made: Tools, folder: Path, failing: str) -> None:
    made.fail(failing)
    rolled = run(made, folder, STEPS["roll-out"]["script"])
    assert rolled.returncode == 1
    assert rolled.stderr.endswith("Not rolled out to: own\n")
    assert "own is self-managed" not in rolled.stdout


def test_the_last_step_asks_the_clusters_whose_relays_the_build_applied(made: Tools, folder: Path) -> None:
    (folder / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(made.folder / "slices", folder / ".venv" / "bin" / "slices")
    asked = run(made, folder, STEPS["doctor"]["script"])

    assert asked.returncode == 0, asked.stderr
    assert made.calls == ["slices --project shop doctor --cluster blue"]
    assert asked.stdout == "Not asked, as they are self-managed: own\n"
    made.fail("doctor --cluster blue")
    assert run(made, folder, STEPS["doctor"]["script"]).returncode != 0


def test_the_removal_prints_what_deletes_its_relay_and_deletes_those_of_gke(made: Tools, folder: Path) -> None:
    removed = run(made, folder, DESTROY_STEPS["relays"]["script"])
    objects = ["clusterrole.rbac.authorization.k8s.io/r", "namespace/n"]
    commands = [f"kubectl delete {each} --ignore-not-found" for each in objects]

    assert printed(removed) == commands
    assert [call for call in made.calls if call.startswith("kubectl")] == commands
