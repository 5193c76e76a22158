"""Reads Indexed Jobs that no JobSet controls, and identifies their leader pods (k8s.io/api/batch/v1).

Each is one slice: the pods of an Indexed Job are its hosts, and that of completion index 0 leads.
"""

from __future__ import annotations

from collections.abc import Iterable

from tpu_slices.domain.model.facts import TemplateRequest, WaitingLeader, WorkloadState
from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.wire.jobsets import condition, strings
from tpu_slices.wire.workloads import (
    COMPLETION_INDEX,
    Json,
    chips_of,
    fields_of_job,
    leader_with,
    opted_out,
    reading,
    request_of_template,
)

JOB_CONTROLLER = "kubernetes.io/job-controller"
_GROUP = OwnerKind.JOBSET.api_version.partition("/")[0]


def not_ours(obj: Json) -> str:
    """Return why a Job is no slice's, as a clause with the remedy; empty if it may be."""
    if _is_of_a_jobset(obj):
        return "its JobSet is served"
    if obj["spec"].get("completionMode") != "Indexed":
        return (
            "its pods have no completion index, by which one of them leads: set spec.completionMode to Indexed, and "
            "completions and parallelism to the number of hosts"
        )
    return ""


def _is_of_a_jobset(obj: Json) -> bool:
    references: Iterable[Json] = obj["metadata"].get("ownerReferences") or ()
    return any(
        each.get("controller") and each["kind"] == OwnerKind.JOBSET and each["apiVersion"].partition("/")[0] == _GROUP
        for each in references
    )


def is_served(obj: Json) -> bool:
    """Return whether a Job is managed by Kubernetes' own controller and neither it nor its template opted out."""
    own = (obj["spec"].get("managedBy") or JOB_CONTROLLER) == JOB_CONTROLLER
    return own and not opted_out(obj) and not opted_out(obj["spec"]["template"])


def asks_for_tpu(obj: Json) -> bool:
    """Return whether the template requests chips; raise ValueError like `workloads.requests_of`."""
    with reading("spec.template"):
        return bool(chips_of(obj["spec"]["template"]))


def requests_of(obj: Json) -> tuple[TemplateRequest, ...]:
    """Return the request of a Job; raise ValueError like `workloads.requests_of`."""
    with reading("spec.template"):
        return (request_of_template(obj["spec"]["template"], **fields_of_job(obj)),)


def request_of_pod(pod: Json) -> TemplateRequest:
    """Return the request of a Job's leader without its Job; raise ValueError like `workloads.requests_of`."""
    with reading("Pod"):
        return request_of_template(pod)


def state_of(obj: Json) -> WorkloadState:
    """Return the state of a Job. A Job that fails releases its slice once its pods have ended, as Failed says.

    One that ended and is being deleted, as by its TTL, has ended.
    """
    if condition(obj, "Complete").get("status") == "True":
        return WorkloadState.COMPLETED
    if condition(obj, "Failed").get("status") == "True":
        return WorkloadState.FAILED
    if "deletionTimestamp" in obj["metadata"]:
        return WorkloadState.DELETED
    return WorkloadState.SUSPENDED if obj["spec"].get("suspend") else WorkloadState.ACTIVE


def leader_of(pod: Json) -> WaitingLeader:
    """Return a Job's leader; raise ValueError like `workloads.requests_of`."""
    with reading("Pod"):
        return leader_with(pod, "", 0)


def is_leader(pod: Json) -> bool:
    """Return whether a pod has completion index 0; whose, its controller tells."""
    labels, annotations = strings(pod["metadata"], "labels"), strings(pod["metadata"], "annotations")
    return labels.get(COMPLETION_INDEX, annotations.get(COMPLETION_INDEX)) == "0"
