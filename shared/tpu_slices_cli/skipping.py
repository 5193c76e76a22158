"""Which documents, and which replicatedJobs of a JobSet, get no slice although nothing is wrong with them. Pure.

| reason          | what                                                                               |
|-----------------|------------------------------------------------------------------------------------|
| RequestsNoTpu   | it requests no `google.com/tpu`                                                    |
| OptedOut        | a JobSet, all its templates, some of them, or a pod has `disable-autoprovisioning` |
| ManagedElsewhere| a JobSet's `spec.managedBy` names another controller                               |
| Ended           | a JobSet has completed, failed, or is being deleted                                |
| NoReplicas      | a replicatedJob has `replicas: 0`                                                  |
| NotServed       | another kind: `tpu_slices.wire.tpu_objects` has them all                           |
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.wire.jobsets import is_leader, is_served, jobset_state
from tpu_slices.wire.tpu_objects import requests_chips, why_not_served
from tpu_slices.wire.workloads import OPTED_OUT, Json, asks_for_tpu, opted_out

_OUT = f'opted out: label or annotation {OPTED_OUT} is "true": remove it to get slices'


class SkipReason(StrEnum):
    """Why a document, or a part of one, gets no slice."""

    REQUESTS_NO_TPU = "RequestsNoTpu"
    OPTED_OUT = "OptedOut"
    MANAGED_ELSEWHERE = "ManagedElsewhere"
    ENDED = "Ended"
    NO_REPLICAS = "NoReplicas"
    NOT_SERVED = "NotServed"


Why = tuple[SkipReason, str]
"""The reason, and a text with what is skipped, why, and what to do."""


def skip_jobset(jobset: Json) -> Why | None:
    """Return why a JobSet gets no slices as a whole; ValueError: a template is malformed."""
    what = _named(jobset)
    if requests_chips(jobset):
        if opted_out(jobset):
            return SkipReason.OPTED_OUT, f"{what} {_OUT}"
        if not is_served(jobset):
            manager = f'spec.managedBy is "{jobset["spec"]["managedBy"]}"'
            return SkipReason.MANAGED_ELSEWHERE, f"{what}: {manager}: it gets its slices where that controller runs it"
        state = jobset_state(jobset)
        if state not in {WorkloadState.ACTIVE, WorkloadState.SUSPENDED}:
            return SkipReason.ENDED, f"{what} is {state.lower()}, and needs no slices any more"
    return None if asks_for_tpu(jobset) else (SkipReason.REQUESTS_NO_TPU, f"{what} requests no TPU chips")


def skipped_templates(jobset: Json) -> Iterator[Why]:
    """Yield which of a JobSet's replicatedJobs with chips get no slices, and why."""
    with_chips = [job for job in jobset["spec"]["replicatedJobs"] if requests_chips(job["template"])]
    out = [job for job in with_chips if opted_out(job["template"]["spec"]["template"])]
    if out:
        names = ", ".join(str(job["name"]) for job in out)
        whose = "every replicatedJob with TPU" if len(out) == len(with_chips) else "replicatedJob"
        yield SkipReason.OPTED_OUT, f"{_named(jobset)}: {whose} ({names}) {_OUT}"
    for job in with_chips:
        if job not in out and job.get("replicas", 1) == 0:
            yield SkipReason.NO_REPLICAS, f"{_named(jobset)}: replicatedJob {job['name']} has 0 replicas"


def skip_other(obj: Json) -> Why | None:
    """Return why an object that is not a JobSet gets no slice; None: it is the leader pod of a Job of a JobSet."""
    if obj["kind"] == "Pod" and is_leader(obj) and requests_chips(obj):
        return (SkipReason.OPTED_OUT, f"{_named(obj)} {_OUT}") if opted_out(obj) else None
    why = why_not_served(obj)
    return (SkipReason.NOT_SERVED, why) if why else (SkipReason.REQUESTS_NO_TPU, f"{_named(obj)} requests no TPU chips")


def _named(obj: Json) -> str:
    return f"{obj['kind']} {obj['metadata'].get('name')}"
