"""What Terraform would make of the configuration, planned as a whole, and what the examples that train find in it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.preflight.answers import Found
from infra.preflight.kueue import KEY, kueue_findings
from tests.examples.stories import TRAINING, jobsets_in
from tests.infra.environments.configuration.configured import Configured, configured, outputs_of
from tests.infra.environments.evaluation import CONFIGURATION, Refusal, refusals
from tests.infra.evaluation import terraform
from tpu_slices.domain.model.clusters import Limits

pytestmark = [
    pytest.mark.emulators,
    pytest.mark.enable_socket,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed"),
]

Json = dict[str, Any]
QUEUE, PRIORITY = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"
POOLS: Json = {"a": {"type": "v4-32"}, "s": {"type": "v4-32", "capacity": "spot"}}
JOBSETS: list[Json] = [each for path in jobsets_in(TRAINING) for each in yaml.safe_load_all(path.read_text())]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Json:
    return outputs_of(tmp_path_factory.mktemp("infrastructure"), tpu_pools=POOLS)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, outputs: Json) -> Configured:
    settings = {"policy": {"chips_per_cluster": 64}}
    return configured(tmp_path_factory.mktemp("configuration"), outputs, settings, teams={"vision": {}})


def test_the_files_are_formatted() -> None:
    terraform(CONFIGURATION, "fmt", "-check", "-diff", ".")


def test_every_account_of_every_namespace_acts_as_the_google_account_of_its_name(found: Configured) -> None:
    accounts = {
        f"{body['metadata'][0]['namespace']}/{body['metadata'][0]['name']}": body["metadata"][0]["annotations"]
        for body in found.plan.all("kubernetes_service_account_v1").values()
    }
    members = {
        body["member"]: (body["service_account_id"], body["role"])
        for body in found.plan.all("google_service_account_iam_member").values()
    }
    assert set(accounts) == {
        f"{ns}/{name}-sa" for ns in ("tpu-training", "vision") for name in ("cloud-tpu", "tensorboard")
    }
    for name, annotated in accounts.items():
        address = f"{name.partition('/')[2]}@shop-project.iam.gserviceaccount.com"
        assert annotated == {"iam.gke.io/gcp-service-account": address}
        granted = members[f"serviceAccount:shop-project.svc.id.goog[{name}]"]
        assert granted == (f"projects/shop-project/serviceAccounts/{address}", "roles/iam.workloadIdentityUser")
    assert len(members) == len(accounts)


def test_without_tensorboard_its_uploaders_have_no_account(tmp_path: Path, outputs: Json) -> None:
    accounts = {**outputs["service_accounts"], "tensorboard": None}
    without = configured(tmp_path, {**outputs, "service_accounts": accounts})
    assert [body["metadata"][0]["name"] for body in without.plan.all("kubernetes_service_account_v1").values()] == [
        "cloud-tpu-sa"
    ]


def test_charts_are_those_of_the_versions_with_a_v_or_without(tmp_path: Path, found: Configured, outputs: Json) -> None:
    def versions(each: Configured) -> dict[str, str]:
        return {name: body["version"] for name, body in each.plan.all("helm_release").items() if name != "queues"}

    assert versions(found) == {"jobset": "0.10.1", "kueue": "0.19.2"}
    other = configured(tmp_path, outputs, jobset_version="0.11.1", kueue_version="v1.0.0")
    assert versions(other) == {"jobset": "0.11.1", "kueue": "1.0.0"}


REFUSED: list[Refusal] = [
    ({"kueue_version": "v0.18.6"}, "v0.19.0 or newer"),
    ({"jobset_version": "v0.2.3"}, "v0.10.0 or newer"),
    ({"jobset_version": "latest"}, "v0.10.0 or newer"),
    ({"tpu_namespace": "kube-system"}, "tpu_namespace must be"),
    ({"teams": {"Vision": {}}}, "names of teams must be"),
    ({"teams": {"vision": {"weight": 0}}}, "weight of a team must be above 0"),
    ({"pod_security": "none"}, "pod_security is restricted"),
    ({"state_bucket": "gs://shop"}, "without gs://"),
    ({"provisioner_settings_file": "none.yaml"}, "must be a cluster's settings"),
    ({"project_id": "other-project"}, "infrastructure is in shop-project, not"),
]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, outputs: Json) -> list[str]:
    def said(variables: Mapping[str, Any]) -> str:
        with pytest.raises(AssertionError) as refused:
            configured(tmp_path_factory.mktemp("refused"), outputs, **variables)
        return str(refused.value)

    return refusals(REFUSED, said)


@pytest.mark.parametrize("index", range(len(REFUSED)), ids=[says for _, says in REFUSED])
def test_what_cannot_be_is_refused(told: list[str], index: int) -> None:
    _, says = REFUSED[index]
    assert re.search(says, told[index]), told[index]


def test_an_empty_name_of_the_settings_is_no_provisioner_as_a_build_says_it(tmp_path: Path, outputs: Json) -> None:
    assert configured(tmp_path, outputs, provisioner_settings_file="").plan.outputs["quotas"]["provisioned"] == 0


def test_kueue_manages_queued_workloads_alone_and_counts_neither_cpus_nor_memory(found: Configured) -> None:
    kueue = found.kueue()
    assert kueue["manageJobsWithoutQueueName"] is False
    assert set(kueue["integrations"]["frameworks"]) == {"batch/job", "jobset.x-k8s.io/jobset"}
    requested = {
        resource
        for jobset in JOBSETS
        for job in jobset["spec"]["replicatedJobs"]
        for container in job["template"]["spec"]["template"]["spec"]["containers"]
        for part in container["resources"].values()
        for resource in part
    }
    assert requested - {"google.com/tpu"} <= set(kueue["resources"]["excludeResourcePrefixes"])


def test_the_preflight_has_nothing_against_this_kueue(found: Configured) -> None:
    text = found.values("kueue")["managerConfig"]["controllerManagerConfigYaml"]
    assert list(kueue_findings(Found({}), Found({"data": {KEY: text}}), Limits().gang_hold_for)) == []


def test_every_name_of_the_examples_is_made(found: Configured) -> None:
    queues, classes = found.manifests("LocalQueue"), found.manifests("WorkloadPriorityClass")
    labels = [jobset["metadata"]["labels"] for jobset in JOBSETS]
    accounts = {
        job["template"]["spec"]["template"]["spec"].get("serviceAccountName")
        for jobset in JOBSETS
        for job in jobset["spec"]["replicatedJobs"]
    }
    assert {f"{namespace}/{each[QUEUE]}" for each in labels for namespace in ("tpu-training", "vision")} == set(queues)
    assert {each[PRIORITY] for each in labels if PRIORITY in each} <= set(classes)
    assert {each for each in accounts if each} <= {
        body["metadata"][0]["name"] for body in found.plan.all("kubernetes_service_account_v1").values()
    }
    assert {name: each["value"] for name, each in classes.items()} == {
        "verylow": 100,
        "low": 250,
        "medium": 500,
        "high": 750,
        "veryhigh": 1000,
    }


def test_queues_name_flavors_and_queues_that_are_made(found: Configured) -> None:
    queues = found.manifests("ClusterQueue")
    flavors = {each["name"] for queue in queues.values() for each in queue["spec"]["resourceGroups"][0]["flavors"]}
    assert flavors == set(found.manifests("ResourceFlavor"))
    assert {each["spec"]["clusterQueue"] for each in found.manifests("LocalQueue").values()} == set(queues)
    assert found.plan.outputs["cluster_queue"] in queues
