"""The store of records and settings: its protocols."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, NewType, Protocol, Self, TypeVar

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import Family
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import ClaimId, ClusterId, SliceId, WorkloadUid, is_slice_id
from tpu_slices.domain.records.brakes import Brake
from tpu_slices.domain.records.heartbeats import RelayHeartbeat
from tpu_slices.domain.records.limiters import Budget, CapacityPool, ConcurrencyLimiter, Slot
from tpu_slices.domain.records.rejected import RejectedMessage
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.standings import Standing
from tpu_slices.domain.records.workloads import ReportQueue, WorkloadRecord
from tpu_slices.ports.errors import Permanent
from tpu_slices.ports.reservations import ReservedHosts

Record = WorkloadRecord | SliceRecord | Slot | ConcurrencyLimiter | Budget | Brake | RelayHeartbeat
R_co = TypeVar("R_co", bound=Record, covariant=True)
N = TypeVar("N", bound=str)
Revision = NewType("Revision", str)  # opaque; changes with every write of the record


@dataclass(frozen=True, slots=True)
class Stored(Generic[R_co]):
    """A record as it was read, and its revision."""

    value: R_co
    revision: Revision
    is_whole: bool = True
    """Its document has every field; else an older version wrote it, or somebody took some away."""


class Found(Mapping[N, Stored[R_co]]):
    """Records that were read by name: those that exist and can be parsed.

    One that exists and cannot be parsed is left out of lists and raises Permanent where it is asked for by name, by
    `get` and `in` too: so it hides no other and never counts as absent.
    """

    def __init__(self, readable: Mapping[N, Stored[R_co]], unreadable: Mapping[N, str]) -> None:
        self._readable = readable
        self.unreadable = unreadable
        """Why those that cannot be parsed cannot."""

    def __getitem__(self, name: N) -> Stored[R_co]:
        if name in self.unreadable:
            raise Permanent(self.unreadable[name])
        return self._readable[name]

    def __iter__(self) -> Iterator[N]:
        return iter(self._readable)

    def __len__(self) -> int:
        return len(self._readable)

    def __or__(self, other: Found[N, R_co]) -> Found[N, R_co]:
        """Return both, read one after the other."""
        return Found({**self._readable, **other._readable}, {**self.unreadable, **other.unreadable})


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What of a cluster is to be read together."""

    settings: bool = False
    slices: Collection[SliceId] = ()
    claims: Collection[ClaimId] = ()
    """The slices that these have."""
    claims_last: bool = False
    """Whether these are read after the workloads: who guards a workload's record with what is read knows its claims."""
    workloads: Collection[WorkloadUid] = ()
    heartbeat: bool = False
    limiter: bool = False
    brake: bool = False
    slots: bool = False

    @classmethod
    def of(cls, slice_: ClaimId | SliceId, **others: Any) -> Self:
        """Return what reads a slice by its id, or by the claim that has it."""
        return cls(slices=[slice_], **others) if is_slice_id(slice_) else cls(claims=[ClaimId(slice_)], **others)


CLAIMS_AT_ONCE = 30
"""Firestore's limit of the values that one query compares with."""

READ_FIRST = Names(settings=True, heartbeat=True)
"""What a sweep, and a report on a workload, knows of a cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """What was read together: as the methods of the same names return it, and nothing that was not asked for."""

    settings: ClusterSettings | None
    slices: Found[SliceId, SliceRecord]
    having: Found[ClaimId, SliceRecord]
    workloads: Found[WorkloadUid, WorkloadRecord]
    heartbeat: Stored[RelayHeartbeat] | None
    limiter: Stored[ConcurrencyLimiter] | None
    brake: Stored[Brake] | None
    slots: tuple[Stored[Slot], ...] | None

    @property
    def slice(self) -> Stored[SliceRecord] | None:
        """The only slice that was asked for; Permanent: it cannot be read."""
        for problem in (*self.slices.unreadable.values(), *self.having.unreadable.values()):
            raise Permanent(problem)
        return next(iter((*self.slices.values(), *self.having.values())), None)


@dataclass(frozen=True, slots=True)
class Alike:
    """The slices of a workload's claims that are in one phase for one reason."""

    count: int
    first: tuple[Stored[SliceRecord], ...]
    """Those of the first Jobs; at least one."""


@dataclass(frozen=True, slots=True)
class Change:
    """One guarded write. No `before`: the record must not exist yet. No `after`: it is deleted."""

    before: Stored[Record] | None
    after: Record | None


def moved(
    before: Stored[SliceRecord] | None, after: SliceRecord, left: SliceRecord | None = None
) -> tuple[Change, ...]:
    """Return the changes by which a claim has a slice, that of `after`, the first; `before`: which it had.

    `left`: what is on record of that from then on, if it is another one; None: nothing.
    """
    if before is None or before.value.id == after.id:
        return (Change(before, after),)
    return (Change(None, after), Change(before, left))


class SliceStore(ReservedHosts, Protocol):
    """The records. Reads see the latest write; every method raises Temporary if the store cannot be reached.

    A record that cannot be parsed (a newer schema, an invalid manual edit, another record's document under its name) is
    logged. Lists leave it out; of those that are read by name, see `Found`.
    """

    def together(self, cluster: ClusterId, names: Names) -> Together:
        """Return what these names stand for, read in one call, and slots and what claims have in others meanwhile.

        With settings or the brake, raise Permanent as `settings` and `brake` do.
        """

    def settings(self, cluster: ClusterId) -> ClusterSettings | None:
        """Return the cluster's settings, including its pause, or None if the cluster is unknown.

        If they are invalid, this is logged and the last accepted settings stay in force; raise Permanent if there are
        none.
        """

    def settings_at(self, path: str) -> tuple[ClusterSettings, ...]:
        """Return the settings of GKE's cluster of this path, by each name that it has here; two reads for each."""

    def clusters(self) -> tuple[ClusterId, ...]:
        """Return every cluster that has settings."""

    def workloads(self, cluster: ClusterId, uids: Collection[WorkloadUid]) -> Found[WorkloadUid, WorkloadRecord]:
        """Return these JobSets' records, read in one call."""

    def slices(self, cluster: ClusterId, ids: Collection[SliceId]) -> Found[SliceId, SliceRecord]:
        """Return these slices' records, read in one call."""

    def having(self, cluster: ClusterId, claims: Collection[ClaimId]) -> Found[ClaimId, SliceRecord]:
        """Return the records of the slices that these claims have, read in one call for each CLAIMS_AT_ONCE."""

    def hearing(
        self, cluster: ClusterId, workload: WorkloadUid, most: int | None = None
    ) -> tuple[Stored[SliceRecord], ...]:
        """Return slices whose `matching.hears` is this workload, in the order of their names; None: all of them."""

    def alike(self, cluster: ClusterId, workload: WorkloadUid, most: int) -> Iterator[Alike]:
        """Yield the slices of a workload's claims by phase and reason, at most so many of each, by their Jobs.

        With twice as many reads of each reason, and one that counts them, whatever their number.
        """

    def told_alike(
        self, cluster: ClusterId, workload: WorkloadUid, why: tuple[Phase, Reason], most: int
    ) -> tuple[Stored[SliceRecord], ...]:
        """Return slices of a workload's claims that a limit refuses, for a reason, those of the fewest chips first.

        Of the same size, they come in the order of their Jobs.
        """

    def awaiting_chips(self, cluster: ClusterId, start: str, most: int) -> tuple[Stored[WorkloadRecord], ...]:
        """Return workloads that wait for chips, of the namespaces from `start` on.

        They come by namespace, and within one those that wait longest first.
        """

    def clusters_with_slices(self) -> tuple[ClusterId, ...]:
        """Return every cluster that has a slice which is not GONE, with settings or without: one read for each."""

    def slice_count(self, cluster: ClusterId) -> int:
        """Return how many slices are not GONE, in one call."""

    def due_slices(
        self, cluster: ClusterId, now: datetime, most: int, namespace: str | None = None
    ) -> tuple[Stored[SliceRecord], ...]:
        """Return slices with `next_reconcile_at` at or before now, the earliest first, of all namespaces or of one."""

    def due_namespaces(self, cluster: ClusterId, now: datetime, most: int) -> tuple[str, ...]:
        """Return namespaces with a slice due at or before now, in the order of their names.

        Of the first `most` with a slice that is or will be due: one read for each.
        """

    def report_queues(self, cluster: ClusterId, now: datetime) -> tuple[ReportQueue, ...]:
        """Return the queues with a report due at or before now, with one read for each queue that is not empty.

        Those of first reports come first, and among them those that have been due longest.
        """

    def due_reports(self, queue: ReportQueue, now: datetime, most: int) -> tuple[Stored[WorkloadRecord], ...]:
        """Return JobSets of a queue with `next_report_at` at or before now, the earliest first."""

    def changed_workloads(self, cluster: ClusterId, since: datetime, most: int) -> tuple[WorkloadUid, ...]:
        """Return the workloads of the slices with `changed_at` after `since`, the earliest first; one read a slice."""

    def queued_slices(self, cluster: ClusterId, most: int) -> tuple[SliceRecord, ...]:
        """Return slices in phase QUEUED, those that wait longest first."""

    def awaits_slot(self, cluster: ClusterId) -> bool:
        """Return whether a slice has an operation for which a slot is missing; one read."""

    def deletions_awaiting_slot(self, cluster: ClusterId, most: int) -> tuple[Stored[SliceRecord], ...]:
        """Return slices with a deletion for which a slot is missing, those that wait longest first."""

    def creations_awaiting_slot(
        self, cluster: ClusterId, after: str, before: str, most: int
    ) -> tuple[Stored[SliceRecord], ...]:
        """Return slices with a creation for which a slot is missing, in the queues that sort between two names.

        They come by queue (`queues.slot_queue`), and within one those that wait longest first.
        """

    def creations_in_queue(
        self, cluster: ClusterId, queue: str, after: str, most: int
    ) -> tuple[Stored[SliceRecord], ...]:
        """Return slices of a queue whose creations lack a slot in the capacity pools that sort behind `after`.

        They come by capacity pool, and within one those that wait longest first.
        """

    def creations_in_pool(self, cluster: ClusterId, pool: CapacityPool, most: int) -> tuple[Stored[SliceRecord], ...]:
        """Return slices with a creation in a capacity pool for which a slot is missing, those that wait longest first.

        Of all namespaces.
        """

    def live_workloads(self, cluster: ClusterId) -> Iterator[Stored[WorkloadRecord]]:
        """Yield every JobSet that has not ended, read in pages."""

    def live_standings(
        self, cluster: ClusterId, after: WorkloadUid | None = None, up_to: WorkloadUid | None = None
    ) -> Iterator[tuple[WorkloadUid, Standing]]:
        """Yield the UIDs of JobSets that have not ended, in ascending order, within a range, and their standings.

        The range begins after `after` and ends with `up_to`; None: it is open. Records that cannot be parsed count.
        They are read in pages.
        """

    def digests(self, cluster: ClusterId) -> Mapping[Family, int]:
        """Return the sums of `WorkloadRecord.standing`, `.demand_digest` and `SliceRecord.hosts_digest`: two calls."""

    def mirror_digest(self, cluster: ClusterId) -> int:
        """Return the sum of the `mirror_digest` of all slices and workloads, in two calls."""

    def demand_digests(self, cluster: ClusterId) -> Mapping[WorkloadUid, int]:
        """Return the `WorkloadRecord.demand_digest` of each workload that has one, read in pages."""

    def kept_slices(self, cluster: ClusterId) -> Iterator[Stored[SliceRecord]]:
        """Yield every slice that is not GONE, read in pages."""

    def every_slice(self, cluster: ClusterId) -> Iterator[Stored[SliceRecord]]:
        """Yield every slice on record, including GONE ones, read in pages."""

    def slots(self, cluster: ClusterId) -> tuple[Stored[Slot], ...]:
        """Return the slots that are taken, in ascending order of their numbers."""

    def limiter(self, cluster: ClusterId) -> Stored[ConcurrencyLimiter] | None:
        """Return the limiter's state, a new one if it cannot be parsed: the next change is written over it."""

    def budget(self, cluster: ClusterId) -> Stored[Budget] | None:
        """Return the budget, a new one if it cannot be parsed: the next creation is written over it."""

    def chips_bought(self, cluster: ClusterId, namespace: str | None = None) -> int:
        """Return the sum of `SliceRecord.chips_bought` over a cluster, or a namespace of it, in one call."""

    def chips_held(self, cluster: ClusterId) -> tuple[int, int]:
        """Return the sums of `spending.chips_held` and `spending.chips_idle` over a cluster, in one call."""

    def phase_count(self, cluster: ClusterId, phase: Phase) -> int:
        """Return how many slices are in a phase, in one call."""

    def reason_count(self, cluster: ClusterId, reasons: Collection[Reason]) -> int:
        """Return how many slices have one of these reasons, in one call."""

    def oldest_since(self, cluster: ClusterId, reasons: Collection[Reason]) -> datetime | None:
        """Return the earliest `SliceRecord.since` of slices with one of these reasons, in one call; None: none has."""

    def for_reasons(
        self, cluster: ClusterId, reasons: Collection[Reason], most: int
    ) -> tuple[Stored[SliceRecord], ...]:
        """Return slices with one of these reasons, those that have been longest in their phase first."""

    def paid_longest(self, cluster: ClusterId) -> tuple[SliceId, datetime] | None:
        """Return the slice with the earliest `spending.paid_since`, and that; one read; None: no slice has it."""

    def wanting(self, request: str, most: int, *, of_any: bool = False) -> tuple[Stored[SliceRecord], ...]:
        """Return claims whose `matching.wants`, or `wants_of_any`, is this, those that wait longest first."""

    def offered(self, request: str, most: int, *, to_any: bool = False) -> tuple[Stored[SliceRecord], ...]:
        """Return slices whose `matching.offers`, or `offers_to_any`, is this, by `matching.goes_at`."""

    def brake(self, cluster: ClusterId) -> Stored[Brake] | None:
        """Return the cluster's brake; raise Permanent if it cannot be parsed: it may stop releases."""

    def unconfirmed_ends(self, cluster: ClusterId, since: datetime, namespace: str | None = None) -> int:
        """Return how many slices of a namespace lost their workloads unconfirmed since then, in one call.

        None: how many in all of them count for the cluster.
        """

    def ready_count(self, cluster: ClusterId, most: int, namespace: str | None = None) -> int:
        """Return how many slices are READY, at most so many, in one call whose cost is that of those counted.

        In all namespaces, or in one.
        """

    def heartbeat(self, cluster: ClusterId) -> Stored[RelayHeartbeat] | None:
        """Return the last heartbeat, as never received if it cannot be parsed: the next one is written over it."""

    def commit(self, *changes: Change) -> tuple[Revision, ...]:
        """Write all changes or none; return the new revision of each (for a deleted one, the empty string).

        Raise StaleRecord if one of the records was written, created or deleted since it was read.

        The fields of a slice that operators edit (`hold`, `release_requested`, `note`) are written like all others:
        an edit changes the revision.
        """

    def reject(self, rejection: RejectedMessage) -> None:
        """Store a message that could not be handled; repeating this is harmless."""
