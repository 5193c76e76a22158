"""Defaults of the schemas of kueue.x-k8s.io and of Kueue's mutating webhook for JobSets (pure)."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from infra.local.cluster.kueue_api.keys import QUEUE_NAME


def _cluster_queue(queue: dict[str, Any]) -> None:
    spec = queue.setdefault("spec", {})
    spec.setdefault("queueingStrategy", "BestEffortFIFO")
    spec.setdefault("stopPolicy", "None")
    fungibility = spec.setdefault("flavorFungibility", {})
    fungibility.setdefault("whenCanBorrow", "MayStopSearch")
    fungibility.setdefault("whenCanPreempt", "TryNextFlavor")
    preemption = spec.setdefault("preemption", {})
    preemption.setdefault("reclaimWithinCohort", "Never")
    preemption.setdefault("withinClusterQueue", "Never")
    preemption.setdefault("borrowWithinCohort", {}).setdefault("policy", "Never")


def _local_queue(queue: dict[str, Any]) -> None:
    queue.setdefault("spec", {}).setdefault("stopPolicy", "None")


def _resource_flavor(flavor: dict[str, Any]) -> None:
    flavor.setdefault("spec", {})


def _workload(workload: dict[str, Any]) -> None:
    spec = workload.setdefault("spec", {})
    spec.setdefault("active", True)
    spec.setdefault("priorityClassSource", "")
    for pod_set in spec.get("podSets", []):
        pod_set.setdefault("count", 1)
        pod_set.setdefault("name", "main")


def _priority_class(_: dict[str, Any]) -> None:
    return


DEFAULTS: Mapping[str, Callable[[dict[str, Any]], None]] = MappingProxyType(
    {
        "resourceflavors": _resource_flavor,
        "clusterqueues": _cluster_queue,
        "localqueues": _local_queue,
        "workloads": _workload,
        "workloadpriorityclasses": _priority_class,
    }
)
"""By plural name of the resource."""


def suspend_if_queued(jobset: dict[str, Any]) -> None:
    """Suspend a new JobSet that names a queue; Kueue ignores all others (manageJobsWithoutQueueName: false)."""
    if jobset["metadata"].get("labels", {}).get(QUEUE_NAME):
        jobset["spec"]["suspend"] = True
