"""Adoption of TPU Provisioner's node pools whose JobSets are live, without a rebuild or a restart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import TemplateRequest, WaitingLeader, WorkloadRef, WorkloadState
from tpu_slices.domain.model.observations import LegacyPool
from tpu_slices.domain.model.slices import (
    ClaimId,
    ClusterId,
    SliceSpec,
    WorkloadJob,
    WorkloadUid,
    claim_id,
)
from tpu_slices.domain.planning.specs import SliceRequest, chips_requested, spec_for
from tpu_slices.domain.reconciling.demand import job_of
from tpu_slices.domain.reconciling.inventory import SPARED_FOR
from tpu_slices.domain.records.attempts import Attempt
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord

ALREADY_ADOPTED = "already adopted"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveWorkload:
    """A JobSet as read from the API server now."""

    ref: WorkloadRef
    state: WorkloadState
    requests: tuple[TemplateRequest, ...]


@dataclass(frozen=True, slots=True)
class Adoption:
    """A pool, and the record that adopts it, or None if it is left alone; `why`: the reason for either."""

    pool: LegacyPool
    record: SliceRecord | None
    why: str


def plan_adoptions(
    pools: Iterable[LegacyPool],
    workloads: Sequence[LiveWorkload],
    known: Mapping[ClaimId, SliceRecord],
    settings: ClusterSettings,
    now: datetime,
) -> tuple[Adoption, ...]:
    """Return an adoption for each pool that TPU Provisioner made.

    `known`: what each claim has; for a Job whose pool was adopted, that slice, whichever claim has it now.

    | the pool's JobSet                          | outcome                                                       |
    |--------------------------------------------|---------------------------------------------------------------|
    | active, has the pool's Job with TPU chips  | adopted: kept while the JobSet is live, deleted when it ends  |
    | the same, and we created a pool for it too | left alone: of two pools for one Job an operator deletes one  |
    | suspended, ended, or not found             | left alone: TPU Provisioner or an operator deletes it         |
    """
    by_name = {(jobset.ref.owner.namespace, jobset.ref.owner.name): jobset for jobset in workloads}
    return tuple(_adoption(pool, by_name.get((pool.namespace, pool.jobset)), known, settings, now) for pool in pools)


def placeholders(
    adoptions: Iterable[Adoption],
    workloads: Iterable[LiveWorkload],
    known: Mapping[WorkloadUid, WorkloadRecord],
    now: datetime,
) -> tuple[WorkloadRecord, ...]:
    """Return the records of the JobSets whose pools are adopted, with the adopted slices in their demand."""
    adopted: dict[WorkloadUid, list[SliceRecord]] = {}
    for adoption in adoptions:
        if adoption.record is not None:
            adopted.setdefault(adoption.record.owner.uid, []).append(adoption.record)
    return tuple(
        _placeholder(jobset, known.get(jobset.ref.owner.uid), adopted[jobset.ref.owner.uid], now)
        for jobset in workloads
        if jobset.ref.owner.uid in adopted
    )


def _adoption(
    pool: LegacyPool,
    jobset: LiveWorkload | None,
    known: Mapping[ClaimId, SliceRecord],
    settings: ClusterSettings,
    now: datetime,
) -> Adoption:
    if jobset is None:
        return Adoption(pool, None, f"there is no JobSet {pool.namespace}/{pool.jobset}: delete the pool")
    if jobset.state is not WorkloadState.ACTIVE:
        return Adoption(pool, None, f"the JobSet is {jobset.state.lower()}: delete the pool")
    request = _request(pool, jobset, settings)
    if request is None:
        return Adoption(pool, None, f"the JobSet has no Job {pool.job} that requests TPU chips: delete the pool")
    present = known.get(claim_id(request.job))
    if present is not None and present.legacy_pool == pool.name:
        return Adoption(pool, None, ALREADY_ADOPTED)
    if present is not None and present.current.create_requested_at is not None:
        return Adoption(pool, None, f"its Job also has {present.pool}: check which one is in use, delete the other")
    record = adopted_record(pool, present or _new(request, settings, now), now)
    return Adoption(pool, record, "adopted: kept while its JobSet is live")


def _new(request: SliceRequest, settings: ClusterSettings, now: datetime) -> SliceRecord:
    spec = spec_for(request, settings)
    return SliceRecord.of(request.job, now, spec if isinstance(spec, SliceSpec) else None)


def adopted_record(pool: LegacyPool, record: SliceRecord, now: datetime) -> SliceRecord:
    """Return the record of a slice with an adopted pool as its attempt 0."""
    claim = record.claim
    unused = claim.tried == record.attempt and record.current == Attempt(number=record.attempt)
    return replace(
        record,
        current=Attempt(number=0, create_requested_at=now, ours_since=now, spared_until=now + SPARED_FOR),
        claim=claim.with_changes(tried=claim.tried - 1 if unused else claim.tried, refusal=None, retry_at=None),
        first_job=None,
        legacy_pool=pool.name,
        next_reconcile_at=now,
        look_at=now,
    )


def job_named(
    name: str, cluster: ClusterId, ref: WorkloadRef, requests: Iterable[TemplateRequest]
) -> WorkloadJob | None:
    """Return the Job of a JobSet with this name, which TPU Provisioner writes in lower case, or None."""
    for request in requests:
        index = name.removeprefix(f"{ref.owner.name}-{request.replicated_job}-".lower())
        if index != name and index.isdecimal() and int(index) < request.replicas and str(int(index)) == index:
            return job_of(cluster, ref, WaitingLeader(replicated_job=request.replicated_job, job_index=int(index)))
    return None


def _request(pool: LegacyPool, jobset: LiveWorkload, settings: ClusterSettings) -> SliceRequest | None:
    job = job_named(pool.job, settings.cluster, jobset.ref, jobset.requests)
    if job is None:
        return None
    request = next(request for request in jobset.requests if request.replicated_job == job.replicated_job)
    leader = WaitingLeader(replicated_job=job.replicated_job, job_index=job.job_index)
    chips = chips_requested(jobset.requests, settings.accelerators)
    return SliceRequest(job=job, request=request, leader=leader, jobset_chips=chips)


def _placeholder(
    jobset: LiveWorkload, known: WorkloadRecord | None, slices: Sequence[SliceRecord], now: datetime
) -> WorkloadRecord:
    ids = [record.last_claim for record in slices]
    if known is not None:
        return replace(known, demand={**known.demand, **dict.fromkeys(ids)}).with_recorded(ids)
    return WorkloadRecord.of(slices[0].cluster, jobset.ref, now).with_recorded(ids)
