from typing import Any

import pytest

from tests.local.controllers.cluster import (
    JOBSET,
    POOL,
    Cluster,
    annotated,
    condition,
    index,
    jobset,
    phases,
    pools_of,
    replicated_job,
)

JOBS = ["train-slice-0", "train-slice-1"]


def running(seconds: float = 10, **changes: Any) -> Cluster:
    """Return a cluster in which a JobSet of two slices has been running on two pools for this time."""
    cluster = Cluster()
    cluster.apply("jobsets", jobset(**changes))
    cluster.add_pool("pool-0")
    cluster.add_pool("pool-1")
    cluster.pass_time(seconds)
    return cluster


def test_while_there_is_no_node_one_pending_leader_per_slice_is_all_there_is() -> None:
    cluster = Cluster()
    cluster.apply("jobsets", jobset())

    pods = cluster.pods()
    assert [index(pod) for pod in pods] == [0, 0]
    assert [pod["metadata"]["labels"]["job-name"] for pod in pods] == JOBS
    assert {condition(pod, "PodScheduled")["reason"] for pod in pods} == {"Unschedulable"}
    assert {condition(pod, "PodScheduled")["message"] for pod in pods} == {"no nodes available to schedule pods"}
    assert "FailedCreate" in cluster.reasons("jobs", "train-slice-0")


def test_the_first_pool_takes_one_slice_whole_and_leaves_the_other_waiting() -> None:
    cluster = Cluster()
    cluster.apply("jobsets", jobset())
    cluster.add_pool("pool-0")
    cluster.pass_time(10)

    first, second = cluster.pods("train-slice-0"), cluster.pods("train-slice-1")
    assert phases(first) == ["Running", "Running"]
    assert pools_of(cluster, first) == {"pool-0"}
    assert first[1]["spec"]["nodeSelector"][POOL] == "pool-0"
    assert len(second) == 1
    assert condition(second[0], "PodScheduled")["message"].startswith("0/2 nodes are available: ")


def test_exclusive_topology_keeps_a_second_slice_off_a_pool_with_room() -> None:
    cluster = Cluster()
    cluster.apply("jobsets", jobset())
    cluster.add_pool("pool-0", hosts=4)
    cluster.pass_time(10)

    waiting = cluster.pods("train-slice-1")
    assert len(waiting) == 1
    assert condition(waiting[0], "PodScheduled")["message"] == (
        "0/4 nodes are available: 2 Insufficient google.com/tpu, "
        "2 node(s) didn't match pod anti-affinity rules. "
        "preemption: 0/4 nodes are available: 4 No preemption victims found for incoming pod."
    )


def test_a_jobset_runs_and_completes() -> None:
    cluster = running()

    assert phases(cluster.pods()) == ["Running"] * 4
    assert {pod["status"]["podIP"][:3] for pod in cluster.pods()} == {"10."}
    counts = cluster.jobset()["status"]["replicatedJobsStatus"]
    assert counts == [{"name": "slice", "ready": 2, "succeeded": 0, "failed": 0, "active": 2, "suspended": 0}]

    cluster.pass_time(120)
    assert phases(cluster.pods()) == ["Succeeded"] * 4
    assert [condition(cluster.job(name), "Complete")["status"] for name in JOBS] == ["True", "True"]
    status = cluster.jobset()["status"]
    assert status["terminalState"] == "Completed"
    assert condition(cluster.jobset(), "Completed")["reason"] == "AllJobsCompleted"
    assert status["replicatedJobsStatus"][0]["succeeded"] == 2
    assert cluster.reasons("jobsets", "train") == {"AllJobsCompleted"}


def test_nothing_moves_in_a_cluster_at_rest() -> None:
    cluster = running()

    version = cluster.objects.version
    assert cluster.settle() == 1
    assert cluster.objects.version == version


def test_a_restart_keeps_the_nodes_and_comes_back_as_the_next_attempt() -> None:
    pod = annotated(run_seconds="5", fail_until_restart="1")
    cluster = running(replicatedJobs=[replicated_job(pod=pod)], failurePolicy={"maxRestarts": 1})

    nodes = cluster.names("nodes")
    cluster.pass_time(60)
    assert cluster.jobset()["status"]["restarts"] == 1
    assert "RestartJobSetFailurePolicyAction" in cluster.reasons("jobsets", "train")
    assert cluster.names("nodes") == nodes
    assert {job["metadata"]["labels"][JOBSET + "restart-attempt"] for job in cluster.objects.list("jobs")} == {"1"}
    assert cluster.jobset()["status"]["terminalState"] == "Completed"
    assert cluster.jobset()["status"]["restartsCountTowardsMax"] == 1
    assert condition(cluster.jobset(), "RestartingJobSet")["status"] == "False"


@pytest.mark.parametrize(("strategy", "first_back"), [("Recreate", ["train-bad-0"]), ("BlockingRecreate", [])])
def test_a_restarted_job_comes_back_when_its_own_or_all_old_pods_are_gone(strategy: str, first_back: list[str]) -> None:
    failing = replicated_job("bad", replicas=1, pod=annotated(run_seconds="5", fail_until_restart="1"))
    policy = {"maxRestarts": 1, "restartStrategy": strategy}
    cluster = running(5, replicatedJobs=[failing, replicated_job("good", replicas=1)], failurePolicy=policy)

    def of_second_attempt() -> list[str]:
        labels = {job["metadata"]["name"]: job["metadata"]["labels"] for job in cluster.objects.list("jobs")}
        return [name for name in labels if labels[name][JOBSET + "restart-attempt"] == "1"]

    cluster.pass_time(3)
    assert of_second_attempt() == first_back
    cluster.pass_time(3)
    assert of_second_attempt() == ["train-bad-0", "train-good-0"]


def test_a_jobset_fails_once_its_restarts_are_used_up() -> None:
    pod = annotated(run_seconds="5", fail_until_restart="9")
    cluster = running(replicatedJobs=[replicated_job(pod=pod)], failurePolicy={"maxRestarts": 2})
    cluster.pass_time(120)

    failed = condition(cluster.jobset(), "Failed")
    assert failed["reason"] == "ReachedMaxRestarts"
    assert failed["message"] == (
        "jobset failed due to reaching max number of restarts (first failed job: train-slice-0)"
    )
    assert cluster.jobset()["status"]["restarts"] == 2
    assert condition(cluster.job("train-slice-0"), "Failed")["reason"] == "BackoffLimitExceeded"


def test_a_jobset_without_a_failure_policy_fails_with_its_first_job() -> None:
    failing = replicated_job("bad", replicas=1, pod=annotated(run_seconds="5", fail_until_restart="1"))
    cluster = running(replicatedJobs=[failing, replicated_job("good", replicas=1)])
    cluster.pass_time(30)

    assert condition(cluster.jobset(), "Failed")["reason"] == "FailedJobs"
    assert cluster.jobset()["status"]["terminalState"] == "Failed"
    assert cluster.names("jobs") == ["train-bad-0"], "active Jobs are deleted, failed ones kept"


def test_a_rule_of_the_failure_policy_ends_the_jobset_at_once() -> None:
    pod = annotated(run_seconds="5", fail_until_restart="1")
    rules = [{"action": "FailJobSet", "onJobFailureReasons": ["BackoffLimitExceeded"]}]
    policy = {"maxRestarts": 5, "rules": rules}
    cluster = running(replicatedJobs=[replicated_job(pod=pod)], failurePolicy=policy)
    cluster.pass_time(30)

    assert condition(cluster.jobset(), "Failed")["reason"] == "FailJobSetFailurePolicyAction"
    assert cluster.jobset()["status"]["restarts"] == 0


def test_suspending_deletes_the_pods_and_resuming_brings_changed_templates() -> None:
    cluster = running()
    cluster.change_jobset(suspend=True)

    assert phases(cluster.pods()) == ["Running"] * 4, "the grace period is honoured"
    cluster.pass_time(10)
    assert cluster.pods() == []
    assert [job["spec"]["suspend"] for job in cluster.objects.list("jobs")] == [True, True]
    assert [job["status"]["failed"] for job in cluster.objects.list("jobs")] == [0, 0]
    assert condition(cluster.jobset(), "Suspended")["reason"] == "SuspendedJobs"
    assert cluster.jobset()["status"]["replicatedJobsStatus"][0]["suspended"] == 2

    changed = cluster.jobset()["spec"]["replicatedJobs"]
    flavor = {"key": "flavor", "operator": "Exists"}
    changed[0]["template"]["spec"]["template"]["spec"]["nodeSelector"]["flavor"] = "reserved"
    changed[0]["template"]["spec"]["template"]["spec"]["tolerations"] = [flavor]
    cluster.change_jobset(replicatedJobs=changed)
    cluster.change_jobset(suspend=False)
    leaders = cluster.pods()
    assert [leader["spec"]["nodeSelector"]["flavor"] for leader in leaders] == ["reserved", "reserved"]
    assert all(flavor in leader["spec"]["tolerations"] for leader in leaders)
    assert condition(cluster.jobset(), "Suspended")["status"] == "False"


def test_a_jobset_created_suspended_has_suspended_jobs_and_no_pods() -> None:
    cluster = Cluster()
    cluster.apply("jobsets", jobset(suspend=True))

    assert cluster.names("jobs") == JOBS
    assert cluster.pods() == []
    assert condition(cluster.job("train-slice-0"), "Suspended")["status"] == "True"


def test_deleting_a_jobset_takes_everything_with_it() -> None:
    cluster = running()
    cluster.objects.delete("jobsets", "default", "train")
    cluster.pass_time(10)

    left = {plural: cluster.names(plural) for plural in ("jobsets", "jobs", "pods", "services")}
    assert left == {"jobsets": [], "jobs": [], "pods": [], "services": []}


def test_deleting_the_namespace_ends_quietly() -> None:
    cluster = Cluster()
    cluster.objects.create("namespaces", {"metadata": {"name": "team"}})
    obj = jobset()
    obj["metadata"]["namespace"] = "team"
    cluster.apply("jobsets", obj)
    cluster.add_pool("pool-0")
    cluster.pass_time(10)
    cluster.objects.delete("namespaces", None, "team")
    cluster.pass_time(10)

    assert "team" not in cluster.names("namespaces")


def test_a_finished_jobset_is_deleted_after_its_time_to_live() -> None:
    cluster = running(ttlSecondsAfterFinished=100)
    cluster.pass_time(120)
    assert cluster.names("jobsets") == ["train"]
    cluster.pass_time(60)

    assert cluster.names("jobsets") == []
    assert cluster.names("jobs") == []


def test_any_success_of_a_target_completes_the_jobset_and_ends_the_rest() -> None:
    driver = replicated_job("driver", replicas=1, pod=annotated(run_seconds="5"))
    policy = {"operator": "Any", "targetReplicatedJobs": ["driver"]}
    cluster = running(replicatedJobs=[driver, replicated_job("workers", replicas=1)], successPolicy=policy)
    cluster.pass_time(30)

    assert cluster.jobset()["status"]["terminalState"] == "Completed"
    assert cluster.names("jobs") == ["train-driver-0"]


def test_in_order_the_second_replicated_job_waits_until_the_first_is_ready() -> None:
    cluster = Cluster()
    jobs = [replicated_job("first", replicas=1), replicated_job("second", replicas=1)]
    cluster.apply("jobsets", jobset("train", *jobs, startupPolicy={"startupPolicyOrder": "InOrder"}))
    assert cluster.names("jobs") == ["train-first-0"]
    assert condition(cluster.jobset(), "StartupPolicyInProgress")["status"] == "True"

    cluster.add_pool("pool-0")
    cluster.pass_time(10)
    assert cluster.names("jobs") == ["train-first-0", "train-second-0"]
    cluster.add_pool("pool-1")
    cluster.pass_time(10)
    assert condition(cluster.jobset(), "StartupPolicyCompleted")["status"] == "True"
    assert condition(cluster.jobset(), "StartupPolicyInProgress")["status"] == "False"


def test_a_replicated_job_waits_for_the_one_it_depends_on() -> None:
    cluster = Cluster()
    prepare = replicated_job("prepare", replicas=1, pod=annotated(run_seconds="5"))
    train = replicated_job("train", replicas=1) | {"dependsOn": [{"name": "prepare", "status": "Complete"}]}
    cluster.apply("jobsets", jobset("train", prepare, train))
    cluster.add_pool("pool-0")
    assert cluster.names("jobs") == ["train-prepare-0"]
    cluster.pass_time(20)

    assert cluster.names("jobs") == ["train-prepare-0", "train-train-0"]


def test_a_jobset_of_another_controller_is_left_alone() -> None:
    cluster = Cluster()
    cluster.apply("jobsets", jobset(managedBy="kueue.x-k8s.io/multikueue"))

    assert cluster.names("jobs") == []
    assert "status" not in cluster.jobset()


def test_a_jobs_name_that_is_taken_is_told_once_and_tried_again() -> None:
    cluster = Cluster()
    stranger = {"metadata": {"name": "train-slice-0", "namespace": "default"}}
    template = replicated_job()["template"]
    cluster.objects.create("jobs", stranger | {"spec": template["spec"] | {"suspend": True}})
    cluster.apply("jobsets", jobset())
    assert "JobCreationFailed" in cluster.reasons("jobsets", "train")

    cluster.objects.delete("jobs", "default", "train-slice-0")
    cluster.settle()
    assert cluster.job("train-slice-0")["metadata"]["ownerReferences"][0]["name"] == "train"


def test_two_jobsets_never_share_a_pool() -> None:
    cluster = Cluster()
    for name in ("one", "two"):
        cluster.apply("jobsets", jobset(name, replicated_job(replicas=1)))
    cluster.add_pool("pool-0")
    cluster.add_pool("pool-1")
    cluster.pass_time(10)

    pools = [pools_of(cluster, cluster.pods(f"{name}-slice-0")) for name in ("one", "two")]
    assert sorted(map(sorted, pools)) == [["pool-0"], ["pool-1"]]
