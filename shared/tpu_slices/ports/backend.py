"""The backend that runs slices (GKE): its protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tpu_slices.domain.model.clusters import ClusterSettings, PoolSettings
from tpu_slices.domain.model.observations import LegacyPool, Observation, OperationSeen, Outcome, PoolSeen
from tpu_slices.domain.model.slices import PoolName, SliceId, SliceSpec, WorkloadJob, pool_name


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOrder:
    """One attempt's pool: all that the backend needs to find it, verify that it is ours, create or delete it."""

    cluster_path: str
    """`projects/P/locations/L/clusters/C`."""
    cluster_gke_id: str | None
    """GKE's id of the cluster; None: not checked."""
    slice_id: SliceId
    attempt: int
    legacy_pool: str | None = None
    """The name of the pool if TPU Provisioner made it."""
    job: WorkloadJob
    spec: SliceSpec | None
    """None: a pool that was found without a record; it can be observed and deleted, but not created."""
    settings: PoolSettings
    operation: str | None = None
    """The operation that creates the pool, if it is on record."""

    @property
    def name(self) -> PoolName:
        return PoolName(self.legacy_pool) if self.legacy_pool else pool_name(self.slice_id, self.attempt)


class Backend(Protocol):
    """The backend that runs slices. No method waits for an operation to end; every call ends within a minute."""

    def look(self, order: PoolOrder) -> Observation:
        """Return what exists under the order's pool name.

        Absent only if the cluster was read and is the one on record; a pool without our owner label, slice id and
        JobSet UID is Unowned; whatever prevents reading the pool is Unreadable, never an exception.
        """

    def create(self, order: PoolOrder) -> Outcome:
        """Request the creation of the pool; an existing name is Refused(NAME_TAKEN). Temporary: unknown outcome."""

    def delete(self, order: PoolOrder) -> Outcome:
        """Request the deletion of a pool after verifying that it is ours. If it is not, or is absent: Started(None).

        Idempotent: callers repeat it until `look` returns Absent. Temporary: unknown outcome.
        """

    def cancel(self, order: PoolOrder) -> Outcome:
        """Request that the pool's creation is cancelled, after verifying that the pool, if it exists, is ours.

        Started(None) if no creation runs. Refused(BUSY): GKE does not cancel it, as it is documented to do for all but
        upgrades of nodes; wait until it ends. If it does, the creation goes on until its operation ends with an error,
        and leaves a pool that is Broken(UNKNOWN) and has to be deleted. Idempotent. Temporary: unknown outcome.
        """

    def inventory(self, cluster: ClusterSettings) -> tuple[PoolSeen, ...]:
        """Return every pool that carries our labels. Raise Temporary if the list is not complete."""

    def legacy_pools(self, cluster: ClusterSettings) -> tuple[LegacyPool, ...]:
        """Return every pool that TPU Provisioner made. Raise Temporary like `inventory`."""

    def pool_operations(self, cluster: ClusterSettings) -> frozenset[OperationSeen]:
        """Return the creations and deletions of the cluster's pools, in one call; GKE forgets ended ones in time.

        Raise Temporary if they cannot be read.
        """
