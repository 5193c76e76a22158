"""The backend that runs slices (GKE or Compute Engine): its protocol."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from tpu_slices.domain.model.clusters import ClusterSettings, PoolSettings
from tpu_slices.domain.model.joining import JoinToken
from tpu_slices.domain.model.observations import LegacyPool, Observation, OperationSeen, Outcome, PoolSeen
from tpu_slices.domain.model.slices import ClaimId, PoolName, SliceSpec, WorkloadJob, pool_name

CLOCKS_DIFFER_BY = timedelta(minutes=1)
"""At most, the vendor's and ours; to delete a pool and to make another one takes longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOrder:
    """One attempt's pool: all that the backend needs to find it, verify that it is ours, create or delete it."""

    cluster_path: str
    """`projects/P/locations/L/clusters/C`; with `settings.compute`: `projects/P/locations/L`."""
    cluster_gke_id: str | None
    """GKE's id of the cluster; None: not checked."""
    slice_id: ClaimId
    attempt: int
    legacy_pool: str | None = None
    """The name of the pool if TPU Provisioner made it, or TPU operator."""
    job: WorkloadJob
    spec: SliceSpec | None
    """None: a pool that was found without a record; it can be observed and deleted, but not created."""
    settings: PoolSettings
    operation: str | None = None
    """The operation that creates the pool, if it is on record."""
    ours_since: datetime | None = None
    """Since when the pool is known to be ours by its record: that proves it, too, unless the name was used since."""
    made_by: str | None = None
    """The operation that made the pool: another creation under its name makes another pool. None: that is not known."""
    asks_work: bool = False
    """Whether `look` is to find out what the vendor does to a pool that it works on: that is not on record."""
    seen_ours: bool = False
    """A look within the time to act on a decision has shown that the pool is ours: nobody else's has its name."""

    @property
    def ours_if_made_by(self) -> datetime | None:
        """By when a pool was made that is ours by its record, by the vendor's clock; None: that proves nothing."""
        return None if self.ours_since is None else self.ours_since + CLOCKS_DIFFER_BY

    @property
    def name(self) -> PoolName:
        return PoolName(self.legacy_pool) if self.legacy_pool else pool_name(self.slice_id, self.attempt)


class Backend(Protocol):
    """The backend that runs slices. No method waits for an operation to end; every call ends within a minute."""

    def look(self, order: PoolOrder) -> Observation:
        """Return what exists under the order's pool name.

        Absent only if the cluster was read and is the one on record; whatever prevents reading the pool is Unreadable,
        never an exception. A pool is ours by our owner label, slice id and workload's UID, or by `ours_since`: then
        Running says what is lacking. Any other is Unowned.
        """

    def create(self, order: PoolOrder) -> Outcome:
        """Request the creation of the pool, or its next step; what exists already is Refused(NAME_TAKEN).

        Where a pool is made in several steps, callers repeat it while `look` returns Begun. Temporary: unknown outcome.
        """

    def delete(self, order: PoolOrder) -> Outcome:
        """Request the deletion of a pool; one that was not `seen_ours` is verified before.

        Where a pool is made in several steps, it deletes the hosts only; `delete_remains` does the rest. Started(None)
        if it is not ours, or is absent. Idempotent: callers repeat it until `look` returns Absent. Temporary: unknown
        outcome.
        """

    def delete_remains(self, order: PoolOrder) -> Outcome:
        """Request the next step of the deletion of what stands without hosts, as `look` showed by Begun.

        Started(None) if hosts stand after all, if nothing does, or if it is not ours. Temporary: unknown outcome.
        """

    def cancel(self, order: PoolOrder) -> Outcome:
        """Request that the pool's creation is cancelled, after verifying that the pool, if it exists, is ours.

        Started(None) if no creation runs. Refused(BUSY): GKE does not cancel it, as it is documented to do for all but
        upgrades of nodes; wait until it ends. If it does, the creation goes on until its operation ends with an error,
        and leaves a pool that is Broken(UNKNOWN) and has to be deleted. Idempotent. Temporary: unknown outcome.
        """

    def relabel(self, order: PoolOrder) -> Outcome:
        """Request that the labels which name a pool's slice are put back, after verifying that it is ours.

        Others stay as they are, and so do the hosts. Started(None) if none is lacking, or the pool is absent or not
        ours. Refused(BUSY) while an operation runs on it. Idempotent. Temporary: unknown outcome.
        """

    def join(self, order: PoolOrder, token: JoinToken | None) -> Outcome:
        """Hand a bootstrap token on to the pool's hosts, after verifying that it is ours; None: take it away again.

        Refused(BUSY): not every host has it, as one does not exist yet, or is being changed. Started(None) if there is
        nothing to do: the pool is absent or not ours, or its hosts need none, as on GKE. Idempotent. Temporary: unknown
        outcome. The token is in no text of what is returned, raised or logged.
        """

    def inventory(self, cluster: ClusterSettings) -> tuple[PoolSeen, ...]:
        """Return every pool that carries our labels, or has a name of ours. Raise Temporary if some may be missing."""

    def legacy_pools(self, cluster: ClusterSettings) -> tuple[LegacyPool, ...]:
        """Return every pool that TPU Provisioner made. Raise Temporary like `inventory`."""

    def pool_operations(self, cluster: ClusterSettings) -> frozenset[OperationSeen]:
        """Return the creations and deletions of the cluster's pools, in one call; GKE forgets ended ones in time.

        Raise Temporary if they cannot be read.
        """
