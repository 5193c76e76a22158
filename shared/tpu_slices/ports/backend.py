"""A place slices live: contract of the backend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tpu_slices.domain.model.clusters import ClusterSettings, PoolSettings
from tpu_slices.domain.model.observations import LegacyPool, Observation, Outcome, PoolSeen
from tpu_slices.domain.model.slices import PoolName, SliceId, SliceSpec, WorkloadJob, pool_name


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOrder:
    """One attempt's pool: everything the backend needs to find it, prove that it is ours, or make it."""

    cluster_path: str
    """`projects/P/locations/L/clusters/C`."""
    cluster_gke_id: str | None
    """GKE's own id of the cluster, where it is checked."""
    slice_id: SliceId
    attempt: int
    legacy_pool: str | None = None
    """The name of the pool, where TPU Provisioner made it."""
    job: WorkloadJob
    spec: SliceSpec | None
    """None: a pool that was found without a record can be looked at and deleted, not made."""
    settings: PoolSettings
    operation: str | None = None
    """The operation that was noted for it."""

    @property
    def name(self) -> PoolName:
        return PoolName(self.legacy_pool) if self.legacy_pool else pool_name(self.slice_id, self.attempt)


class Backend(Protocol):
    """A place slices live. Nothing here waits for an operation to end; every call ends within a minute."""

    def look(self, order: PoolOrder) -> Observation:
        """Say what is there under the order's pool name.

        Absent only where the cluster was read and is the one on record; a pool without our owner label, slice id
        and JobSet UID is Foreign; whatever keeps us from seeing is Unreadable, never an exception.
        """

    def create(self, order: PoolOrder) -> Outcome:
        """Order the pool. A name that is taken is Refused(NAME_TAKEN): look whose it is. Temporary: unknown outcome."""

    def delete(self, order: PoolOrder) -> Outcome:
        """Order the deletion of a pool that is proven ours; looks first. Nothing there, or not ours: Started(None).

        Idempotent: callers order it again until `look` says Absent. Temporary: unknown outcome.
        """

    def inventory(self, cluster: ClusterSettings) -> tuple[PoolSeen, ...]:
        """List every pool that carries our labels. Temporary where the list cannot be had: never a part of it."""

    def legacy_pools(self, cluster: ClusterSettings) -> tuple[LegacyPool, ...]:
        """List every pool that TPU Provisioner made. Temporary as `inventory`."""

    def ended_operations(self, cluster: ClusterSettings) -> frozenset[str]:
        """Name the operations of the cluster that are over, in one call. Temporary where they cannot be had."""
