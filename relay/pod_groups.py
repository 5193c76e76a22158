"""Recognises pods that a PodGroup (scheduling.k8s.io) keeps from being tried, of which the scheduler is silent. Pure.

Before `minCount` pods of a gang's PodGroup exist, and before the PodGroup does, the scheduler tries none of them, and
such a pod has no condition PodScheduled (Kubernetes 1.36: pkg/scheduler/framework/plugins/gangscheduling, PreEnqueue;
pkg/scheduler/backend/queue, runPreEnqueuePlugin). If the other pods come after their leader, it waits for ever.

| a pod of a PodGroup                                     | is taken to wait for the PodGroup                   |
|---------------------------------------------------------|-----------------------------------------------------|
| has scheduling gates                                    | no: who set them takes them off                     |
| has a condition PodScheduled                            | no: it was tried                                    |
| is on a node, has ended, or is being deleted            | no                                                  |
| else                                                    | yes                                                 |
"""

from __future__ import annotations

from tpu_slices.domain.model.facts import EXCLUSIVE, GROUP_EXCLUSIVE
from tpu_slices.wire import leader_worker_sets
from tpu_slices.wire.jobsets import condition, strings
from tpu_slices.wire.workloads import JOBSET_NAME, Json

_LEADERS_FIRST = (
    (JOBSET_NAME, EXCLUSIVE),
    (leader_worker_sets.NAME, f"{GROUP_EXCLUSIVE}, startupPolicy"),
)
"""What makes the other pods come after their leader, by the label of whose pods it concerns."""


def is_untried(pod: Json) -> bool:
    """Return whether a v1 Pod that may be scheduled was never tried."""
    return (
        (pod.get("status") or {}).get("phase") == "Pending"
        and not condition(pod, "PodScheduled")
        and not pod["spec"].get("schedulingGates")
        and not pod["spec"].get("nodeName")
        and "deletionTimestamp" not in pod["metadata"]
    )


def awaited_group(pod: Json) -> str:
    """Return the PodGroup for which a v1 Pod waits; empty: it waits for none."""
    group: str = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName") or ""
    return group if is_untried(pod) else ""


def why_untried(pod: Json, group: str) -> str:
    """Return why a pod of a PodGroup waits, as a clause with the remedy."""
    labels = strings(pod["metadata"], "labels")
    first = next((by for label, by in _LEADERS_FIRST if label in labels), "")
    instead = f", or remove what has the other pods wait for their leaders ({first})" if first else ""
    return (
        f"no scheduler has tried its pods: they are of PodGroup {group}, and none is tried before the PodGroup exists "
        "and as many of its pods as its spec.schedulingPolicy.gang.minCount: set that to the number of pods that exist "
        f"before one of them is scheduled{instead}, or have no PodGroup made for them (feature gate WorkloadWithJob)"
    )
