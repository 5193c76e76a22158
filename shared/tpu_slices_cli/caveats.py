"""What goes wrong with a JobSet although it gets its slices: at their end, and in some versions of JobSet itself. Pure.

| version    | a Job of several pods                       | what happens                                             |
|------------|---------------------------------------------|----------------------------------------------------------|
| after 0.12 | placed by node selector                     | its followers are deleted as soon as its leader is bound |
| 0.12.0     | placed exclusively, with retries of its own | after a retry of its leader it has no followers          |

Seen with JobSet 0.12.0 and its development version of August 2026. 0.8 to 0.12 place by node selector well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tpu_slices.domain.model.facts import MAX_RUN_DURATION
from tpu_slices.domain.model.records import Refusal
from tpu_slices.domain.model.slices import SliceSpec, WorkloadJob
from tpu_slices.wire.workloads import BY_NODE_SELECTOR, EXCLUSIVE

_RETRIES = 6
"""batch/v1 Job's default of backoffLimit."""


def caveats(jobset: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence with its remedy for each replicatedJob that is concerned."""
    for replicated in jobset["spec"]["replicatedJobs"]:
        job = replicated["template"]
        where = f"JobSet {jobset['metadata'].get('name')}, replicatedJob {replicated['name']}"
        if (job["spec"].get("parallelism") or 1) <= 1 or not _annotated(EXCLUSIVE, jobset, job):
            continue
        if _annotated(BY_NODE_SELECTOR, jobset, job):
            yield (
                f"{where}: JobSet's versions after 0.12 delete all pods but the leader as soon as that is bound: "
                f"remove the annotation {BY_NODE_SELECTOR}, unless the cluster has JobSet 0.8 to 0.12"
            )
        elif job["spec"].get("backoffLimit", _RETRIES):
            yield (
                f"{where}: with JobSet 0.12.0, a Job whose leader fails has no other pods when the leader is retried, "
                "and hangs: set backoffLimit to 0, so that JobSet's failurePolicy restarts it as a whole"
            )


def ends(planned: Iterable[tuple[WorkloadJob, SliceSpec | Refusal]]) -> Iterator[str]:
    """Yield a sentence for each replicatedJob whose hosts come when GKE has them, and end by themselves."""
    of_flex_start = {
        (job.owner.name, job.replicated_job): spec.run_duration
        for job, spec in planned
        if isinstance(spec, SliceSpec) and spec.is_flex_start
    }
    for (jobset, replicated_job), run_duration in of_flex_start.items():
        yield (
            f"JobSet {jobset}, replicatedJob {replicated_job}: by flex-start, GKE adds the hosts of a slice when it "
            f"has them, which may take days, and takes them back {run_duration} after their start "
            f"({MAX_RUN_DURATION}): save checkpoints, and set a failurePolicy that restarts the JobSet if it may "
            "need longer"
        )


def _annotated(key: str, *objects: Mapping[str, Any]) -> bool:
    return any(key in ((each.get("metadata") or {}).get("annotations") or {}) for each in objects)
