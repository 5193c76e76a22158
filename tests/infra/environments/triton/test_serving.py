"""What serving asks for, compared with the infrastructure that it is served on: each with its defaults."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from infra.environments.triton.serving.__main__ import main
from tests.infra.environments.evaluation import TRITON
from tests.infra.environments.planned import Plan, plan_of
from tests.infra.relay.manifests import Json, built, the

pytestmark = [
    pytest.mark.emulators,
    pytest.mark.enable_socket,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed"),
]

VERSIONS = ("triton-server-stable", "triton-server-canary")
CANARY = ("--canary-model-repository", "gs://shop-project-models/next")


def served(folder: Path, *options: str) -> list[Json]:
    repository = ("--model-repository", "gs://shop-project-models/model_repository")
    assert main(["--project", "shop-project", *repository, *options, "--into", str(folder / "overlay")]) == 0
    return built(folder / "overlay")


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return plan_of(tmp_path_factory.mktemp("planned"), TRITON)


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> list[Json]:
    return served(tmp_path_factory.mktemp("served"), *CANARY)


def pods(manifests: list[Json]) -> list[tuple[int, Json]]:
    """Return of each version how many pods it has, and what they are."""
    specs = [the("Deployment", manifests, name)["spec"] for name in VERSIONS]
    return [(spec["replicas"], spec["template"]["spec"]) for spec in specs]


def test_both_versions_find_a_node_with_gpus_each(planned: Plan, manifests: list[Json]) -> None:
    gpus = planned.outputs["gpus"]
    room = gpus["nodes"] * gpus["count"]
    asked = [
        replicas * int(pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"])
        for replicas, pod in pods(manifests)
    ]
    assert 0 < asked[0] <= gpus["count"]
    assert sum(asked) <= room


def test_tritons_pods_tolerate_what_the_nodes_are_tainted_with(planned: Plan, manifests: list[Json]) -> None:
    for _, pod in pods(manifests):
        tolerated = {(each["key"], each["effect"]) for each in pod["tolerations"] if each["operator"] == "Exists"}
        assert {(each["key"], each["effect"]) for each in planned.outputs["gpus"]["node_taints"]} <= tolerated


@pytest.mark.parametrize(("namespace", "account"), [(None, None), ("vision", "vision-reader")])
def test_the_account_of_tritons_pods_is_the_one_that_may_read_models(
    tmp_path: Path, namespace: str | None, account: str | None
) -> None:
    named: dict[str, Any] = {"triton_namespace": namespace, "triton_sa_name": account} if namespace else {}
    options = ["--namespace", namespace, "--account", account] if namespace and account else []
    resources = plan_of(tmp_path, TRITON, **named).resources
    manifests = served(tmp_path, *options)

    [(_, pod), _] = pods(manifests)
    found = the("ServiceAccount", manifests, pod["serviceAccountName"])["metadata"]
    reader = resources["google_service_account.triton"]["account_id"]
    acts_as = f"{reader}@shop-project.iam.gserviceaccount.com"
    assert found["annotations"]["iam.gke.io/gcp-service-account"] == acts_as
    member = f"serviceAccount:shop-project.svc.id.goog[{found['namespace']}/{found['name']}]"
    assert resources["google_service_account_iam_member.triton"]["member"] == member


def test_managed_prometheus_gets_at_the_metrics_wherever_gke_has_it(manifests: list[Json]) -> None:
    """The cluster has network policies; the collectors' namespace is another by GKE's version."""
    rules = the("NetworkPolicy", manifests, "requests-and-metrics-of-triton")["spec"]["ingress"]
    [metrics] = [rule for rule in rules if {"port": 8002} in rule["ports"]]
    [expression] = metrics["from"][0]["namespaceSelector"]["matchExpressions"]
    assert (expression["key"], expression["operator"]) == ("kubernetes.io/metadata.name", "In")
    assert set(expression["values"]) == {"gmp-system", "gke-gmp-system"}
