"""The records, and the settings that people write: contracts of the store."""

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
Revision = NewType("Revision", str)  # opaque; another one after every change of the record


@dataclass(frozen=True, slots=True)
class Stored(Generic[R_co]):
    """A record as it was read, and which edition of it."""

    value: R_co
    revision: Revision


@dataclass(frozen=True, slots=True)
class Change:
    """One guarded write. No `before`: the record must not exist yet. No `after`: it is deleted."""

    before: Stored[Record] | None
    after: Record | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A message that could not be served, kept for people in `rejected/{message id}`."""

    message_id: str
    source: str
    """Topic or function it came in by."""
    rejected_at: datetime
    error: str
    data: str
    """The beginning of its data, as text."""


class SliceStore(Protocol):
    """The records. Reads see the latest write; every method raises Temporary where the store cannot be reached.

    A record that cannot be read (a newer schema, a slip of a person's hand) is Permanent where it is asked for by name;
    lists leave it out and say so in the log, so that it does not hide the others.
    """

    def settings(self, cluster: ClusterId) -> ClusterSettings | None:
        """Read the settings people wrote, and whether they paused the cluster; None: an unknown cluster.

        Settings that cannot be understood are told in the log, and the last that were accepted hold; Permanent where
        there are none of these either.
        """

    def clusters(self) -> tuple[ClusterId, ...]:
        """Name every cluster that has settings."""

    def workloads(
        self, cluster: ClusterId, uids: Collection[WorkloadUid]
    ) -> Mapping[WorkloadUid, Stored[WorkloadRecord]]:
        """Read these JobSets in one call; the unknown are left out."""

    def slices(self, cluster: ClusterId, ids: Collection[SliceId]) -> Mapping[SliceId, Stored[SliceRecord]]:
        """Read these slices in one call; the unknown are left out."""

    def due_slices(self, now: datetime, most: int) -> tuple[SliceRecord, ...]:
        """Read the slices of all clusters with `next_reconcile_at` at or before now, the longest due first."""

    def due_workloads(self, now: datetime, most: int) -> tuple[WorkloadRecord, ...]:
        """Read the JobSets of all clusters with `next_reconcile_at` at or before now, the longest due first."""

    def due_reports(self, now: datetime, most: int) -> tuple[WorkloadRecord, ...]:
        """Read the JobSets of all clusters with `next_report_at` at or before now, the longest due first."""

    def queued_slices(self, cluster: ClusterId, most: int) -> tuple[SliceRecord, ...]:
        """Read the slices in phase QUEUED, those that wait longest first."""

    def live_workloads(self, cluster: ClusterId) -> Iterator[Stored[WorkloadRecord]]:
        """Read every JobSet that is not ended, in pages."""

    def kept_slices(self, cluster: ClusterId) -> Iterator[Stored[SliceRecord]]:
        """Read every slice that is not GONE, in pages."""

    def every_slice(self, cluster: ClusterId) -> Iterator[Stored[SliceRecord]]:
        """Read every slice there is a record of, GONE ones too, in pages."""

    def slots(self, cluster: ClusterId) -> tuple[Stored[Slot], ...]:
        """Read the slots that are taken, by rising number."""

    def limiter(self, cluster: ClusterId) -> Stored[ConcurrencyLimiter] | None: ...

    def budget(self, cluster: ClusterId) -> Stored[Budget] | None: ...

    def chips_held(self, cluster: ClusterId, namespace: str | None = None) -> int:
        """Sum up `SliceRecord.chips_held` over a cluster, or one namespace of it, in one call."""

    def heartbeat(self, cluster: ClusterId) -> Stored[RelayHeartbeat] | None: ...

    def commit(self, *changes: Change) -> tuple[Revision, ...]:
        """Write all or nothing; give the new revision of each (of a deleted one: the empty string).

        StaleRecord: one of them was written, made or deleted since it was read.

        A person's fields of a slice (`hold`, `release_requested`, `note`) are written like all others: whoever
        edits them changes the revision.
        """

    def reject(self, rejection: Rejection) -> None:
        """Keep a message that could not be served; doing so twice is harmless."""


Document = Mapping[str, Any]
"""Settings as people write them: see `tpu_slices.wire.cluster_settings`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsWritten:
    """The settings document of a cluster as it stands, and the last one that was written by `SettingsStore.write`."""

    document: Document | None
    """None: there is none."""
    revision: Revision | None
    accepted: Document | None


class SettingsStore(Protocol):
    """What people set, for the tools by which they set it. Temporary where the store cannot be reached."""

    def read(self, cluster: ClusterId) -> SettingsWritten: ...

    def write(self, cluster: ClusterId, document: Document, before: Revision | None) -> None:
        """Write `clusters/{cluster}` and, the same, `accepted/{cluster}`; all or nothing.

        StaleRecord: somebody else wrote, or made, the document since it was read at revision `before`.
        """

    def paused(self, cluster: ClusterId) -> str | None:
        """Say why the cluster is paused; None: it is not."""

    def pause(self, cluster: ClusterId, message: str) -> None:
        """Let nothing be created or deleted in the cluster (`pauses/{cluster}`), which no build touches."""

    def resume(self, cluster: ClusterId) -> None: ...
