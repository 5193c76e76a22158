"""The effects of JobSets' policies and annotations, one by one."""

from typing import Any

import pytest

from infra.local.cluster.objects import Object
from tests.local.controllers.cluster import (
    EXCLUSIVE,
    JOBSET,
    POOL,
    Cluster,
    annotated,
    condition,
    jobset,
    phases,
    pools_of,
    replicated_job,
)

BY_SELECTOR = "alpha.jobset.sigs.k8s.io/node-selector"
NAMESPACED_JOB = "alpha.jobset.sigs.k8s.io/namespaced-job"
FAILING = annotated(run_seconds="5", fail_until_restart="9")


def running(*replicated: Object, pools: int = 3, **spec: Any) -> Cluster:
    cluster = Cluster()
    for number in range(pools):
        cluster.add_pool(f"pool-{number}")
    cluster.apply("jobsets", jobset("train", *replicated, **spec))
    return cluster


def test_a_replicated_job_waits_until_the_one_it_depends_on_is_ready() -> None:
    head = replicated_job("head", replicas=1, pod=annotated(run_seconds="200"))
    work = replicated_job("work", replicas=2) | {"dependsOn": [{"name": "head", "status": "Ready"}]}
    cluster = running(head, work)
    assert cluster.names("jobs") == ["train-head-0"]
    cluster.pass_time(5)

    assert cluster.names("jobs") == ["train-head-0", "train-work-0", "train-work-1"]


@pytest.mark.parametrize(("operator", "over"), [("All", [False, True]), ("Any", [True, True])])
def test_success_counts_the_targets_alone(operator: str, over: list[bool]) -> None:
    quick = replicated_job("quick", replicas=1, pod=annotated(run_seconds="5"))
    slow = replicated_job("slow", replicas=1, pod=annotated(run_seconds="30"))
    endless = replicated_job("endless", replicas=1, pod=annotated(run_seconds="9999"))
    policy = {"operator": operator, "targetReplicatedJobs": ["quick", "slow"]}
    cluster = running(quick, slow, endless, successPolicy=policy)
    seen = []
    for _ in range(2):
        cluster.pass_time(20)
        seen.append(cluster.jobset().get("status", {}).get("terminalState") == "Completed")

    assert seen == over


def test_a_restart_that_is_ignored_counts_for_nothing() -> None:
    rules = [{"name": "again", "action": "RestartJobSetAndIgnoreMaxRestarts", "targetReplicatedJobs": ["slice"]}]
    failing = replicated_job(replicas=1, pod=annotated(run_seconds="5", fail_until_restart="3"))
    cluster = running(failing, failurePolicy={"maxRestarts": 0, "rules": rules})
    cluster.pass_time(120)

    status = cluster.jobset()["status"]
    assert (status["restarts"], status.get("restartsCountTowardsMax", 0)) == (3, 0)
    assert status["terminalState"] == "Completed"
    assert {"FailurePolicy_again", "RestartJobSetAndIgnoreMaxRestartsFailurePolicyAction"} <= cluster.reasons(
        "jobsets", "train"
    )


@pytest.mark.parametrize(
    ("rule", "restarts"),
    [
        ({"onJobFailureReasons": ["DeadlineExceeded"]}, 1),
        ({"onJobFailureReasons": ["BackoffLimitExceeded"]}, 0),
        ({"targetReplicatedJobs": ["other"]}, 1),
        ({"onJobFailureMessagePatterns": ["specified backoff"]}, 0),
        ({"onJobFailureMessagePatterns": ["[", "deadline$"]}, 1),
    ],
    ids=["another reason", "its reason", "another job", "its message", "another message"],
)
def test_a_rule_is_for_failures_that_are_all_it_says(rule: Object, restarts: int) -> None:
    other = replicated_job("other", replicas=1, pod=annotated(run_seconds="9999"))
    policy = {"maxRestarts": 1, "rules": [{"action": "FailJobSet"} | rule]}
    cluster = running(replicated_job(replicas=1, pod=FAILING), other, failurePolicy=policy)
    cluster.pass_time(60)

    assert cluster.jobset()["status"]["restarts"] == restarts
    assert cluster.jobset()["status"]["terminalState"] == "Failed"


def test_what_a_suspended_template_gained_reaches_the_pods_gates_too() -> None:
    cluster = running(replicated_job(replicas=1), suspend=True)
    jobs = cluster.jobset()["spec"]["replicatedJobs"]
    template = jobs[0]["template"]["spec"]["template"]
    template["metadata"] = {"labels": {"team": "a"}, "annotations": {"kueue.x-k8s.io/workload": "w"}}
    template["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/topology"}]
    cluster.change_jobset(replicatedJobs=jobs)
    cluster.change_jobset(suspend=False)

    (leader,) = cluster.pods()
    assert leader["metadata"]["labels"]["team"] == "a"
    assert leader["metadata"]["annotations"]["kueue.x-k8s.io/workload"] == "w"
    assert condition(leader, "PodScheduled")["reason"] == "SchedulingGated"


def test_by_node_selector_a_slice_goes_where_somebody_labelled_the_hosts_for_it() -> None:
    cluster = running()
    obj = jobset("pick")
    obj["metadata"]["annotations"][BY_SELECTOR] = "true"
    cluster.objects.delete("jobsets", "default", "train")
    cluster.pass_time(10)
    cluster.apply("jobsets", obj)
    assert phases(cluster.pods()) == ["Pending"] * 4, "followers need no leader"

    taint = {"key": "alpha.jobset.sigs.k8s.io/no-schedule", "value": "true", "effect": "NoSchedule"}
    for number, job in (("2", "pick-slice-0"), ("0", "pick-slice-1")):
        for host in (f"pool-{number}-0", f"pool-{number}-1"):
            known = cluster.objects.get("nodes", None, host)
            known["metadata"]["labels"][NAMESPACED_JOB] = f"default_{job}"
            known["spec"]["taints"].append(taint)
            cluster.objects.update("nodes", known)
    cluster.pass_time(10)
    assert [pools_of(cluster, cluster.pods(f"pick-slice-{index}")) for index in (0, 1)] == [{"pool-2"}, {"pool-0"}]
    assert phases(cluster.pods()) == ["Running"] * 4


def test_the_coordinator_is_named_where_programs_look() -> None:
    spec: Object = {
        "coordinator": {"replicatedJob": "slice", "jobIndex": 1, "podIndex": 0},
        "network": {"subdomain": "ring"},
    }
    cluster = running(**spec)
    cluster.pass_time(5)

    for pod in cluster.pods():
        assert pod["metadata"]["labels"][f"{JOBSET}coordinator"] == "train-slice-1-0.ring"
    coordinator = next(pod for pod in cluster.pods("train-slice-1") if pod["spec"]["hostname"] == "train-slice-1-0")
    assert coordinator["spec"]["subdomain"] == "ring"
    assert cluster.objects.get("services", "default", "ring")["spec"]["selector"] == {f"{JOBSET}jobset-name": "train"}


def test_a_job_that_cannot_be_made_is_told_in_upstreams_words() -> None:
    cluster = Cluster()
    spec = replicated_job()["template"]["spec"] | {"suspend": True}
    cluster.objects.create("jobs", {"metadata": {"name": "train-slice-0"}, "spec": spec})
    cluster.apply("jobsets", jobset())

    (event,) = (event for event in cluster.objects.list("events") if event["reason"] == "JobCreationFailed")
    assert event["message"] == (
        'job "train-slice-0" creation failed with error: jobs.batch "train-slice-0" already exists'
    )
    assert event["source"] == {"component": "jobset"}


def test_a_job_tells_what_it_makes_and_ends() -> None:
    cluster = running(replicated_job(replicas=1))
    cluster.pass_time(5)
    cluster.change_jobset(suspend=True)
    cluster.pass_time(5)
    cluster.change_jobset(suspend=False)
    cluster.pass_time(5)

    told = cluster.reasons("jobs", "train-slice-0")
    assert {"SuccessfulCreate", "SuccessfulDelete", "Suspended", "Resumed"} <= told


def test_jobsets_of_other_priorities_may_share_a_pool() -> None:
    cluster = Cluster()
    cluster.add_pool("pool", hosts=4)
    for name, priority in (("low", None), ("high", "system-cluster-critical")):
        obj = jobset(name, replicated_job(replicas=1))
        if priority:
            pod = obj["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
            pod["spec"] = pod["spec"] | {"priorityClassName": priority}
        obj["metadata"]["annotations"] = {EXCLUSIVE: POOL}
        cluster.apply("jobsets", obj)
    cluster.pass_time(10)

    assert phases(cluster.pods()) == ["Running"] * 4


def test_a_jobset_of_greater_priority_takes_the_whole_pool_of_a_lesser_one() -> None:
    cluster = running(replicated_job(replicas=1, pod=annotated(run_seconds="9999")), pools=1)
    cluster.pass_time(10)
    urgent = jobset("urgent", replicated_job(replicas=1, pod=annotated(run_seconds="9999")))
    pod = urgent["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    pod["spec"] = pod["spec"] | {"priorityClassName": "system-node-critical"}
    cluster.apply("jobsets", urgent)
    cluster.pass_time(60)

    assert phases(cluster.pods("urgent-slice-0")) == ["Running", "Running"]
    assert cluster.jobset("train")["status"]["terminalState"] == "Failed"
