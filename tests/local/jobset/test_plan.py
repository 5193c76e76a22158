"""What is done about one JobSet, by its policies and its Jobs."""

from __future__ import annotations

from typing import Any

import pytest

from infra.local.clients.objects import Object
from infra.local.jobset.child_jobs import child_job
from infra.local.jobset.plan import Plan, plan
from tests.local.clients.fake_objects import START
from tests.local.jobset.builders import condition, ended, ready, replicated_job, stored


def jobs_of(jobset: Object) -> dict[str, Object]:
    """Return all Jobs of a JobSet, by the ends of their names."""
    made = (
        child_job(jobset, replicated, index)
        for replicated in jobset["spec"]["replicatedJobs"]
        for index in range(replicated["replicas"])
    )
    return {job["metadata"]["name"].removeprefix("train-"): job for job in made}


def names(jobs: tuple[Object, ...]) -> list[str]:
    return [job["metadata"]["name"].removeprefix("train-") for job in jobs]


def reasons(decided: Plan) -> list[str]:
    return [news.reason for news in decided.told]


def failed_once(policy: Object | None, **how: str) -> Plan:
    """Return the plan for a JobSet of two Jobs of which one has failed."""
    jobset = stored(failurePolicy=policy) if policy is not None else stored()
    jobs = jobs_of(jobset)
    return plan(jobset, [ended(jobs["slice-0"], "Failed", **how), jobs["slice-1"]], START)


def test_missing_jobs_are_created() -> None:
    jobset = stored()
    decided = plan(jobset, [jobs_of(jobset)["slice-1"]], START)
    assert names(decided.create) == ["slice-0"]
    assert decided.goes_on


def test_very_many_jobs_are_created_in_portions() -> None:
    assert len(plan(stored("train", replicated_job(replicas=10**6)), [], START).create) == 500


def test_the_status_counts_the_jobs_of_each_replicated_job() -> None:
    jobset = stored("train", replicated_job("a"), replicated_job("b", replicas=3))
    jobs = jobs_of(jobset)
    known = [jobs["a-0"], ready(jobs["a-1"]), ended(jobs["b-0"], "Complete"), jobs["b-1"]]
    counts = plan(jobset, known, START).status["replicatedJobsStatus"]
    zeros = {"ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}
    assert counts == [zeros | {"name": "b", "succeeded": 1}, zeros | {"name": "a", "ready": 1, "active": 1}]


def test_without_a_failure_policy_it_fails_with_its_first_job() -> None:
    decided = failed_once(None)
    assert decided.status["terminalState"] == "Failed"
    assert condition({"status": decided.status}, "Failed")["reason"] == "FailedJobs"
    assert decided.create == ()


def test_a_restart_is_another_attempt_that_counts() -> None:
    decided = failed_once({"maxRestarts": 1})
    assert (decided.status["restarts"], decided.status["restartsCountTowardsMax"]) == (1, 1)
    assert reasons(decided) == ["DefaultFailurePolicy", "RestartJobSetFailurePolicyAction"]
    assert condition({"status": decided.status}, "RestartingJobSet")["message"] == (
        "applying RestartJobSet failure policy action (first failed job: train-slice-0)"
    )


def test_no_restart_is_left_once_all_are_used() -> None:
    jobset = stored(failurePolicy={"maxRestarts": 2}) | {"status": {"restarts": 2, "restartsCountTowardsMax": 2}}
    decided = plan(jobset, [ended(jobs_of(jobset)["slice-0"], "Failed")], START)
    failed = condition({"status": decided.status}, "Failed")
    assert (failed["reason"], failed["message"]) == (
        "ReachedMaxRestarts",
        "jobset failed due to reaching max number of restarts (first failed job: train-slice-0)",
    )


def test_a_restart_that_is_ignored_counts_for_nothing() -> None:
    rules = [{"name": "again", "action": "RestartJobSetAndIgnoreMaxRestarts"}]
    decided = failed_once({"maxRestarts": 0, "rules": rules})
    assert (decided.status["restarts"], decided.status.get("restartsCountTowardsMax")) == (1, None)
    assert reasons(decided) == ["FailurePolicy_again", "RestartJobSetAndIgnoreMaxRestartsFailurePolicyAction"]


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
    message = "Job has reached the specified backoff limit"
    decided = failed_once({"maxRestarts": 1, "rules": [{"action": "FailJobSet"} | rule]}, message=message)
    assert decided.status["restarts"] == restarts
    assert decided.status.get("terminalState") == (None if restarts else "Failed")


@pytest.mark.parametrize(("strategy", "first"), [("Recreate", ["slice-1"]), ("BlockingRecreate", [])])
def test_the_next_attempt_begins_with_free_names_or_when_the_last_one_is_gone(strategy: str, first: list[str]) -> None:
    policy = {"maxRestarts": 1, "restartStrategy": strategy}
    jobset = stored(failurePolicy=policy)
    old = jobs_of(jobset)["slice-0"]
    decided = plan(jobset | {"status": {"restarts": 1}}, [old], START)
    assert names(decided.delete) == ["slice-0"]
    assert names(decided.create) == first


@pytest.mark.parametrize(("operator", "done", "over"), [("All", 1, False), ("All", 2, True), ("Any", 1, True)], ids=str)
def test_success_counts_the_targets_alone(operator: str, done: int, *, over: bool) -> None:
    policy = {"operator": operator, "targetReplicatedJobs": ["slice"]}
    jobset = stored("train", replicated_job(), replicated_job("endless", replicas=1), successPolicy=policy)
    jobs = jobs_of(jobset)
    known = [ended(jobs[f"slice-{index}"], "Complete") if index < done else jobs["slice-1"] for index in range(2)]
    decided = plan(jobset, [*known, jobs["endless-0"]], START)
    assert decided.status.get("terminalState") == ("Completed" if over else None)


def test_what_still_runs_when_it_is_over_is_deleted() -> None:
    jobset = stored()
    jobs = jobs_of(jobset)
    over = jobset | {"status": {"conditions": [{"type": "Failed", "status": "True", "reason": "x"}]}}
    decided = plan(over, [ended(jobs["slice-0"], "Failed"), jobs["slice-1"]], START)
    assert names(decided.delete) == ["slice-1"]


def in_order(**status: Any) -> tuple[Object, dict[str, Object]]:
    jobs = [replicated_job("first", replicas=1), replicated_job("second", replicas=1)]
    jobset = stored("train", *jobs, startupPolicy={"startupPolicyOrder": "InOrder"})
    return jobset | ({"status": status} if status else {}), jobs_of(jobset)


def test_in_order_the_second_replicated_job_waits_until_the_first_is_ready() -> None:
    jobset, jobs = in_order()
    assert names(plan(jobset, [], START).create) == ["first-0"]
    assert names(plan(jobset, [jobs["first-0"]], START).create) == []
    after = plan(jobset, [ready(jobs["first-0"])], START)
    assert names(after.create) == ["second-0"]
    assert reasons(after) == ["InOrderStartupPolicyInProgress"]


def test_in_order_it_has_started_when_all_are_ready() -> None:
    jobset, jobs = in_order()
    begun = jobset | {"status": plan(jobset, [], START).status}
    decided = plan(begun, [ready(job) for job in jobs.values()], START)
    assert condition({"status": decided.status}, "StartupPolicyCompleted")["status"] == "True"
    assert condition({"status": decided.status}, "StartupPolicyInProgress")["status"] == "False"


@pytest.mark.parametrize("status", ["Ready", "Complete"])
def test_a_replicated_job_waits_for_the_one_it_depends_on(status: str) -> None:
    work = replicated_job("work", replicas=1) | {"dependsOn": [{"name": "head", "status": status}]}
    jobset = stored("train", replicated_job("head", replicas=1), work)
    head = jobs_of(jobset)["head-0"]
    there = ready(head) if status == "Ready" else ended(head, "Complete")
    assert names(plan(jobset, [head], START).create) == []
    assert names(plan(jobset, [there], START).create) == ["work-0"]


def test_suspending_stops_jobs_and_resuming_lets_them_go() -> None:
    jobset = stored()
    jobs = list(jobs_of(jobset).values())
    suspended = jobset | {"spec": jobset["spec"] | {"suspend": True}}
    stopping = plan(suspended, jobs, START)
    assert [job["spec"]["suspend"] for job in stopping.update] == [True, True]
    assert reasons(stopping) == ["SuspendedJobs"]
    going = plan(jobset | {"status": stopping.status}, list(stopping.update), START)
    assert [job["spec"]["suspend"] for job in going.update] == [False, False]
    assert reasons(going) == ["ResumeJobs"]


def test_a_suspended_jobset_has_suspended_jobs() -> None:
    created = plan(stored(suspend=True), [], START).create
    assert [job["spec"]["suspend"] for job in created] == [True, True]
