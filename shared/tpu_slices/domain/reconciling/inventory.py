"""The inventory check: compares JobSets, slice records and node pools."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Self, TypeVar

from tpu_slices.domain.model.facts import Family, Listed, WorkloadRef, WorkloadState
from tpu_slices.domain.model.observations import PoolSeen
from tpu_slices.domain.model.questions import Question, RepeatQuestion
from tpu_slices.domain.model.reasons import SERVED, Phase
from tpu_slices.domain.model.slices import ClaimId, Owner, SliceId, WorkloadJob, WorkloadUid, claim_id
from tpu_slices.domain.reconciling.relabelling import is_known, unproven
from tpu_slices.domain.records.attempts import Attempt
from tpu_slices.domain.records.heartbeats import SILENT_AFTER, Compared, RelayHeartbeat
from tpu_slices.domain.records.hosts import key_of
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord

K = TypeVar("K", bound=str)

INVENTORY_CHECK_EVERY = timedelta(minutes=15)
_SETTLED = {Phase.READY, Phase.QUEUED, Phase.REFUSED}
"""Slices in these phases may not be reconciled by themselves."""
BEFORE_ALL = WorkloadUid("0")
"""A UID that sorts before those of all JobSets."""
SPARED_FOR = timedelta(minutes=10)
"""How long a found pool is kept, whatever becomes of its JobSet, so that the relay can report who is on it."""
OWNERLESS_AFTER = timedelta(minutes=10)
"""When the release of a slice must have begun after its JobSet ended: reconciles take seconds, or some minutes."""
CHECK_AGAIN_AFTER = timedelta(minutes=2)
"""When the next inventory check is if others were faster to write. What is due until then needs no check."""
QUESTIONS_PER_LIST = 500
"""The most JobSets that the relay is asked about, and as many to repeat, because of one list."""
MISREPORTED = 200
"""The most JobSets of which one check lets a report be due: as many as one sweep makes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """The records that the inventory check compares with the pools."""

    workloads: Mapping[WorkloadUid, WorkloadRecord]
    slices: Mapping[SliceId, SliceRecord]
    active: frozenset[WorkloadUid] = frozenset()
    """Workloads that are active, have no demand, and SERVED slices alone: no more of their records is needed."""
    unreadable: frozenset[ClaimId | SliceId | WorkloadUid] = frozenset()
    """The records that exist and cannot be read, those of claims by these: nothing is concluded about them."""

    def having(self) -> Mapping[ClaimId, SliceRecord]:
        """Return the slices that claims have, by these."""
        return {each.claimed_by: each for each in self.slices.values() if each.claimed_by is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryFindings:
    """The changes that the inventory check proposes. None deletes a pool: the slices are reconciled instead."""

    recovered: tuple[SliceRecord, ...] = ()
    """Records of claims for pools that have none."""
    strays: tuple[SliceRecord, ...] = ()
    """Records of slices that no claim has, for pools that have none."""
    placeholders: tuple[WorkloadRecord, ...] = ()
    """Records for the JobSets of slices that have none: live until the relay reports otherwise."""
    mended: tuple[tuple[SliceRecord, SliceRecord], ...] = ()
    """Records before and after: reconciled again, with the pools that were missing in them."""
    unplaced: tuple[str, ...] = ()
    """The hosts, by `hosts.key_of`, on which a Job is whose claim does not have the slice, and might."""
    unserved: tuple[WorkloadUid, ...] = ()
    """Workloads with leaders that wait for slices which are not on record, or settled as GONE."""
    misreported: tuple[WorkloadUid, ...] = ()
    """Workloads that were told to be READY and are not, and of which no report is to follow: MISREPORTED at most."""
    left_out: int = 0
    """Orphans beyond the limit of one check: so many indicate another problem, and an operator should investigate."""
    unproven: tuple[str, ...] = ()
    """The pools with our names that nothing proves to be ours."""
    ownerless: int = 0
    """Pools whose JobSet has not been active for OWNERLESS_AFTER, and that nobody is about to delete."""
    complete: bool = True
    """Whether all of it could be written; else others wrote some records meanwhile, and it is without these."""

    @property
    def orphans(self) -> int:
        """The pools without a record."""
        return sum(each.current.create_requested_at is not None for each in self.recovered) + self.left_out


@dataclass(frozen=True, slots=True)
class _Names:
    """The pools that were found, and the numbers that are used, by the claims that they were made for."""

    found: Mapping[ClaimId, list[PoolSeen]]
    recorded: Mapping[ClaimId, int]
    """The highest number of a record."""

    @classmethod
    def of(cls, records: Iterable[SliceRecord], pools: Iterable[PoolSeen]) -> Self:
        found: dict[ClaimId, list[PoolSeen]] = {}
        for pool in pools:
            found.setdefault(pool.slice_id, []).append(pool)
        recorded: dict[ClaimId, int] = {}
        for record in records:
            recorded[record.maker] = max(record.attempt, recorded.get(record.maker, 0))
        return cls(found, recorded)

    def pools(self, claim: ClaimId) -> Sequence[PoolSeen]:
        return self.found.get(claim, ())

    def highest(self, claim: ClaimId) -> int:
        """Return the highest number that was used."""
        return max(self.recorded.get(claim, 0), *(pool.attempt for pool in self.pools(claim)), 0)

    def highest_proven(self, claim: ClaimId) -> int:
        """Return the highest number of a record, or of a pool that proves itself ours."""
        return max(self.recorded.get(claim, 0), *(pool.attempt for pool in self.pools(claim) if pool.job), 0)


def to_be_listed(heartbeat: RelayHeartbeat, now: datetime) -> tuple[Family, ...]:
    """Return the families to ask the relay to list: not confirmed, nor asked for, for longer than facts take.

    A relay that does not run proves nothing.
    """
    if heartbeat.relay.silent(now):
        return ()

    def differs(known: Compared) -> bool:
        times = (known.confirmed_at or heartbeat.uninterrupted_since, known.asked_at)
        return all(at is None or abs(now - at) > SILENT_AFTER for at in times)  # a clock may be ahead

    return tuple(family for family in Family if differs(heartbeat.compared(family)))


def lacking(listed: Listed, recorded: Iterable[WorkloadUid]) -> tuple[WorkloadUid, ...]:
    """Return the workloads on record that a part of the list lacks; `recorded`: those of its range that have not ended.

    Of very many it returns some, others each time, so that those for which no answer comes do not hide the others.
    """
    return _some(2 * QUESTIONS_PER_LIST, [uid for uid in recorded if uid not in listed.digests], listed)


def to_be_repeated(listed: Listed, unlike: Iterable[str]) -> tuple[RepeatQuestion, ...]:
    """Return the question to the relay about keys that are not on record as a part of its list has them.

    What the relay published of them was lost. What the relay lacks, or cannot read, it cannot repeat.
    """
    told = [key for key in unlike if listed.digests.get(key)]
    some = _some(max(1, QUESTIONS_PER_LIST // listed.parts), told, listed)
    return (RepeatQuestion(family=listed.family, keys=some),) if some else ()


def _some(most: int, keys: Iterable[K], listed: Listed) -> tuple[K, ...]:
    """Return at most so many of these, others for each list."""

    def by_chance(key: K) -> bytes:
        return hashlib.sha256(f"{listed.asked_at.isoformat()}/{key}".encode()).digest()

    return tuple(heapq.nsmallest(most, keys, key=by_chance))


def questions(listed: Listed, absent: Iterable[WorkloadRecord]) -> tuple[Question, ...]:
    """Return the questions to the relay about workloads that its list lacks; none of them is deleted for that.

    The list was read after it was asked for: a workload that was reported since then may be newer than the list,
    however late this part of it comes. Workloads that have slices come first.
    """
    suspect = [record for record in absent if record.live and record.last_seen_at < listed.asked_at]
    suspect.sort(key=lambda record: not record.demand)
    return tuple(Question(owner=record.owner) for record in suspect[: max(1, QUESTIONS_PER_LIST // listed.parts)])


def check_inventory(records: Records, pools: Sequence[PoolSeen], now: datetime) -> InventoryFindings:
    """Return the differences between records, JobSets and pools, and the changes that resolve them.

    | found                                             | change                                             |
    |---------------------------------------------------|----------------------------------------------------|
    | a pool without a record, of a claim that has none | a record of the claim, which has that slice        |
    | either (orphan)                                   | (of several the latest), and of those beside it    |
    | a slice whose JobSet has no record                | a JobSet record, live, with the slice in demand,   |
    |                                                   | so that the relay is asked about it                |
    | a pool without a record, of a claim that has one  | a record of the slice, which no claim has          |
    | a slice that no claim has, whose claim has no     | a record of the claim                              |
    | record                                            |                                                    |
    | an earlier slice on the record of a claim, which  | forgotten                                          |
    | has neither a record nor a pool                   |                                                    |
    | a READY record without its pool                   | reconciled again                                   |
    | a pool whose creation is not on its record        | reconciled again, with the creation on record      |
    | a pool whose record is GONE                       | reconciled again                                   |
    | a settled READY record whose JobSet is not active | reconciled again                                   |
    | or whose release was requested                    |                                                    |
    | a Job on the slice of another, which is not there | the relay is asked to tell these hosts again       |
    | a slice in demand without a record, or settled as | the relay is asked for the demand of its workload  |
    | GONE                                              |                                                    |
    | fewer SERVED slices than a workload had when it   | its report is due                                  |
    | was told to be READY                              |                                                    |
    | a pool whose labels were replaced, of a settled   | reconciled again                                   |
    | record that knows it as ours                      |                                                    |
    | a settled record whose hosts carry another key    | reconciled again                                   |
    | a pool whose record cannot be read                | none                                               |
    """
    workloads, slices, having = records.workloads, records.slices, records.having()
    ready = sum(record.phase is Phase.READY for record in slices.values())
    most = max(10, ready // 5)
    known = having.keys() | records.unreadable
    unknown = [(pool, pool.job) for pool in pools if pool.job and not _on_record(pool, records)]
    orphans = [(pool, job) for pool, job in unknown if pool.slice_id not in known]
    found = sorted(orphans, key=lambda orphan: orphan[0].attempt)[:most]
    alone = [each for each in slices.values() if each.unclaimed and each.last_claim not in known]
    names = _Names.of(slices.values(), pools)
    recovered = {each.last_claim: _claim_of(each, names, alone, now) for each in alone}
    recovered |= {pool.slice_id: _recovered(pool, job, names, alone, now) for pool, job in found}
    claims = {**recovered, **having}
    strays = [
        (pool, claims[pool.slice_id])
        for pool, _ in unknown
        if pool.slice_id in claims and pool.id != claims[pool.slice_id].id
    ]
    mended = (
        (record, _mend(record, names, workloads.get(record.owner.uid), records, now)) for record in slices.values()
    )
    return InventoryFindings(
        recovered=tuple(_with_earlier(each, strays) for each in recovered.values()),
        strays=tuple(_stray(pool, claim, now) for pool, claim in strays),
        placeholders=_placeholders((*recovered.values(), *slices.values()), records, now),
        mended=tuple((before, after) for before, after in mended if after is not before),
        unplaced=tuple(key_of(it.maker, it.attempt) for it in slices.values() if _is_unplaced(it, having)),
        unserved=tuple(sorted(uid for uid, it in workloads.items() if _is_unserved(it, having, records.unreadable))),
        misreported=tuple(islice((uid for uid, it in workloads.items() if _is_misreported(it, having)), MISREPORTED)),
        left_out=max(0, len(orphans) - most),
        unproven=unproven(pools, slices, records.unreadable),
        ownerless=sum(_ownerless(pool, records, now) for pool in pools),
    )


def _on_record(pool: PoolSeen, records: Records) -> bool:
    """Return whether a slice has a record, or one that cannot be read."""
    return pool.id in records.slices or pool.id in records.unreadable


def _is_unplaced(record: SliceRecord, having: Mapping[ClaimId, SliceRecord]) -> bool:
    """Return whether only Jobs are on a slice whose claims do not have it, and one of them is not on its own."""
    if record.occupied or record.owner.kind.declares:
        return False
    claims = (claim_id(each.workload_job(record.cluster)) for each in record.current.hosts.occupants)
    return any(claim not in having or not having[claim].occupied for claim in claims)


def _is_unserved(workload: WorkloadRecord, having: Mapping[ClaimId, SliceRecord], unreadable: Collection[str]) -> bool:
    """Return whether nobody will look at a claim that a leader waits for: its record was lost, or was not readable."""
    found = [having.get(claim) for claim in workload.in_demand if claim not in unreadable]
    return any(each is None or (each.phase is Phase.GONE and each.next_reconcile_at is None) for each in found)


def _is_misreported(workload: WorkloadRecord, having: Mapping[ClaimId, SliceRecord]) -> bool:
    """Return whether a workload was told to have more slices than it has, and no report is to follow."""
    told = workload.report
    if told is None or not told.reason.serves or workload.next_report_at is not None:
        return False
    own = (having[claim] for claim in workload.demand.keys() & having.keys())
    served = sum(record.reason in SERVED and workload.has(record.replicated_job, record.job_index) for record in own)
    return workload.state is WorkloadState.ACTIVE and served < told.requested


def _ownerless(pool: PoolSeen, records: Records, now: datetime) -> bool:
    record = records.slices.get(pool.id)
    workload = records.workloads.get(pool.job.owner.uid) if pool.job else None
    if record is None or workload is None or record.phase in {Phase.RELEASING, Phase.BLOCKED}:
        return False  # unknown yet, or not forgotten
    return workload.state is not WorkloadState.ACTIVE and now - workload.state_since > OWNERLESS_AFTER


def _claim_of(slice_: SliceRecord, names: _Names, alone: Iterable[SliceRecord], now: datetime) -> SliceRecord:
    """Return a record of a claim that has none, and lately had a slice."""
    claim = SliceRecord.of(slice_.job, now, slice_.spec)
    number = names.highest(claim.maker) + 1
    return replace(claim, current=Attempt(number=number)).with_claim(tried=number, earlier=_had(claim, alone))


def _recovered(
    pool: PoolSeen, job: WorkloadJob, names: _Names, alone: Iterable[SliceRecord], now: datetime
) -> SliceRecord:
    """Return a record of a claim that has a pool which was found."""
    claim = SliceRecord.of(job, now)
    highest = names.highest(claim.maker)
    return replace(claim, current=_found(pool, now)).with_claim(tried=highest, earlier=_had(claim, alone))


def _had(claim: SliceRecord, alone: Iterable[SliceRecord]) -> tuple[SliceId, ...]:
    """Return the slices that a claim had before, and that no claim has."""
    return tuple(sorted(each.id for each in alone if each.last_claim == claim.last_claim))


def _with_earlier(claim: SliceRecord, strays: Iterable[tuple[PoolSeen, SliceRecord]]) -> SliceRecord:
    """Return the record of a claim that has none, with the pools beside its own among the slices that it had."""
    beside = (pool.id for pool, of in strays if of is claim)
    return claim.with_claim(earlier=tuple(sorted({*claim.claim.earlier, *beside})))


def _stray(pool: PoolSeen, claim: SliceRecord, now: datetime) -> SliceRecord:
    """Return a record of a pool that was found, of a claim that has another slice."""
    return claim.stray(_found(pool, now), "it was found without a record, and its claim does not have it", now)


def _found(pool: PoolSeen, now: datetime) -> Attempt:
    return Attempt(number=pool.attempt, create_requested_at=now, ours_since=now, spared_until=now + SPARED_FOR)


def _placeholders(slices: Iterable[SliceRecord], records: Records, now: datetime) -> tuple[WorkloadRecord, ...]:
    """Return a record for each JobSet that has slices and no record; the demand for none of them is confirmed."""
    found: dict[WorkloadUid, list[SliceRecord]] = {}
    for record in slices:
        uid = record.owner.uid
        known = uid in records.workloads or uid in records.active or uid in records.unreadable
        if record.phase is not Phase.GONE and not (known or record.owner.kind.is_spare):
            found.setdefault(uid, []).append(record)
    return tuple(
        WorkloadRecord.of(
            of_one[0].cluster, _unseen(of_one[0].owner), now, sorted({record.last_claim for record in of_one})
        )
        for of_one in found.values()
    )


def _unseen(owner: Owner) -> WorkloadRef:
    """Return a workload of which no version is known: any that the relay reports is newer."""
    return WorkloadRef(owner=owner, generation=0, resource_version="")


def _mend(
    record: SliceRecord, names: _Names, jobset: WorkloadRecord | None, records: Records, now: datetime
) -> SliceRecord:
    ours = [pool for pool in names.pools(record.maker) if pool.id == record.id and (pool.job or is_known(record))]
    earlier = _earlier(record, names.pools(record.last_claim), records)
    claim = record.claim.with_changes(
        earlier=earlier, tried=max(record.claim.tried, names.highest_proven(record.last_claim))
    )
    missing = record.phase is Phase.READY and not ours
    unrecorded = bool(ours) and record.current.create_requested_at is None
    unexpected = bool(ours) and record.phase is Phase.GONE
    unkeyed = record.current.hosts.lacking(record.key) > 0
    unlike = record.next_reconcile_at is None and (unkeyed or any(pool.job is None for pool in ours))
    changed = not record.unclaimed and (earlier, claim.tried) != (record.claim.earlier, record.claim.tried)
    if not (changed or missing or unrecorded or unexpected or unlike or _contradicts(record, jobset, now)):
        return record
    return replace(
        record,
        claim=record.claim if record.unclaimed else claim,
        current=replace(record.current, create_requested_at=now, ours_since=now, gone=False)
        if unrecorded
        else record.current,
        next_reconcile_at=now,
        look_at=now,
    )


def _earlier(record: SliceRecord, pools: Sequence[PoolSeen], records: Records) -> tuple[SliceId, ...]:
    """Return the slices that a claim had before, that are not gone, and that no claim has now.

    `pools`: those that were made for the claim. Only a pool whose labels prove that counts.
    """

    def was_its(id_: SliceId) -> bool:
        known = records.slices.get(id_)
        return known is None or (known.unclaimed and known.last_claim == record.claimed_by)

    on_record = {id_ for id_ in record.claim.earlier if id_ in records.slices or id_ in records.unreadable}
    found = {pool.id for pool in pools if pool.job and pool.id != record.id}
    return tuple(sorted(filter(was_its, on_record | found)))


def _contradicts(record: SliceRecord, jobset: WorkloadRecord | None, now: datetime) -> bool:
    """Return whether a slice is settled although its JobSet is not active or its release was requested.

    One that nothing was bought for may be, until a suspension has lasted.
    """
    due, bought = record.next_reconcile_at, record.current.create_requested_at is not None
    if jobset is not None and not bought and jobset.suspension_lasts_at(now) is not None:
        return record.release_requested
    if record.phase not in _SETTLED or (due is not None and due - now <= CHECK_AGAIN_AFTER):
        return False
    return record.release_requested or (jobset is not None and jobset.state is not WorkloadState.ACTIVE)
