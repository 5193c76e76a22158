"""Changes of a Workload's status: its conditions, with Kueue's reasons and messages (pure).

Source: pkg/workload (workload.go, admissionchecks.go), pkg/workload/evict, pkg/workload/finish.
"""

from datetime import datetime

from infra.local.cluster.controllers.conditions import Condition, find, of, since, with_condition
from infra.local.cluster.kueue.settings import Settings
from infra.local.cluster.kueue.workloads import (
    ADMITTED,
    EVICTED,
    FINISHED,
    PODS_READY,
    PREEMPTED,
    QUOTA_RESERVED,
    REQUEUED,
    is_admitted,
)
from infra.local.cluster.objects import Object, timestamp

_PAST_SECONDS = "accumulatedPastExexcutionTimeSeconds"
_LONGEST_MESSAGE = 32 * 1024
"""The limit of metav1.Condition."""


def told(obj: Object, change: Condition, now: datetime) -> Object:
    """Return an object with a condition in its status, including the observed generation."""
    short = Condition(
        type=change.type, status=change.status, reason=change.reason, message=change.message[:_LONGEST_MESSAGE]
    )
    generation = {"observedGeneration": obj["metadata"].get("generation", 1)}
    conditions = [
        condition | generation | {"message": short.message} if condition["type"] == change.type else condition
        for condition in with_condition(of(obj), short, now)
    ]
    return _with_status(obj, conditions=conditions)


def _with_status(obj: Object, **fields: object) -> Object:
    return obj | {"status": obj.get("status", {}) | fields}


def _without_status(obj: Object, *fields: str) -> Object:
    return obj | {"status": {key: value for key, value in obj.get("status", {}).items() if key not in fields}}


def reserved(workload: Object, admission: Object, now: datetime) -> Object:
    """Return a Workload with its quota reserved, and admitted: there are no admission checks."""
    message = f"Quota reserved in ClusterQueue {admission['clusterQueue']}"
    after = _with_status(workload, admission=admission)
    after = told(after, Condition(type=QUOTA_RESERVED, reason=QUOTA_RESERVED, message=message), now)
    for past in (EVICTED, PREEMPTED):
        before = find(of(after), past)
        if before is not None and before["status"] == "True":
            message = f"Previously: {before['message']}"
            after = told(after, Condition(type=past, status=False, reason=QUOTA_RESERVED, message=message), now)
    return told(after, Condition(type=ADMITTED, reason=ADMITTED, message="The workload is admitted"), now)


def unreserved(workload: Object, reason: str, message: str, now: datetime) -> Object:
    """Return a Workload without quota reservation, with the reason."""
    after = _without_status(workload, "admission")
    after = told(after, Condition(type=QUOTA_RESERVED, status=False, reason=reason, message=message), now)
    admitted_since = since(workload, ADMITTED)
    if is_admitted(workload) and admitted_since is not None:
        past = workload["status"].get(_PAST_SECONDS, 0) + int((now - admitted_since).total_seconds())
        after = _with_status(after, **{_PAST_SECONDS: past})
    why = Condition(type=ADMITTED, status=False, reason="NoReservation", message="The workload has no reservation")
    return told(after, why, now)


def evicted(workload: Object, reason: str, message: str, now: datetime, cause: str = "") -> Object:
    """Return a Workload marked as evicted, and count the eviction. It keeps its quota until the pods are gone."""
    after = told(workload, Condition(type=EVICTED, reason=reason, message=message), now)
    stats = [dict(one) for one in after["status"].get("schedulingStats", {}).get("evictions", [])]
    counted = next((one for one in stats if (one["reason"], one["underlyingCause"]) == (reason, cause)), None)
    if counted is None:
        counted = {"reason": reason, "underlyingCause": cause, "count": 0}
        stats.append(counted)
    counted["count"] += 1
    return _with_status(after, schedulingStats={"evictions": stats})


def preempted(workload: Object, by: Object, job_uid: str, now: datetime) -> Object:
    """Return a Workload evicted in favour of another one of its ClusterQueue."""
    path = f"/{workload['status']['admission']['clusterQueue']}"
    message = (
        f"Preempted to accommodate a workload (UID: {by['metadata']['uid']}, JobUID: {job_uid or 'UNKNOWN'}) "
        f"due to prioritization in the ClusterQueue; preemptor path: {path}; preemptee path: {path}"
    )
    after = told(workload, Condition(type=PREEMPTED, reason="InClusterQueue", message=message), now)
    return evicted(after, PREEMPTED, message, now)


def timed_out(workload: Object, key: str, cause: str, settings: Settings, now: datetime) -> Object:
    """Return a Workload evicted because its pods were not ready in time, with a backoff before it is requeued."""
    count = workload["status"].get("requeueState", {}).get("count", 0) + 1
    again = {"count": count, "requeueAt": timestamp(now + settings.backoff(count))}
    message = f"Exceeded the PodsReady timeout {key}"
    return evicted(_with_status(workload, requeueState=again), "PodsReadyTimeout", message, now, cause)


def after_backoff(workload: Object) -> Object:
    count = workload["status"]["requeueState"].get("count")
    return _with_status(workload, requeueState={} if count is None else {"count": count})


def without_backoff(workload: Object) -> Object:
    return _without_status(workload, "requeueState")


def requeued(workload: Object, reason: str, message: str, now: datetime, *, status: bool = True) -> Object:
    """Return a Workload with the condition Requeued: whether it is queued again after an eviction, and why."""
    return told(workload, Condition(type=REQUEUED, status=status, reason=reason, message=message), now)


def finished(workload: Object, reason: str, message: str, now: datetime) -> Object:
    return told(workload, Condition(type=FINISHED, reason=reason, message=message), now)


def readiness(workload: Object, now: datetime, *, ready: bool) -> Object:
    """Return a Workload with the condition PodsReady: ready, waiting for the start, or waiting for recovery."""
    before = find(of(workload), PODS_READY)
    failed = before is not None and before["reason"] in ("WaitForRecovery", "Recovered")
    if not is_admitted(workload):
        change = _not_ready("WaitForStart", "Not all pods are ready or succeeded")
    elif ready:
        reason = "Recovered" if failed else "Started"
        message = "All pods reached readiness and the workload is running"
        change = Condition(type=PODS_READY, reason=reason, message=message)
    elif before is not None and (before["status"] == "True" or before["reason"] == "WaitForRecovery"):
        change = _not_ready("WaitForRecovery", "At least one pod has failed, waiting for recovery")
    else:
        change = _not_ready("WaitForStart", "Not all pods are ready or succeeded")
    return told(workload, change, now)


def _not_ready(reason: str, message: str) -> Condition:
    return Condition(type=PODS_READY, status=False, reason=reason, message=message)


def reclaimable(workload: Object, pods: list[Object]) -> Object:
    """Return a Workload with these reclaimablePods, whose quota is released; unchanged if they are the same."""
    if pods == workload.get("status", {}).get("reclaimablePods", []):
        return workload
    return _with_status(workload, reclaimablePods=pods)
