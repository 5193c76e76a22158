"""The JobSet controller's decision about one JobSet (pure).

Source: sigs.k8s.io/jobset pkg/controllers/{jobset_controller,failure_policy}.go and pkg/constants/constants.go.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from tpu_standins.clients.conditions import Condition, find, is_true, of, since, with_condition
from tpu_standins.clients.objects import Object
from tpu_standins.jobset import child_jobs, keys
from tpu_standins.jobset.child_jobs import ACTIVE, COMPLETE, FAILED, PREVIOUS, replicas, restarts, suspended

FINAL = ("Completed", "Failed")
Standing = Mapping[str, Sequence[Object]]

_COMPLETED = Condition(type="Completed", reason="AllJobsCompleted", message="jobset completed successfully")
_SUSPENDED = Condition(type="Suspended", reason="SuspendedJobs", message="jobset is suspended")
_RESUMED = Condition(type="Suspended", status=False, reason="ResumeJobs", message="jobset is resumed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Delete, create and update Jobs, then write `status`; `told` is reported as an Event."""

    status: Object
    told: Condition | None = None
    delete: Sequence[Object] = ()
    create: Sequence[Object] = ()
    update: Sequence[Object] = ()


def plan(jobset: Object, jobs: Iterable[Object], now: datetime) -> Plan:
    """Return the plan; `jobs` are those that the JobSet controls."""
    standing, every = child_jobs.standing(jobset, jobs), jobset["spec"]["replicatedJobs"]
    counts = [_count(replicated["name"], standing) for replicated in every]
    status = {"restarts": 0} | jobset.get("status", {}) | {"replicatedJobsStatus": counts}
    if any(is_true(jobset, kind) for kind in FINAL):
        return Plan(status=status, delete=standing[ACTIVE])
    decided = Plan(status=status, delete=standing[PREVIOUS])
    if standing[FAILED]:
        return _failing(decided, jobset, sorted(standing[FAILED], key=_end), now)
    if standing[COMPLETE] and len(standing[COMPLETE]) == replicas(every):
        return _telling(decided, _COMPLETED, now)
    return _going_on(decided, jobset, standing, now)


def _count(name: str, standing: Standing) -> Object:
    active, succeeded, failed = (
        [job for job in standing[kind] if job["metadata"]["labels"][keys.REPLICATED_JOB] == name]
        for kind in (ACTIVE, COMPLETE, FAILED)
    )
    return {
        "name": name,
        "ready": sum(map(_is_ready, active)),
        "succeeded": len(succeeded),
        "failed": len(failed),
        "active": sum(job.get("status", {}).get("active", 0) > 0 for job in active),
        "suspended": sum(map(suspended, active)),
    }


def _is_ready(job: Object) -> bool:
    spec, status = job["spec"], job.get("status", {})
    pods = min(spec["parallelism"], spec.get("completions", spec["parallelism"]))
    return bool(status.get("succeeded", 0) + status.get("ready", 0) >= pods)


def _failing(decided: Plan, jobset: Object, failed: Sequence[Object], now: datetime) -> Plan:
    reason, message, first = _on_failure(jobset, failed)
    message = f"{message} (first failed job: {first['metadata']['name']})"
    if reason:
        return _telling(decided, Condition(type="Failed", reason=reason, message=message), now)
    attempt = restarts(jobset) + 1
    status = decided.status | {"restarts": attempt, "restartsCountTowardsMax": attempt}
    restarting = Condition(type="Restarting", reason="RestartJobSetFailurePolicyAction", message=message)
    return replace(decided, status=status, told=restarting)


def _on_failure(jobset: Object, failed: Sequence[Object]) -> tuple[str, str, Object]:
    """Return why it fails, or nothing if it restarts, what is told, and the Job because of which, the first of them."""
    policy = jobset["spec"].get("failurePolicy")
    if policy is None:
        return "FailedJobs", "jobset failed due to one or more job failures", failed[0]
    for rule in policy.get("rules", []):
        for job in failed:
            reason = (find(of(job), FAILED) or {}).get("reason")
            if reason in (rule.get("onJobFailureReasons") or [reason]):
                return "FailJobSetFailurePolicyAction", "applying FailJobSet failure policy action", job
    if restarts(jobset) >= policy.get("maxRestarts", 0):
        return "ReachedMaxRestarts", "jobset failed due to reaching max number of restarts", failed[0]
    return "", "applying RestartJobSet failure policy action", failed[0]


def _end(job: Object) -> datetime:
    end = since(job, FAILED)
    assert end is not None, "only failed Jobs are judged"
    return end


def _going_on(decided: Plan, jobset: Object, standing: Standing, now: datetime) -> Plan:
    wanted, stops = child_jobs.wanted(jobset), suspended(jobset)
    known = {job["metadata"]["name"] for jobs in standing.values() for job in jobs}
    changing = [job for job in standing[ACTIVE] if suspended(job) != stops]
    update = [child_jobs.with_suspend(job, suspend=stops) for job in changing]
    create = [job for name, job in wanted.items() if name not in known]
    return _telling(replace(decided, create=create, update=update), _SUSPENDED if stops else _RESUMED, now)


def _telling(decided: Plan, change: Condition, now: datetime) -> Plan:
    """Return the plan with a condition in its status, which is told if it is news. A first one is never False."""
    before = of({"status": decided.status})
    if not change.status and find(before, change.type) is None:
        return decided
    after = with_condition(before, change, now)
    final = {"terminalState": change.type} if change.type in FINAL else {}
    status = decided.status | {"conditions": after} | final
    return replace(decided, status=status, told=change if after != before else None)
