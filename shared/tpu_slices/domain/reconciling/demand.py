"""From what is reported to what is wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import (
    Answer,
    HostsChanged,
    Occupant,
    SlicesWanted,
    WaitingLeader,
    WorkloadChanged,
    WorkloadRef,
    WorkloadState,
)
from tpu_slices.domain.model.records import Desire, Refusal, SliceRecord
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

TOMBSTONE_TTL = timedelta(days=40)
"""How long an ended JobSet is remembered: longer than Pub/Sub can keep a message (31 days)."""

_DESIRE_MESSAGES: Mapping[WorkloadState, str] = {
    WorkloadState.ACTIVE: "the JobSet wants it",
    WorkloadState.SUSPENDED: "the JobSet is suspended",
    WorkloadState.COMPLETED: "the JobSet completed",
    WorkloadState.FAILED: "the JobSet failed",
    WorkloadState.DELETED: "the JobSet was deleted",
    WorkloadState.MISSING: "the JobSet is gone",
}


@dataclass(frozen=True, slots=True)
class Demand:
    """What a fact changes: the JobSet's record, the slices' records that are new or asked for differently."""

    workload: WorkloadRecord
    slices: Mapping[SliceId, SliceRecord]


def job_of(cluster: ClusterId, workload: WorkloadRef, leader: WaitingLeader) -> WorkloadJob:
    return WorkloadJob(
        cluster=cluster,
        owner=Owner(
            kind=OwnerKind.JOBSET, namespace=workload.owner.namespace, name=workload.owner.name, uid=workload.owner.uid
        ),
        replicated_job=leader.replicated_job,
        job_index=leader.job_index,
    )


def legitimate(fact: SlicesWanted) -> tuple[WaitingLeader, ...]:
    """Give the leaders that the JobSet's own template asks for: a forged pod can only ask for what its JobSet asks."""
    replicas = {request.replicated_job: request.replicas for request in fact.requests}
    return tuple(leader for leader in fact.waiting if 0 <= leader.job_index < replicas.get(leader.replicated_job, 0))


@dataclass(frozen=True, slots=True)
class SliceDemand:
    """A waiting leader, and the Job whose slice it needs."""

    leader: WaitingLeader
    job: WorkloadJob


def demands(fact: SlicesWanted, cluster: ClusterId, slices: Mapping[SliceId, SliceRecord]) -> tuple[SliceDemand, ...]:
    """Give what the waiting leaders need.

    A leader may be scheduled to a slice that was made for another Job of its JobSet. Who then waits in vain for its
    own slice needs the one that the taker left to be made.
    """
    own = (SliceDemand(leader, job_of(cluster, fact.workload, leader)) for leader in legitimate(fact))
    return tuple(replace(each, job=_slice_left_over(each.job, fact, slices)) for each in own)


def _slice_left_over(job: WorkloadJob, fact: SlicesWanted, slices: Mapping[SliceId, SliceRecord]) -> WorkloadJob:
    passed: set[WorkloadJob] = set()
    while job not in passed and (displacing := _displacing_job(job, fact, slices.get(slice_id(job)))) is not None:
        passed.add(job)
        job = displacing
    return job


def _displacing_job(job: WorkloadJob, fact: SlicesWanted, record: SliceRecord | None) -> WorkloadJob | None:
    """Give the other Job of the same JobSet whose leader is on a Job's slice."""
    occupant = record.occupants[-1] if record and record.occupants else None
    if occupant is None or occupant.owner.uid != job.owner.uid or occupant.job == job.job_name:
        return None
    for request in fact.requests:
        index = occupant.job.removeprefix(f"{job.owner.name}-{request.replicated_job}-")
        if index.isdecimal() and int(index) < request.replicas:
            return replace(job, replicated_job=request.replicated_job, job_index=int(index))
    return None


def wanted(
    fact: SlicesWanted,
    known: WorkloadRecord | None,
    slices: Mapping[SliceId, SliceRecord],
    now: datetime,
    settings: ClusterSettings,
) -> Demand | None:
    """Say what waiting leaders change; None when the fact is late news.

    | known JobSet                              | outcome                                                |
    |-------------------------------------------|--------------------------------------------------------|
    | none                                      | remembered, its slices wanted                          |
    | ended                                     | late news: an end is final for a UID                   |
    | at a later generation                     | late news                                              |
    | suspended, at this generation             | late news: its pods are on their way out               |
    | suspended, at an earlier generation       | resumed; a slice asked for differently is rebuild_allowed  |
    | active                                    | the wants are confirmed                                |
    """
    workload = fact.workload
    if known is not None and _is_late(workload, known, WorkloadState.ACTIVE):
        return None
    specs = _specs(fact, settings)
    updates: dict[SliceId, SliceRecord] = {}
    demand: dict[SliceId, datetime | None] = dict(known.demand) if known else {}
    for each in demands(fact, settings.cluster, slices):
        id_ = slice_id(each.job)
        demand[id_] = now
        spec = specs(each)
        if id_ not in slices:
            updates[id_] = _asking(SliceRecord.of(each.job, now), spec)
        elif _asks_otherwise(slices[id_], spec):
            rebuild = _was_suspended_since(known, id_, workload.generation)
            updates[id_] = replace(_asking(slices[id_], spec), rebuild_allowed=rebuild, next_reconcile_at=now)
    record = _remember(workload, known, WorkloadState.ACTIVE, now, settings.cluster)
    return Demand(replace(record, demand=demand), updates)


def _specs(fact: SlicesWanted, settings: ClusterSettings) -> Callable[[SliceDemand], SliceSpec | Refusal]:
    requests = {request.replicated_job: request for request in fact.requests}
    chips = chips_requested(fact.requests)

    def spec(each: SliceDemand) -> SliceSpec | Refusal:
        request = requests[each.job.replicated_job]
        return spec_for(SliceRequest(job=each.job, request=request, leader=each.leader, jobset_chips=chips), settings)

    return spec


def changed(
    fact: WorkloadChanged | Answer, known: WorkloadRecord | None, now: datetime, cluster: ClusterId
) -> WorkloadRecord | None:
    """Say what a JobSet's new state changes; None when it is late news.

    A JobSet is remembered though it wants nothing yet: who asks why it waits is told, older wants are known for late
    news, and the audit counts the JobSets that the relay counts.
    """
    if known is not None and _is_late(fact.workload, known, fact.state):
        return None
    record = _remember(fact.workload, known, fact.state, now, cluster)
    return (
        replace(record, queue=fact.queue, template_error=fact.template_error)
        if isinstance(fact, WorkloadChanged)
        else record
    )


def counted(fact: HostsChanged, record: SliceRecord, now: datetime) -> SliceRecord | None:
    """Take in a count of hosts; None when it is of another attempt or older than what is known."""
    if fact.attempt != record.attempt or fact.sequence < record.hosts_sequence:
        return None
    if (fact.usable, fact.joined) == (record.hosts_usable, record.hosts_joined):
        return None
    return replace(
        record, hosts_usable=fact.usable, hosts_joined=fact.joined, hosts_sequence=fact.sequence, next_reconcile_at=now
    )


def with_current_desire(record: SliceRecord, workloads: Mapping[WorkloadUid, WorkloadRecord]) -> SliceRecord:
    """Give the record as the JobSets stand now: its desire, its last want, and occupants only where they live.

    A JobSet that we know nothing of lives: silence does not delete.
    """
    own = workloads.get(record.owner.uid)
    terminating = tuple(replace(left, occupants=_living(left.occupants, workloads)) for left in record.terminating)
    record = replace(record, terminating=terminating, occupants=_living(record.occupants, workloads))
    if record.release_requested:
        return replace(record, desire=Desire.ABSENT, desire_message="a person asked for its release")
    if own is None:
        return record
    desire = Desire.PRESENT if own.state is WorkloadState.ACTIVE else Desire.ABSENT
    return replace(
        record, desire=desire, desire_message=_DESIRE_MESSAGES[own.state], demand_confirmed_at=own.demand.get(record.id)
    )


def _is_late(workload: WorkloadRef, known: WorkloadRecord, state: WorkloadState) -> bool:
    if known.state.ended:
        return True
    if state.ended:
        return False
    if workload.generation == known.generation:
        return known.state is WorkloadState.SUSPENDED and state is WorkloadState.ACTIVE
    return workload.generation < known.generation


def _was_suspended_since(known: WorkloadRecord | None, slice_: SliceId, generation: int) -> bool:
    """Say whether the JobSet may have been suspended since the slice was last wanted, heard of or not.

    A template can only be changed while its JobSet is suspended, and suspending raises the generation.
    """
    if known is None:
        return False
    if known.state is WorkloadState.SUSPENDED or generation > known.generation:
        return True
    last = known.demand.get(slice_)
    return last is not None and last < known.state_since


def _remember(
    workload: WorkloadRef, known: WorkloadRecord | None, state: WorkloadState, now: datetime, cluster: ClusterId
) -> WorkloadRecord:
    same = known is not None and known.state is state and known.generation >= workload.generation
    return WorkloadRecord(
        cluster=cluster,
        owner=Owner(
            kind=OwnerKind.JOBSET, namespace=workload.owner.namespace, name=workload.owner.name, uid=workload.owner.uid
        ),
        state=state,
        generation=workload.generation if known is None else max(workload.generation, known.generation),
        resource_version=workload.resource_version,
        demand=known.demand if known else {},
        state_since=known.state_since if known is not None and same else now,
        last_seen_at=now,
        queue=known.queue if known else "",
        template_error=known.template_error if known else "",
        report=known.report if known else None,
        next_report_at=now,
        announced_at=known.announced_at if known else None,
        announced_count=known.announced_count if known else 0,
        next_reconcile_at=now,
        expire_at=now + TOMBSTONE_TTL if state.ended else None,
    )


def _asking(record: SliceRecord, spec: SliceSpec | Refusal) -> SliceRecord:
    if isinstance(spec, Refusal):
        return replace(record, refusal=spec)
    return replace(record, spec=spec, refusal=None)


def _asks_otherwise(record: SliceRecord, spec: SliceSpec | Refusal) -> bool:
    """Where no pool can exist, whatever is different counts; else only what the tenant asks for does."""
    if isinstance(spec, Refusal):
        return record.refusal != spec
    if record.refusal is not None or record.spec is None or record.create_requested_at is None:
        return record.refusal is not None or record.spec != spec
    return record.spec.fingerprint != spec.fingerprint


def _living(occupants: tuple[Occupant, ...], workloads: Mapping[WorkloadUid, WorkloadRecord]) -> tuple[Occupant, ...]:
    known = ((occupant, workloads.get(occupant.owner.uid)) for occupant in occupants)
    return tuple(occupant for occupant, workload in known if workload is None or workload.state is WorkloadState.ACTIVE)
