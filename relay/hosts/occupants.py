"""Which pods count as Jobs on hosts. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from relay.objects import Follower, Leader, Workload
from tpu_slices.domain.model.facts import Occupant, WorkloadState


@dataclass(frozen=True, slots=True)
class HostPod:
    """A pod that holds chips of a host, and has not ended."""

    pod: str
    """NAMESPACE/NAME."""
    node: str
    member: Leader | None
    """What it is in its workload, as its leader or another; None if it is of none that can have slices."""
    ends_by: datetime | None
    """If it is being deleted: when its own grace is over."""


def occupant_of(pod: Leader, workload: Workload) -> Occupant | None:
    """Return the Job of a pod of this workload, its leader or another; None if the pod does not count.

    It counts if the workload is active and ours, and the pod holds chips and is controlled by that Job. What else the
    pod requests does not matter: a workload may have been edited since, and its templates say what new pods request. Of
    templates that cannot be parsed it is not known which opted out: the pods of all count.

    A tenant may write a pod with the labels of another's. Such a pod must neither keep hosts from being deleted nor
    pass for the Job whose labels it has: its controller counts, which is looked for in the pod's own namespace. Of Jobs
    that share a slice, the first stands for all.
    """
    if not pod.may_be_of(workload) or not is_live(workload):
        return None
    asking = {request.replicated_job for request in workload.requests}
    if workload.parse_error is None and pod.place.replicated_job not in asking:
        return None  # its template opted out
    if pod.hardware.chips < 1 or not is_controlled(pod, workload):
        return None
    place = workload.claimed(pod.place)
    return Occupant(
        owner=workload.ref.owner,
        generation=workload.ref.generation,
        replicated_job=place.replicated_job,
        job_index=place.job_index,
        pod_uid=pod.pod_uid,
    )


def is_controlled(pod: Leader | Follower, workload: Workload) -> bool:
    """Return whether the Job or group whose labels a pod has controls it."""
    return pod.job == workload.ref.owner.job_name(*pod.place)


def is_live(workload: Workload) -> bool:
    """Return whether a workload is ours, and active."""
    return workload.served and workload.state is WorkloadState.ACTIVE
