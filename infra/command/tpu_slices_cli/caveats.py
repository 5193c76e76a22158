"""What may go wrong with a workload although it gets its slices. Pure.

With some versions of JobSet itself:

| version    | a Job of several pods                       | what happens                                             |
|------------|---------------------------------------------|----------------------------------------------------------|
| after 0.12 | placed by node selector                     | its followers are deleted as soon as its leader is bound |
| up to 0.12 | placed exclusively, with retries of its own | after a retry of its leader it has no followers          |

Seen with JobSet 0.10.1, 0.12.0 and its development version of August 2026. 0.8 to 0.12 place by node selector well.

The pods of one Job or group may be scheduled on hosts of several slices of their shape, unless something keeps them
together:

| workload        | kept together by                                                                                |
|-----------------|-------------------------------------------------------------------------------------------------|
| all             | having one pod, or a node selector that one slice alone meets; the admission policy or webhook  |
| JobSet          | its exclusive topology                                                                          |
| LeaderWorkerSet | its exclusive topology                                                                          |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tpu_slices.domain.model.facts import EXCLUSIVE, GROUP_EXCLUSIVE, MAX_RUN_DURATION, Pinning
from tpu_slices.domain.model.slices import SliceSpec, WorkloadJob
from tpu_slices.domain.planning.host_labels import NAMESPACED_JOB, NODE_POOL
from tpu_slices.domain.planning.pool_labels import PARENT_NAME_LABEL, SLICE_ID_LABEL
from tpu_slices.domain.records.claims import Refusal
from tpu_slices.wire.workloads import BY_NODE_SELECTOR, chips_of

_OF_ONE_SLICE = frozenset({SLICE_ID_LABEL, PARENT_NAME_LABEL, NAMESPACED_JOB, "jobset.sigs.k8s.io/job-key"})
"""Node selectors that the hosts of one slice alone meet."""
_SPREADS = "nothing keeps its pods together on one slice if others of its shape have free hosts"
_PIN = "have an operator pin its pods to their slice (`slices doctor` says whether they are)"
_RETRIES = 6
"""batch/v1 Job's default of backoffLimit."""


def caveats(workload: Mapping[str, Any], pinning: Pinning | None = None) -> Iterator[str]:
    """Yield a sentence with its remedy for each template that is concerned; `pinning`: None if it is not known."""
    spec, where = workload["spec"], f"{workload['kind']} {workload['metadata'].get('name')}"
    is_pinned = pinning is not None and pinning.pins
    match workload["kind"]:
        case "JobSet":
            yield from _of_jobset(workload, is_pinned=is_pinned)
        case "Job" if _may_spread(workload) and not is_pinned:
            yield f"{where}: {_SPREADS}: {_PIN}, or use a JobSet with the annotation {EXCLUSIVE}"
        case "LeaderWorkerSet" if (spec["leaderWorkerTemplate"].get("size") or 1) > 1 and not is_pinned:
            if not _annotated(GROUP_EXCLUSIVE, workload):
                yield (
                    f"{where}: nothing keeps the pods of a group together on one slice: {_PIN}, or set the annotation "
                    f"{GROUP_EXCLUSIVE}: {NODE_POOL}"
                )


def _of_jobset(jobset: Mapping[str, Any], *, is_pinned: bool) -> Iterator[str]:
    for replicated in jobset["spec"]["replicatedJobs"]:
        job = replicated["template"]
        where = f"JobSet {jobset['metadata'].get('name')}, replicatedJob {replicated['name']}"
        if not _annotated(EXCLUSIVE, jobset, job):
            if _may_spread(job) and not is_pinned:
                yield f"{where}: {_SPREADS}: set the annotation {EXCLUSIVE}: {NODE_POOL}, or {_PIN}"
        elif (job["spec"].get("parallelism") or 1) <= 1:
            continue
        elif _annotated(BY_NODE_SELECTOR, jobset, job):
            yield (
                f"{where}: JobSet's versions after 0.12 delete all pods but the leader as soon as that is bound: "
                f"remove the annotation {BY_NODE_SELECTOR}, unless the cluster has JobSet 0.8 to 0.12"
            )
        elif job["spec"].get("backoffLimit", _RETRIES):
            yield (
                f"{where}: with JobSet up to 0.12.0, a Job whose leader fails has no other pods when it is retried, "
                "and hangs: set backoffLimit to 0, so that JobSet's failurePolicy restarts it as a whole"
            )


def _may_spread(job: Mapping[str, Any]) -> bool:
    """Return whether several pods of a Job ask for TPU, and select no slice."""
    pod = job["spec"]["template"]["spec"]
    several = (job["spec"].get("parallelism") or 1) > 1 and chips_of({"spec": pod}) > 0
    return several and _OF_ONE_SLICE.isdisjoint(pod.get("nodeSelector") or ())


def ends(planned: Iterable[tuple[WorkloadJob, SliceSpec | Refusal]]) -> Iterator[str]:
    """Yield a sentence for each template whose hosts come when GKE has them, and end by themselves."""
    of_flex_start = {
        f"{job.owner.kind} {job.owner.name}{_template_of(job)}": spec.run_duration
        for job, spec in planned
        if isinstance(spec, SliceSpec) and spec.is_flex_start
    }
    for where, run_duration in of_flex_start.items():
        yield (
            f"{where}: by flex-start, GKE adds the hosts of a slice when it has them, which may take days, and takes "
            f"them back {run_duration} after their start ({MAX_RUN_DURATION}): save checkpoints, and let its policy "
            "for failures restart it if it may need longer"
        )


def _template_of(job: WorkloadJob) -> str:
    return f", replicatedJob {job.replicated_job}" if job.replicated_job else ""


def _annotated(key: str, *objects: Mapping[str, Any]) -> bool:
    return any(key in ((each.get("metadata") or {}).get("annotations") or {}) for each in objects)
