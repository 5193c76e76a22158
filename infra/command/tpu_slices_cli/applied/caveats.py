"""What may go wrong with a workload although it gets its slices. Pure.

With some versions of JobSet itself:

| version    | a Job of several pods                       | what happens                                             |
|------------|---------------------------------------------|----------------------------------------------------------|
| after 0.12 | placed by node selector                     | its followers are deleted as soon as its leader is bound |
| up to 0.12 | placed exclusively, with retries of its own | after a retry of its leader it has no followers          |

Seen with JobSet 0.10.1, 0.12.0 and its development version of August 2026. 0.8 to 0.12 place by node selector well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tpu_slices.domain.catalogue.zones import zones_with
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import EXCLUSIVE, MAX_RUN_DURATION
from tpu_slices.domain.model.slices import SliceSpec, WorkloadJob
from tpu_slices.domain.reconciling.refusals import together
from tpu_slices.domain.records.claims import Refusal
from tpu_slices.wire.workloads import BY_NODE_SELECTOR
from tpu_slices_cli.applied.world import named

_ZONES = 4
"""How many are named of those where an accelerator is offered."""
_RETRIES = 6
"""batch/v1 Job's default of backoffLimit."""


def caveats(jobset: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence with its remedy for each template of a JobSet that is concerned."""
    for replicated in jobset["spec"]["replicatedJobs"]:
        job = replicated["template"]
        where = f"{named(jobset)}, replicatedJob {replicated['name']}"
        if not _annotated(EXCLUSIVE, jobset, job) or (job["spec"].get("parallelism") or 1) <= 1:
            continue
        if _annotated(BY_NODE_SELECTOR, jobset, job):
            yield (
                f"{where}: JobSet's versions after 0.12 delete all pods but the leader as soon as that is bound: "
                f"remove the annotation {BY_NODE_SELECTOR}, unless the cluster has JobSet 0.8 to 0.12"
            )
        elif job["spec"].get("backoffLimit", _RETRIES):
            yield (
                f"{where}: with JobSet up to 0.12.0, a Job whose leader fails has no other pods when it is retried, "
                "and hangs: set backoffLimit to 0, so that JobSet's failurePolicy restarts it as a whole"
            )


def scattering(planned: Iterable[tuple[WorkloadJob, SliceSpec]]) -> Iterator[str]:
    """Yield a sentence for each template of Jobs that are refused where nothing pins pods."""
    for where, (kind, spec) in {_where(job): (job.owner.kind, spec) for job, spec in planned}.items():
        yield (
            f"{where}: only the admission policy or the webhook keeps its pods on one slice: where neither is in force "
            f"(`slices doctor` says whether pods are pinned) it is refused, unless you {together(kind, spec)}"
        )


def ends(planned: Iterable[tuple[WorkloadJob, SliceSpec | Refusal]]) -> Iterator[str]:
    """Yield a sentence for each template whose hosts come when GKE has them, and end by themselves."""
    of_flex_start = {
        _where(job): spec.run_duration for job, spec in planned if isinstance(spec, SliceSpec) and spec.is_flex_start
    }
    for where, run_duration in of_flex_start.items():
        yield (
            f"{where}: by flex-start, GKE adds the hosts of a slice when it has them, which may take days, and takes "
            f"them back {run_duration} after their start ({MAX_RUN_DURATION}): save checkpoints, and let its policy "
            "for failures restart it if it may need longer"
        )


def unoffered(job: WorkloadJob, spec: SliceSpec | Refusal, settings: ClusterSettings) -> str:
    """Return that no row of the catalogue or the settings has the zone of a slice; empty: one has, or none could."""
    if not isinstance(spec, SliceSpec) or spec.capacity.reservation is not None:
        return ""
    known = zones_with(settings.catalogue.zones).get(spec.accelerator)
    if known is None or spec.zone in known:
        return ""
    more = f" and {len(known) - _ZONES} more" if len(known) > _ZONES else ""
    return (
        f"{_where(job)}: {spec.accelerator} is not known to be offered in {spec.zone}, but in "
        f"{', '.join(known[:_ZONES]) or 'no zone'}{more}: select another zone, or add a row to catalogue.zones of the "
        "cluster's settings if it is offered to you there"
    )


def _where(job: WorkloadJob) -> str:
    template = f", replicatedJob {job.replicated_job}" if job.replicated_job else ""
    return f"{job.owner.kind} {job.owner.name}{template}"


def _annotated(key: str, *objects: Mapping[str, Any]) -> bool:
    return any(key in ((each.get("metadata") or {}).get("annotations") or {}) for each in objects)
