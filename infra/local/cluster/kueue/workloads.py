"""Accessors of Workloads, and the Workload of a JobSet (pure).

Source: pkg/controller/jobframework (workload_names.go, reconciler.go), pkg/controller/jobs/jobset.
"""

from datetime import datetime
from hashlib import sha1

from infra.local.cluster.controllers.conditions import find, is_true, moment, of
from infra.local.cluster.controllers.ownership import controlled_by
from infra.local.cluster.kueue.priorities import Priorities
from infra.local.cluster.kueue_api.keys import (
    JOB_UID,
    QUEUE_NAME,
    TOPOLOGY_REQUESTS,
)
from infra.local.cluster.objects import Object

QUOTA_RESERVED, ADMITTED, EVICTED, PREEMPTED = "QuotaReserved", "Admitted", "Evicted", "Preempted"
REQUEUED, FINISHED, PODS_READY = "Requeued", "Finished", "PodsReady"

_LONGEST_NAME = 253
_HASH = 5


def key(obj: Object) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


def queue_name(jobset: Object) -> str:
    """Return the LocalQueue's name of a JobSet; empty if it has none."""
    return str(jobset["metadata"].get("labels", {}).get(QUEUE_NAME, ""))


def reserves_quota(workload: Object) -> bool:
    return is_true(workload, QUOTA_RESERVED)


def is_admitted(workload: Object) -> bool:
    return is_true(workload, ADMITTED)


def is_evicted(workload: Object) -> bool:
    return is_true(workload, EVICTED)


def is_finished(workload: Object) -> bool:
    return is_true(workload, FINISHED)


def is_active(workload: Object) -> bool:
    return bool(workload["spec"].get("active", True))


def priority(workload: Object) -> int:
    return int(workload["spec"].get("priority", 0))


def requeue_at(workload: Object) -> datetime | None:
    """Return when the backoff of a Workload ends, if it has one."""
    stamp = workload.get("status", {}).get("requeueState", {}).get("requeueAt")
    return moment(stamp) if stamp else None


def is_queued(workload: Object, now: datetime) -> bool:
    """Return whether a Workload waits for admission, and only for quota (IsAdmissible)."""
    if is_finished(workload) or reserves_quota(workload) or not is_active(workload):
        return False
    requeued = find(of(workload), REQUEUED)
    again = requeue_at(workload)
    return (requeued is None or requeued["status"] == "True") and (again is None or again <= now)


def queued_since(workload: Object) -> datetime:
    """Return when a Workload joined its queue, or had its PodsReady timeout (GetQueueOrderTimestamp)."""
    evicted = find(of(workload), EVICTED)
    timed_out = evicted is not None and evicted["status"] == "True" and evicted["reason"] == "PodsReadyTimeout"
    stamp = evicted["lastTransitionTime"] if evicted and timed_out else workload["metadata"]["creationTimestamp"]
    return moment(stamp)


def in_order(workload: Object) -> tuple[int, datetime, str]:
    """Return the sort key: higher priority first, then older."""
    return -priority(workload), queued_since(workload), workload["metadata"]["uid"]


def workload_name(jobset: Object) -> str:
    """Return the name of a JobSet's Workload: `jobset-<name>-<5 digits of a hash>`."""
    metadata = jobset["metadata"]
    group = jobset["apiVersion"].partition("/")[0]
    hashed = "\n".join((jobset["kind"], group, metadata["name"], metadata["uid"]))
    digest = sha1(hashed.encode(), usedforsecurity=False).hexdigest()[:_HASH]
    prefix = f"{jobset['kind'].lower()}-{metadata['name']}"[: _LONGEST_NAME - 1 - _HASH]
    return f"{prefix}-{digest}"


def pod_sets(jobset: Object) -> list[Object]:
    """Return one podSet for each replicatedJob, with all pods of all its Jobs."""
    return [_pod_set(replicated) for replicated in jobset["spec"].get("replicatedJobs", [])]


def _pod_set(replicated: Object) -> Object:
    job = replicated["template"]["spec"]
    parallelism = job.get("parallelism", 1)
    pods = replicated["replicas"] * min(parallelism, job.get("completions", parallelism))
    template = job["template"]
    annotations = template.get("metadata", {}).get("annotations", {})
    asked = [name for name in TOPOLOGY_REQUESTS if name in annotations]
    topology = {"topologyRequest": {"subGroupCount": replicated["replicas"]}} if asked else {}
    return {"name": replicated["name"].lower(), "count": pods, "template": template} | topology


def new_workload(jobset: Object, priorities: Priorities) -> Object:
    """Return a new Workload for a JobSet. Raise MissingClassError if it names a priority that does not exist."""
    metadata = jobset["metadata"]
    return {
        "metadata": {
            "name": workload_name(jobset),
            "namespace": metadata["namespace"],
            "labels": {JOB_UID: metadata["uid"]},
            "ownerReferences": [controlled_by(jobset)],
        },
        "spec": {"queueName": queue_name(jobset), "podSets": pod_sets(jobset), "active": True} | priorities.of(jobset),
    }
