"""The JobSet controller's decision about one JobSet (pure).

Source: sigs.k8s.io/jobset pkg/controllers/jobset_controller.go (reconcile) and pkg/constants/constants.go.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from infra.local.clients.conditions import Condition, find, of, with_condition
from infra.local.clients.objects import Object
from infra.local.jobset.child_jobs import (
    Children,
    child_job,
    job_name,
    replicated_job_name,
    restarts,
    resumed,
    stopped,
)
from infra.local.jobset.lifetime import has_ended, suspended
from infra.local.jobset.policies import has_succeeded, in_order, may_start, on_failure

FINAL = ("Completed", "Failed")
_MOST_AT_ONCE = 500  # Jobs created per iteration, so that other JobSets are not delayed; upstream has no such limit
_RESTARTING = "RestartingJobSet"
_IN_PROGRESS, _STARTED = "StartupPolicyInProgress", "StartupPolicyCompleted"
_OPPOSITES = {_IN_PROGRESS: _STARTED, _STARTED: _IN_PROGRESS}

_COMPLETED = Condition(type="Completed", reason="AllJobsCompleted", message="jobset completed successfully")
_SUSPENDED = Condition(type="Suspended", reason="SuspendedJobs", message="jobset is suspended")
_RESUMED = Condition(type="Suspended", status=False, reason="ResumeJobs", message="jobset is resumed")
_STARTING_IN_ORDER = Condition(
    type=_IN_PROGRESS,
    reason="InOrderStartupPolicyInProgress",
    message="in order startup policy is in progress",
)
_STARTED_IN_ORDER = Condition(
    type=_STARTED,
    reason="InOrderStartupPolicyCompleted",
    message="in order startup policy has completed",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Delete, create and update Jobs, then write `status`; `told` are the changed conditions, reported as events."""

    status: Object
    told: tuple[Condition, ...] = ()
    delete: tuple[Object, ...] = ()
    create: tuple[Object, ...] = ()
    update: tuple[Object, ...] = ()
    goes_on: bool = False


def plan(jobset: Object, jobs: Sequence[Object], now: datetime) -> Plan:
    """Return the plan; `jobs` are those that the JobSet controls."""
    children = Children.of(jobset, jobs)
    counts = replicated_jobs_status(jobset, children)
    status = {"restarts": 0} | (jobset.get("status") or {}) | {"replicatedJobsStatus": counts}
    if has_ended(jobset, FINAL):
        return Plan(status=status, delete=children.active)
    if children.failed:
        return _failing(jobset, children, status, now)
    if children.succeeded and has_succeeded(jobset, children.succeeded):
        return _ending(status, children, _COMPLETED, now)
    return _going_on(jobset, children, status, now)


def replicated_jobs_status(jobset: Object, children: Children) -> list[Object]:
    """Return the counts of this attempt's Jobs by replicatedJob, in upstream's order."""
    names = sorted((replicated["name"] for replicated in jobset["spec"]["replicatedJobs"]), reverse=True)
    return [_count(name, children) for name in names]


def _count(name: str, children: Children) -> Object:
    active, succeeded, failed = (
        [job for job in jobs if replicated_job_name(job) == name]
        for jobs in (children.active, children.succeeded, children.failed)
    )
    return {
        "name": name,
        "ready": sum(map(_is_ready, active)),
        "succeeded": len(succeeded),
        "failed": len(failed),
        "active": sum((job.get("status") or {}).get("active", 0) > 0 for job in active),
        "suspended": sum(map(suspended, active)),
    }


def _is_ready(job: Object) -> bool:
    spec, status = job["spec"], job.get("status") or {}
    pods = min(spec["parallelism"], spec.get("completions", spec["parallelism"]))
    return bool(status.get("succeeded", 0) + status.get("ready", 0) >= pods)


def _failing(jobset: Object, children: Children, status: Object, now: datetime) -> Plan:
    failure = on_failure(jobset, children.failed)
    if not failure.restarts:
        return _ending(status, children, failure.condition, now)
    again = {"restarts": restarts(jobset) + 1}
    if failure.counts:
        again["restartsCountTowardsMax"] = status.get("restartsCountTowardsMax", 0) + 1
    event = Condition(type=_RESTARTING, reason=failure.reason, message=failure.condition.message)
    status, told = _tell(status | again, [failure.condition], now)
    return Plan(status=status, told=(*told, event), delete=children.previous)


def _ending(status: Object, children: Children, final: Condition, now: datetime) -> Plan:
    message = "jobset failed" if final.type == "Failed" else final.message
    calm = Condition(type=_RESTARTING, status=False, reason=f"JobSet{final.type}", message=message)
    status, told = _tell(status | {"terminalState": final.type}, [final, calm], now)
    return Plan(status=status, told=told, delete=children.previous)


def _going_on(jobset: Object, children: Children, status: Object, now: datetime) -> Plan:
    starting = may_start(jobset, status["replicatedJobsStatus"])
    changes = _suspension() if suspended(jobset) else _progress(jobset, starting, status)
    status, told = _tell(status, changes, now)
    return Plan(
        status=status,
        told=told,
        delete=children.previous,
        create=_missing(jobset, children, starting),
        update=_resuspended(jobset, children, starting),
        goes_on=True,
    )


def _missing(jobset: Object, children: Children, starting: Sequence[Object]) -> tuple[Object, ...]:
    policy = jobset["spec"].get("failurePolicy") or {}
    if children.previous and policy.get("restartStrategy") == "BlockingRecreate":
        return ()
    known = children.names
    missing = (
        child_job(jobset, replicated, index)
        for replicated in starting
        for index in range(replicated["replicas"])
        if job_name(jobset, replicated, index) not in known
    )
    return tuple(islice(missing, _MOST_AT_ONCE))


def _resuspended(jobset: Object, children: Children, starting: Sequence[Object]) -> tuple[Object, ...]:
    """Return the Jobs to update: to suspend if the JobSet is suspended, else to resume if they may start."""
    if suspended(jobset):
        return tuple(stopped(job) for job in children.active if not suspended(job))
    templates = {replicated["name"]: replicated for replicated in starting}
    return tuple(
        resumed(job, templates[replicated_job_name(job)])
        for job in children.active
        if suspended(job) and replicated_job_name(job) in templates
    )


def _suspension() -> list[Condition]:
    calm = Condition(type=_RESTARTING, status=False, reason="JobSetSuspended", message=_SUSPENDED.message)
    return [_SUSPENDED, calm]


def _progress(jobset: Object, starting: Sequence[Object], status: Object) -> list[Condition]:
    wanted = sum(replicated["replicas"] for replicated in jobset["spec"]["replicatedJobs"])
    ready = sum(count["ready"] + count["succeeded"] for count in status["replicatedJobsStatus"])
    calm = Condition(type=_RESTARTING, status=False, reason="JobsReady", message="all jobs are ready")
    changes = [calm] if ready == wanted else []
    if not in_order(jobset):
        return [*changes, _RESUMED]
    return [*changes, _STARTING_IN_ORDER] if starting else [*changes, _STARTED_IN_ORDER, _RESUMED]


def _tell(status: Object, changes: Sequence[Condition], now: datetime) -> tuple[Object, tuple[Condition, ...]]:
    """Return the status with the conditions, and those that changed. A condition that starts as False is skipped."""
    conditions, news = of({"status": status}), []
    for change in changes:
        if not change.status and find(conditions, change.type) is None:
            continue
        settled = [_ended(c, change) for c in conditions]
        after = with_condition(settled, change, now)
        if after != conditions:
            news.append(change)
        conditions = after
    return status | ({"conditions": conditions} if conditions else {}), tuple(news)


def _ended(condition: Object, change: Condition) -> Object:
    """Return the condition, set to False if it contradicts the change."""
    excluded = change.status and _OPPOSITES.get(change.type) == condition["type"]
    return condition | {"status": "False"} if excluded else condition
