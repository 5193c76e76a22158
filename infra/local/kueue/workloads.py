"""A JobSet of a queue and its Workload: what changes next (only reads `objects`).

| the JobSet | its Workload | changes |
|---|---|---|
| has not ended | is not there | is created |
| has ended | is not finished | is finished; its quota is free |
| runs | waits, or is evicted | the JobSet is suspended, with its own pod templates |
| runs, or not yet | is admitted, not active, or of a queue with stopPolicy HoldAndDrain | is evicted |
| is suspended | is admitted | the JobSet is resumed, with node labels and tolerations of its flavors |
| is suspended, and its pods are gone | is evicted | has no quota, and waits again |
| is suspended, with another queue, priority or pods | waits | has them, too |
| is suspended | waits, is not active, or of a queue that is stopped or not there | tells why |
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import Enum, auto

from infra.local.clients.conditions import Condition, find, is_true, of, with_condition
from infra.local.clients.errors import ApiError
from infra.local.clients.objects import Object, Objects, copied
from infra.local.clients.owners import controlled_by
from infra.local.kueue.quota import TPU, Why, quota

QUEUE, PRIORITY, JOB_UID = (f"kueue.x-k8s.io/{name}" for name in ("queue-name", "priority-class", "job-uid"))
_RESERVED, _ADMITTED, _EVICTED, _FINISHED = "QuotaReserved", "Admitted", "Evicted", "Finished"
_ENDS = {"Completed": "Succeeded", "Failed": "Failed"}
"""Conditions of a JobSet that has ended, with the reason of its Workload's Finished."""


class Stage(Enum):
    WAITING, ADMITTED, EVICTED, FINISHED = auto(), auto(), auto(), auto()


def stage(workload: Object) -> Stage:
    """Return how far a Workload is; one that is evicted has its quota until its pods are gone."""
    if is_true(workload, _FINISHED):
        return Stage.FINISHED
    if not is_true(workload, _RESERVED):
        return Stage.WAITING
    return Stage.EVICTED if is_true(workload, _EVICTED) else Stage.ADMITTED


def next_change(jobset: Object, workload: Object | None, objects: Objects, now: datetime) -> Object | None:
    """Return the JobSet or the Workload as it is to be; None if both are as they should be."""
    end = next((one for one in of(jobset) if one["type"] in _ENDS and one["status"] == "True"), None)
    if workload is None:
        return None if end else new(jobset, objects)
    if end or stage(workload) is Stage.FINISHED:
        return _told(workload, now, _FINISHED, Why(_ENDS[end["type"]], end.get("message", ""))) if end else None
    pods = any(one.get("active") for one in jobset.get("status", {}).get("replicatedJobsStatus", []))
    match (stage(workload), jobset["spec"].get("suspend", False)):
        case ((Stage.WAITING | Stage.EVICTED), False):
            return _with(jobset, {one["name"]: one["template"] for one in workload["spec"]["podSets"]}, suspend=True)
        case Stage.ADMITTED, _ if why := _stopped(workload, objects, "HoldAndDrain"):
            return _told(workload, now, _EVICTED, why)
        case Stage.ADMITTED, True:
            return _started(jobset, workload, objects.stored("resourceflavors"))
        case Stage.EVICTED, _ if not pods:
            return decided(workload, Why("Pending", (find(of(workload), _EVICTED) or {}).get("message", "")), now)
        case Stage.WAITING, _:
            asked = workload | {"spec": new(jobset, objects)["spec"] | {"active": workload["spec"]["active"]}}
            why = closed(workload, objects)
            return decided(workload, why, now) if asked == workload and why else asked
        case _:
            return None


def closed(workload: Object, objects: Objects) -> Why | None:
    """Return why a Workload is not considered for admission; None: it is."""
    spec, namespace = workload["spec"], workload["metadata"]["namespace"]
    try:
        if "priorityClassName" in spec:
            objects.get("workloadpriorityclasses", None, spec["priorityClassName"])
        local = objects.get("localqueues", namespace, spec["queueName"])
        for name in quota(objects.get("clusterqueues", None, local["spec"]["clusterQueue"])):
            objects.get("resourceflavors", None, name)
    except ApiError as error:
        return Why("Misconfigured", str(error))
    return _stopped(workload, objects, "Hold", "HoldAndDrain")


def _stopped(workload: Object, objects: Objects, *policies: str) -> Why | None:
    """Return why a Workload may not run: its queues have one of these stopPolicies, or it is not active."""
    for queue in _queues(workload, objects):
        if queue["spec"].get("stopPolicy") in policies:
            return Why(f"{queue['kind']}Stopped", f"The {queue['kind']} is stopped")
    return None if workload["spec"]["active"] else Why("Deactivated", "The workload is deactivated")


def is_of(workload: Object, queue: Object, objects: Objects) -> bool:
    return queue["metadata"]["uid"] in [one["metadata"]["uid"] for one in _queues(workload, objects)]


def _queues(workload: Object, objects: Objects) -> list[Object]:
    """Return the LocalQueue of a Workload and the ClusterQueue of that one, or of its quota, if they are there."""
    name, namespace = workload["spec"]["queueName"], workload["metadata"]["namespace"]
    local = [one for one in objects.stored("localqueues", namespace) if one["metadata"]["name"] == name]
    held = workload.get("status", {}).get("admission")
    names = [one["clusterQueue"] for one in ([held] if held else [one["spec"] for one in local])]
    return local + [one for one in objects.stored("clusterqueues") if one["metadata"]["name"] in names]


def new(jobset: Object, objects: Objects) -> Object:
    """Return the Workload of a JobSet: a podSet for each replicatedJob, with the pods of all its Jobs."""
    metadata, named = jobset["metadata"], jobset["metadata"]["labels"].get(PRIORITY)
    classes = {one["metadata"]["name"]: one["value"] for one in objects.stored("workloadpriorityclasses")}
    pod_sets = [_pod_set(replicated) for replicated in jobset["spec"].get("replicatedJobs", [])]
    spec = {"queueName": metadata["labels"][QUEUE], "active": True, "podSets": pod_sets}
    spec |= {"priority": classes.get(named, 0)} | ({"priorityClassName": named} if named else {})
    made = {
        "name": f"jobset-{metadata['name']}-{metadata['uid'][:5]}",
        "namespace": metadata["namespace"],
        "labels": {JOB_UID: metadata["uid"]},
        "ownerReferences": [controlled_by(jobset)],
    }
    return {"kind": "Workload", "metadata": made, "spec": spec}


def _pod_set(replicated: Object) -> Object:
    job = replicated["template"]["spec"]
    pods = min(job.get("parallelism", 1), job.get("completions", job.get("parallelism", 1)))
    return {"name": replicated["name"], "count": replicated.get("replicas", 1) * pods, "template": job["template"]}


def _started(jobset: Object, workload: Object, flavors: Iterable[Object]) -> Object:
    """Return a JobSet that runs, its pods on nodes of the flavors that its Workload was assigned."""
    specs, templates = {one["metadata"]["name"]: one.get("spec", {}) for one in flavors}, {}
    rows = workload["status"]["admission"]["podSetAssignments"]
    for pod_set, row in zip(workload["spec"]["podSets"], rows, strict=True):
        flavor, pod = specs.get(row["flavors"].get(TPU), {}), pod_set["template"]["spec"]
        chosen = {
            "nodeSelector": flavor.get("nodeLabels", {}) | pod.get("nodeSelector", {}),
            "tolerations": [*pod.get("tolerations", []), *flavor.get("tolerations", [])],
        }
        spec = pod | {key: value for key, value in chosen.items() if value}
        templates[pod_set["name"]] = pod_set["template"] | {"spec": spec}
    return _with(jobset, templates, suspend=False)


def _with(jobset: Object, templates: Mapping[str, Object], *, suspend: bool) -> Object:
    after = copied(jobset)
    after["spec"]["suspend"] = suspend
    for job in after["spec"].get("replicatedJobs", []):
        job["template"]["spec"]["template"] = templates[job["name"]]
    return after


def decided(workload: Object, decision: Object | Why, now: datetime) -> Object:
    """Return a Workload with this status.admission, or without quota."""
    if isinstance(decision, Why):
        after = _told(workload, now, _RESERVED, decision, status=False)
        after["status"].pop("admission", None)
        return _told(after, now, _ADMITTED, Why("NoReservation", "The workload has no reservation"), status=False)
    quota = Why(_RESERVED, f"Quota reserved in ClusterQueue {decision['clusterQueue']}")
    after = _told(workload, now, _RESERVED, quota)
    if is_true(workload, _EVICTED):
        after = _told(after, now, _EVICTED, quota, status=False)
    after["status"]["admission"] = decision
    return _told(after, now, _ADMITTED, Why(_ADMITTED, "The workload is admitted"))


def _told(workload: Object, now: datetime, kind: str, why: Why, *, status: bool = True) -> Object:
    condition = Condition(type=kind, status=status, reason=why.reason, message=why.message)
    conditions = with_condition(of(workload), condition, now)
    return workload | {"status": workload.get("status", {}) | {"conditions": conditions}}
