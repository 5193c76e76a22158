from typing import Any

import pytest

from infra.local.cluster.controllers.job_pods import compact, indexes
from infra.local.cluster.objects import Object
from tests.local.controllers.cluster import Cluster, annotated, condition, index, job_spec, phases


def job(**changes: Any) -> Object:
    return {"metadata": {"name": "work", "namespace": "default"}, "spec": job_spec(**changes)}


def with_job(**changes: Any) -> Cluster:
    """Return a cluster with room for four pods, in which a Job has just started."""
    cluster = Cluster()
    cluster.add_pool("pool", hosts=4)
    cluster.apply("jobs", job(**changes))
    return cluster


@pytest.mark.parametrize(
    ("done", "text"),
    [(set(), ""), ({0}, "0"), ({0, 1, 2}, "0-2"), ({0, 2, 3, 7}, "0,2-3,7")],
    ids=["none", "one", "a run", "runs"],
)
def test_completed_indexes_are_written_in_runs_and_read_back(done: set[int], text: str) -> None:
    assert compact(done) == text
    assert indexes(text, 10) == done


def test_a_pod_carries_its_index_everywhere_a_program_looks_for_it() -> None:
    cluster = with_job()
    second = cluster.pods()[1]

    assert second["metadata"]["name"].startswith("work-1-")
    assert second["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == "1"
    assert second["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] == "1"
    assert second["spec"]["hostname"] == "work-1"
    assert second["spec"]["containers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX"
    assert second["metadata"]["ownerReferences"][0]["uid"] == cluster.job("work")["metadata"]["uid"]


def test_a_job_with_fewer_places_than_completions_works_through_them() -> None:
    cluster = with_job(hosts=3, parallelism=1)
    assert [index(pod) for pod in cluster.pods()] == [0]
    cluster.pass_time(70)
    assert cluster.job("work")["status"]["completedIndexes"] == "0"
    assert [index(pod) for pod in cluster.pods()] == [0, 1]
    cluster.pass_time(140)

    status = cluster.job("work")["status"]
    assert (status["succeeded"], status["active"], status["completedIndexes"]) == (3, 0, "0-2")
    assert condition(cluster.job("work"), "Complete")["reason"] == "CompletionsReached"
    assert "completionTime" in status


def test_without_a_back_off_limit_the_first_failure_fails_the_job() -> None:
    cluster = with_job(pod=annotated(run_seconds="5", fail_until_restart="1"))
    cluster.pass_time(7)

    assert condition(cluster.job("work"), "Failed")["reason"] == "BackoffLimitExceeded"
    assert {pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] for pod in cluster.pods()} == {1}


def test_a_failed_pod_is_replaced_after_the_back_off_until_the_limit() -> None:
    cluster = with_job(hosts=1, backoffLimit=1, pod=annotated(run_seconds="5", fail_until_restart="1"))
    cluster.pass_time(8)
    assert phases(cluster.pods()) == ["Failed"]
    cluster.pass_time(12)
    assert sorted(phases(cluster.pods())) == ["Failed", "Running"]
    cluster.pass_time(10)
    assert cluster.job("work")["status"]["failed"] == 2
    assert condition(cluster.job("work"), "Failed")["status"] == "True"


def test_a_failing_job_is_failed_only_once_its_other_pods_have_ended() -> None:
    cluster = with_job(backoffLimit=0)
    cluster.pass_time(10)
    first = cluster.pods()[0]["metadata"]["name"]
    cluster.objects.delete("pods", "default", first)
    cluster.settle()

    assert condition(cluster.job("work"), "FailureTarget")["status"] == "True"
    assert condition(cluster.job("work"), "Failed") == {}
    cluster.pass_time(5)
    assert condition(cluster.job("work"), "Failed")["status"] == "True"
    assert cluster.pods() == []


def test_a_deleted_pod_is_replaced_at_once_or_after_its_end_as_the_policy_says() -> None:
    alive = {}
    for policy in ("TerminatingOrFailed", "Failed"):
        cluster = with_job(hosts=1, backoffLimit=3, podReplacementPolicy=policy)
        cluster.pass_time(10)
        cluster.objects.delete("pods", "default", cluster.pods()[0]["metadata"]["name"])
        cluster.settle()
        alive[policy] = len(cluster.pods())
        cluster.pass_time(30)
        assert phases(cluster.pods()) == ["Running"]
        assert cluster.job("work")["status"]["failed"] == 1

    assert alive == {"TerminatingOrFailed": 2, "Failed": 1}


@pytest.mark.parametrize(
    ("rule", "failed", "ends"),
    [
        ({"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}, 1, True),
        ({"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [1]}}, 1, False),
        ({"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1]}}, 0, False),
        ({"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]}, 1, False),
    ],
    ids=["fails on its code", "another code", "ignored", "no disruption"],
)
def test_the_pod_failure_policy_decides_about_exit_codes(rule: Object, failed: int, ends: bool) -> None:
    pod = annotated(run_seconds="5", fail_until_restart="1")
    cluster = with_job(hosts=1, backoffLimit=3, pod=pod, podFailurePolicy={"rules": [rule]})
    cluster.pass_time(10)

    assert cluster.job("work")["status"]["failed"] == failed
    found = condition(cluster.job("work"), "Failed")
    assert bool(found) == ends
    if ends:
        assert found["reason"] == "PodFailurePolicy"
        assert found["message"].endswith("failed with exit code 1 matching FailJob rule at index 0")


def test_a_job_past_its_deadline_fails() -> None:
    cluster = with_job(activeDeadlineSeconds=20)
    cluster.pass_time(30)

    assert condition(cluster.job("work"), "Failed")["reason"] == "DeadlineExceeded"


def test_suspending_and_resuming_a_job_costs_no_failure() -> None:
    cluster = with_job()
    cluster.pass_time(10)
    for suspend in (True, False):
        known = cluster.job("work")
        cluster.objects.update("jobs", known | {"spec": known["spec"] | {"suspend": suspend}})
        cluster.pass_time(10)

    work = cluster.job("work")
    assert phases(cluster.pods()) == ["Running", "Running"]
    assert work["status"]["failed"] == 0
    assert condition(work, "Suspended")["reason"] == "JobResumed"


def test_a_finished_job_is_deleted_with_its_pods_after_its_time_to_live() -> None:
    cluster = with_job(ttlSecondsAfterFinished=10)
    cluster.pass_time(70)
    assert condition(cluster.job("work"), "Complete")["status"] == "True"
    cluster.pass_time(10)

    assert cluster.names("jobs") == []
    assert cluster.names("pods") == []


def test_a_job_of_another_kind_is_refused_in_an_event() -> None:
    cluster = with_job(completionMode="NonIndexed")

    assert cluster.pods() == []
    assert cluster.reasons("jobs", "work") == {"NotImplemented"}


def test_a_job_of_another_controller_is_left_alone() -> None:
    cluster = with_job(managedBy="acme.io/jobs")

    assert cluster.pods() == []
    assert cluster.reasons("jobs", "work") == set()
