"""Hosts that no release knows, or that a pod gets only by name, as `slices plan` has them and GKE is asked for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Slices
from tests.tpu9x import READ, TPU9X

ROOT = Path(__file__).parents[2]
Json = dict[str, Any]
SETTINGS: Json = {
    "path": "projects/my-project/locations/us-central1/clusters/blue",
    "zone": "us-central1-c",
    "catalogue": {
        "machines": [dict(TPU9X)],
        "prices": [
            {"accelerator": "tpu9x", "region": "us-central1", "kind": "on_demand", "usd_per_chip_hour": 20, **READ}
        ],
    },
}


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    file = tmp_path / "blue.yaml"
    file.write_text(yaml.safe_dump(SETTINGS))
    return file


def jobset(accelerator: str, topology: str, hosts: int, **selectors: str) -> str:
    body = yaml.safe_load((ROOT / "examples" / "v5e.yaml").read_text())
    job = body["spec"]["replicatedJobs"][0]["template"]["spec"]
    job["parallelism"] = job["completions"] = hosts
    prefix = "cloud.google.com/gke-tpu"
    selector = {f"{prefix}-accelerator": accelerator, f"{prefix}-topology": topology}
    more = {key.replace("__", "/").replace("_", "."): value for key, value in selectors.items()}
    job["template"]["spec"]["nodeSelector"] = {**selector, **more}
    return yaml.safe_dump(body)


def planned(slices: Slices, cluster: Path | None, manifest: str) -> Json:
    options = ("--cluster", cluster) if cluster else ()
    result = slices("plan", "-f", "-", "-o", "json", *options, input=manifest)
    assert result.exit_code in {0, 3}, result.output
    found: Json = json.loads(result.stdout)
    return found


def test_a_slice_of_an_accelerator_of_the_settings_is_planned_with_its_hosts_and_its_price(
    slices: Slices, cluster: Path
) -> None:
    found = planned(slices, cluster, jobset("tpu9x", "4x6", 8))
    (only,) = found["slices"]
    assert (only["refused"], only["hosts"], only["chips"], only["price"]["usd_per_hour"]) == (None, 8, 32, 640)
    pool = only["node_pool"]
    assert pool["config"]["machineType"] == "tpu9x-standard-4t"
    assert pool["config"]["diskType"] == "hyperdisk-balanced"
    assert pool["placementPolicy"] == {"type": "COMPACT", "tpuTopology": "4x6"}
    assert pool["initialNodeCount"] == 8
    assert found["catalogue"] == {"machines": ["tpu9x-standard-4t"], "prices": ["tpu9x us-central1 on_demand"]}


def test_the_table_says_what_is_by_the_settings(slices: Slices, cluster: Path) -> None:
    told = slices("plan", "-f", "-", "--cluster", cluster, input=jobset("tpu9x", "4x4", 4)).stdout
    assert "4 x tpu9x-standard-4t" in told
    assert "320.00 USD per hour for 1 slice (list prices of 30 November 2026, without discounts" in told
    assert "By catalogue.machines of the cluster's settings: tpu9x-standard-4t." in told
    assert "By catalogue.prices of the cluster's settings: tpu9x us-central1 on_demand." in told


@pytest.mark.parametrize(("arch", "fits"), [("arm64", True), ("amd64", False)])
def test_a_pod_may_select_the_architecture_that_the_settings_say(
    slices: Slices, cluster: Path, arch: str, fits: bool
) -> None:
    manifest = jobset("tpu9x", "4x4", 4, kubernetes_io__arch=arch)
    refused = planned(slices, cluster, manifest)["slices"][0]["refused"]
    assert (refused is None) is fits
    assert fits or "kubernetes.io/arch" in refused["message"]


def test_without_the_row_the_accelerator_is_refused_with_those_that_are_known(slices: Slices) -> None:
    refused = planned(slices, None, jobset("tpu9x", "4x4", 4))["slices"][0]["refused"]
    assert '"tpu9x" is unknown: use tpu-v4-podslice' in refused["message"]


def test_an_invalid_row_is_told_by_its_field(slices: Slices, tmp_path: Path) -> None:
    row = {**SETTINGS["catalogue"]["machines"][0], "chips": "four"}
    file = tmp_path / "blue.yaml"
    file.write_text(yaml.safe_dump({**SETTINGS, "catalogue": {"machines": [row]}}))
    result = slices("plan", "-f", "-", "--cluster", file, input=jobset("tpu9x", "4x4", 4))
    assert result.exit_code
    assert 'catalogue.machines.0.chips: "four" must be a whole number above zero' in result.output


@pytest.mark.parametrize(
    ("selector", "machine"),
    [
        ({}, "tpu7x-standard-4t"),
        ({"node_kubernetes_io__instance-type": "tpu7x-ultranet-4t"}, "tpu7x-ultranet-4t"),
        ({"node_kubernetes_io__instance-type": "tpu7x-standard-4t"}, "tpu7x-standard-4t"),
    ],
    ids=["without a name", "by the name that GKE asks for", "by the name of the others"],
)
def test_hosts_of_ultranet_are_bought_for_who_selects_them_by_name(
    slices: Slices, selector: dict[str, str], machine: str
) -> None:
    (only,) = planned(slices, None, jobset("tpu7x", "2x2x2", 2, **selector))["slices"]
    assert (only["refused"], only["hosts"]) == (None, 2)
    assert only["node_pool"]["config"]["machineType"] == machine
