"""The builds of the Triton environment, step by step, by the real gcloud in a cloud that remembers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

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
BOOTSTRAP = "bash infra/environments/bootstrap.sh triton --project shop --state-bucket state"
SCRIPTS = {step["id"]: step["script"].rstrip() for step in PROVISION_TRITON["steps"]}
SAMPLE = {f"model_repository/colours/{name}" for name in ("config.pbtxt", "labels.txt", "1/model.onnx")}


class TritonBed(Bed[Triton]):
    provisions, given = PROVISION_TRITON, GIVEN
    destroys, meant = DESTROY_TRITON, DESTROYED
    instead: ClassVar[dict[str, str]] = {**READY, "health": "true"}  # which changes nothing

    @property
    def models(self) -> dict[str, bytes]:
        return self.cloud.objects.buckets["shop-models"]


@pytest.fixture
def bed(gcloud: Gcloud, tmp_path: Path) -> Iterator[TritonBed]:
    with laid(TritonBed, gcloud, Triton(), tmp_path) as one:
        yield one


def test_an_empty_project_is_made_ready_provisioned_destroyed_and_left_as_it_was(
    bed: TritonBed, tmp_path: Path
) -> None:
    refused = bed.build(PROVISION_TRITON, GIVEN, instead={})
    assert refused.stderr.startswith("preflight: ")
    assert "bootstrap: not ready." in refused.stderr
    assert bed.stage.calls == []
    assert bed.run(BOOTSTRAP, {}).returncode == 0

    sample_model.write(tmp_path / "served")
    with kserve.serving(tmp_path / "served") as server:
        bed.cloud.address = server.address
        done = bed.build(PROVISION_TRITON, GIVEN, instead={})
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("serves colours: red 0.75, blue 0.25\n")
    assert bed.terraform == ["plan infrastructure", "apply infrastructure"]
    assert bed.models.keys() == SAMPLE
    folder = "triton-on-gke/kept"
    assert sorted(bed.kept) == [f"{folder}/infrastructure.lock.hcl", f"{folder}/infrastructure.tfvars.json"]
    kept = json.loads(bed.kept[f"{folder}/infrastructure.tfvars.json"])
    assert (kept["cluster_name"], kept["repository_bucket_name"]) == ("server", "shop-models")

    bed.stage.calls.clear()
    done = bed.build(DESTROY_TRITON, DESTROYED, instead={})
    assert done.returncode == 0, done.stderr
    assert "Nothing is left of server" in done.stdout
    assert bed.terraform == ["destroy infrastructure", "apply infrastructure", "destroy infrastructure"]
    assert bed.cloud.states == {"infrastructure": {}}
    assert not any(bed.cloud.compute.values())
    assert bed.run(f"{BOOTSTRAP} --remove", {}).returncode == 0
    assert bed.cloud.accounts.accounts == {}


def test_further_models_are_served_beside_the_sample(bed: TritonBed) -> None:
    bed.at("models")
    bed.cloud.objects.buckets["zoo"] = {"best/densenet/config.pbtxt": b"...", "best/densenet/1/model.onnx": b"..."}
    done = bed.go_on(_MODEL_REPOSITORY="gs://zoo/best")
    assert done.returncode == 0, done.stderr
    further = {"model_repository/densenet/config.pbtxt", "model_repository/densenet/1/model.onnx"}
    assert bed.models.keys() == SAMPLE | further
    assert (bed.cloud.applied_overlays, bed.cloud.restarts) == (1, 0)

    assert bed.go_on(_MODEL_REPOSITORY="gs://zoo/best/").returncode == 0  # where Triton serves already
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
    *_, last = SCRIPTS["preflight"].splitlines()
    refused = bed.build(PROVISION_TRITON, {**GIVEN, "_MODEL_REPOSITORY": models}, instead={"preflight": last})
    assert f"serve: {message}" in refused.stderr
    assert bed.stage.calls == []


def test_what_serves_already_stays_as_it_is(bed: TritonBed) -> None:
    bed.provisioned()
    done = bed.provision()
    assert done.returncode == 0, done.stderr
    assert (bed.cloud.applied_overlays, bed.cloud.restarts) == (1, 0)


def test_what_has_never_served_is_applied_again(bed: TritonBed) -> None:
    bed.at("serve")
    bed.cloud.ready = False
    assert bed.go_on().returncode == 1
    bed.cloud.ready = True
    bed.cloud.available = False
    assert bed.go_on().returncode == 0
    assert bed.cloud.applied_overlays == 2


@pytest.mark.parametrize(
    ("step", "changes", "message"),
    [
        ("mesh", {"mesh": "FAILED_PRECONDITION"}, f"The mesh of {MEMBER}: ACTIVE FAILED_PRECONDITION"),
        ("serve", {"ready": False}, "deployment/triton-server-stable is not ready"),
        ("serve", {"address": ""}, "The gateway has no address"),
    ],
)
def test_what_does_not_work_fails_the_build_with_what_to_look_at(
    bed: TritonBed, step: str, changes: dict[str, Any], message: str
) -> None:
    bed.at(step)
    for name, value in changes.items():
        setattr(bed.cloud, name, value)
    failed = bed.go_on()
    assert failed.returncode == 1
    assert failed.stderr.startswith(f"{step}: ")
    assert message in failed.stderr


def test_nobody_at_the_address_fails_the_build(bed: TritonBed) -> None:
    bed.at("health")
    (bed.workspace / "build/address").write_text("localhost:1")
    failed = bed.run(f"{SCRIPTS['health']} --patience 0", {})
    assert failed.returncode == 1
    assert failed.stderr.startswith("http://localhost:1 does not answer")


@pytest.mark.parametrize("status", ["", "ERROR"])
def test_of_a_cluster_that_answers_no_more_even_the_load_balancer_goes(bed: TritonBed, status: str) -> None:
    bed.provisioned()
    bed.cloud.status = status
    bed.take_away()


def test_what_is_not_of_the_network_is_left_alone(bed: TritonBed) -> None:
    bed.provisioned()
    bed.cloud.status = "ERROR"
    bed.cloud.compute["forwardingRules"].append("theirs")
    bed.cloud.in_other_networks.add("theirs")
    assert bed.destroy().returncode == 0
    assert bed.destroy(until="leftovers").returncode == 0
    assert bed.cloud.compute["forwardingRules"] == ["theirs"]


@pytest.mark.parametrize(
    ("step", "fails_on"),
    [("plan", "plan -input"), ("apply", "apply -input=false environment.tfplan"), ("serve", "apply --server-side")],
)
def test_what_a_failed_build_has_left_is_taken_away(bed: TritonBed, step: str, fails_on: str) -> None:
    bed.at(step)
    bed.cloud.fails_on = fails_on
    assert bed.go_on().returncode == 1
    bed.cloud.fails_on = "nothing of the kind"
    given = {name: value for name, value in GIVEN.items() if name not in DESTROYED}
    bed.take_away(**given)


@pytest.mark.parametrize(
    "fails_on", ["delete ", "destroy -input=false -auto-approve -target", "apply -input", "-var=force_destroy=true"]
)
def test_a_removal_that_failed_is_taken_up_again(bed: TritonBed, fails_on: str) -> None:
    bed.provisioned()
    bed.cloud.fails_on = fails_on
    assert bed.destroy().returncode == 1
    bed.cloud.fails_on = "nothing of the kind"
    bed.take_away()


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
