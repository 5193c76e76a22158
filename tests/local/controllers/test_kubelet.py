from tests.local.controllers.cluster import Cluster, annotated, condition, job_spec, jobset, phases, pod_spec

ALONE = {"metadata": {"name": "alone", "namespace": "default"}}


def with_pod(**annotations: str) -> Cluster:
    """Return a cluster in which a pod has just been bound to pool-0."""
    cluster = Cluster()
    cluster.add_pool("pool", hosts=1)
    metadata = ALONE["metadata"] | annotated(**annotations)["metadata"]
    cluster.apply("pods", {"metadata": metadata, "spec": pod_spec()})
    return cluster


def phase(cluster: Cluster) -> str:
    found: str = cluster.objects.get("pods", "default", "alone")["status"]["phase"]
    return found


def test_a_bound_pod_starts_runs_and_succeeds_in_its_own_time() -> None:
    cluster = with_pod(run_seconds="7")

    assert phase(cluster) == "Pending"
    cluster.pass_time(2)
    assert phase(cluster) == "Running"
    pod = cluster.objects.get("pods", "default", "alone")
    assert condition(pod, "Ready")["status"] == "True"
    assert pod["status"]["startTime"] == "2026-01-01T00:00:02Z"
    cluster.pass_time(6)
    assert phase(cluster) == "Running"
    cluster.pass_time(1)
    ended = cluster.objects.get("pods", "default", "alone")["status"]
    assert ended["phase"] == "Succeeded"
    assert ended["containerStatuses"][0]["state"]["terminated"]["reason"] == "Completed"


def test_a_pod_without_the_annotation_runs_for_the_default_time() -> None:
    cluster = with_pod()
    cluster.pass_time(61)
    assert phase(cluster) == "Running"
    cluster.pass_time(1)
    assert phase(cluster) == "Succeeded"


def test_an_annotation_that_is_no_number_is_refused_by_the_kubelet() -> None:
    cluster = with_pod(run_seconds="soon")
    cluster.pass_time(5)

    status = cluster.objects.get("pods", "default", "alone")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "InvalidAnnotation")


def test_a_deleted_pod_ends_within_its_grace_period() -> None:
    cluster = with_pod()
    cluster.pass_time(5)
    cluster.objects.delete("pods", "default", "alone")
    cluster.settle()

    assert condition(cluster.objects.get("pods", "default", "alone"), "Ready")["status"] == "False"
    cluster.pass_time(2)
    assert cluster.names("pods") == ["alone"]
    cluster.pass_time(1)
    assert cluster.names("pods") == []


def test_a_deleted_pod_that_never_ran_goes_at_once() -> None:
    cluster = with_pod()
    cluster.objects.delete("pods", "default", "alone")
    cluster.settle()

    assert cluster.names("pods") == []


def test_on_a_node_that_is_not_ready_everything_stands_still() -> None:
    cluster = with_pod(run_seconds="7")
    cluster.pass_time(5)
    cluster.set_ready("pool-0", ready=False)
    assert condition(cluster.objects.get("pods", "default", "alone"), "Ready")["status"] == "False"
    cluster.pass_time(20)
    assert phase(cluster) == "Running"

    cluster.set_ready("pool-0", ready=True)
    assert phase(cluster) == "Succeeded"


def test_a_node_that_comes_back_in_time_has_its_pods_ready_again() -> None:
    cluster = with_pod()
    cluster.pass_time(5)
    cluster.set_ready("pool-0", ready=False)
    cluster.set_ready("pool-0", ready=True)

    assert condition(cluster.objects.get("pods", "default", "alone"), "Ready")["status"] == "True"


def test_the_pods_of_a_node_that_is_gone_go_with_it() -> None:
    cluster = with_pod()
    cluster.pass_time(5)
    cluster.remove_pool("pool")

    assert cluster.names("pods") == []


def test_losing_its_nodes_fails_the_jobs_of_a_jobset_which_then_waits_for_new_ones() -> None:
    cluster = Cluster()
    cluster.apply("jobsets", jobset(failurePolicy={"maxRestarts": 3}))
    for pool in ("pool-0", "pool-1"):
        cluster.add_pool(pool)
    cluster.pass_time(10)
    cluster.remove_pool("pool-0")
    cluster.pass_time(10)

    assert cluster.jobset()["status"]["restarts"] == 1
    assert sorted(phases(cluster.pods())) == ["Pending", "Running", "Running"]
    cluster.add_pool("pool-2")
    cluster.pass_time(100)
    assert cluster.jobset()["status"]["terminalState"] == "Completed"


def test_nodes_may_go_after_a_job_is_complete() -> None:
    cluster = Cluster()
    cluster.apply("jobs", {"metadata": {"name": "work", "namespace": "default"}, "spec": job_spec()})
    cluster.add_pool("pool")
    cluster.pass_time(100)
    cluster.remove_pool("pool")

    assert cluster.pods() == []
    assert cluster.job("work")["status"]["succeeded"] == 2
