"""A JobSet's policies: success, failure, startup and dependencies (pure).

Sources: sigs.k8s.io/jobset pkg/controllers/{success_policy,failure_policy,startup_policy,depends_on}.go. Failure
policy actions are FailJobSet, RestartJobSet and RestartJobSetAndIgnoreMaxRestarts: admission refuses all others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infra.local.clients.conditions import Condition, find, moment, of
from infra.local.clients.objects import Object
from infra.local.jobset.child_jobs import replicated_job_name
from infra.local.jobset.lifetime import suspended
from infra.local.jobset.patterns import matches

_RESTART = "RestartJobSet"
_FAIL = "FailJobSet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The effect of failed Jobs on their JobSet: `condition` is Failed, or RestartingJobSet with another attempt.

    `counts`: the restart counts towards maxRestarts. `reason`: the reason of the restart's event.
    """

    condition: Condition
    restarts: bool = False
    counts: bool = False
    reason: str = ""


def has_succeeded(jobset: Object, succeeded: Sequence[Object]) -> bool:
    """Return whether a JobSet has succeeded of which at least one Job has."""
    policy = jobset["spec"]["successPolicy"]
    every = jobset["spec"]["replicatedJobs"]
    targets = policy.get("targetReplicatedJobs") or [replicated["name"] for replicated in every]
    reached = sum(replicated_job_name(job) in targets for job in succeeded)
    wanted = sum(replicated["replicas"] for replicated in every if replicated["name"] in targets)
    return reached >= (1 if policy["operator"] == "Any" else wanted)


def on_failure(jobset: Object, failed: Sequence[Object]) -> Failure:
    """Apply the failure policy to the Jobs that failed in this attempt, of which there is at least one."""
    policy = jobset["spec"].get("failurePolicy")
    if policy is None:
        return _failed("FailedJobs", "jobset failed due to one or more job failures", _first(failed))
    rule, job = _rule_and_job(policy.get("rules") or (), failed)
    action = rule["action"] if rule else _RESTART
    if action == _FAIL:
        return _failed("FailJobSetFailurePolicyAction", "applying FailJobSet failure policy action", job)
    used = (jobset.get("status") or {}).get("restartsCountTowardsMax", 0)
    if action == _RESTART and used >= policy.get("maxRestarts", 0):
        return _failed("ReachedMaxRestarts", "jobset failed due to reaching max number of restarts", job)
    condition = Condition(
        type="RestartingJobSet",
        reason=f"FailurePolicy_{rule['name']}" if rule else "DefaultFailurePolicy",
        message=_naming(f"applying {action} failure policy action", job),
    )
    reason = f"{action}FailurePolicyAction"
    return Failure(condition=condition, restarts=True, counts=action == _RESTART, reason=reason)


def _failed(reason: str, message: str, job: Object) -> Failure:
    return Failure(condition=Condition(type="Failed", reason=reason, message=_naming(message, job)))


def _naming(message: str, job: Object) -> str:
    return f"{message} (first failed job: {job['metadata']['name']})"


def _rule_and_job(
    rules: Sequence[Mapping[str, Any]], failed: Sequence[Object]
) -> tuple[Mapping[str, Any] | None, Object]:
    for rule in rules:
        if matched := [job for job in failed if _applies(rule, job)]:
            return rule, _first(matched)
    return None, _first(failed)


def _first(failed: Sequence[Object]) -> Object:
    """Return the Job that failed first."""
    return min(failed, key=lambda job: moment(_failure_of(job)["lastTransitionTime"]))


def _failure_of(job: Object) -> Object:
    found = find(of(job), "Failed")
    assert found is not None, "only failed Jobs are judged"
    return found


def _applies(rule: Mapping[str, Any], job: Object) -> bool:
    failure = _failure_of(job)
    reasons, patterns = rule.get("onJobFailureReasons"), rule.get("onJobFailureMessagePatterns")
    targets = rule.get("targetReplicatedJobs")
    return (
        (not reasons or failure["reason"] in reasons)
        and (not patterns or any(matches(pattern, failure.get("message", "")) for pattern in patterns))
        and (not targets or replicated_job_name(job) in targets)
    )


def in_order(jobset: Object) -> bool:
    return bool(jobset["spec"]["startupPolicy"]["startupPolicyOrder"] == "InOrder")


def may_start(jobset: Object, counts: Sequence[Object]) -> list[Object]:
    """Return the replicatedJobs whose Jobs should exist and run now.

    With InOrder that is the first that has not started, and none once all have. `counts`: replicatedJobsStatus.
    """
    by_name = {count["name"]: count for count in counts}
    every = jobset["spec"]["replicatedJobs"]
    free = [replicated for replicated in every if _dependencies_met(replicated, every, by_name)]
    if suspended(jobset) or not in_order(jobset):
        return free
    return [replicated for replicated in free if not _started(replicated, by_name)][:1]


def _started(replicated: Object, counts: Mapping[str, Object]) -> bool:
    count = counts[replicated["name"]]
    return bool(count["ready"] + count["failed"] + count["succeeded"] == replicated["replicas"])


def _dependencies_met(replicated: Object, every: Sequence[Object], counts: Mapping[str, Object]) -> bool:
    by_name = {other["name"]: other for other in every}
    for dependency in replicated.get("dependsOn") or ():
        other = by_name[dependency["name"]]
        complete = counts[other["name"]]["succeeded"] == other["replicas"]
        if not (complete if dependency["status"] == "Complete" else _started(other, counts)):
            return False
    return True
