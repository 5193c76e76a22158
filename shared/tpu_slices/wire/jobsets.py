"""Reads JobSets and identifies their pods.

Objects are as the API server returns them (sigs.k8s.io/jobset api/jobset/v1alpha2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.notifications import NOTIFY, NOTIFY_CHARACTERS
from tpu_slices.wire.workloads import (
    JOB_INDEX,
    JOBSET_NAME,
    REPLICATED_JOB,
    Json,
    is_count,
    opted_out,
)

JOBSET_CONTROLLER = "jobset.sigs.k8s.io/jobset-controller"
RESTART_ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
"""The label of pods that says how often all of their JobSet had been started anew when they were made."""


def jobset_state(obj: Json) -> WorkloadState:
    """Return the state of a JobSet. One that ended and is being deleted, as by its TTL, has ended.

    Suspension is read from the spec only, whose changes increase the generation: the condition of that name is set
    later, at the same generation, and two different facts of one generation could not be ordered.
    """
    if condition(obj, "Completed").get("status") == "True":
        return WorkloadState.COMPLETED
    if condition(obj, "Failed").get("status") == "True":
        return WorkloadState.FAILED
    if "deletionTimestamp" in obj["metadata"]:
        return WorkloadState.DELETED
    return WorkloadState.SUSPENDED if obj["spec"].get("suspend") else WorkloadState.ACTIVE


def is_served(obj: Json) -> bool:
    """Return whether a JobSet is managed by JobSet's own controller and has not opted out."""
    controller = obj["spec"].get("managedBy") or JOBSET_CONTROLLER
    return bool(controller == JOBSET_CONTROLLER) and not opted_out(obj)


def succeeded_of(obj: Json) -> Mapping[str, int]:
    """Return how many Jobs have succeeded since a JobSet was last started, by replicatedJob, where some have."""
    statuses: Iterable[Json] = (obj.get("status") or {}).get("replicatedJobsStatus") or ()
    return {each["name"]: each["succeeded"] for each in statuses if each.get("succeeded")}


def is_of_a_job(pod: Json) -> bool:
    """Return whether the labels of a pod name its Job in a JobSet."""
    labels = strings(pod["metadata"], "labels")
    return {JOBSET_NAME, REPLICATED_JOB} <= labels.keys() and is_count(labels.get(JOB_INDEX, ""))


def condition(obj: Json, type_: str) -> Json:
    """Return the condition of a type, or an empty one."""
    conditions: Iterable[Json] = (obj.get("status") or {}).get("conditions") or ()
    matching: Iterator[Json] = (each for each in conditions if each["type"] == type_)
    return next(matching, {})


def strings(section: Json, key: str) -> Mapping[str, str]:
    """Return a map of labels, annotations or selectors, empty if it is absent."""
    found: Mapping[str, str] = section.get(key) or {}
    return found


def notify_of(obj: Json) -> str:
    """Return the targets that a workload's annotation names, as far as it is read."""
    return str(strings(obj["metadata"], "annotations").get(NOTIFY, ""))[:NOTIFY_CHARACTERS]
