"""What `slices plan` says of Deployments, StatefulSets and pods where the cluster makes a slice for each pod."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import ROOT, Slices

SERVING = str(ROOT / "examples" / "clusters" / "serving.yaml")
TOPOLOGY = "cloud.google.com/gke-tpu-topology"
Json = dict[str, Any]


def a_deployment(**spec: Any) -> Any:
    found = yaml.safe_load((ROOT / "examples" / "pods" / "deployment.yaml").read_text())
    found["spec"] |= spec
    return found


def a_stateful_set() -> Any:
    made = a_deployment()
    del made["spec"]["strategy"]
    return {**made, "kind": "StatefulSet", "metadata": {"name": "cache"}}


def a_pod() -> Any:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "alone"}, "spec": pod_of(a_deployment())}


def pod_of(deployment: Any) -> Any:
    return deployment["spec"]["template"]["spec"]


@pytest.fixture
def everybody(tmp_path: Path) -> str:
    """Return the settings of a cluster that serves all of them."""
    settings = tmp_path / "serving.yaml"
    settings.write_text(Path(SERVING).read_text().replace("[Deployment]", "[Pod, Deployment, StatefulSet]"))
    return str(settings)


def answer(slices: Slices, *documents: Any, cluster: str = SERVING, code: int = 0) -> Json:
    result = slices("plan", "-f", "-", "--cluster", cluster, "-o", "json", input=yaml.safe_dump_all(documents))
    assert result.exit_code == code, result.output
    found: Json = json.loads(result.stdout)
    return found


def test_each_pod_of_a_deployment_is_a_slice_with_its_price(slices: Slices) -> None:
    plan = answer(slices, a_deployment())
    assert [(each["kind"], each["name"], each["hosts"], each["chips"]) for each in plan["slices"]] == [
        ("Pod", "web-0", 1, 8),
        ("Pod", "web-1", 1, 8),
    ]
    (price, other) = (each["price"]["usd_per_hour"] for each in plan["slices"])
    assert price == other > 0
    assert plan["price"]["usd_per_hour"] == pytest.approx(2 * price)
    assert plan["warnings"] == []


def test_stateful_sets_and_pods_are_planned_alike_where_they_are_served(slices: Slices, everybody: str) -> None:
    plan = answer(slices, a_stateful_set(), a_pod(), cluster=everybody)
    assert [each["name"] for each in plan["slices"]] == ["cache-0", "cache-1", "alone"]


def test_what_the_settings_do_not_name_is_told_how_it_would_be(slices: Slices) -> None:
    (skipped,) = answer(slices, a_stateful_set())["skipped"]
    assert skipped["reason"] == "NotServed"
    assert skipped["message"].endswith("add StatefulSet to serve in the cluster's settings")


@pytest.mark.parametrize(
    ("topology", "said"),
    [
        ("4x4", "none of its containers has all chips of 4x4, and a pod by itself gets a slice of one host"),
        (None, f"it selects no {TOPOLOGY}: select one of one host with the node selector"),
    ],
)
def test_pods_that_do_not_take_one_whole_host_are_refused_with_the_way(
    slices: Slices, topology: str | None, said: str
) -> None:
    deployment = a_deployment()
    pod_of(deployment)["nodeSelector"].pop(TOPOLOGY)
    pod_of(deployment)["nodeSelector"] |= {TOPOLOGY: topology} if topology else {}
    (skipped,) = answer(slices, deployment)["skipped"]
    assert skipped["message"].startswith(f"Deployment web gets no slice: {said}")


@pytest.mark.parametrize(
    ("strategy", "surge"),
    [
        ({}, 1),
        ({"type": "Recreate"}, 0),
        ({"rollingUpdate": {"maxSurge": 2}}, 2),
        ({"rollingUpdate": {"maxSurge": 0}}, 0),
    ],
)
def test_a_surge_is_warned_of_since_each_is_a_slice_more(slices: Slices, strategy: Json, surge: int) -> None:
    warnings = answer(slices, a_deployment(strategy=strategy))["warnings"]
    assert [f"makes {surge} more pod" in each for each in warnings] == [True] * bool(surge)


def test_an_autoscaler_in_the_file_is_warned_of_and_not_read(slices: Slices) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "maxReplicas": 50}
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "s"},
        "spec": spec,
    }
    plan = answer(slices, a_deployment(), scaler)
    assert len(plan["slices"]) == 2
    (warning,) = plan["warnings"]
    assert "HorizontalPodAutoscaler s may scale it up to 50, and this plan is for 2" in warning


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"replicas": 0}, "NoReplicas"),
        (
            {
                "template": {
                    "metadata": {"annotations": {"tpu-provisioner.cloud.google.com/disable-autoprovisioning": "true"}}
                }
            },
            "OptedOut",
        ),
    ],
)
def test_what_wants_no_slice_is_skipped(slices: Slices, change: Json, reason: str) -> None:
    deployment = a_deployment()
    if "template" in change:
        change = {"template": {**deployment["spec"]["template"], **change["template"]}}
    deployment["spec"] |= change
    (skipped,) = answer(slices, deployment)["skipped"]
    assert skipped["reason"] == reason
