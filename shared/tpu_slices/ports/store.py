"""The store of records and settings: its protocols."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, NewType, Protocol, TypeVar

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.records import SliceRecord
from tpu_slices.domain.model.slices import ClusterId, SliceId, WorkloadUid
from tpu_slices.domain.model.workloads import WorkloadRecord
from tpu_slices.domain.reconciling.inventory import RelayHeartbeat
from tpu_slices.domain.reconciling.limiter import Budget, ConcurrencyLimiter, Slot

Record = WorkloadRecord | SliceRecord | Slot | ConcurrencyLimiter | Budget | RelayHeartbeat
R_co = TypeVar("R_co", bound=Record, covariant=True)
Revision = NewType("Revision", str)  # opaque; changes with every write of the record


@dataclass(frozen=True, slots=True)
class Stored(Generic[R_co]):
    """A record as it was read, and its revision."""

    value: R_co
    revision: Revision


@dataclass(frozen=True, slots=True)
class Change:
    """One guarded write. No `before`: the record must not exist yet. No `after`: it is deleted."""

    before: Stored[Record] | None
    after: Record | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A message that could not be handled, kept for operators in `rejected/{message id}`."""

    message_id: str
    source: str
    """The source of its CloudEvent, which names the topic."""
    rejected_at: datetime
    error: str
    data: str
    """The beginning of its data, as text."""


class SliceStore(Protocol):
    """The records. Reads see the latest write; every method raises Temporary if the store cannot be reached.

    A record that cannot be parsed (a newer schema, an invalid manual edit) raises Permanent if it is read by name;
    lists omit and log it, so that it does not hide the others.
    """

    def settings(self, cluster: ClusterId) -> ClusterSettings | None:
        """Return the cluster's settings, including its pause, or None if the cluster is unknown.

        If they are invalid, this is logged and the last accepted settings stay in force; raise Permanent if there are
        none.
        """

    def clusters(self) -> tuple[ClusterId, ...]:
        """Return every cluster that has settings."""

    def workloads(
        self, cluster: ClusterId, uids: Collection[WorkloadUid]
    ) -> Mapping[WorkloadUid, Stored[WorkloadRecord]]:
        """Return these JobSets' records, read in one call, without those that do not exist."""

    def slices(self, cluster: ClusterId, ids: Collection[SliceId]) -> Mapping[SliceId, Stored[SliceRecord]]:
        """Return these slices' records, read in one call, without those that do not exist."""

    def due_slices(self, now: datetime, most: int) -> tuple[SliceRecord, ...]:
        """Return slices of all clusters with `next_reconcile_at` at or before now, the earliest first."""

    def due_workloads(self, now: datetime, most: int) -> tuple[WorkloadRecord, ...]:
        """Return JobSets of all clusters with `next_reconcile_at` at or before now, the earliest first."""

    def due_reports(self, now: datetime, most: int) -> tuple[WorkloadRecord, ...]:
        """Return JobSets of all clusters with `next_report_at` at or before now, the earliest first."""

    def queued_slices(self, cluster: ClusterId, most: int) -> tuple[SliceRecord, ...]:
        """Return slices in phase QUEUED, those that wait longest first."""

    def live_workloads(self, cluster: ClusterId) -> Iterator[Stored[WorkloadRecord]]:
        """Yield every JobSet that has not ended, read in pages."""

    def kept_slices(self, cluster: ClusterId) -> Iterator[Stored[SliceRecord]]:
        """Yield every slice that is not GONE, read in pages."""

    def every_slice(self, cluster: ClusterId) -> Iterator[Stored[SliceRecord]]:
        """Yield every slice on record, including GONE ones, read in pages."""

    def slots(self, cluster: ClusterId) -> tuple[Stored[Slot], ...]:
        """Return the slots that are taken, in ascending order of their numbers."""

    def limiter(self, cluster: ClusterId) -> Stored[ConcurrencyLimiter] | None: ...

    def budget(self, cluster: ClusterId) -> Stored[Budget] | None: ...

    def chips_held(self, cluster: ClusterId, namespace: str | None = None) -> int:
        """Return the sum of `SliceRecord.chips_held` over a cluster or one of its namespaces, in one call."""

    def heartbeat(self, cluster: ClusterId) -> Stored[RelayHeartbeat] | None: ...

    def commit(self, *changes: Change) -> tuple[Revision, ...]:
        """Write all changes or none; return the new revision of each (for a deleted one, the empty string).

        Raise StaleRecord if one of the records was written, created or deleted since it was read.

        The fields of a slice that operators edit (`hold`, `release_requested`, `note`) are written like all others:
        an edit changes the revision.
        """

    def reject(self, rejection: Rejection) -> None:
        """Store a message that could not be handled; repeating this is harmless."""


Document = Mapping[str, Any]
"""A settings document as operators write it: see `tpu_slices.wire.cluster_settings`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsWritten:
    """The current settings document of a cluster, and the last one that `SettingsStore.write` wrote."""

    document: Document | None
    """None: there is none."""
    revision: Revision | None
    accepted: Document | None


class SettingsStore(Protocol):
    """Settings and pauses, for the command line. Every method raises Temporary if the store cannot be reached."""

    def read(self, cluster: ClusterId) -> SettingsWritten: ...

    def write(self, cluster: ClusterId, document: Document, before: Revision | None) -> None:
        """Write the document to `clusters/{cluster}` and `accepted/{cluster}`, both or neither.

        Raise StaleRecord if the document was written or created since it was read at revision `before`.
        """

    def paused(self, cluster: ClusterId) -> str | None:
        """Return why the cluster is paused, or None if it is not."""

    def pause(self, cluster: ClusterId, message: str) -> None:
        """Pause the cluster, so that nothing is created or deleted: write `pauses/{cluster}`, untouched by builds."""

    def resume(self, cluster: ClusterId) -> None: ...
