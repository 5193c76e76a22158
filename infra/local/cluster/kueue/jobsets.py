"""Kueue's decisions about one JobSet of a queue, a step at a time (pure).

Source: pkg/controller/jobframework/reconciler.go (ReconcileGenericJob), pkg/controller/jobs/jobset.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from infra.local.cluster.controllers.conditions import find, of
from infra.local.cluster.controllers.lifetime import suspended
from infra.local.cluster.kueue import templates, transitions
from infra.local.cluster.kueue.priorities import MissingClassError, Priorities
from infra.local.cluster.kueue.settings import Settings
from infra.local.cluster.kueue.workloads import (
    EVICTED,
    PODS_READY,
    PREEMPTED,
    is_admitted,
    is_evicted,
    is_finished,
    key,
    new_workload,
    pod_sets,
    queue_name,
    reserves_quota,
)
from infra.local.cluster.kueue_api.keys import PRIORITY_CLASS
from infra.local.cluster.objects import Object

_FINAL = (("Completed", "Succeeded"), ("Failed", "Failed"))
"""Conditions of a JobSet that has ended, and the reason of its Workload's Finished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What decisions depend on besides the objects themselves; ResourceFlavors by name."""

    flavors: Mapping[str, Object]
    priorities: Priorities
    settings: Settings


@dataclass(frozen=True, slots=True)
class News:
    """An event about the JobSet."""

    reason: str
    message: str
    warns: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What to write, in this order; an object that is None is not written."""

    delete: tuple[Object, ...] = ()
    create: Object | None = None
    jobset: Object | None = None
    workload: Object | None = None
    status: Object | None = None
    """A Workload of which the status is to be written."""
    told: tuple[News, ...] = ()


NOTHING = Step()


def step(jobset: Object, workloads: Sequence[Object], ground: Ground, now: datetime) -> Step:
    """Return the next step; `workloads` are those that the JobSet controls."""
    try:
        return _next(jobset, workloads, ground, now)
    except MissingClassError as missing:  # Kueue itself reports a missing PriorityClass only in its log
        return Step(told=(News(f"{missing.kind}NotFound", str(missing), warns=True),))


def _next(jobset: Object, workloads: Sequence[Object], ground: Ground, now: datetime) -> Step:
    final = _final(jobset)
    same = [one for one in workloads if is_finished(one) or templates.same_pods(pod_sets(jobset), one)]
    if not same:
        return NOTHING if final else _unmatched(jobset, workloads, ground)
    workload, others = same[0], [one for one in workloads if one is not same[0]]
    if others:
        return Step(delete=tuple(others), told=tuple(_deleted(one) for one in others))
    if is_finished(workload):
        return NOTHING
    if final is not None:
        told = News("FinishedWorkload", f"Workload '{key(workload)}' is declared finished")
        return Step(status=transitions.finished(workload, *final, now), told=(told,))
    return _keep_up(jobset, workload, ground, now)


def _final(jobset: Object) -> tuple[str, str] | None:
    for kind, reason in _FINAL:
        condition = find(of(jobset), kind)
        if condition is not None and condition["status"] == "True":
            return reason, condition.get("message", "")
    return None


def _unmatched(jobset: Object, workloads: Sequence[Object], ground: Ground) -> Step:
    """Stop a JobSet that has no Workload, or not the one that it needs; then create the Workload."""
    if not suspended(jobset):
        if len(workloads) == 1:
            message = "No matching Workload; restoring pod templates according to existent Workload"
            return _stop(jobset, workloads[0], message)
        return _stop(jobset, None, "Missing Workload; unable to restore pod templates")
    if len(workloads) == 1 and not reserves_quota(workloads[0]):
        return _follow(jobset, workloads[0], ground)
    if workloads:
        return Step(delete=tuple(workloads), told=tuple(_deleted(one) for one in workloads))
    if _is_active(jobset):
        return NOTHING
    made = new_workload(jobset, ground.priorities)
    return Step(create=made, told=(News("CreatedWorkload", f"Created Workload: {key(made)}"),))


def _follow(jobset: Object, workload: Object, ground: Ground) -> Step:
    """Update a Workload without quota reservation to its changed JobSet."""
    made = new_workload(jobset, ground.priorities)
    spec = made["spec"] | {"active": workload["spec"].get("active", True)}
    message = f"Updated not matching Workload for suspended job: {key(workload)}"
    return Step(workload=workload | {"spec": spec}, told=(News("UpdatedWorkload", message),))


def _deleted(workload: Object) -> News:
    return News("DeletedWorkload", f"Deleted not matching Workload: {key(workload)}")


def _keep_up(jobset: Object, workload: Object, ground: Ground, now: datetime) -> Step:
    """Synchronise the Workload and its JobSet, which has not ended."""
    spec = _asked(jobset, workload, ground)
    if spec != workload["spec"]:
        return Step(workload=workload | {"spec": spec})
    seen = _observed(jobset, workload, ground.settings, now)
    if seen != workload:
        return Step(status=seen)
    if is_evicted(workload):
        return _let_go(jobset, workload, now)
    if suspended(jobset):
        return _start(jobset, workload, ground, now) if is_admitted(workload) else NOTHING
    return NOTHING if is_admitted(workload) else _stop(jobset, workload, "Not admitted by cluster queue")


def _asked(jobset: Object, workload: Object, ground: Ground) -> Object:
    """Return the spec that the Workload should have. Raise MissingClassError as for a new one."""
    spec: Object = workload["spec"]
    if not reserves_quota(workload):
        spec = spec | {"queueName": queue_name(jobset)}
    named = jobset["metadata"].get("labels", {}).get(PRIORITY_CLASS)
    return spec if named in (None, spec.get("priorityClassName")) else spec | ground.priorities.of(jobset)


def _observed(jobset: Object, workload: Object, settings: Settings, now: datetime) -> Object:
    """Return the Workload with the JobSet's progress in its status."""
    counts = {count["name"]: count for count in jobset.get("status", {}).get("replicatedJobsStatus", [])}
    replicated = jobset["spec"]["replicatedJobs"]
    done = [
        {"name": pod_set["name"], "count": pod_set["count"] // job["replicas"] * counts[job["name"]]["succeeded"]}
        for job, pod_set in zip(replicated, workload["spec"]["podSets"], strict=True)
        if job["name"] in counts and 0 < counts[job["name"]]["succeeded"] <= job["replicas"]
    ]
    after = transitions.reclaimable(workload, done)
    if settings.pods_ready_timeout is None:
        return after
    ready = sum(count["ready"] + count["succeeded"] for count in counts.values())
    after = transitions.readiness(after, now, ready=ready == sum(job["replicas"] for job in replicated))
    return workload if _says_the_same(workload, after) else after


def _says_the_same(before: Object, after: Object) -> bool:
    """Return whether PodsReady kept its status and reason, and nothing else changed."""
    told = [find(of(one), PODS_READY) for one in (before, after)]
    if told[0] is None or told[1] is None:
        return False
    same = all(told[0][what] == told[1][what] for what in ("status", "reason"))
    return same and before["status"].get("reclaimablePods") == after["status"].get("reclaimablePods")


def _let_go(jobset: Object, workload: Object, now: datetime) -> Step:
    """Stop the JobSet of an evicted Workload; release the quota once its pods are gone."""
    eviction = find(of(workload), EVICTED)
    assert eviction is not None
    reason, message = eviction["reason"], eviction["message"]
    if not suspended(jobset):
        return _stop(jobset, workload, message)
    if not reserves_quota(workload) or _is_active(jobset):
        return NOTHING
    after = transitions.requeued(workload, reason, message, now, status=reason == PREEMPTED)
    return Step(status=transitions.unreserved(after, "PendingEvaluation", message, now))


def _start(jobset: Object, workload: Object, ground: Ground, now: datetime) -> Step:
    try:
        running = templates.started(jobset, workload, ground.flavors)
    except templates.ConflictError as error:
        return Step(status=transitions.finished(workload, "FailedToStart", str(error), now))
    except KeyError:  # the flavor was deleted meanwhile: its quota stays reserved until the flavor exists again
        return NOTHING
    queue = workload["status"]["admission"]["clusterQueue"]
    return Step(jobset=running, told=(News("Started", f"Admitted by clusterQueue {queue}"),))


def _stop(jobset: Object, workload: Object | None, message: str) -> Step:
    return Step(jobset=templates.stopped(jobset, workload), told=(News("Stopped", message),))


def _is_active(jobset: Object) -> bool:
    return any(count["active"] for count in jobset.get("status", {}).get("replicatedJobsStatus", []))
