"""Which slices a legacy pool may belong to, if its JobSet is not known any more. Pure."""

from __future__ import annotations

from tpu_slices.domain.model.observations import LegacyPool
from tpu_slices.domain.model.slices import ClusterId, Owner, OwnerKind, SliceId, WorkloadJob, WorkloadUid, slice_id


def may_be_of(pool: LegacyPool, slice_: SliceId, cluster: ClusterId) -> bool:
    """Return whether a slice may be that of the pool's Job: but for the JobSet's UID, its ID follows from names."""
    replicated_job, _, index = pool.job.removeprefix(f"{pool.jobset}-".lower()).rpartition("-")
    if not index.isdecimal():
        return False
    owner = Owner(kind=OwnerKind.JOBSET, namespace=pool.namespace, name=pool.jobset, uid=WorkloadUid(""))
    job = WorkloadJob(cluster=cluster, owner=owner, replicated_job=replicated_job, job_index=int(index))
    return slice_id(job).rpartition("-")[0] == slice_.rpartition("-")[0]
