"""What `slices plan` warns of: workloads that get their slices, or would, and hang or fail all the same."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.cli.applied.asking import a_job, a_jobset, answer, groups, job_of, pod_of
from tests.cli.conftest import ROOT, Slices

EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
GROUP_EXCLUSIVE = "leaderworkerset.sigs.k8s.io/exclusive-topology"
POOL = "cloud.google.com/gke-nodepool"


def about(word: str, slices: Slices, *documents: Any) -> list[str]:
    """Return the warnings that have a word."""
    return [each for each in answer(slices, *documents)["warnings"] if word in each]


def test_workers_of_a_job_without_a_subdomain_do_not_find_each_other(slices: Slices) -> None:
    service, job = a_job()
    assert about("subdomain", slices, service, job) == []
    del job["spec"]["template"]["spec"]["subdomain"]
    (warning,) = about("subdomain", slices, service, job)
    assert warning == (
        "Job indexed: spec.template.spec.subdomain is missing: without it its 2 pods have no names by which they find "
        "each other, and they hang on hosts that are billed: set it to the name of a headless Service that selects "
        "them, or make it a Job of a JobSet, which has one"
    )


def test_the_subdomain_is_that_of_a_headless_service_that_selects_the_pods(slices: Slices) -> None:
    service, job = a_job()
    service["spec"]["clusterIP"] = "10.0.0.1"
    (warning,) = about("subdomain", slices, service, job)
    assert "Service indexed is not headless" in warning
    assert "set its spec.clusterIP to None" in warning
    service["spec"] |= {"clusterIP": "None", "selector": {"app": "indexed"}}
    (warning,) = about("subdomain", slices, service, job)
    assert "Service indexed does not select them" in warning
    job["spec"]["template"]["metadata"] = {"labels": {"app": "indexed"}}
    assert about("subdomain", slices, service, job) == []


def test_a_service_that_no_file_has_may_exist_already(slices: Slices) -> None:
    _, job = a_job()
    (warning,) = about("subdomain", slices, job)
    assert "no file has a headless Service indexed" in warning
    assert "unless the namespace has it already" in warning


def test_a_single_worker_has_nobody_to_find(slices: Slices) -> None:
    _, job = a_job(hosts=1)
    spec = job["spec"]["template"]["spec"]
    spec["nodeSelector"]["cloud.google.com/gke-tpu-topology"] = "2x2x1"
    del spec["subdomain"]
    assert about("subdomain", slices, job) == []


def test_a_jobset_without_hostnames_is_like_a_job_without_a_subdomain(slices: Slices) -> None:
    jobset = a_jobset()
    jobset["spec"]["network"] = {"enableDNSHostnames": False}
    (warning,) = about("enableDNSHostnames", slices, jobset)
    assert warning.startswith("JobSet v5e: spec.network.enableDNSHostnames is false: ")


@pytest.mark.parametrize(("surge", "warned"), [(1, True), ("25%", True), (0, False), ("0%", False), (None, False)])
def test_a_rollout_with_more_groups_than_replicas_waits_for_those_without_slices(
    slices: Slices, surge: Any, warned: bool
) -> None:
    made = groups()
    made["spec"]["rolloutStrategy"] = {"rollingUpdateConfiguration": {"maxSurge": surge, "maxUnavailable": 1}}
    found = about("maxSurge", slices, made)
    assert [each.startswith("LeaderWorkerSet serve: spec.rolloutStrategy") for each in found] == [True] * warned


def pod_group(least: int, namespace: str = "default") -> Any:
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "all", "namespace": namespace},
        "spec": {"schedulingPolicy": {"gang": {"minCount": least}}},
    }


def grouped(*, exclusive: bool = True, replicas: int = 2) -> Any:
    jobset = a_jobset()
    jobset["metadata"]["annotations"] = {EXCLUSIVE: POOL} if exclusive else {}
    jobset["spec"]["replicatedJobs"][0]["replicas"] = replicas
    pod_of(jobset)["schedulingGroup"] = {"podGroupName": "all"}
    return jobset


def test_a_pod_group_of_all_pods_waits_for_ever_for_those_that_come_after_their_leader(slices: Slices) -> None:
    (warning,) = about("PodGroup", slices, grouped(), pod_group(8))
    assert warning == (
        "JobSet v5e: PodGroup all: spec.schedulingPolicy.gang.minCount is 8, and only 2 of its pods are there before a "
        "leader is scheduled: it waits for ever, and no slice is made: set it to 2 at most, or remove what has the "
        f"other pods wait for their leaders ({EXCLUSIVE})"
    )


@pytest.mark.parametrize(
    ("jobset", "group"),
    [
        pytest.param(grouped(), pod_group(2), id="the leaders alone"),
        pytest.param(grouped(exclusive=False), pod_group(8), id="no leader comes first"),
        pytest.param(grouped(), pod_group(8, "elsewhere"), id="a group of another namespace"),
        pytest.param(a_jobset(), pod_group(8), id="pods of no group"),
    ],
)
def test_a_pod_group_of_pods_that_are_there_at_once_waits_for_nothing(slices: Slices, jobset: Any, group: Any) -> None:
    assert about("PodGroup", slices, jobset, group) == []


def pod_groups_of(jobset: str, least: int) -> Any:
    """Return the Workload of which the Job controller makes a PodGroup for each Job of a JobSet."""
    template = {"name": "workers", "schedulingPolicy": {"gang": {"minCount": least}}}
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {"name": "whole"},
        "spec": {
            "controllerRef": {"apiGroup": "jobset.x-k8s.io", "kind": "JobSet", "name": jobset},
            "podGroupTemplates": [template],
        },
    }


def delegated(*, exclusive: bool = True) -> Any:
    jobset = grouped(exclusive=exclusive)
    del pod_of(jobset)["schedulingGroup"]
    annotations = {"scheduling.k8s.io/group-template-name": "workers"}
    jobset["spec"]["replicatedJobs"][0]["template"]["metadata"] = {"annotations": annotations}
    return jobset


def test_a_pod_group_that_the_job_controller_makes_of_a_whole_job_waits_for_ever_too(slices: Slices) -> None:
    (warning,) = about("minCount", slices, delegated(), pod_groups_of("v5e", 4))
    assert warning == (
        "JobSet v5e, replicatedJob workers: Workload whole, podGroupTemplate workers: schedulingPolicy.gang.minCount "
        "is 4, and only the leader of each Job is there before it is scheduled: it waits for ever, and no slice is "
        "made: remove the annotation scheduling.k8s.io/group-template-name, or what has the other pods wait for their "
        f"leaders ({EXCLUSIVE})"
    )


@pytest.mark.parametrize(
    ("jobset", "workload"),
    [
        pytest.param(delegated(), pod_groups_of("v5e", 1), id="of the leader alone"),
        pytest.param(delegated(exclusive=False), pod_groups_of("v5e", 4), id="no leader comes first"),
        pytest.param(delegated(), pod_groups_of("another", 4), id="of another JobSet"),
        pytest.param(grouped(), pod_groups_of("v5e", 4), id="no Job asks for one"),
    ],
)
def test_no_other_pod_group_that_it_makes_does(slices: Slices, jobset: Any, workload: Any) -> None:
    assert about("minCount", slices, jobset, workload) == []


@pytest.mark.parametrize("first", ["exclusive", "startup"])
def test_leaders_of_groups_come_first_too(slices: Slices, first: str) -> None:
    whole = groups()
    whole["metadata"]["annotations"] = {GROUP_EXCLUSIVE: POOL}
    if first == "startup":
        whole["metadata"]["annotations"] = {}
        whole["spec"]["startupPolicy"] = "LeaderReady"
    worker = whole["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    worker["spec"]["schedulingGroup"] = {"podGroupName": "all"}
    (warning,) = about("PodGroup", slices, whole, pod_group(8))
    assert "only 2 of its pods are there" in warning
    assert about("PodGroup", slices, whole, pod_group(2)) == []


def test_what_jobset_adds_to_a_template_is_to_be_said(slices: Slices) -> None:
    jobset = a_jobset()
    assert about("second", slices, jobset) == []
    del job_of(jobset)["completionMode"], pod_of(jobset)["restartPolicy"]
    (warning,) = about("second", slices, jobset)
    assert warning == (
        "JobSet v5e, replicatedJob workers: JobSet adds completionMode: Indexed and restartPolicy: OnFailure when it "
        "is created, and refuses a second `kubectl apply` of the file without them: add them"
    )
    jobset["metadata"]["uid"] = "u-1"
    assert about("second", slices, jobset) == []


def spot() -> Any:
    return yaml.safe_load((ROOT / "examples" / "v6e-spot.yaml").read_text())


def test_spot_hosts_without_restarts_end_the_jobset(slices: Slices) -> None:
    jobset = spot()
    assert about("preempted", slices, jobset) == []
    jobset["spec"].pop("failurePolicy", None)
    job_of(jobset)["backoffLimit"] = 0
    (warning,) = about("preempted", slices, jobset)
    assert warning == (
        "JobSet v6e-spot, replicatedJob workers: spot hosts may be preempted at any time, and nothing restarts the "
        "Jobs: set spec.failurePolicy.maxRestarts, and continue from checkpoints"
    )
    jobset["spec"]["failurePolicy"] = {"maxRestarts": 3}
    assert about("preempted", slices, jobset) == []


def test_a_job_on_spot_hosts_is_retried_by_its_own_limit(slices: Slices) -> None:
    service, job = a_job()
    spec = job["spec"]["template"]["spec"]
    spec["nodeSelector"]["cloud.google.com/gke-spot"] = "true"
    spec["tolerations"] = [{"key": "cloud.google.com/gke-spot", "operator": "Exists"}]
    (warning,) = about("preempted", slices, service, job)
    assert warning.startswith(
        "Job indexed: spot hosts may be preempted at any time, and nothing restarts the Job: set "
    )
    job["spec"]["backoffLimit"] = 3
    assert about("preempted", slices, service, job) == []
