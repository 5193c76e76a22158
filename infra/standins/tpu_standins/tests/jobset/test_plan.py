"""What is done about one JobSet, by its policies and its Jobs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tpu_standins.clients.objects import Object
from tpu_standins.jobset.child_jobs import wanted
from tpu_standins.jobset.plan import Plan, plan
from tpu_standins.testing.jobsets import condition, ended, ready, replicated_job, stored
from tpu_standins.testing.objects import START


def jobs_of(jobset: Object) -> dict[str, Object]:
    """Return all Jobs of a JobSet, by the ends of their names."""
    return {name.removeprefix("train-"): job for name, job in wanted(jobset).items()}


def names(jobs: Sequence[Object]) -> list[str]:
    return [job["metadata"]["name"].removeprefix("train-") for job in jobs]


def reason(decided: Plan) -> str:
    return decided.told.reason if decided.told else ""


def failed_once(policy: Object | None, **how: str) -> Plan:
    """Return the plan for a JobSet of two Jobs of which one has failed."""
    jobset = stored(failurePolicy=policy) if policy is not None else stored()
    jobs = jobs_of(jobset)
    return plan(jobset, [ended(jobs["slice-0"], "Failed", **how), jobs["slice-1"]], START)


def test_missing_jobs_are_created() -> None:
    jobset = stored()
    decided = plan(jobset, [jobs_of(jobset)["slice-1"]], START)
    assert names(decided.create) == ["slice-0"]


def test_the_status_counts_the_jobs_of_each_replicated_job() -> None:
    jobset = stored("train", replicated_job("a"), replicated_job("b", replicas=3))
    jobs = jobs_of(jobset)
    known = [jobs["a-0"], ready(jobs["a-1"]), ended(jobs["b-0"], "Complete"), jobs["b-1"]]
    counts = plan(jobset, known, START).status["replicatedJobsStatus"]
    zeros = {"ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}
    assert counts == [zeros | {"name": "a", "ready": 1, "active": 1}, zeros | {"name": "b", "succeeded": 1}]


def test_without_a_failure_policy_it_fails_with_its_first_job() -> None:
    decided = failed_once(None)
    assert decided.status["terminalState"] == "Failed"
    assert condition({"status": decided.status}, "Failed")["reason"] == "FailedJobs"
    assert not decided.create


def test_a_restart_is_another_attempt_that_counts() -> None:
    decided = failed_once({"maxRestarts": 1})
    assert (decided.status["restarts"], decided.status["restartsCountTowardsMax"]) == (1, 1)
    assert decided.told
    assert (decided.told.reason, decided.told.message) == (
        "RestartJobSetFailurePolicyAction",
        "applying RestartJobSet failure policy action (first failed job: train-slice-0)",
    )


def test_no_restart_is_left_once_all_are_used() -> None:
    jobset = stored(failurePolicy={"maxRestarts": 2}) | {"status": {"restarts": 2, "restartsCountTowardsMax": 2}}
    decided = plan(jobset, [ended(jobs_of(jobset)["slice-0"], "Failed")], START)
    failed = condition({"status": decided.status}, "Failed")
    assert (failed["reason"], failed["message"]) == (
        "ReachedMaxRestarts",
        "jobset failed due to reaching max number of restarts (first failed job: train-slice-0)",
    )


@pytest.mark.parametrize(
    ("reasons", "restarts"), [(["PodFailurePolicy"], 1), (["BackoffLimitExceeded"], 0), ([], 0)], ids=str
)
def test_a_rule_fails_it_for_the_reasons_that_it_names_or_any(reasons: list[str], restarts: int) -> None:
    decided = failed_once({"maxRestarts": 1, "rules": [{"action": "FailJobSet", "onJobFailureReasons": reasons}]})
    assert decided.status["restarts"] == restarts
    assert decided.status.get("terminalState") == (None if restarts else "Failed")


def test_the_next_attempt_begins_with_the_names_that_are_free() -> None:
    jobset = stored(failurePolicy={"maxRestarts": 1})
    decided = plan(jobset | {"status": {"restarts": 1}}, [jobs_of(jobset)["slice-0"]], START)
    assert names(decided.delete) == ["slice-0"]
    assert names(decided.create) == ["slice-1"]


@pytest.mark.parametrize(("done", "over"), [(1, False), (2, True)])
def test_it_is_complete_when_all_its_jobs_are(done: int, *, over: bool) -> None:
    jobset = stored()
    jobs = jobs_of(jobset)
    known = [ended(jobs[f"slice-{index}"], "Complete") if index < done else jobs["slice-1"] for index in range(2)]
    assert plan(jobset, known, START).status.get("terminalState") == ("Completed" if over else None)


def test_what_still_runs_when_it_is_over_is_deleted() -> None:
    jobset = stored()
    jobs = jobs_of(jobset)
    over = jobset | {"status": {"conditions": [{"type": "Failed", "status": "True", "reason": "x"}]}}
    decided = plan(over, [ended(jobs["slice-0"], "Failed"), jobs["slice-1"]], START)
    assert names(decided.delete) == ["slice-1"]


def test_suspending_stops_jobs_and_resuming_lets_them_go() -> None:
    jobset = stored()
    jobs = list(jobs_of(jobset).values())
    suspended = jobset | {"spec": jobset["spec"] | {"suspend": True}}
    stopping = plan(suspended, jobs, START)
    assert [job["spec"]["suspend"] for job in stopping.update] == [True, True]
    assert reason(stopping) == "SuspendedJobs"
    going = plan(jobset | {"status": stopping.status}, list(stopping.update), START)
    assert [job["spec"]["suspend"] for job in going.update] == [False, False]
    assert reason(going) == "ResumeJobs"


def test_a_suspended_jobset_has_suspended_jobs() -> None:
    created = plan(stored(suspend=True), [], START).create
    assert [job["spec"]["suspend"] for job in created] == [True, True]
