"""What the builds of the training environment decide."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from infra.environments import plans
from infra.environments.substitutions import Refused
from infra.environments.training.builds.plans import BUCKET, judge
from infra.environments.training.builds.smoke import smoke
from infra.environments.training.builds.variables import CONFIGURATION, INFRASTRUCTURE, given
from tests.infra.environments.planned import plan_of
from tests.infra.sources import PROVISION_TRAINING, TRAINING

needs_terraform = pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed")


def plan(**actions: str) -> dict[str, Any]:
    """Return a plan with 32 chips, and what it does with the cluster or the bucket."""
    addresses = {"cluster": plans.CLUSTER, "bucket": BUCKET}
    changes = [{"address": addresses[name], "change": {"actions": verbs.split()}} for name, verbs in actions.items()]
    return {"planned_values": {"outputs": {"chips": {"value": 32}}}, "resource_changes": changes}


@pytest.mark.parametrize("number", ["", "32"])
def test_a_plan_with_the_chips_that_were_said_may_be_applied(number: str) -> None:
    judge(plan(cluster="update", bucket="no-op"), number)


@pytest.mark.parametrize("said", ["31", "32.0", "many", "0"])
def test_another_number_of_chips_is_refused(said: str) -> None:
    with pytest.raises(Refused, match=f"_NUM_OF_CHIPS is {said}, but the static slices have 32 chips"):
        judge(plan(), said)


@pytest.mark.parametrize("part", ["cluster", "bucket"])
@pytest.mark.parametrize("actions", ["delete", "delete create", "create delete"])
def test_a_plan_that_takes_cluster_or_bucket_away_is_refused(part: str, actions: str) -> None:
    with pytest.raises(Refused, match=r"This would delete google_.* cloudbuild\.destroy\.yaml first"):
        judge(plan(**{part: actions}), "")


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
    judge({"planned_values": {"outputs": {"chips": {"value": found.outputs["chips"]}}}}, "32")
    made = smoke(found.outputs["flavors"], "team", "queue")
    values = {each["path"].rpartition("/")[2]: each["value"] for each in made.patch if "value" in each}
    assert (made.hosts, made.report) == (4, "16 devices, 4 here")
    assert values["nodeSelector"]["cloud.google.com/gke-tpu-topology"] == "2x2x4"
    assert {each["key"] for each in values["tolerations"]} == {"google.com/tpu"}
    assert values["google.com~1tpu"] == 4
