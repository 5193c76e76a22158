"""The builds of the training environment, step by step, by the real gcloud in a world that remembers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.infra.builds.training import SLICE, Training
from tests.infra.gcloud.bed import Bed, laid
from tests.infra.gcloud.conftest import Gcloud
from tests.infra.sources import DESTROY_TRAINING, PROVISION_TRAINING

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

GIVEN = {
    "_TF_STATE_BUCKET": "state",
    "_REGION": "us-central2",
    "_ZONE": "us-central2-b",
    "_NETWORK_NAME": "training",
    "_SUBNET_NAME": "training-nodes",
    "_CLUSTER_NAME": "trainer",
    "_ARTIFACT_REPOSITORY_BUCKET_NAME": "shop-training",
    "_TPU_TYPE": "v4-32",
    "_NUM_TPU_POOLS": "2",
    "_NUM_OF_CHIPS": "32",
}
DESTROYED = {"_TF_STATE_BUCKET": "state", "_CLUSTER_NAME": "trainer"}


class TrainingBed(Bed[Training]):
    provisions, given = PROVISION_TRAINING, GIVEN
    destroys, meant = DESTROY_TRAINING, DESTROYED


@pytest.fixture
def bed(gcloud: Gcloud, tmp_path: Path) -> Iterator[TrainingBed]:
    with laid(TrainingBed, gcloud, Training(), tmp_path) as one:
        yield one


def test_an_empty_project_is_made_ready_provisioned_destroyed_and_left_as_it_was(bed: TrainingBed) -> None:
    bootstrap = "bash infra/environments/bootstrap.sh training --project shop --state-bucket state"
    refused = bed.build(PROVISION_TRAINING, GIVEN, instead={})
    assert refused.stderr.startswith("preflight: ")
    assert "bootstrap: not ready." in refused.stderr
    assert bed.stage.calls == []
    assert bed.run(bootstrap, {}).returncode == 0

    done = bed.build(PROVISION_TRAINING, GIVEN, instead={})
    assert done.returncode == 0, done.stderr
    assert "The smoke JobSet is whole: 4 hosts report 16 devices, 4 here." in done.stdout
    assert bed.terraform == [
        "plan infrastructure",
        "apply infrastructure",
        "plan configuration",
        "apply configuration",
    ]
    assert bed.cloud.jobsets == set()
    kubeconfig = yaml.safe_load((bed.workspace / "build/kubeconfig").read_text())
    assert [each["cluster"]["server"] for each in kubeconfig["clusters"]] == ["https://gke-t.us-central2.gke.goog"]

    bed.stage.calls.clear()
    done = bed.build(DESTROY_TRAINING, DESTROYED, instead={})
    assert done.returncode == 0, done.stderr
    assert "Nothing is left of trainer" in done.stdout
    assert bed.terraform == ["destroy configuration", "apply infrastructure", "destroy infrastructure"]
    assert bed.cloud.states == {"infrastructure": {}, "configuration": {}}
    assert bed.run(f"{bootstrap} --remove", {}).returncode == 0
    assert bed.cloud.accounts.accounts == {}


def test_what_was_provisioned_is_kept_for_the_destroy_build(bed: TrainingBed) -> None:
    bed.provisioned()
    folder = "gke-tpu-training-environment/kept"
    assert sorted(bed.kept) == [
        f"{folder}/configuration.lock.hcl",
        f"{folder}/configuration.tfvars.json",
        f"{folder}/infrastructure.lock.hcl",
        f"{folder}/infrastructure.tfvars.json",
        f"{folder}/provisioner-settings.yaml",
    ]
    assert json.loads(bed.kept[f"{folder}/infrastructure.tfvars.json"])["zone"] == "us-central2-b"
    assert json.loads(bed.kept[f"{folder}/configuration.tfvars.json"]) == {
        "project_id": "shop",
        "state_bucket": "state",
        "state_prefix": "gke-tpu-training-environment/infrastructure",
        "tpu_namespace": "tpu-training",
    }


def test_settings_of_the_cluster_that_are_submitted_become_quota(bed: TrainingBed) -> None:
    bed.submitted["infra/clusters/shop/trainer.yaml"] = "zone: us-central2-b\n"
    assert bed.provision(until="apply-configuration").returncode == 0
    file = bed.workspace / "infra/clusters/shop/trainer.yaml"
    assert settings(bed) == str(file)

    assert bed.destroy(until="init").returncode == 0  # in another workspace, with the path of the first
    assert settings(bed) == str(file)
    file.unlink()
    assert bed.destroy(until="init").returncode == 0
    assert settings(bed) is None


def settings(bed: TrainingBed) -> str | None:
    """Return the file that a build gives the configuration."""
    values: dict[str, str] = json.loads((bed.workspace / "build/configuration.tfvars.json").read_text())
    return values.get("provisioner_settings_file")


def test_a_number_of_chips_that_is_not_the_sum_is_refused_before_anything_is_made(bed: TrainingBed) -> None:
    bed.at("judge")
    refused = bed.go_on(_NUM_OF_CHIPS="16")
    assert refused.returncode == 1
    assert "judge: _NUM_OF_CHIPS is 16, but the static slices have 32 chips." in refused.stderr
    assert bed.terraform == []
    assert bed.kept == {}


@pytest.mark.parametrize(
    ("step", "changes", "message"),
    [
        ("webhooks", {"defaulted": "true "}, "suspend=true completionMode=, not"),
        ("webhooks", {"defaulted": " Indexed"}, "suspend= completionMode=Indexed, not"),
        ("webhooks", {"fails_on": "label clusterqueues"}, "Kueue's webhook refuses a change of a ClusterQueue"),
        ("queues", {"fails_on": "wait localqueues"}, "tpu-training: it points to no ClusterQueue"),
        ("smoke", {"ends": "Failed"}, "The smoke JobSet is Failed"),
        ("smoke", {"ends": ""}, "The smoke JobSet is not ended"),
        ("smoke", {"report": "8 devices, 4 here"}, 'not each of 4 hosts reported "16 devices, 4 here"'),
    ],
)
def test_what_does_not_work_fails_the_build_with_what_to_look_at(
    bed: TrainingBed, step: str, changes: dict[str, str], message: str
) -> None:
    bed.at(step)
    for name, value in changes.items():
        setattr(bed.cloud, name, value)
    failed = bed.go_on()
    assert failed.returncode == 1
    assert failed.stderr.startswith(f"{step}: ")
    assert message in failed.stderr
    assert bed.cloud.jobsets == set()


@pytest.mark.parametrize(
    ("step", "changes", "says"),
    [
        ("apply", {"flavors": {}}, "No static slice stands"),
        ("smoke", {"admitted": 3}, "Workloads run here already"),
    ],
    ids=["no slices", "busy"],
)
def test_without_a_slice_that_stands_idle_there_is_no_smoke_jobset(
    bed: TrainingBed, step: str, changes: dict[str, Any], says: str
) -> None:
    bed.at(step)
    for name, value in changes.items():
        setattr(bed.cloud, name, value)
    done = bed.go_on()
    assert done.returncode == 0, done.stderr
    assert says in done.stdout
    assert not [call for call in bed.stage.called("kubectl") if call.startswith("kubectl create --filename")]


def test_the_slices_of_the_provisioner_are_waited_for_and_never_orphaned(bed: TrainingBed) -> None:
    bed.provisioned()
    bed.cloud.jobsets, bed.cloud.pools = {"llama"}, {"tpu-llama-1": SLICE, "tpu-node-pool-0": {}}
    bed.take_away()

    bed.provisioned()
    bed.cloud.pools, bed.cloud.bought = {"tpu-llama-1": SLICE}, False
    bed.stage.calls.clear()
    refused = bed.destroy()
    assert refused.returncode == 1
    assert refused.stderr.startswith("drain: ")
    assert "Slices that the provisioner bought stand in trainer: tpu-llama-1" in refused.stderr
    assert bed.terraform == []


@pytest.mark.parametrize("step", ["apply", "apply-configuration"])
def test_what_a_failed_build_has_left_is_taken_away(bed: TrainingBed, step: str) -> None:
    bed.at(step)
    bed.cloud.fails_on = "apply -input=false environment.tfplan"
    assert bed.go_on().returncode == 1
    bed.cloud.fails_on = "nothing of the kind"
    bed.take_away()


@pytest.mark.parametrize("fails_on", ["configuration destroy", "infrastructure apply", "infrastructure destroy"])
def test_a_removal_that_failed_is_taken_up_again(bed: TrainingBed, fails_on: str) -> None:
    bed.provisioned()
    bed.cloud.fails_on = fails_on
    assert bed.destroy().returncode == 1
    bed.cloud.fails_on = "nothing of the kind"
    bed.take_away()


@pytest.mark.parametrize("status", ["", "ERROR"])
def test_what_was_in_a_cluster_that_is_gone_or_answers_no_more_is_forgotten(bed: TrainingBed, status: str) -> None:
    bed.provisioned()
    bed.cloud.status = status
    bed.take_away()
    assert "destroy configuration" not in bed.terraform
    assert bed.cloud.states["configuration"] == {}


def test_a_protected_cluster_stays_with_all_that_runs(bed: TrainingBed) -> None:
    bed.provisioned()
    bed.cloud.states["infrastructure"]["google_container_cluster.cluster"]["deletion_protection"] = True
    bed.stage.calls.clear()
    refused = bed.destroy()
    assert refused.stderr.startswith("standing: The cluster is protected.")
    assert bed.stage.called("kubectl") == []


def test_another_environment_than_the_one_that_is_meant_stays(bed: TrainingBed) -> None:
    bed.provisioned()
    refused = bed.destroy(_CLUSTER_NAME="other", _NUM_TPU_POOLS="2", _REGION="us-east5")
    assert refused.stderr.splitlines()[:2] == [
        "variables: _REGION is us-east5, but what was provisioned here has us-central2.",
        "_CLUSTER_NAME is other, but what was provisioned here has trainer.",
    ]
    assert bed.stage.calls == []


def test_what_no_build_has_provisioned_needs_the_substitutions(bed: TrainingBed) -> None:
    refused = bed.destroy()
    assert "_REGION, _NETWORK_NAME must be set" in refused.stderr
    bed.take_away(**{name: value for name, value in GIVEN.items() if name not in DESTROYED})


def test_what_is_left_is_named_with_the_command_that_deletes_it(bed: TrainingBed) -> None:
    bed.provisioned()
    bed.cloud.compute["disks"] = ["pvc-1"]
    failed = bed.destroy()
    assert failed.returncode == 1
    uri = "https://compute.googleapis.com/compute/v1/projects/shop/zones/us-central2-b/disks/pvc-1"
    assert f"left: gcloud compute disks delete {uri}" in failed.stderr
    bed.cloud.compute["disks"] = []
    assert bed.destroy().returncode == 0


@pytest.mark.parametrize("build", [PROVISION_TRAINING, DESTROY_TRAINING], ids=["provision", "destroy"])
def test_without_a_bucket_of_states_nothing_is_done(bed: TrainingBed, build: dict[str, Any]) -> None:
    refused = bed.build(build, {}, instead={})
    assert refused.returncode == 1
    assert "_TF_STATE_BUCKET" in refused.stderr
    assert bed.stage.calls == []
