"""What the policy for self-managed clusters makes of Jobs on a real API server: what the table of variables says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.asking import path
from tests.infra.sources import ROOT
from tests.kubernetes.cluster import Cluster, Json
from tpu_slices.domain.catalogue.topology import Topology
from tpu_slices.domain.planning.environment import (
    JobPlace,
    multislice_environment,
    topology_environment,
    worker_environment,
    worker_hostnames,
)
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

MANIFEST = ROOT / "infra" / "kubernetes" / "job-environment.yaml"
DRY_RUN = "/apis/batch/v1/namespaces/default/jobs?dryRun=All&fieldValidation=Strict"
INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
TOLERATION = {"key": "google.com/tpu", "operator": "Exists", "effect": "NoSchedule"}


def a_job(
    *, hosts: int = 4, chips: int = 4, topology: str = "2x2x4", slices: int = 1, index: int = 0, **pod: Any
) -> Json:
    """Return a Job of a JobSet as JobSet's controller makes it."""
    container = {"name": "worker", "image": "train", "resources": {"limits": {"google.com/tpu": str(chips)}}}
    spec = {
        "restartPolicy": "Never",
        "subdomain": "llama",
        "nodeSelector": {"cloud.google.com/gke-tpu-topology": topology},
        "containers": [container, {"name": "sidecar", "image": "logs"}],
        **pod,
    }
    return {
        "metadata": {
            "name": f"llama-workers-{index}",
            "labels": {
                "jobset.sigs.k8s.io/jobset-name": "llama",
                "jobset.sigs.k8s.io/replicatedjob-name": "workers",
                "jobset.sigs.k8s.io/replicatedjob-replicas": str(slices),
                "jobset.sigs.k8s.io/job-index": str(index),
            },
        },
        "spec": {
            "parallelism": hosts,
            "completions": hosts,
            "completionMode": "Indexed",
            "template": {"spec": {key: value for key, value in spec.items() if value is not None}},
        },
    }


def created(cluster: Cluster, job: Json) -> Json:
    reply = cluster.post(DRY_RUN, job)
    assert reply.object is not None, reply.refused
    pod: Json = reply.object["spec"]["template"]["spec"]
    return pod


def environment(pod: Json, index: int, container: int = 0) -> dict[str, str]:
    """Return the environment of one container in the pod of a completion index."""
    found: dict[str, str] = {}
    for each in pod["containers"][container].get("env", ()):
        if "valueFrom" in each:
            assert each["valueFrom"] == {"fieldRef": {"apiVersion": "v1", "fieldPath": INDEX}}
            found[each["name"]] = str(index)
        else:
            found[each["name"]] = each["value"]
    return found


@pytest.fixture(scope="module", autouse=True)
def policy(cluster: Cluster) -> Iterator[None]:
    applied = cluster.apply("-f", str(MANIFEST))
    assert (applied.code, applied.error) == (0, "")
    until(lambda: "env" in created(cluster, a_job())["containers"][0], "the policy to take effect")
    yield
    assert cluster.kubectl("delete", "-f", str(MANIFEST)).code == 0


@pytest.mark.parametrize(
    ("topology", "hosts", "chips"),
    [
        ("2x2x4", 4, 4),
        ("2x2x2", 2, 4),
        ("4x4", 4, 4),
        ("2x4", 2, 4),
        ("2x4", 1, 8),
        ("1x1", 1, 1),
        ("4x4x8", 32, 4),
        ("12x16x20", 960, 4),
    ],
)
def test_the_processes_of_a_job_are_told_what_the_table_says(
    topology: str, hosts: int, chips: int, cluster: Cluster
) -> None:
    pod = created(cluster, a_job(hosts=hosts, chips=chips, topology=topology))
    names = worker_hostnames(JobPlace(name="llama-workers-0", subdomain="llama", hosts=hosts))
    for index in range(hosts):
        assert environment(pod, index) == {
            **worker_environment(index, names),
            **topology_environment(Topology.parse(topology), chips),
        }


def test_the_only_process_of_a_job_without_indexes_is_told_the_same_as_with_them(cluster: Cluster) -> None:
    alone: dict[str, Any] = {"hosts": 1, "chips": 8, "topology": "2x4", "slices": 3, "index": 2}
    indexed, other = a_job(**alone), a_job(**alone)
    other["spec"]["completionMode"] = "NonIndexed"
    of_others = multislice_environment("llama", "workers", 3, 2, "llama")
    told = environment(created(cluster, indexed), 0)
    assert environment(created(cluster, other), 0).items() == told.items() - of_others.items()


def test_the_slices_of_a_jobset_are_told_of_each_other(cluster: Cluster) -> None:
    pod = created(cluster, a_job(slices=3, index=2))
    expected = multislice_environment("llama", "workers", 3, 2, "llama")
    assert expected.items() <= environment(pod, 0).items()
    assert environment(pod, 0)["TPU_WORKER_HOSTNAMES"].startswith("llama-workers-2-0.llama,")


def test_a_container_without_chips_is_told_nothing(cluster: Cluster) -> None:
    assert environment(created(cluster, a_job()), 0, container=1) == {}


@pytest.mark.parametrize("name", ["TPU_WORKER_ID", "TPU_WORKER_HOSTNAMES"])
def test_a_container_that_knows_already_is_left_alone(name: str, cluster: Cluster) -> None:
    job = a_job()
    job["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": name, "value": "own"}]
    assert environment(created(cluster, job), 0) == {name: "own"}


def test_what_it_has_beside_stays(cluster: Cluster) -> None:
    job = a_job()
    own = [{"name": "A", "value": "1"}, {"name": "TPU_PROCESS_PORT", "value": "9000"}]
    job["spec"]["template"]["spec"]["containers"][0]["env"] = own
    pod = created(cluster, job)
    assert pod["containers"][0]["env"][:2] == own
    assert environment(pod, 0)["TPU_PROCESS_PORT"] == "9000"
    assert len(pod["containers"][0]["env"]) == len({each["name"] for each in pod["containers"][0]["env"]})


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(a_job(subdomain=None), id="several pods without a subdomain"),
        pytest.param({**a_job(), "spec": {**a_job()["spec"], "completionMode": "NonIndexed"}}, id="not Indexed"),
    ],
)
def test_pods_that_have_no_names_are_told_nothing_but_may_come(job: Json, cluster: Cluster) -> None:
    pod = created(cluster, job)
    assert environment(pod, 0) == {}
    assert pod["tolerations"] == [TOLERATION]


@pytest.mark.parametrize("topology", ["", "2x3", "nonsense"])
def test_a_topology_that_hosts_do_not_fill_is_not_told(topology: str, cluster: Cluster) -> None:
    told = environment(created(cluster, a_job(topology=topology)), 0)
    assert "TPU_WORKER_HOSTNAMES" in told
    assert "TPU_HOST_BOUNDS" not in told


def test_pods_tolerate_the_taint_of_hosts_with_tpu(cluster: Cluster) -> None:
    assert created(cluster, a_job())["tolerations"] == [TOLERATION]
    own = [{"key": "google.com/tpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"}]
    assert created(cluster, a_job(tolerations=own))["tolerations"] == own
    other = [{"key": "team", "operator": "Exists"}]
    assert created(cluster, a_job(tolerations=other))["tolerations"] == [*other, TOLERATION]


def test_jobs_without_chips_are_left_alone(cluster: Cluster) -> None:
    job = a_job()
    del job["spec"]["template"]["spec"]["containers"][0]["resources"]
    pod = created(cluster, job)
    assert "tolerations" not in pod
    assert environment(pod, 0) == {}


def test_the_pods_that_the_job_controller_makes_have_these_names(cluster: Cluster) -> None:
    job = a_job(hosts=2, topology="2x2x2")
    job["metadata"]["name"] = "named-workers-0"
    made = cluster.post("/apis/batch/v1/namespaces/default/jobs", job)
    assert made.object, made.refused

    def pods() -> list[Json]:
        mine = {"labelSelector": "batch.kubernetes.io/job-name=named-workers-0"}
        found: list[Json] = cluster.api.read(path("pods", "default"), **mine)["items"]
        return found

    try:
        until(lambda: len(pods()) == 2, "the Job's pods")
        by_index = {
            each["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]: each for each in pods()
        }
        names = [f"{by_index[str(i)]['spec']['hostname']}.{by_index[str(i)]['spec']['subdomain']}" for i in range(2)]
        told = {each["name"]: each.get("value") for each in by_index["1"]["spec"]["containers"][0]["env"]}
        assert told["TPU_WORKER_HOSTNAMES"] == ",".join(names)
    finally:
        assert cluster.kubectl("delete", "job", "named-workers-0", "--cascade=foreground", "--wait=false").code == 0
