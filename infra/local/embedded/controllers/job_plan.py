"""The Job controller's decision about one Indexed Job (pure).

Source: pkg/controller/job/job_controller.go of Kubernetes 1.31 and later, where FailureTarget and
SuccessCriteriaMet are set first, and Failed and Complete only once every pod has ended.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from infra.local.clients.conditions import Condition, find, is_true, moment, of, with_condition
from infra.local.clients.objects import Object, timestamp
from infra.local.clients.rounds import soonest
from infra.local.embedded.controllers import pod_failure_policy
from infra.local.embedded.controllers.job_pods import (
    Pods,
    compact,
    index_of,
    indexes,
    suspended,
    waits_for_the_end,
)

FINAL = ("Complete", "Failed")
_FINAL_OF = {"SuccessCriteriaMet": "Complete", "FailureTarget": "Failed"}
_MOST_AT_ONCE = 500  # MaxPodCreateDeletePerSync
_REACHED = "Reached expected number of succeeded pods"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Write `status`, then release the `counted` pods, delete pods, and create those of the `missing` indexes."""

    status: Object
    counted: tuple[Object, ...] = ()
    delete: tuple[Object, ...] = ()
    missing: tuple[int, ...] = ()
    wake: datetime | None = None


def not_covered(job: Object) -> tuple[str, ...]:
    """Return the names of the features that the Job uses and this controller does not implement."""
    spec = job["spec"]
    rules = (spec.get("podFailurePolicy") or {}).get("rules") or ()
    asked = {
        "completionMode NonIndexed": spec["completionMode"] != "Indexed",
        "successPolicy": "successPolicy" in spec,
        "backoffLimitPerIndex": "backoffLimitPerIndex" in spec,
        "podFailurePolicy action FailIndex": any(rule["action"] == "FailIndex" for rule in rules),
    }
    return tuple(name for name, is_asked in asked.items() if is_asked)


def plan(job: Object, pods: Pods, now: datetime, backoff: timedelta) -> Plan:
    """Return the plan. `backoff` is the time between a pod's failure and its replacement."""
    if any(is_true(job, kind) for kind in FINAL):
        return Plan(status=job["status"], counted=pods.ended)
    status = _counted(job, pods)
    outcome = _outcome(job, pods, status, now)
    if outcome is not None:
        return _ending(status, pods, outcome, now)
    if suspended(job):
        return _suspending(status, pods, now)
    return _running(job, pods, _started(status, now), now, backoff)


def _counted(job: Object, pods: Pods) -> Object:
    """Return the status with the ended pods added and the others counted."""
    known = job.get("status") or {}
    done = _completed(job, known) | {index_of(pod) for pod in pods.succeeded}
    matches = (pod_failure_policy.match(job, pod) for pod in pods.failed)
    failures = sum(match is None or match.action != "Ignore" for match in matches)
    status: Object = known | {
        "active": len(pods.active),
        "ready": pods.ready,
        "terminating": len(pods.terminating),
        "succeeded": len(done),
        "failed": known.get("failed", 0) + failures,
        "uncountedTerminatedPods": {},
    }
    return status | ({"completedIndexes": compact(done)} if done else {})


def _outcome(job: Object, pods: Pods, status: Object, now: datetime) -> Condition | None:
    """Return the condition with which the Job is to end, or None; once set, it does not change."""
    said = next((found for kind in _FINAL_OF if (found := find(of(job), kind))), None)
    if said is not None:
        return Condition(type=said["type"], reason=said["reason"], message=said["message"])
    spec = job["spec"]
    for pod in pods.failed:
        match = pod_failure_policy.match(job, pod)
        if match is not None and match.action == "FailJob":
            return _failure("PodFailurePolicy", match.message)
    if pods.failed and status["failed"] > spec["backoffLimit"]:
        return _failure("BackoffLimitExceeded", "Job has reached the specified backoff limit")
    deadline = _deadline(job)
    if deadline is not None and now >= deadline:
        return _failure("DeadlineExceeded", "Job was active longer than specified deadline")
    if status["succeeded"] >= spec["completions"]:
        return Condition(type="SuccessCriteriaMet", reason="CompletionsReached", message=_REACHED)
    return None


def _failure(reason: str, message: str) -> Condition:
    return Condition(type="FailureTarget", reason=reason, message=message)


def _deadline(job: Object) -> datetime | None:
    seconds = job["spec"].get("activeDeadlineSeconds")
    start = (job.get("status") or {}).get("startTime")
    if seconds is None or start is None or suspended(job):
        return None
    return moment(start) + timedelta(seconds=seconds)


def _ending(status: Object, pods: Pods, outcome: Condition, now: datetime) -> Plan:
    conditions = with_condition(status.get("conditions") or [], outcome, now)
    final: Object = {}
    if not (pods.active or pods.terminating):
        kind = _FINAL_OF[outcome.type]
        last = Condition(type=kind, reason=outcome.reason, message=outcome.message)
        conditions = with_condition(conditions, last, now)
        final = {"completionTime": timestamp(now)} if kind == "Complete" else {}
        final |= {} if "startTime" in status else {"startTime": timestamp(now)}
    return Plan(status=status | {"conditions": conditions} | final, counted=pods.ended, delete=pods.active)


def _suspending(status: Object, pods: Pods, now: datetime) -> Plan:
    said = Condition(type="Suspended", reason="JobSuspended", message="Job suspended")
    conditions = with_condition(status.get("conditions") or [], said, now)
    stopped = {key: value for key, value in status.items() if key != "startTime"}
    return Plan(status=stopped | {"conditions": conditions}, counted=pods.ended, delete=pods.active)


def _started(status: Object, now: datetime) -> Object:
    begun = {"startTime": timestamp(now)} | status
    if not is_true({"status": status}, "Suspended"):
        return begun
    said = Condition(type="Suspended", status=False, reason="JobResumed", message="Job resumed")
    return begun | {"conditions": with_condition(status["conditions"], said, now)}


def _running(job: Object, pods: Pods, status: Object, now: datetime, backoff: timedelta) -> Plan:
    retry = pods.last_failure + backoff if pods.last_failure is not None else now
    missing = _missing(job, pods, _completed(job, status))
    waits = bool(missing) and retry > now
    return Plan(
        status=status,
        counted=pods.ended,
        missing=() if waits else missing,
        wake=soonest([retry if waits else None, _deadline(job)]),
    )


def _completed(job: Object, status: Object) -> set[int]:
    return indexes(status.get("completedIndexes", ""), job["spec"]["completions"])


def _missing(job: Object, pods: Pods, done: set[int]) -> tuple[int, ...]:
    """Return the lowest indexes that need a pod, limited by `parallelism` and by the pods created per iteration."""
    holding = (*pods.active, *pods.terminating) if waits_for_the_end(job) else pods.active
    taken = done | {index_of(pod) for pod in holding}
    free = (index for index in range(job["spec"]["completions"]) if index not in taken)
    room = min(max(job["spec"]["parallelism"] - len(holding), 0), _MOST_AT_ONCE)
    return tuple(islice(free, room))
