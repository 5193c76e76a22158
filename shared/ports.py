"""What the flows need from the outside, as contracts; each is fulfilled by an adapter and by a fake with memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, NewType, Protocol, TypeVar

from shared.domain.clusters import ClusterSettings, PoolSettings
from shared.domain.facts import Question
from shared.domain.governor import Budget, Governor, Slot
from shared.domain.jobsets import JobSetRecord, Report
from shared.domain.observations import InheritedPool, Observation, Outcome, PoolSeen
from shared.domain.records import SliceRecord, Transition
from shared.domain.slices import ClusterId, JobRef, JobSetUid, PoolName, SliceId, SliceSpec, pool_name
from shared.domain.sweep import ClusterWatch

Record = JobSetRecord | SliceRecord | Slot | Governor | Budget | ClusterWatch
R_co = TypeVar("R_co", bound=Record, covariant=True)
Revision = NewType("Revision", str)  # opaque; another one after every change of the record


class Temporary(Exception):
    """Nothing is wrong with the message: let it come back."""


class Permanent(Exception):
    """The message can never be served: it is recorded, told, and acknowledged."""


class StaleRecord(Temporary):
    """Somebody else wrote a record since it was read: look again."""


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

    message: str
    """The message's id."""
    source: str
    """Topic or function it came in by."""
    at: datetime
    why: str
    body: str
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

    def jobsets(self, cluster: ClusterId, uids: Collection[JobSetUid]) -> Mapping[JobSetUid, Stored[JobSetRecord]]:
        """Read these JobSets in one call; the unknown are left out."""

    def slices(self, cluster: ClusterId, ids: Collection[SliceId]) -> Mapping[SliceId, Stored[SliceRecord]]:
        """Read these slices in one call; the unknown are left out."""

    def due_slices(self, now: datetime, most: int) -> tuple[SliceRecord, ...]:
        """Read the slices of all clusters with `due_at` at or before now, the longest due first."""

    def due_jobsets(self, now: datetime, most: int) -> tuple[JobSetRecord, ...]:
        """Read the JobSets of all clusters with `due_at` at or before now, the longest due first."""

    def due_reports(self, now: datetime, most: int) -> tuple[JobSetRecord, ...]:
        """Read the JobSets of all clusters with `report_due_at` at or before now, the longest due first."""

    def queued_slices(self, cluster: ClusterId, most: int) -> tuple[SliceRecord, ...]:
        """Read the slices in phase QUEUED, those that wait longest first."""

    def live_jobsets(self, cluster: ClusterId) -> Iterator[Stored[JobSetRecord]]:
        """Read every JobSet that is not ended, in pages."""

    def kept_slices(self, cluster: ClusterId) -> Iterator[Stored[SliceRecord]]:
        """Read every slice that is not GONE, in pages."""

    def every_slice(self, cluster: ClusterId) -> Iterator[Stored[SliceRecord]]:
        """Read every slice there is a record of, GONE ones too, in pages."""

    def slots(self, cluster: ClusterId) -> tuple[Stored[Slot], ...]:
        """Read the slots that are taken, by rising number."""

    def governor(self, cluster: ClusterId) -> Stored[Governor] | None: ...

    def budget(self, cluster: ClusterId) -> Stored[Budget] | None: ...

    def chips_held(self, cluster: ClusterId, namespace: str | None = None) -> int:
        """Sum up `SliceRecord.chips_held` over a cluster, or one namespace of it, in one call."""

    def watch(self, cluster: ClusterId) -> Stored[ClusterWatch] | None: ...

    def commit(self, *changes: Change) -> tuple[Revision, ...]:
        """Write all or nothing; give the new revision of each (of a deleted one: the empty string).

        StaleRecord: one of them was written, made or deleted since it was read.

        A person's fields of a slice (`hold`, `release_requested`, `note`) are written like all others: whoever
        edits them changes the revision.
        """

    def reject(self, rejection: Rejection) -> None:
        """Keep a message that could not be served; doing so twice is harmless."""


Document = Mapping[str, Any]
"""Settings as people write them: see `shared.wire.cluster_settings`."""


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

    def pause(self, cluster: ClusterId, why: str) -> None:
        """Let nothing be created or deleted in the cluster (`pauses/{cluster}`), which no build touches."""

    def resume(self, cluster: ClusterId) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOrder:
    """One attempt's pool: everything the backend needs to find it, prove that it is ours, or make it."""

    cluster_path: str
    """`projects/P/locations/L/clusters/C`."""
    cluster_gke_id: str | None
    """GKE's own id of the cluster, where it is checked."""
    slice_id: SliceId
    attempt: int
    inherited: str | None = None
    """The name of the pool, where TPU Provisioner made it."""
    job: JobRef
    spec: SliceSpec | None
    """None: a pool that was found without a record can be looked at and deleted, not made."""
    settings: PoolSettings
    operation: str | None = None
    """The operation that was noted for it."""

    @property
    def name(self) -> PoolName:
        return PoolName(self.inherited) if self.inherited else pool_name(self.slice_id, self.attempt)


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

    def inheritance(self, cluster: ClusterSettings) -> tuple[InheritedPool, ...]:
        """List every pool that TPU Provisioner made. Temporary as `inventory`."""

    def ended_operations(self, cluster: ClusterSettings) -> frozenset[str]:
        """Name the operations of the cluster that are over, in one call. Temporary where they cannot be had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceUpdate:
    """What is told to the cluster about a slice: becomes a Kubernetes Event."""

    job: JobRef
    slice_id: SliceId
    pool: str
    turn: int
    """Which of the slice's transitions it is: with the slice id, the Event's name."""
    transition: Transition


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSetUpdate:
    """What is told to the cluster about a JobSet: becomes one Kubernetes Event, renewed while it lasts."""

    namespace: str
    name: str
    uid: JobSetUid
    report: Report
    at: datetime
    times: int
    """How many times the JobSet was told about, this one included."""


class Bus(Protocol):
    """Messages out. Returns once they are taken; Temporary where they are not."""

    def nudge(self, cluster: ClusterId, slices: Collection[SliceId]) -> None:
        """Say: look at these slices."""

    def tell(self, cluster: ClusterId, updates: Collection[SliceUpdate]) -> None:
        """Tell the cluster's relay what became of slices."""

    def report(self, cluster: ClusterId, updates: Collection[JobSetUpdate]) -> None:
        """Tell the cluster's relay how JobSets stand."""

    def ask(self, cluster: ClusterId, questions: Collection[Question]) -> None:
        """Ask the cluster's relay to look at JobSets."""


class Clock(Protocol):
    def now(self) -> datetime:
        """Give the time, in UTC."""

    def pause(self, at_most: float) -> None:
        """Let a random time pass, `at_most` so many seconds: two who met once should not meet again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What it takes to write down what is wanted, as the flows get it from `wiring`."""

    store: SliceStore
    bus: Bus
    clock: Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports(Desk):
    """And what it takes to bring it about."""

    backend: Backend
