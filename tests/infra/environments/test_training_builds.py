"""The builds of the training environment as files; tests/infra/gcloud runs their steps."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from infra.environments.training.builds import plans
from infra.environments.training.builds.smoke import smoke
from infra.environments.training.builds.variables import CONFIGURATION, INFRASTRUCTURE, ROOTS, VARIABLES, Refused, given
from tests.infra.environments.planned import plan_of
from tests.infra.sources import BUILD, DESTROY_TRAINING, ENVIRONMENTS, PROVISION_TRAINING, ROOT, TRAINING, blocks

EACH = pytest.mark.parametrize("build", [PROVISION_TRAINING, DESTROY_TRAINING], ids=["provision", "destroy"])
needs_terraform = pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed")
REFERENCE = {
    "_TF_STATE_BUCKET", "_TF_STATE_PREFIX", "_REGION", "_ZONE", "_NETWORK_NAME", "_SUBNET_NAME", "_CLUSTER_NAME",
    "_NAMESPACE", "_TPU_TYPE", "_NUM_TPU_POOLS", "_NUM_OF_CHIPS", "_ARTIFACT_REPOSITORY_BUCKET_NAME",
    "_JOBSET_API_VERSION", "_KUEUE_API_VERSION", "_TENSORBOARD_REGION",
}  # fmt: skip
"""The last one since its second generation. The reference's own commands work with these builds."""
OF_THE_BUILD = {"_TF_STATE_BUCKET", "_TF_STATE_PREFIX", "_NUM_OF_CHIPS"}
"""What sets no variable of the infrastructure or configuration by its name alone."""
PAGE = (TRAINING / "README.md").read_text()


def scripts(build: dict[str, Any]) -> str:
    return "\n".join(step["script"] for step in build["steps"])


def declared(root: str) -> dict[str, Any]:
    files = ENVIRONMENTS[f"infra/environments/training/{root}"].values()
    return {each: body for file in files for block in file.get("variable", []) for each, body in block.items()}


@EACH
def test_the_substitutions_are_those_of_the_reference(build: dict[str, Any]) -> None:
    assert build["substitutions"].keys() == REFERENCE
    assert {name: value for name, value in build["substitutions"].items() if value} == {
        "_TF_STATE_PREFIX": "gke-tpu-training-environment"
    }


def test_every_substitution_is_of_the_build_or_sets_a_variable_that_exists() -> None:
    mapped = {key for names in VARIABLES.values() for key in names} - {"PROJECT_ID"}
    assert mapped | OF_THE_BUILD == REFERENCE
    for root in ROOTS:
        assert {*VARIABLES[root].values()} <= declared(root).keys()
    assert {"state_prefix", "provisioner_settings_file"} <= declared("configuration").keys()


def test_every_variable_that_must_be_set_can_be() -> None:
    for root in ROOTS:
        needed = {name for name, body in declared(root).items() if "default" not in body}
        assert needed <= {*VARIABLES[root].values(), "state_prefix"}


def test_the_page_has_every_substitution() -> None:
    table = PAGE.partition("| substitution |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(_[A-Z_]+)`", table)) == REFERENCE


def test_the_commands_in_the_headers_set_what_is_required() -> None:
    for name in ("provision", "destroy"):
        text = (TRAINING / f"cloudbuild.{name}.yaml").read_text()
        command = text.partition("gcloud builds submit")[2].partition("\n#\n")[0]
        required = set(re.findall(r'^  (_[A-Z_]+): "" # required', text, re.MULTILINE))
        assert required <= set(re.findall(r"(_[A-Z_]+)=", command))
        assert f"--config infra/environments/training/cloudbuild.{name}.yaml" in command


@EACH
def test_every_image_is_one_of_the_deployments(build: dict[str, Any]) -> None:
    assert {step["name"] for step in build["steps"]} <= {step["name"] for step in BUILD["steps"]}
    [terraform] = blocks("terraform")
    exact = terraform["required_version"].removeprefix("~> ")
    assert f"hashicorp/terraform:{exact}" in {step["name"] for step in build["steps"]}


@EACH
def test_every_script_stops_at_its_first_error_and_runs_alone(build: dict[str, Any]) -> None:
    for step in build["steps"]:
        alpine = step["name"].startswith("hashicorp/terraform:")  # it has no bash
        first = "#!/bin/sh\nset -eu\n" if alpine else "#!/usr/bin/env bash\nset -euo pipefail\n"
        assert step["script"].startswith(first), step["id"]
        assert not {"waitFor", "allowFailure"} & step.keys()


@EACH
def test_the_build_runs_as_the_account_that_bootstrap_makes(build: dict[str, Any]) -> None:
    bootstrap = (ROOT / "infra/environments/bootstrap.sh").read_text()
    [account] = re.findall(r"^ +ACCOUNT=(\S+)$", bootstrap, re.MULTILINE)
    assert build["serviceAccount"].rpartition("/")[2].partition("@")[0] == account
    assert build["options"] == BUILD["options"]


def test_nothing_that_terraform_has_made_is_named_that_it_does_not_make() -> None:
    made = {
        f"{kind}.{name}"
        for file in ENVIRONMENTS["infra/environments/training/infrastructure"].values()
        for block in file.get("resource", [])
        for kind, named in block.items()
        for name in named
    }
    assert {plans.CLUSTER, plans.BUCKET} <= made
    assert set(re.findall(r"google_\w+\.\w+", scripts(DESTROY_TRAINING))) == {plans.BUCKET}


def test_the_builder_has_every_role_that_one_needs_by_hand() -> None:
    bootstrap = (ROOT / "infra/environments/bootstrap.sh").read_text()
    roles = {role for listed in re.findall(r"ROLES\+?=\(([^)]*)\)", bootstrap) for role in listed.split()}
    told = re.findall(r"`(\w+\.\w*Admin|\w+\.admin|monitoring\.\w+)`", PAGE.partition("## In what order")[2])
    assert len(told) >= 10
    assert set(told) <= roles


def plan(**actions: str) -> dict[str, Any]:
    """Return a plan with 32 chips, and what it does with the cluster or the bucket."""
    addresses = {"cluster": plans.CLUSTER, "bucket": plans.BUCKET}
    changes = [{"address": addresses[name], "change": {"actions": verbs.split()}} for name, verbs in actions.items()]
    return {"planned_values": {"outputs": {"chips": {"value": 32}}}, "resource_changes": changes}


@pytest.mark.parametrize("number", ["", "32"])
def test_a_plan_with_the_chips_that_were_said_may_be_applied(number: str) -> None:
    plans.judge(plan(cluster="update", bucket="no-op"), number)


@pytest.mark.parametrize("said", ["31", "32.0", "many", "0"])
def test_another_number_of_chips_is_refused(said: str) -> None:
    with pytest.raises(Refused, match=f"_NUM_OF_CHIPS is {said}, but the static slices have 32 chips"):
        plans.judge(plan(), said)


@pytest.mark.parametrize("part", ["cluster", "bucket"])
@pytest.mark.parametrize("actions", ["delete", "delete create", "create delete"])
def test_a_plan_that_takes_cluster_or_bucket_away_is_refused(part: str, actions: str) -> None:
    with pytest.raises(Refused, match=r"This would delete google_.* cloudbuild\.destroy\.yaml first"):
        plans.judge(plan(**{part: actions}), "")


def test_what_stands_is_found_in_modules_too_and_data_is_none_of_it() -> None:
    inner = {"resources": [{"address": "module.m.x.y", "mode": "managed", "values": {"a": 1}}]}
    read = {"address": "data.x.y", "mode": "data", "values": {}}
    state = {"values": {"root_module": {"resources": [read], "child_modules": [{"child_modules": [inner]}]}}}
    assert plans.standing(state) == {"module.m.x.y": {"a": 1}}
    assert plans.standing({"format_version": "1.0"}) == {}


def flavor(**changes: Any) -> dict[str, Any]:
    known = {"accelerator": "tpu-v6e-slice", "capacity": "on_demand", "hosts": 4, "chips_per_host": 4, "slices": 1}
    return {**known, "node_labels": {"kind": "v6e"}, "node_taints": [], **changes}


@pytest.mark.parametrize(
    ("flavors", "hosts", "report"),
    [
        ([flavor(), flavor(hosts=1, chips_per_host=8)], 1, "8 devices, 8 here"),
        ([flavor(capacity="spot"), flavor(capacity="reservation", accelerator="tpu7x")], 4, "32 devices, 8 here"),
        ([flavor(slices=0), flavor(capacity="flex_start"), flavor(capacity="spot")], 4, "16 devices, 4 here"),
        ([flavor(slices=0), flavor(capacity="flex_start")], 0, ""),
        ([], 0, ""),
    ],
    ids=["the smallest", "not spot, and two devices of each chip", "spot", "none that stands", "none"],
)
def test_the_smoke_jobset_takes_the_smallest_slice_that_stands(
    flavors: list[dict[str, Any]], hosts: int, report: str
) -> None:
    made = smoke({str(index): each for index, each in enumerate(flavors)}, "team", "queue")
    assert (made.hosts, made.report) == (hosts, report)


@pytest.mark.emulators
@pytest.mark.parametrize(
    ("versions", "refused"), [("v0.2.3 v0.4.2", True), (" ", False)], ids=["the reference's", "ours"]
)
def test_versions_that_do_not_fit_are_refused_before_anything_is_made(
    tmp_path: Path, versions: str, refused: bool
) -> None:
    [script] = [step["script"] for step in PROVISION_TRAINING["steps"] if step["id"] == "validate"]
    jobset, kueue = versions.split(" ")
    asked = {"PROJECT_ID": "shop-project", "_TF_STATE_BUCKET": "state", "_TF_STATE_PREFIX": "p"}
    values = given({**asked, "_JOBSET_API_VERSION": jobset, "_KUEUE_API_VERSION": kueue})[CONFIGURATION]
    shutil.copytree(TRAINING / "configuration", tmp_path / "infra/environments/training/configuration")
    (tmp_path / "build").mkdir()
    (tmp_path / "build/configuration.tfvars.json").write_text(json.dumps(values))
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "CHECKPOINT_DISABLE": "1"}
    command = ["setpriv", "--pdeathsig", "TERM", "sh", "-c", script]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    assert (done.returncode != 0) == refused, done.stderr
    for variable in ("jobset_version", "kueue_version"):
        assert (f"{variable} must be" in done.stderr) == refused


@pytest.mark.emulators
@pytest.mark.enable_socket
@needs_terraform
def test_chips_and_slices_are_read_as_terraform_tells_them(tmp_path: Path) -> None:
    asked = {"PROJECT_ID": "shop-project", "_TF_STATE_PREFIX": "p", "_TPU_TYPE": "v4-32", "_NUM_TPU_POOLS": "2"}
    found = plan_of(tmp_path, **given(asked)[INFRASTRUCTURE])
    plans.judge({"planned_values": {"outputs": {"chips": {"value": found.outputs["chips"]}}}}, "32")
    made = smoke(found.outputs["flavors"], "team", "queue")
    values = {each["path"].rpartition("/")[2]: each["value"] for each in made.patch if "value" in each}
    assert (made.hosts, made.report) == (4, "16 devices, 4 here")
    assert values["nodeSelector"]["cloud.google.com/gke-tpu-topology"] == "2x2x4"
    assert {each["key"] for each in values["tolerations"]} == {"google.com/tpu"}
    assert values["google.com~1tpu"] == 4
