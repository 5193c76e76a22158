"""The builds of the Triton environment, step by step, by the real gcloud in a cloud that remembers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from infra.environments.triton.serving import sample_model
from tests.infra.builds.triton import MEMBER, Triton
from tests.infra.environments.serving import kserve
from tests.infra.gcloud.bed import READY, Bed, laid
from tests.infra.gcloud.conftest import Gcloud
from tests.infra.sources import DESTROY_TRITON, PROVISION_TRITON

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

GIVEN = {
    "_TF_STATE_BUCKET": "state",
    "_REGION": "us-central1",
    "_ZONE": "us-central1-a",
    "_NETWORK_NAME": "serving",
    "_SUBNET_NAME": "serving-nodes",
    "_GCS_BUCKET_NAME": "shop-models",
    "_GKE_CLUSTER_NAME": "server",
}
DESTROYED = {"_TF_STATE_BUCKET": "state", "_GKE_CLUSTER_NAME": "server"}
[HEALTH] = (step["script"].rstrip() for step in PROVISION_TRITON["steps"] if step["id"] == "health")
BOOTSTRAP = "bash infra/environments/bootstrap.sh triton --project shop --state-bucket state"
SAMPLE = {f"model_repository/colours/{name}" for name in ("config.pbtxt", "labels.txt", "1/model.onnx")}


class TritonBed(Bed[Triton]):
    def provision(self, **changes: str) -> CompletedProcess[str]:
        """Run the build; what does not answer rightly at once is not waited for."""
        return self.build(PROVISION_TRITON, {**GIVEN, **changes}, {**READY, "health": f"{HEALTH} --patience 0"})

    def destroy(self, **changes: str) -> CompletedProcess[str]:
        return self.build(DESTROY_TRITON, {**DESTROYED, **changes})

    @property
    def models(self) -> dict[str, bytes]:
        return self.cloud.objects.buckets["shop-models"]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[kserve.Triton]:
    sample_model.write(tmp_path / "served")
    with kserve.serving(tmp_path / "served") as one:
        yield one


@pytest.fixture
def bed(gcloud: Gcloud, server: kserve.Triton, tmp_path: Path) -> Iterator[TritonBed]:
    with laid(TritonBed, gcloud, Triton(address=server.address), tmp_path) as one:
        yield one


def test_an_empty_project_is_made_ready_provisioned_destroyed_and_left_as_it_was(bed: TritonBed) -> None:
    refused = bed.build(PROVISION_TRITON, GIVEN, instead={})
    assert refused.stderr.startswith("preflight: ")
    assert "bootstrap: not ready." in refused.stderr
    assert bed.stage.calls == []
    assert bed.run(BOOTSTRAP, {}).returncode == 0

    done = bed.build(PROVISION_TRITON, GIVEN, instead={})
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("serves colours: red 0.75, blue 0.25\n")
    assert bed.terraform == ["plan infrastructure", "apply infrastructure"]
    assert bed.models.keys() == SAMPLE

    bed.stage.calls.clear()
    done = bed.build(DESTROY_TRITON, DESTROYED, instead={})
    assert done.returncode == 0, done.stderr
    assert "Nothing is left of server" in done.stdout
    assert bed.terraform == ["destroy infrastructure", "apply infrastructure", "destroy infrastructure"]
    assert bed.cloud.states == {"infrastructure": {}}
    assert not any(bed.cloud.compute.values())
    assert bed.run(f"{BOOTSTRAP} --remove", {}).returncode == 0
    assert bed.cloud.accounts.accounts == {}


def test_what_was_provisioned_is_kept_for_the_destroy_build(bed: TritonBed) -> None:
    bed.provisioned()
    folder = "triton-on-gke/kept"
    assert sorted(bed.kept) == [f"{folder}/infrastructure.lock.hcl", f"{folder}/infrastructure.tfvars.json"]
    kept = json.loads(bed.kept[f"{folder}/infrastructure.tfvars.json"])
    assert (kept["cluster_name"], kept["repository_bucket_name"]) == ("server", "shop-models")


def test_further_models_are_served_beside_the_sample(bed: TritonBed) -> None:
    bed.cloud.objects.buckets["zoo"] = {"best/densenet/config.pbtxt": b"...", "best/densenet/1/model.onnx": b"..."}
    done = bed.provision(_MODEL_REPOSITORY="gs://zoo/best")
    assert done.returncode == 0, done.stderr
    further = {"model_repository/densenet/config.pbtxt", "model_repository/densenet/1/model.onnx"}
    assert bed.models.keys() == SAMPLE | further
    assert bed.cloud.restarts == 0

    assert bed.provision(_MODEL_REPOSITORY="gs://zoo/best/").returncode == 0
    assert (bed.cloud.applied_overlays, bed.cloud.restarts) == (1, 1)


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ("zoo/best", "_MODEL_REPOSITORY is zoo/best, not gs://BUCKET/FOLDER."),
        ("gs://zoo", "_MODEL_REPOSITORY is gs://zoo, not gs://BUCKET/FOLDER."),
        ("gs://zoo/best", "This build's account cannot read gs://zoo/best, or there is nothing."),
    ],
)
def test_models_that_cannot_be_read_are_refused_before_anything_is_made(
    bed: TritonBed, models: str, message: str
) -> None:
    assert (
        bed.run("bash infra/environments/bootstrap.sh triton --project shop --state-bucket state", {}).returncode == 0
    )
    refused = bed.build(PROVISION_TRITON, {**GIVEN, "_MODEL_REPOSITORY": models}, instead={})
    assert refused.stderr.startswith("preflight: ")
    assert f"serve: {message}" in refused.stderr
    assert bed.stage.calls == []


def test_what_serves_already_stays_as_it_is(bed: TritonBed) -> None:
    for _ in range(2):
        done = bed.provision()
        assert done.returncode == 0, done.stderr
    assert (bed.cloud.applied_overlays, bed.cloud.restarts) == (1, 0)


def test_what_has_never_served_is_applied_again(bed: TritonBed) -> None:
    bed.cloud.ready = False
    assert bed.provision().returncode == 1
    bed.cloud.ready = True
    bed.cloud.available = False
    assert bed.provision().returncode == 0
    assert bed.cloud.applied_overlays == 2


@pytest.mark.parametrize(
    ("changes", "step", "message"),
    [
        ({"mesh": "FAILED_PRECONDITION"}, "mesh", f"The mesh of {MEMBER}: ACTIVE FAILED_PRECONDITION"),
        ({"ready": False}, "serve", "deployment/triton-server-stable is not ready"),
        ({"address": ""}, "serve", "The gateway has no address"),
        ({"address": "localhost:1"}, "health", "http://localhost:1 does not answer"),
    ],
)
def test_what_does_not_work_fails_the_build_with_what_to_look_at(
    bed: TritonBed, changes: dict[str, Any], step: str, message: str
) -> None:
    for name, value in changes.items():
        setattr(bed.cloud, name, value)
    failed = bed.provision()
    assert failed.returncode == 1
    assert failed.stderr.startswith(f"{step}: ")
    assert message in failed.stderr


def test_a_wrong_answer_fails_the_build(bed: TritonBed, server: kserve.Triton) -> None:
    server.breaks_down = True
    failed = bed.provision()
    assert failed.stderr.startswith("health: the model colours gave no classes")


@pytest.mark.parametrize("status", ["", "ERROR"])
def test_of_a_cluster_that_answers_no_more_even_the_load_balancer_goes(bed: TritonBed, status: str) -> None:
    bed.provisioned()
    bed.cloud.status = status
    done = bed.destroy()
    assert done.returncode == 0, done.stderr
    assert not any(bed.cloud.compute.values())


def test_what_is_not_of_the_network_is_left_alone(bed: TritonBed) -> None:
    bed.provisioned()
    bed.cloud.status = "ERROR"
    bed.cloud.compute["forwardingRules"].append("theirs")
    bed.cloud.in_other_networks.add("theirs")
    for _ in range(2):
        assert bed.destroy().returncode == 0
    assert bed.cloud.compute["forwardingRules"] == ["theirs"]


@pytest.mark.parametrize("fails_on", ["plan -input", "apply -input=false environment.tfplan", "apply --server-side"])
def test_what_a_failed_build_has_left_is_taken_away(bed: TritonBed, fails_on: str) -> None:
    bed.cloud.fails_on = fails_on
    assert bed.provision().returncode == 1
    bed.cloud.fails_on = "nothing of the kind"
    given = {name: value for name, value in GIVEN.items() if name not in DESTROYED}
    done = bed.destroy(**given)
    assert done.returncode == 0, done.stderr
    assert bed.cloud.status == ""


@pytest.mark.parametrize(
    "fails_on", ["delete ", "destroy -input=false -auto-approve -target", "apply -input", "-var=force_destroy=true"]
)
def test_a_removal_that_failed_is_taken_up_again(bed: TritonBed, fails_on: str) -> None:
    bed.provisioned()
    bed.cloud.fails_on = fails_on
    assert bed.destroy().returncode == 1
    bed.cloud.fails_on = "nothing of the kind"
    done = bed.destroy()
    assert done.returncode == 0, done.stderr
    assert bed.cloud.status == ""


def test_a_protected_cluster_stays_with_all_that_runs(bed: TritonBed) -> None:
    bed.provisioned()
    bed.cloud.states["infrastructure"]["google_container_cluster.cluster"]["deletion_protection"] = True
    bed.stage.calls.clear()
    refused = bed.destroy()
    assert refused.stderr.startswith("standing: The cluster is protected.")
    assert bed.stage.called("kubectl") == []


def test_another_environment_than_the_one_that_is_meant_stays(bed: TritonBed) -> None:
    bed.provisioned()
    refused = bed.destroy(_GKE_CLUSTER_NAME="other")
    assert refused.stderr.startswith("variables: _GKE_CLUSTER_NAME is other, but what was provisioned here has server.")
    assert bed.stage.calls == []


@pytest.mark.parametrize("build", [PROVISION_TRITON, DESTROY_TRITON], ids=["provision", "destroy"])
def test_without_a_bucket_of_states_nothing_is_done(bed: TritonBed, build: dict[str, Any]) -> None:
    refused = bed.build(build, {}, instead={})
    assert refused.returncode == 1
    assert "_TF_STATE_BUCKET" in refused.stderr
    assert bed.stage.calls == []
