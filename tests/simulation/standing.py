"""What stands in a simulated world, and what runs."""

from __future__ import annotations

from collections.abc import Iterable

from tpu_slices.domain.model.observations import Creating, Deleting
from tpu_slices.domain.model.slices import ClaimId, ClusterId, SliceId, WorkloadJob, claim_id, slice_id
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices_simulator.fakes.gke import FakePool
from tpu_slices_simulator.live import Pod
from tpu_slices_simulator.simulation import Simulation


def ours(world: Simulation) -> list[FakePool]:
    """Return our pools that are not being deleted."""
    pools = world.backend.pools.values()
    return [pool for pool in pools if pool.order is not None and not isinstance(pool.seen, Deleting)]


def operations(world: Simulation) -> int:
    """Return how many operations of ours run."""
    pools = world.backend.pools.values()
    return sum(pool.operation is not None and isinstance(pool.seen, Creating | Deleting) for pool in pools)


def slice_of(pool: FakePool) -> SliceId:
    """Return the slice that a pool of ours is."""
    assert pool.order is not None, f"{pool.name} is not ours"
    return slice_id(pool.order.slice_id, pool.order.attempt)


def claim_of(pod: Pod, cluster: ClusterId) -> ClaimId:
    """Return the claim of a pod's Job."""
    replicated_job, index = pod.job
    job = WorkloadJob(cluster=cluster, owner=pod.jobset.ref.owner, replicated_job=replicated_job, job_index=index)
    return claim_id(job)


def by_id(records: Iterable[SliceRecord]) -> dict[SliceId, SliceRecord]:
    return {record.id: record for record in records}
