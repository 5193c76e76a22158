"""What goes wrong with a JobSet in some versions of JobSet itself, although it gets its slices. Pure.

| version    | a Job of several pods                       | what happens                                             |
|------------|---------------------------------------------|----------------------------------------------------------|
| after 0.12 | placed by node selector                     | its followers are deleted as soon as its leader is bound |
| 0.12.0     | placed exclusively, with retries of its own | after a retry of its leader it has no followers          |

Seen with JobSet 0.12.0 and its development version of August 2026. 0.8 to 0.12 place by node selector well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tpu_slices.domain.model.facts import EXCLUSIVE
from tpu_slices.wire.workloads import BY_NODE_SELECTOR

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


def _annotated(key: str, *objects: Mapping[str, Any]) -> bool:
    return any(key in ((each.get("metadata") or {}).get("annotations") or {}) for each in objects)
