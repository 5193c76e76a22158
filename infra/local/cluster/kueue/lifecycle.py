"""Kueue's decisions about one Workload other than scheduling: stopping, timeouts, requeuing (pure).

Source: pkg/controller/core/workload_controller.go (Reconcile).
"""

from dataclasses import dataclass
from datetime import datetime

from infra.local.cluster.controllers.conditions import find, of, since
from infra.local.cluster.kueue import transitions
from infra.local.cluster.kueue.queues import HOLD_AND_DRAIN, Queues, stop_policy, stopped
from infra.local.cluster.kueue.settings import Settings
from infra.local.cluster.kueue.workloads import (
    ADMITTED,
    PODS_READY,
    REQUEUED,
    is_active,
    is_admitted,
    is_evicted,
    is_finished,
    key,
    requeue_at,
    reserves_quota,
)
from infra.local.cluster.objects import Object

_DEACTIVATED = ("Deactivated", "The workload is deactivated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """The Workload with its new status, and when to run again even if nothing changes."""

    workload: Object
    wake: datetime | None = None


def step(workload: Object, queues: Queues, settings: Settings, now: datetime) -> Next:
    """Return the next state; the Workload is unchanged if there is nothing to do."""
    if is_finished(workload):
        return Next(workload=workload)
    if not is_active(workload):
        return Next(workload=_deactivated(workload, queues, now))
    backoff = requeue_at(workload)
    if backoff is not None and backoff > now:
        return Next(workload=workload, wake=backoff)
    if backoff is not None and not reserves_quota(workload):
        return Next(workload=transitions.after_backoff(workload))
    workload = _queued_again(workload, queues, now)
    if not reserves_quota(workload):
        return Next(workload=_blocked(workload, queues, now))
    return _watched(workload, queues, settings, now)


def _deactivated(workload: Object, queues: Queues, now: datetime) -> Object:
    if not is_evicted(workload):
        workload = transitions.evicted(workload, *_DEACTIVATED, now)
    if "requeueState" in workload["status"]:
        workload = transitions.without_backoff(workload)
    return workload if reserves_quota(workload) else _blocked(workload, queues, now)


def _queued_again(workload: Object, queues: Queues, now: datetime) -> Object:
    """Mark the Workload as requeued if what had stopped it is over."""
    requeued = find(of(workload), REQUEUED)
    if requeued is None or requeued["status"] == "True":
        return workload
    local, cluster = queues.local_queue(workload), queues.cluster_queue(workload)
    match requeued["reason"]:
        case "Deactivated":
            return transitions.requeued(workload, "Reactivated", "The workload was reactivated", now)
        case "PodsReadyTimeout":
            return transitions.requeued(workload, "BackoffFinished", "The workload backoff was finished", now)
        case "LocalQueueStopped" if local and not stopped(local):
            message = "The LocalQueue was restarted after being stopped"
            return transitions.requeued(workload, "LocalQueueRestarted", message, now)
        case "ClusterQueueStopped" if cluster and not stopped(cluster):
            message = "The ClusterQueue was restarted after being stopped"
            return transitions.requeued(workload, "ClusterQueueRestarted", message, now)
        case _:
            return workload


def _blocked(workload: Object, queues: Queues, now: datetime) -> Object:
    """Write why a Workload is not considered for admission; if it is, keep the scheduler's condition."""
    why = _DEACTIVATED if not is_active(workload) else queues.blocker(workload)
    return workload if why is None else transitions.unreserved(workload, *why, now)


def _watched(workload: Object, queues: Queues, settings: Settings, now: datetime) -> Next:
    """Evict an admitted Workload if its queue is being drained, or its pods are not ready in time."""
    if is_evicted(workload):
        return Next(workload=workload)
    local = queues.local_queue(workload)
    cluster = queues.cluster_queues.get(workload["status"]["admission"]["clusterQueue"])
    for queue, kind in ((local, "LocalQueue"), (cluster, "ClusterQueue")):
        if queue is not None and stop_policy(queue) == HOLD_AND_DRAIN:
            return Next(workload=transitions.evicted(workload, f"{kind}Stopped", f"The {kind} is stopped", now))
    late = _deadline(workload, settings)
    if late is None:
        return Next(workload=workload)
    cause, deadline = late
    if deadline > now:
        return Next(workload=workload, wake=deadline)
    return Next(workload=transitions.timed_out(workload, key(workload), cause, settings, now))


def _deadline(workload: Object, settings: Settings) -> tuple[str, datetime] | None:
    """Return what the pods would be late with and when they must be ready; None: they are, or there is no limit."""
    ready = find(of(workload), PODS_READY)
    if settings.pods_ready_timeout is None or not is_admitted(workload):
        return None
    if ready is not None and ready["status"] == "True":
        return None
    recovers = ready is not None and ready["reason"] == "WaitForRecovery"
    began = since(workload, PODS_READY if recovers else ADMITTED)
    assert began is not None
    return ("WaitForRecovery" if recovers else "WaitForStart"), began + settings.pods_ready_timeout
