"""Whose leader pods occupy the hosts that they are bound to: those that JobSet made from the JobSet's own spec. Pure.

A tenant may write a pod with the labels of another's leader. Such a pod must neither keep hosts from being deleted nor
pass for the Job whose labels it has, so everything that can be compared is.
"""

from __future__ import annotations

from relay.objects import Hardware, JobSet, Leader
from tpu_slices.domain.model.facts import Occupant, TemplateRequest, WorkloadState


def occupant_of(leader: Leader, jobset: JobSet) -> Occupant | None:
    """Return the Job of a leader pod of this JobSet; None if the pod does not count.

    It counts if the JobSet is active and ours, has such a Job with chips, and the pod is controlled by that Job and
    requests what the Job's template does: a JobSet's requests are those of its templates with chips only.
    """
    place = leader.place
    request = next((each for each in jobset.requests if each.replicated_job == place.replicated_job), None)
    if not jobset.served or jobset.state is not WorkloadState.ACTIVE or request is None:
        return None
    if place.job_index >= request.replicas or leader.hardware != _hardware(request):
        return None
    if leader.job != f"{jobset.name.name}-{place.replicated_job}-{place.job_index}":
        return None
    return Occupant(
        owner=jobset.ref.owner,
        generation=jobset.ref.generation,
        replicated_job=place.replicated_job,
        job_index=place.job_index,
        pod_uid=leader.pod_uid,
    )


def _hardware(request: TemplateRequest) -> Hardware:
    return Hardware(request.chips_per_pod, request.accelerator, request.topology)
