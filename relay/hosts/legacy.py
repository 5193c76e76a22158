"""Whose a pool may be that TPU Provisioner made. Pure."""

from __future__ import annotations

from tpu_slices.domain.model.observations import LegacyPool
from tpu_slices.domain.model.slices import ClaimId, ClusterId, Owner, OwnerKind, WorkloadJob, WorkloadUid, claim_id


def may_be_of(pool: LegacyPool, slice_: ClaimId, cluster: ClusterId) -> bool:
    """Return whether a slice may be that of the pool's Job: but for the JobSet's UID, its ID follows from names."""
    replicated_job, _, index = pool.job.removeprefix(f"{pool.jobset}-".lower()).rpartition("-")
    if not index.isdecimal():
        return False
    owner = Owner(kind=OwnerKind.JOBSET, namespace=pool.namespace, name=pool.jobset, uid=WorkloadUid(""))
    job = WorkloadJob(cluster=cluster, owner=owner, replicated_job=replicated_job, job_index=int(index))
    return claim_id(job).rpartition("-")[0] == slice_.rpartition("-")[0]
