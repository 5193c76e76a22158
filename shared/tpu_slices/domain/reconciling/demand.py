"""From what is reported to what is wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import (
    Answer,
    HostsChanged,
    JobSetChanged,
    JobSetRef,
    JobSetState,
    Occupant,
    SlicesWanted,
    WaitingLeader,
)
from tpu_slices.domain.model.records import Desire, SliceRecord, Verdict
from tpu_slices.domain.model.slices import ClusterId, JobRef, JobSetUid, SliceId, SliceSpec, slice_id
from tpu_slices.domain.model.workloads import JobSetRecord
from tpu_slices.domain.planning.specs import Asked, chips_asked_for, spec_for

TOMBSTONE_TTL = timedelta(days=40)
"""How long an ended JobSet is remembered: longer than Pub/Sub can keep a message (31 days)."""

_BECAUSE: Mapping[JobSetState, str] = {
    JobSetState.ACTIVE: "the JobSet wants it",
    JobSetState.SUSPENDED: "the JobSet is suspended",
    JobSetState.COMPLETED: "the JobSet completed",
    JobSetState.FAILED: "the JobSet failed",
    JobSetState.DELETED: "the JobSet was deleted",
    JobSetState.MISSING: "the JobSet is gone",
}


@dataclass(frozen=True, slots=True)
class Demand:
    """What a fact changes: the JobSet's record, the slices' records that are new or asked for differently."""

    jobset: JobSetRecord
    slices: Mapping[SliceId, SliceRecord]


def job_of(cluster: ClusterId, jobset: JobSetRef, leader: WaitingLeader) -> JobRef:
    return JobRef(
        cluster=cluster,
        namespace=jobset.namespace,
        jobset=jobset.name,
        uid=jobset.uid,
        replicated_job=leader.replicated_job,
        index=leader.job_index,
    )


def legitimate(fact: SlicesWanted) -> tuple[WaitingLeader, ...]:
    """Give the leaders that the JobSet's own template asks for: a forged pod can only ask for what its JobSet asks."""
    replicas = {request.replicated_job: request.replicas for request in fact.requests}
    return tuple(leader for leader in fact.waiting if 0 <= leader.job_index < replicas.get(leader.replicated_job, 0))


@dataclass(frozen=True, slots=True)
class Claim:
    """A waiting leader, and the Job whose slice it needs."""

    leader: WaitingLeader
    job: JobRef


def claims(fact: SlicesWanted, cluster: ClusterId, slices: Mapping[SliceId, SliceRecord]) -> tuple[Claim, ...]:
    """Give what the waiting leaders need.

    A leader may be scheduled to a slice that was made for another Job of its JobSet. Who then waits in vain for its
    own slice needs the one that the taker left to be made.
    """
    own = (Claim(leader, job_of(cluster, fact.jobset, leader)) for leader in legitimate(fact))
    return tuple(replace(claim, job=_left_by_takers(claim.job, fact, slices)) for claim in own)


def _left_by_takers(job: JobRef, fact: SlicesWanted, slices: Mapping[SliceId, SliceRecord]) -> JobRef:
    passed: set[JobRef] = set()
    while job not in passed and (taker := _taker(job, fact, slices.get(slice_id(job)))) is not None:
        passed.add(job)
        job = taker
    return job


def _taker(job: JobRef, fact: SlicesWanted, record: SliceRecord | None) -> JobRef | None:
    """Give the other Job of the same JobSet whose leader is on a Job's slice."""
    occupant = record.occupant if record else None
    if occupant is None or occupant.jobset_uid != job.uid or occupant.job == job.job_name:
        return None
    for request in fact.requests:
        index = occupant.job.removeprefix(f"{job.jobset}-{request.replicated_job}-")
        if index.isdecimal() and int(index) < request.replicas:
            return replace(job, replicated_job=request.replicated_job, index=int(index))
    return None


def wanted(
    fact: SlicesWanted,
    known: JobSetRecord | None,
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
    | suspended, at an earlier generation       | resumed; a slice asked for differently is respecified  |
    | active                                    | the wants are confirmed                                |
    """
    jobset = fact.jobset
    if known is not None and _is_late(jobset, known, JobSetState.ACTIVE):
        return None
    specs = _specs(fact, settings)
    updates: dict[SliceId, SliceRecord] = {}
    wants: dict[SliceId, datetime | None] = dict(known.wants) if known else {}
    for claim in claims(fact, settings.cluster, slices):
        id_ = slice_id(claim.job)
        wants[id_] = now
        spec = specs(claim)
        if id_ not in slices:
            updates[id_] = _asking(_new_slice(claim.job, now), spec)
        elif _asks_otherwise(slices[id_], spec):
            rebuild = _was_suspended_since(known, id_, jobset.generation)
            updates[id_] = replace(_asking(slices[id_], spec), respecified=rebuild, due_at=now)
    record = _remember(jobset, known, JobSetState.ACTIVE, now, settings.cluster)
    return Demand(replace(record, wants=wants), updates)


def _specs(fact: SlicesWanted, settings: ClusterSettings) -> Callable[[Claim], SliceSpec | Verdict]:
    requests = {request.replicated_job: request for request in fact.requests}
    chips = chips_asked_for(fact.requests)

    def spec(claim: Claim) -> SliceSpec | Verdict:
        request = requests[claim.job.replicated_job]
        return spec_for(Asked(job=claim.job, request=request, leader=claim.leader, jobset_chips=chips), settings)

    return spec


def changed(
    fact: JobSetChanged | Answer, known: JobSetRecord | None, now: datetime, cluster: ClusterId
) -> JobSetRecord | None:
    """Say what a JobSet's new state changes; None when it is late news.

    A JobSet is remembered though it wants nothing yet: who asks why it waits is told, older wants are known for late
    news, and the audit counts the JobSets that the relay counts.
    """
    if known is not None and _is_late(fact.jobset, known, fact.state):
        return None
    record = _remember(fact.jobset, known, fact.state, now, cluster)
    return replace(record, queue=fact.queue, fault=fact.fault) if isinstance(fact, JobSetChanged) else record


def counted(fact: HostsChanged, record: SliceRecord, now: datetime) -> SliceRecord | None:
    """Take in a count of hosts; None when it is of another attempt or older than what is known."""
    if fact.attempt != record.attempt or fact.sequence < record.hosts_sequence:
        return None
    if (fact.usable, fact.joined) == (record.hosts_usable, record.hosts_joined):
        return None
    return replace(record, hosts_usable=fact.usable, hosts_joined=fact.joined, hosts_sequence=fact.sequence, due_at=now)


def standing(record: SliceRecord, jobsets: Mapping[JobSetUid, JobSetRecord]) -> SliceRecord:
    """Give the record as the JobSets stand now: its desire, its last want, and occupants only where they live.

    A JobSet that we know nothing of lives: silence does not delete.
    """
    own = jobsets.get(record.job.uid)
    leaving = tuple(replace(left, occupant=_living(left.occupant, jobsets)) for left in record.leaving)
    record = replace(record, leaving=leaving, occupant=_living(record.occupant, jobsets))
    if record.release_requested:
        return replace(record, desire=Desire.ABSENT, desire_because="a person asked for its release")
    if own is None:
        return record
    desire = Desire.PRESENT if own.state is JobSetState.ACTIVE else Desire.ABSENT
    return replace(record, desire=desire, desire_because=_BECAUSE[own.state], wanted_at=own.wants.get(record.id))


def _is_late(jobset: JobSetRef, known: JobSetRecord, state: JobSetState) -> bool:
    if known.state.ended:
        return True
    if state.ended:
        return False
    if jobset.generation == known.generation:
        return known.state is JobSetState.SUSPENDED and state is JobSetState.ACTIVE
    return jobset.generation < known.generation


def _was_suspended_since(known: JobSetRecord | None, slice_: SliceId, generation: int) -> bool:
    """Say whether the JobSet may have been suspended since the slice was last wanted, heard of or not.

    A template can only be changed while its JobSet is suspended, and suspending raises the generation.
    """
    if known is None:
        return False
    if known.state is JobSetState.SUSPENDED or generation > known.generation:
        return True
    last = known.wants.get(slice_)
    return last is not None and last < known.state_since


def _remember(
    jobset: JobSetRef, known: JobSetRecord | None, state: JobSetState, now: datetime, cluster: ClusterId
) -> JobSetRecord:
    same = known is not None and known.state is state and known.generation >= jobset.generation
    return JobSetRecord(
        cluster=cluster,
        uid=jobset.uid,
        namespace=jobset.namespace,
        name=jobset.name,
        state=state,
        generation=jobset.generation if known is None else max(jobset.generation, known.generation),
        resource_version=jobset.resource_version,
        wants=known.wants if known else {},
        state_since=known.state_since if known is not None and same else now,
        seen_at=now,
        queue=known.queue if known else "",
        fault=known.fault if known else "",
        report=known.report if known else None,
        report_due_at=now,
        reported_at=known.reported_at if known else None,
        times_told=known.times_told if known else 0,
        due_at=now,
        expire_at=now + TOMBSTONE_TTL if state.ended else None,
    )


def _new_slice(job: JobRef, now: datetime) -> SliceRecord:
    return SliceRecord(id=slice_id(job), job=job, spec=None, since=now, created_at=now, due_at=now)


def _asking(record: SliceRecord, spec: SliceSpec | Verdict) -> SliceRecord:
    if isinstance(spec, Verdict):
        return replace(record, verdict=spec)
    return replace(record, spec=spec, verdict=None)


def _asks_otherwise(record: SliceRecord, spec: SliceSpec | Verdict) -> bool:
    """Where no pool can exist, whatever is different counts; else only what the tenant asks for does."""
    if isinstance(spec, Verdict):
        return record.verdict != spec
    if record.verdict is not None or record.spec is None or record.ordered_at is None:
        return record.verdict is not None or record.spec != spec
    return record.spec.fingerprint != spec.fingerprint


def _living(occupant: Occupant | None, jobsets: Mapping[JobSetUid, JobSetRecord]) -> Occupant | None:
    if occupant is None:
        return None
    jobset = jobsets.get(occupant.jobset_uid)
    return occupant if jobset is None or jobset.state is JobSetState.ACTIVE else None
