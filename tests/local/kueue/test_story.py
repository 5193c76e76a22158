from datetime import timedelta

from infra.local.cluster.kueue.settings import Settings
from infra.local.cluster.objects import Object
from tests.local.controllers.cluster import annotated, pod_spec, replicated_job
from tests.local.kueue.world import (
    LABELS,
    PRIORITY,
    QUEUE,
    QueuedCluster,
    cluster_queue,
    flavor,
    local_queue,
    priority_class,
    queued,
)

BEARS = {"key": "reserved", "operator": "Exists", "effect": "NoSchedule"}
LACKING = (
    "couldn't assign flavors to pod set slice: "
    "insufficient unused quota for google.com/tpu in flavor tpu, 8 more needed"
)


def template(jobset: Object) -> Object:
    found: Object = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    return found


def with_room_for_one(**settings: timedelta) -> QueuedCluster:
    cluster = QueuedCluster(settings=Settings(**settings))
    cluster.open_queue(8)
    return cluster


def test_a_jobset_of_a_queue_gets_a_workload_with_a_pod_set_for_each_replicated_job() -> None:
    cluster = with_room_for_one()
    driver = replicated_job("driver", replicas=1, hosts=1)
    cluster.submit("train", replicated_job(replicas=3), driver)
    made = cluster.workload("train")
    assert [(one["name"], one["count"]) for one in made["spec"]["podSets"]] == [("slice", 6), ("driver", 1)]
    assert made["metadata"]["name"].startswith("jobset-train-")
    assert len(made["metadata"]["name"].rpartition("-")[2]) == 5
    assert made["metadata"]["labels"] == {"kueue.x-k8s.io/job-uid": cluster.jobset("train")["metadata"]["uid"]}
    assert made["spec"]["queueName"] == "jobs"


def test_quota_for_one_admits_one_and_tells_the_other_what_it_lacks() -> None:
    cluster = with_room_for_one()
    cluster.submit("first")
    cluster.submit("second")
    assert (cluster.is_running("first"), cluster.is_running("second")) == (True, False)
    assert cluster.told("first", "Admitted") == ("True", "Admitted", "The workload is admitted")
    assert cluster.told("first", "QuotaReserved")[2] == "Quota reserved in ClusterQueue team"
    assert cluster.told("second", "QuotaReserved") == ("False", "WaitingForQuota", LACKING)
    assert {job["metadata"]["name"] for job in cluster.objects.list("jobs") if job["spec"]["suspend"]} == {
        "second-slice-0"
    }


def test_the_next_is_admitted_when_the_first_has_finished() -> None:
    cluster = with_room_for_one()
    cluster.submit("first", replicated_job(replicas=1, pod=annotated(run_seconds="5")))
    cluster.submit("second")
    cluster.add_pool("pool")
    cluster.pass_time(20)
    assert cluster.told("first", "Finished") == ("True", "Succeeded", "jobset completed successfully")
    assert cluster.is_running("second")
    assert "FinishedWorkload" in cluster.reasons("jobsets", "first")


def test_a_failed_jobset_gives_its_quota_back_too() -> None:
    cluster = with_room_for_one()
    pod = annotated(run_seconds="5", fail_until_restart="9")
    cluster.submit("first", replicated_job(replicas=1, pod=pod))
    cluster.submit("second")
    cluster.add_pool("pool")
    cluster.pass_time(20)
    assert cluster.told("first", "Finished")[:2] == ("True", "Failed")
    assert cluster.is_running("second")


def test_a_started_jobset_has_what_its_flavor_says_and_what_its_user_wrote() -> None:
    cluster = QueuedCluster()
    cluster.objects.create("resourceflavors", flavor(nodeLabels=LABELS | {"pool": "a"}, tolerations=[BEARS]))
    cluster.objects.create("clusterqueues", cluster_queue())
    cluster.objects.create("localqueues", local_queue())
    cluster.submit("train")
    running = template(cluster.jobset("train"))
    assert running["spec"]["nodeSelector"] == LABELS | {"pool": "a"}
    assert running["spec"]["tolerations"] == [BEARS]
    assert running["metadata"] == {
        "labels": {
            "kueue.x-k8s.io/podset": "slice",
            "kueue.x-k8s.io/local-queue-name": "jobs",
            "kueue.x-k8s.io/cluster-queue-name": "team",
        },
        "annotations": {"kueue.x-k8s.io/workload": cluster.workload("train")["metadata"]["name"]},
    }


def test_jobsets_without_a_queue_are_none_of_kueues() -> None:
    cluster = with_room_for_one()
    plain = queued("plain")
    plain["metadata"]["labels"] = {}
    cluster.apply("jobsets", plain)
    assert cluster.is_running("plain")
    assert cluster.names("workloads") == []


def test_a_jobset_of_a_queue_that_does_not_exist_waits_for_it() -> None:
    cluster = QueuedCluster()
    cluster.submit("train")
    assert cluster.told("train", "QuotaReserved") == ("False", "Misconfigured", "LocalQueue jobs doesn't exist")
    cluster.open_queue()
    assert cluster.is_running("train")


def test_a_jobset_that_somebody_resumes_by_hand_is_suspended_again() -> None:
    cluster = with_room_for_one()
    cluster.submit("first")
    cluster.submit("second")
    cluster.change_jobset("second", suspend=False)
    assert not cluster.is_running("second")
    assert "Stopped" in cluster.reasons("jobsets", "second")


def test_a_higher_priority_preempts_and_the_victim_comes_back_with_its_own_templates() -> None:
    cluster = QueuedCluster()
    cluster.open_queue(8, preemption={"withinClusterQueue": "LowerPriority"})
    cluster.objects.create("workloadpriorityclasses", priority_class("high", 1000))
    cluster.add_pool("pool")
    cluster.submit("low")
    cluster.pass_time(5)
    written = queued("low")["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]

    cluster.objects.create("jobsets", queued("urgent", labels={PRIORITY: "high"}))
    cluster.settle()
    assert cluster.told("low", "Evicted")[:2] == ("True", "Preempted")
    assert cluster.told("low", "Preempted")[:2] == ("True", "InClusterQueue")
    assert (cluster.is_running("low"), cluster.is_running("urgent")) == (False, True)
    assert template(cluster.jobset("low"))["spec"] == written["spec"]
    assert "labels" not in template(cluster.jobset("low")).get("metadata", {})
    assert cluster.told("low", "Requeued")[:2] == ("True", "Preempted")
    assert cluster.told("low", "QuotaReserved") == ("False", "WaitingForQuota", LACKING)
    low, urgent = (cluster.workload(name)["metadata"]["name"] for name in ("low", "urgent"))
    assert {"Preempted", "EvictedDueToPreempted"} <= cluster.reasons("workloads", low)
    assert {"PreemptedWorkload", "WaitingForPreemptedWorkloads"} <= cluster.reasons("workloads", urgent)

    cluster.pass_time(100)
    assert cluster.told("urgent", "Finished")[0] == "True"
    assert cluster.told("low", "Evicted")[:2] == ("False", "QuotaReserved")
    cluster.pass_time(100)
    assert cluster.told("low", "Finished")[:2] == ("True", "Succeeded")


def test_a_drained_queue_stops_its_jobsets_until_it_opens_again() -> None:
    cluster = with_room_for_one()
    cluster.add_pool("pool")
    cluster.submit("train")
    cluster.pass_time(5)
    cluster.change("clusterqueues", "team", stopPolicy="HoldAndDrain")
    cluster.pass_time(10)
    assert not cluster.is_running("train")
    assert cluster.pods() == []
    assert cluster.told("train", "Requeued")[:2] == ("False", "ClusterQueueStopped")
    assert cluster.told("train", "QuotaReserved") == ("False", "Suspended", "ClusterQueue team is inactive")

    cluster.submit("later")
    cluster.change("clusterqueues", "team", stopPolicy="None")
    assert (cluster.is_running("train"), cluster.is_running("later")) == (True, False)
    assert cluster.told("train", "Requeued")[:2] == ("True", "ClusterQueueRestarted")


def test_a_workload_that_is_turned_off_stops_its_jobset() -> None:
    cluster = with_room_for_one()
    cluster.submit("train")
    name = cluster.workload("train")["metadata"]["name"]
    cluster.change("workloads", name, active=False)
    cluster.pass_time(5)
    assert not cluster.is_running("train")
    assert cluster.told("train", "Evicted")[:2] == ("True", "Deactivated")
    cluster.change("workloads", name, active=True)
    assert cluster.is_running("train")


def test_pods_that_are_never_ready_cost_the_place_in_the_queue_and_the_next_has_a_try() -> None:
    cluster = with_room_for_one(pods_ready_timeout=timedelta(seconds=300))
    cluster.submit("first")
    cluster.submit("second")
    cluster.pass_time(301)
    assert cluster.told("first", "Evicted")[:2] == ("True", "PodsReadyTimeout")
    assert (cluster.is_running("first"), cluster.is_running("second")) == (False, True)
    assert cluster.told("first", "PodsReady")[:2] == ("False", "WaitForStart")
    cluster.add_pool("pool")
    cluster.pass_time(10)
    assert cluster.told("second", "PodsReady")[:2] == ("True", "Started")
    assert cluster.told("first", "Requeued")[:2] == ("False", "PodsReadyTimeout")
    cluster.pass_time(60)
    assert cluster.told("first", "Requeued")[:2] == ("True", "BackoffFinished")
    assert cluster.is_running("first")


def test_quota_of_a_replicated_job_that_has_succeeded_goes_to_the_next() -> None:
    cluster = QueuedCluster()
    cluster.open_queue(16)
    short = replicated_job("prepare", replicas=1, pod=annotated(run_seconds="5"))
    cluster.submit("train", short, replicated_job("train", replicas=1))
    cluster.submit("next")
    for pool in ("one", "two"):
        cluster.add_pool(pool)
    assert not cluster.is_running("next")
    cluster.pass_time(20)
    assert cluster.workload("train")["status"]["reclaimablePods"] == [{"name": "prepare", "count": 2}]
    assert cluster.is_running("next")


def test_the_workload_goes_with_its_jobset_and_its_quota_to_the_next() -> None:
    cluster = with_room_for_one()
    cluster.submit("first")
    cluster.submit("second")
    cluster.objects.delete("jobsets", "default", "first")
    cluster.settle()
    assert cluster.is_running("second")
    assert len(cluster.names("workloads")) == 1


def test_a_waiting_jobset_may_move_to_another_queue() -> None:
    cluster = QueuedCluster()
    cluster.open_queue(0)
    cluster.objects.create("clusterqueues", cluster_queue() | {"metadata": {"name": "other"}})
    cluster.objects.create("localqueues", local_queue("open", clusterQueue="other"))
    cluster.submit("train")
    moved = cluster.jobset("train")
    moved["metadata"]["labels"][QUEUE] = "open"
    cluster.objects.update("jobsets", moved)
    cluster.settle()
    assert cluster.is_running("train")
    assert cluster.told("train", "QuotaReserved")[2] == "Quota reserved in ClusterQueue other"


def test_a_priority_class_that_does_not_exist_is_told_once_and_waited_for() -> None:
    cluster = with_room_for_one()
    cluster.submit("train", labels={PRIORITY: "high"})
    assert cluster.names("workloads") == []
    assert "WorkloadPriorityClassNotFound" in cluster.reasons("jobsets", "train")
    cluster.objects.create("workloadpriorityclasses", priority_class("high", 1000))
    cluster.settle()
    assert cluster.workload("train")["spec"]["priority"] == 1000
    assert cluster.is_running("train")


def test_queues_count_who_waits_and_what_is_used() -> None:
    cluster = with_room_for_one()
    cluster.submit("first")
    cluster.submit("second")
    status = cluster.objects.get("clusterqueues", None, "team")["status"]
    counts = ("pendingWorkloads", "reservingWorkloads", "admittedWorkloads")
    assert [status[count] for count in counts] == [1, 1, 1]
    used = [{"name": "google.com/tpu", "total": "8", "borrowed": "0"}]
    assert status["flavorsUsage"] == [{"name": "tpu", "resources": used}]
    local = cluster.objects.get("localqueues", "default", "jobs")["status"]
    assert [local[count] for count in counts] == [1, 1, 1]
    assert local["conditions"][0]["reason"] == "Ready"


def test_a_workload_that_nobody_understands_harms_no_other() -> None:
    cluster = with_room_for_one()
    strange = {"matchExpressions": [{"key": next(iter(LABELS)), "operator": "Resembles", "values": ["tpu"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [strange]}}}
    pod = {"spec": pod_spec(affinity=affinity)}
    cluster.submit("strange", replicated_job(replicas=1, pod=pod))
    cluster.submit("train")
    assert cluster.is_running("train")
    assert cluster.told("strange", "QuotaReserved") == (
        "False",
        "Misconfigured",
        "failed to assign flavors: no selector operator: Resembles",
    )


def test_a_cluster_at_rest_is_left_at_rest() -> None:
    cluster = with_room_for_one()
    cluster.submit("first")
    cluster.submit("second")
    version = cluster.objects.version
    assert cluster.settle() == 1
    assert cluster.objects.version == version
