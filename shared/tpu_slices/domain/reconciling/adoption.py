"""Taking over the pools of TPU Provisioner whose JobSets live: as they are, without a rebuild or a restart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import TemplateRequest, WaitingLeader, WorkloadRef, WorkloadState
from tpu_slices.domain.model.observations import LegacyPool
from tpu_slices.domain.model.records import SliceRecord
from tpu_slices.domain.model.slices import (
    ClusterId,
    Owner,
    OwnerKind,
    SliceId,
    SliceSpec,
    WorkloadJob,
    WorkloadUid,
    slice_id,
)
from tpu_slices.domain.model.workloads import WorkloadRecord
from tpu_slices.domain.planning.specs import SliceRequest, chips_requested, spec_for
from tpu_slices.domain.reconciling.demand import job_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveWorkload:
    """A JobSet as the API server shows it now."""

    ref: WorkloadRef
    state: WorkloadState
    requests: tuple[TemplateRequest, ...]


@dataclass(frozen=True, slots=True)
class Adoption:
    """A pool, and the record that takes it over or (None) why it is left alone."""

    pool: LegacyPool
    record: SliceRecord | None
    why: str


def plan_adoptions(
    pools: Iterable[LegacyPool],
    workloads: Sequence[LiveWorkload],
    known: Mapping[SliceId, SliceRecord],
    settings: ClusterSettings,
    now: datetime,
) -> tuple[Adoption, ...]:
    """Say what becomes of each pool that TPU Provisioner made.

    | the pool's JobSet                          | outcome                                                     |
    |--------------------------------------------|-------------------------------------------------------------|
    | active, asks for such a Job                | taken over: kept while it lives, deleted when it ends       |
    | the same, and we made a pool for it too    | left: two pools for one Job need a person                   |
    | suspended, ended, or not there             | left: nobody needs it; TPU Provisioner or a person deletes  |
    """
    by_name = {(jobset.ref.owner.namespace, jobset.ref.owner.name): jobset for jobset in workloads}
    return tuple(_adoption(pool, by_name.get((pool.namespace, pool.jobset)), known, settings, now) for pool in pools)


def placeholders(
    adoptions: Iterable[Adoption],
    workloads: Iterable[LiveWorkload],
    known: Mapping[WorkloadUid, WorkloadRecord],
    now: datetime,
) -> tuple[WorkloadRecord, ...]:
    """Give the records of the JobSets whose pools are taken over, with these slices among their wants."""
    taken: dict[WorkloadUid, list[SliceRecord]] = {}
    for adoption in adoptions:
        if adoption.record is not None:
            taken.setdefault(adoption.record.owner.uid, []).append(adoption.record)
    return tuple(
        _placeholder(jobset, known.get(jobset.ref.owner.uid), taken[jobset.ref.owner.uid], now)
        for jobset in workloads
        if jobset.ref.owner.uid in taken
    )


def _adoption(
    pool: LegacyPool,
    jobset: LiveWorkload | None,
    known: Mapping[SliceId, SliceRecord],
    settings: ClusterSettings,
    now: datetime,
) -> Adoption:
    if jobset is None:
        return Adoption(pool, None, f"there is no JobSet {pool.namespace}/{pool.jobset}: delete the pool")
    if jobset.state is not WorkloadState.ACTIVE:
        return Adoption(pool, None, f"the JobSet is {jobset.state.lower()}: delete the pool")
    asked = _asked(pool, jobset, settings)
    if asked is None:
        return Adoption(pool, None, f"the JobSet has no Job {pool.job} that asks for TPU chips: delete the pool")
    present = known.get(slice_id(asked.job))
    if present is not None and present.legacy_pool == pool.name:
        return Adoption(pool, None, "it is taken over already")
    if present is not None and present.create_requested_at is not None:
        return Adoption(pool, None, f"its Job has {present.pool} as well: see which one serves, and delete the other")
    return Adoption(
        pool, _taken_over(pool, present or _new(asked, settings, now), now), "taken over while its JobSet lives"
    )


def _new(asked: SliceRequest, settings: ClusterSettings, now: datetime) -> SliceRecord:
    spec = spec_for(asked, settings)
    return SliceRecord.of(asked.job, now, spec if isinstance(spec, SliceSpec) else None)


def _taken_over(pool: LegacyPool, record: SliceRecord, now: datetime) -> SliceRecord:
    return replace(
        record,
        attempt=0,
        legacy_pool=pool.name,
        create_requested_at=now,
        refusal=None,
        retry_at=None,
        next_reconcile_at=now,
    )


def job_named(
    name: str, cluster: ClusterId, ref: WorkloadRef, requests: Iterable[TemplateRequest]
) -> WorkloadJob | None:
    """Find a Job of a JobSet by its name as TPU Provisioner writes it: in lower case."""
    for request in requests:
        index = name.removeprefix(f"{ref.owner.name}-{request.replicated_job}-".lower())
        if index != name and index.isdecimal() and int(index) < request.replicas and str(int(index)) == index:
            return job_of(cluster, ref, WaitingLeader(replicated_job=request.replicated_job, job_index=int(index)))
    return None


def _asked(pool: LegacyPool, jobset: LiveWorkload, settings: ClusterSettings) -> SliceRequest | None:
    job = job_named(pool.job, settings.cluster, jobset.ref, jobset.requests)
    if job is None:
        return None
    request = next(request for request in jobset.requests if request.replicated_job == job.replicated_job)
    leader = WaitingLeader(replicated_job=job.replicated_job, job_index=job.job_index)
    return SliceRequest(job=job, request=request, leader=leader, jobset_chips=chips_requested(jobset.requests))


def _placeholder(
    jobset: LiveWorkload, known: WorkloadRecord | None, slices: Sequence[SliceRecord], now: datetime
) -> WorkloadRecord:
    demand: dict[SliceId, datetime | None] = {record.id: None for record in slices}
    if known is not None:
        return replace(known, demand={**known.demand, **demand})
    return WorkloadRecord(
        cluster=slices[0].job.cluster,
        owner=Owner(
            kind=OwnerKind.JOBSET,
            namespace=jobset.ref.owner.namespace,
            name=jobset.ref.owner.name,
            uid=jobset.ref.owner.uid,
        ),
        state=WorkloadState.ACTIVE,
        generation=jobset.ref.generation,
        resource_version=jobset.ref.resource_version,
        demand=demand,
        state_since=now,
        last_seen_at=now,
    )
