"""What the audit finds when it lays the three books side by side: JobSets, records, pools."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tpu_slices.domain.model.facts import Heartbeat, Question, WorkloadState
from tpu_slices.domain.model.observations import PoolSeen
from tpu_slices.domain.model.records import Phase, SliceRecord, TerminatingAttempt
from tpu_slices.domain.model.slices import ClusterId, Owner, OwnerKind, SliceId, WorkloadUid
from tpu_slices.domain.model.workloads import WorkloadRecord
from tpu_slices.domain.reconciling.terminating import OCCUPANTS_KNOWN_WITHIN

INVENTORY_CHECK_EVERY = timedelta(minutes=15)
SILENT_AFTER = timedelta(minutes=3)
"""A relay that was not heard for this long is not believed by its silence: nothing follows from it."""
LIST_IS_NEWS = timedelta(minutes=5)
"""How long a list of live JobSets may be compared with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayHeartbeat:
    """The document `heartbeats/{cluster}`: when the relay was last heard, what it saw, when the books are compared."""

    cluster: ClusterId
    received_at: datetime | None = None
    count: int = 0
    digest: str = ""
    uids: tuple[WorkloadUid, ...] | None = None
    uids_received_at: datetime | None = None
    next_inventory_check_at: datetime | None = None
    """When the books are compared next; None: at the next sweep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryFindings:
    """What the audit would change. Nothing here deletes: due slices are decided anew, with their own evidence."""

    adopted: tuple[SliceRecord, ...] = ()
    """Records for pools that have none."""
    placeholders: tuple[WorkloadRecord, ...] = ()
    """JobSet records for adopted slices whose JobSet is not known: live until the relay says otherwise."""
    mended: tuple[tuple[SliceRecord, SliceRecord], ...] = ()
    """Records before and after: to be looked at again, with pools they did not know of."""
    left_out: int = 0
    """Orphans beyond what one audit takes on: more at once is a sign of something else, and a person should look."""


def digest_of(uids: Iterable[WorkloadUid]) -> str:
    """Sum up a set of JobSets: equal digests mean equal sets."""
    return hashlib.sha256("\n".join(sorted(uids)).encode()).hexdigest()[:16]


def suspicions(live: Sequence[WorkloadRecord], heartbeat: RelayHeartbeat | None, now: datetime) -> tuple[Question, ...]:
    """Say what to ask the relay. From silence follow questions, never deletions.

    | last heartbeat                     | questions                                       |
    |------------------------------------|-------------------------------------------------|
    | none, or longer ago than 3 minutes | none: a dead relay proves nothing               |
    | same digest as our live JobSets    | none                                            |
    | another digest, no fresh list      | which TPU JobSets live?                         |
    | fresh list                         | for each of ours that it lacks: does this live? |
    """
    if heartbeat is None or heartbeat.received_at is None or now - heartbeat.received_at > SILENT_AFTER:
        return ()
    if heartbeat.digest == digest_of(record.owner.uid for record in live):
        return ()
    if heartbeat.uids is None or heartbeat.uids_received_at is None or now - heartbeat.uids_received_at > LIST_IS_NEWS:
        return (Question(),)
    listed = set(heartbeat.uids)
    return tuple(
        Question(
            owner=Owner(
                kind=OwnerKind.JOBSET, namespace=record.owner.namespace, name=record.owner.name, uid=record.owner.uid
            )
        )
        for record in live
        if record.owner.uid not in listed and record.last_seen_at < heartbeat.uids_received_at
    )


def check_inventory(
    workloads: Mapping[WorkloadUid, WorkloadRecord],
    slices: Mapping[SliceId, SliceRecord],
    pools: Sequence[PoolSeen],
    now: datetime,
) -> InventoryFindings:
    """Compare records, JobSets and pools pairwise.

    | found                                             | done                                             |
    |---------------------------------------------------|--------------------------------------------------|
    | a pool without a record (orphan)                  | adopted: a record, and a JobSet record to ask by |
    | a pool of an attempt that its record knows not    | added to the attempts that are gone after        |
    | a READY record without its pool                   | looked at again                                  |
    | a pool whose record thinks it was never ordered   | looked at again, and at the pool                 |
    | a settled record that contradicts its JobSet, or  | looked at again                                  |
    | a person who asked for its release                |                                                  |
    """
    ready = sum(record.phase is Phase.READY for record in slices.values())
    most = max(10, ready // 5)
    orphans = [pool for pool in pools if pool.slice_id not in slices]
    found = sorted(orphans, key=lambda pool: pool.attempt)[:most]
    adopted = {pool.slice_id: _adopt(pool, workloads.get(pool.job.owner.uid), now) for pool in found}
    placeholders = {
        record.owner.uid: _placeholder(record, adopted.values(), now)
        for record in adopted.values()
        if record.owner.uid not in workloads
    }
    by_slice: dict[SliceId, list[PoolSeen]] = {}
    for pool in pools:
        by_slice.setdefault(pool.slice_id, []).append(pool)
    mended = (
        (record, _mend(record, by_slice.get(id_, ()), workloads.get(record.owner.uid), now))
        for id_, record in slices.items()
    )
    return InventoryFindings(
        adopted=tuple(adopted.values()),
        placeholders=tuple(placeholders.values()),
        mended=tuple((before, after) for before, after in mended if after is not before),
        left_out=max(0, len(orphans) - most),
    )


def with_heartbeat(
    heartbeat: RelayHeartbeat | None, beat: Heartbeat, cluster: ClusterId, now: datetime
) -> RelayHeartbeat:
    """Take in a heartbeat; one that brings the list of live JobSets makes the audit due."""
    heartbeat = replace(
        heartbeat or RelayHeartbeat(cluster=cluster), received_at=now, count=beat.count, digest=beat.digest
    )
    if beat.uids is None:
        return heartbeat
    return replace(heartbeat, uids=beat.uids, uids_received_at=now, next_inventory_check_at=None)


def _adopt(pool: PoolSeen, jobset: WorkloadRecord | None, now: datetime) -> SliceRecord:
    """Make a record for a pool: the current attempt, or one to be gone after where its JobSet is known not to live."""
    record = replace(SliceRecord.of(pool.job, now), attempt=pool.attempt, create_requested_at=now)
    if jobset is None or jobset.state is WorkloadState.ACTIVE:
        return record
    return replace(record, attempt=pool.attempt + 1, create_requested_at=None, terminating=(_found(pool, now),))


def _found(pool: PoolSeen, now: datetime) -> TerminatingAttempt:
    return TerminatingAttempt(attempt=pool.attempt, delete_after=now + OCCUPANTS_KNOWN_WITHIN)


def _placeholder(record: SliceRecord, adopted: Iterable[SliceRecord], now: datetime) -> WorkloadRecord:
    job = record.job
    return WorkloadRecord(
        cluster=job.cluster,
        owner=Owner(kind=OwnerKind.JOBSET, namespace=job.owner.namespace, name=job.owner.name, uid=job.owner.uid),
        state=WorkloadState.ACTIVE,
        generation=0,
        resource_version="",
        demand={other.id: None for other in adopted if other.job.owner.uid == job.owner.uid},
        state_since=now,
        last_seen_at=now,
    )


def _mend(record: SliceRecord, pools: Sequence[PoolSeen], jobset: WorkloadRecord | None, now: datetime) -> SliceRecord:
    known = {record.attempt, *(left.attempt for left in record.terminating)}
    strays = tuple(_found(pool, now) for pool in pools if pool.attempt not in known)
    present = record.attempt in {pool.attempt for pool in pools}
    vanished = record.phase is Phase.READY and not present
    unheard_of = present and record.create_requested_at is None
    revived = present and record.phase is Phase.GONE
    if not (strays or vanished or unheard_of or revived or _contradicts(record, jobset)):
        return record
    create_requested_at = now if unheard_of else record.create_requested_at
    return replace(
        record,
        terminating=(*record.terminating, *strays),
        create_requested_at=create_requested_at,
        next_reconcile_at=now,
    )


def _contradicts(record: SliceRecord, jobset: WorkloadRecord | None) -> bool:
    """Say whether a slice is settled as READY that its JobSet, or a person, does not want any more."""
    if record.phase is not Phase.READY or record.next_reconcile_at is not None:
        return False
    return record.release_requested or (jobset is not None and jobset.state is not WorkloadState.ACTIVE)
