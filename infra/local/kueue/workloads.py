"""A JobSet of a queue and its Workload: what changes next (pure).

| the JobSet | its Workload | changes |
|---|---|---|
| has not ended | is not there | is created |
| has ended | is not finished | is finished; its quota is free |
| runs | waits, or is evicted | the JobSet is suspended, with its own pod templates |
| runs, or not yet | is admitted, by a queue that is drained | is evicted |
| is suspended | is admitted | the JobSet is resumed, with node labels and tolerations of its flavors |
| is suspended, and its pods are gone | is evicted | has no quota, and waits again |
| is suspended | waits, in a queue that is closed | tells why |
| is suspended, with another queue, priority or pods | waits | has them, too |
"""

from collections.abc import Mapping
from datetime import datetime
from enum import Enum, auto

from infra.local.clients.conditions import Condition, find, is_true, of, with_condition
from infra.local.clients.objects import Object
from infra.local.clients.owners import controlled_by
from infra.local.kueue.queues import DRAIN, Queues
from infra.local.kueue.quota import TPU, Why

QUEUE, PRIORITY, JOB_UID = (f"kueue.x-k8s.io/{name}" for name in ("queue-name", "priority-class", "job-uid"))
_RESERVED, _ADMITTED, _EVICTED, _FINISHED = "QuotaReserved", "Admitted", "Evicted", "Finished"
_ENDS = {"Completed": "Succeeded", "Failed": "Failed"}
"""Conditions of a JobSet that has ended, with the reason of its Workload's Finished."""


class Stage(Enum):
    WAITING = auto()
    ADMITTED = auto()
    EVICTED = auto()
    """It has its quota until its pods are gone."""
    FINISHED = auto()


def stage(workload: Object) -> Stage:
    if is_true(workload, _FINISHED):
        return Stage.FINISHED
    if not is_true(workload, _RESERVED):
        return Stage.WAITING
    return Stage.EVICTED if is_true(workload, _EVICTED) else Stage.ADMITTED


def next_change(jobset: Object, workload: Object | None, queues: Queues, now: datetime) -> Object | None:
    """Return the JobSet or the Workload as it is to be; None if both are as they should be."""
    end = next((one for one in of(jobset) if one["type"] in _ENDS and one["status"] == "True"), None)
    if workload is None:
        return None if end else new(jobset, queues)
    if end or stage(workload) is Stage.FINISHED:
        return _told(workload, now, _FINISHED, Why(_ENDS[end["type"]], end.get("message", ""))) if end else None
    match stage(workload), jobset["spec"].get("suspend", False):
        case ((Stage.WAITING | Stage.EVICTED), False):
            return _with(jobset, {one["name"]: one["template"] for one in workload["spec"]["podSets"]}, suspend=True)
        case Stage.ADMITTED, _ if why := queues.stopped(workload, DRAIN):
            return _told(workload, now, _EVICTED, why)
        case Stage.ADMITTED, True:
            return started(jobset, workload, queues.flavors)
        case Stage.EVICTED, _ if not _has_pods(jobset):
            message = (find(of(workload), _EVICTED) or {}).get("message", "")
            return decided(workload, Why("Pending", message), now)
        case Stage.WAITING, _:
            asked = workload | {"spec": new(jobset, queues)["spec"] | {"active": workload["spec"]["active"]}}
            why = queues.closed(workload)
            return decided(workload, why, now) if asked == workload and why else asked
        case _:
            return None


def _has_pods(jobset: Object) -> bool:
    return any(one.get("active") for one in jobset.get("status", {}).get("replicatedJobsStatus", []))


def new(jobset: Object, queues: Queues) -> Object:
    """Return the Workload of a JobSet: a podSet for each replicatedJob, with the pods of all its Jobs."""
    metadata, labels = jobset["metadata"], jobset["metadata"]["labels"]
    made = {
        "name": f"jobset-{metadata['name']}-{metadata['uid'][:5]}",
        "namespace": metadata["namespace"],
        "labels": {JOB_UID: metadata["uid"]},
        "ownerReferences": [controlled_by(jobset)],
    }
    named = labels.get(PRIORITY, "")
    spec = {
        "queueName": labels[QUEUE],
        "active": True,
        "priority": queues.priorities.get(named, {"value": 0})["value"],
        "podSets": [_pod_set(replicated) for replicated in jobset["spec"].get("replicatedJobs", [])],
    }
    return {"kind": "Workload", "metadata": made, "spec": spec | ({"priorityClassName": named} if named else {})}


def _pod_set(replicated: Object) -> Object:
    job = replicated["template"]["spec"]
    pods = min(job.get("parallelism", 1), job.get("completions", job.get("parallelism", 1)))
    return {"name": replicated["name"], "count": replicated.get("replicas", 1) * pods, "template": job["template"]}


def started(jobset: Object, workload: Object, flavors: Mapping[str, Object]) -> Object:
    """Return a JobSet that runs, its pods on nodes of the flavors that its Workload was assigned."""
    templates = {}
    rows = workload["status"]["admission"]["podSetAssignments"]
    for pod_set, row in zip(workload["spec"]["podSets"], rows, strict=True):
        flavor, pod = flavors.get(row["flavors"].get(TPU), {}).get("spec", {}), pod_set["template"]["spec"]
        chosen = {
            "nodeSelector": flavor.get("nodeLabels", {}) | pod.get("nodeSelector", {}),
            "tolerations": [*pod.get("tolerations", []), *flavor.get("tolerations", [])],
        }
        spec = pod | {key: value for key, value in chosen.items() if value}
        templates[pod_set["name"]] = pod_set["template"] | {"spec": spec}
    return _with(jobset, templates, suspend=False)


def _with(jobset: Object, templates: Mapping[str, Object], *, suspend: bool) -> Object:
    jobs = [
        job | {"template": job["template"] | {"spec": job["template"]["spec"] | {"template": templates[job["name"]]}}}
        for job in jobset["spec"].get("replicatedJobs", [])
    ]
    return jobset | {"spec": jobset["spec"] | {"suspend": suspend, "replicatedJobs": jobs}}


def decided(workload: Object, decision: Object | Why, now: datetime) -> Object:
    """Return a Workload with this status.admission, or without quota."""
    if isinstance(decision, Why):
        after = _told(workload, now, _RESERVED, decision, status=False)
        after = _told(after, now, _ADMITTED, Why("NoReservation", "The workload has no reservation"), status=False)
        return after | {"status": {key: value for key, value in after["status"].items() if key != "admission"}}
    quota = Why(_RESERVED, f"Quota reserved in ClusterQueue {decision['clusterQueue']}")
    after = _told(workload, now, _RESERVED, quota)
    if is_true(workload, _EVICTED):
        after = _told(after, now, _EVICTED, quota, status=False)
    after = _told(after, now, _ADMITTED, Why(_ADMITTED, "The workload is admitted"))
    return after | {"status": after["status"] | {"admission": decision}}


def _told(workload: Object, now: datetime, kind: str, why: Why, *, status: bool = True) -> Object:
    condition = Condition(type=kind, status=status, reason=why.reason, message=why.message)
    conditions = with_condition(of(workload), condition, now)
    return workload | {"status": workload.get("status", {}) | {"conditions": conditions}}
