"""Derives the demand for slices from the relay's facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tpu_slices.domain.capacity.places import planned as planned_at
from tpu_slices.domain.capacity.places import with_place
from tpu_slices.domain.gangs.told import with_gangs_told
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import (
    Answer,
    Reach,
    SliceDeclared,
    SlicesWanted,
    WaitingLeader,
    WorkloadChanged,
    WorkloadRef,
    WorkloadState,
)
from tpu_slices.domain.model.reasons import IN_LINE, LIMITED, Phase, Reason
from tpu_slices.domain.model.slices import ClaimId, ClusterId, OwnerKind, SliceSpec, WorkloadJob, claim_id
from tpu_slices.domain.model.texts import digest
from tpu_slices.domain.planning.node_groups import declared_slice
from tpu_slices.domain.planning.sharing import sharing, slices_of
from tpu_slices.domain.planning.specs import SliceRequest, chips_requested
from tpu_slices.domain.records.claims import Refusal
from tpu_slices.domain.records.slices import Desire, SliceRecord
from tpu_slices.domain.records.workloads import RELEASE_LASTS, WorkloadRecord, texts_of

TOMBSTONE_TTL = timedelta(days=40)
"""How long the record of an ended JobSet is kept: longer than Pub/Sub can keep a message (31 days)."""

_IN_PROGRESS = frozenset(
    {*IN_LINE, Reason.CREATION_STARTED, Reason.CREATING, Reason.AWAITING_FLEX_START, Reason.AWAITING_CAPACITY}
)
_MOMENTS = timedelta(seconds=30)
"""How long a slice that was just requested may take to be looked at first."""

_DESIRE_MESSAGES: Mapping[WorkloadState, str] = {
    WorkloadState.ACTIVE: "is active",
    WorkloadState.SUSPENDED: "is suspended",
    WorkloadState.COMPLETED: "completed",
    WorkloadState.FAILED: "failed",
    WorkloadState.DELETED: "was deleted",
    WorkloadState.MISSING: "no longer exists",
}


@dataclass(frozen=True, slots=True)
class Demand:
    """What a fact changes: the JobSet's record, and the records of slices that are new or whose request changed."""

    workload: WorkloadRecord
    slices: Mapping[ClaimId, SliceRecord]


def job_of(cluster: ClusterId, workload: WorkloadRef, leader: WaitingLeader) -> WorkloadJob:
    return WorkloadJob(
        cluster=cluster,
        owner=workload.owner,
        replicated_job=leader.replicated_job,
        job_index=leader.job_index,
    )


def legitimate(fact: SlicesWanted) -> tuple[WaitingLeader, ...]:
    """Return the waiting leaders that the JobSet's spec provides for, so that a forged pod cannot request more."""
    slices = {request.replicated_job: slices_of(request) for request in fact.requests}
    return tuple(leader for leader in fact.waiting if 0 <= leader.job_index < slices.get(leader.replicated_job, 0))


def demands(fact: SlicesWanted, settings: ClusterSettings) -> tuple[SliceRequest, ...]:
    """Return what the waiting leaders demand, each for its own Job."""
    requests = {request.replicated_job: request for request in fact.requests}
    chips = chips_requested(fact.requests, settings.accelerators)
    return tuple(
        SliceRequest(
            job=job_of(settings.cluster, fact.workload, leader),
            request=requests[leader.replicated_job],
            leader=leader,
            jobset_chips=chips,
        )
        for leader in legitimate(fact)
    )


@dataclass(frozen=True, slots=True)
class Asked:
    """What the leaders of a fact ask for, beside what is known of their JobSet."""

    fact: SlicesWanted
    known: WorkloadRecord | None
    settings: ClusterSettings
    digests: Mapping[ClaimId, int]
    """Of what each asks for, and of the settings by which a slice for it is planned."""
    before: frozenset[ClaimId]
    """The claims that ask for what they asked for last, so that their slices are planned for that already."""


def asked_by(fact: SlicesWanted, known: WorkloadRecord | None, settings: ClusterSettings) -> Asked:
    """Return what the leaders of a fact ask for, and of which claims that is no news."""
    requests = {each.replicated_job: repr(each) for each in fact.requests}
    beside = f"{settings.version} {chips_requested(fact.requests, settings.accelerators)}"
    digests = {
        claim_id(job_of(settings.cluster, fact.workload, leader)): digest(
            f"{beside} {requests[leader.replicated_job]} {leader}"
        )
        for leader in legitimate(fact)
    }
    last = known.asked if known is not None else {}
    before = frozenset(claim for claim, asked in digests.items() if last.get(claim) == asked)
    return Asked(fact, known, settings, digests, before)


def wanted(asked: Asked, slices: Mapping[ClaimId, SliceRecord], now: datetime) -> Demand | None:
    """Return what leaders that waited at `now` change, or None if the fact is outdated.

    `slices`: those of their claims, but for those that ask as before.

    | known JobSet                              | outcome                                                        |
    |-------------------------------------------|----------------------------------------------------------------|
    | none                                      | recorded, with demand for its slices                           |
    | ended                                     | outdated: an end is final for a UID                            |
    | at a later generation                     | outdated                                                       |
    | suspended, at this generation             | outdated: its pods are terminating; unless it is of a Kueue    |
    |                                           | queue, and this was told later: then it has quota since        |
    | suspended, at an earlier generation       | resumed; a slice whose request changed is `rebuild_allowed`    |
    | active                                    | the demand is confirmed                                        |
    | - and a leader asks as before             | nothing else                                                   |
    | - and a later fact told of the leader     | nothing of what that said                                      |
    | - of a LeaderWorkerSet                    | also: a slice whose request changed is `rebuild_allowed`       |
    """
    fact, known, settings, workload = asked.fact, asked.known, asked.settings, asked.fact.workload
    if known is not None and _is_late(workload, known, WorkloadState.ACTIVE):
        return None
    updates: dict[ClaimId, SliceRecord] = {}
    demand: dict[ClaimId, datetime | None] = dict(known.demand) if known else {}
    reach = dict(known.reach) if known else {}
    planned = dict(known.asked) if known else {}
    for each in demands(fact, settings):
        id_ = claim_id(each.job)
        demand[id_] = told_at = max(now, demand.get(id_) or now)
        is_late = told_at > now and id_ in slices  # a later fact says what the leader is now
        if id_ in asked.before or is_late:
            continue
        planned[id_] = asked.digests[id_]
        reach[id_] = each.leader.reach
        spec = planned_at(each, slices.get(id_), known, settings)
        if id_ not in slices:
            updates[id_] = _with_request(SliceRecord.of(each.job, now), spec).with_claim(awaited_since=now)
        elif _request_changed(slices[id_], spec):
            rebuild = _is_edited_as_it_runs(workload) or _was_suspended_since(known, slices[id_], workload.generation)
            edited = _with_request(slices[id_], spec).with_claim(rebuild_allowed=rebuild)
            updates[id_] = replace(edited, next_reconcile_at=now)
        elif (with_pods := _with_pods(slices[id_], spec)) is not slices[id_]:
            updates[id_] = replace(with_pods, next_reconcile_at=now)
        if not isinstance(spec, Refusal) and (updates.get(id_) or slices[id_]).spec != spec:
            del planned[id_]  # a pool may exist as it was planned before
    record = _updated(workload, known, WorkloadState.ACTIVE, now, settings.cluster)
    beyond = {id_: it for id_, it in reach.items() if it is not Reach.OWN}
    record = record.with_recorded([id_ for id_ in updates if id_ not in slices])
    record = replace(record, demand=demand, reach=beyond, asked=planned, sharing=sharing(fact.requests))
    return Demand(with_gangs_told(record, known, fact, settings.accelerators, now), updates)


def changed(
    fact: WorkloadChanged | Answer, known: WorkloadRecord | None, now: datetime, cluster: ClusterId
) -> WorkloadRecord | None:
    """Return the JobSet's record in its new state, or None if the fact is outdated.

    A JobSet is recorded before it has any demand: so it can be explained why it waits, older demand is recognised as
    outdated, and the inventory check counts the same JobSets as the relay.
    """
    if known is not None and _is_late(fact.workload, known, fact.state):
        return None
    record = _updated(fact.workload, known, _proven(fact, known), now, cluster)
    if not isinstance(fact, WorkloadChanged):
        return record
    queue, error, notify, unserved = texts_of(fact)
    return replace(record, queue=queue, template_error=error, notify=notify, unserved=unserved)


def declared(
    fact: SliceDeclared | WorkloadChanged | Answer,
    known: WorkloadRecord | None,
    record: SliceRecord | None,
    now: datetime,
    settings: ClusterSettings,
) -> Demand | None:
    """Return what a fact about a TPUNodeGroup changes, or None if it is outdated.

    | fact                    | its slice's record                                                          |
    |-------------------------|-----------------------------------------------------------------------------|
    | it is there             | has what it declares; a change of that is never rebuilt under whoever runs  |
    | it cannot be parsed     | is refused for that                                                         |
    | it is over              | is there, so that GONE can be told, however little was known of the group   |
    """
    workload = _declaring(fact, known, now, settings.cluster)
    if workload is None:
        return None
    job = WorkloadJob.declared(settings.cluster, fact.workload.owner)
    before = record or SliceRecord.of(job, now).with_claim(awaited_since=now if workload.live else None)
    after = before
    if (spec := _declared_spec(fact, job, settings)) is not None and _request_changed(before, spec):
        after = replace(_with_request(before, spec), next_reconcile_at=now)
    updates = {} if after == record else {after.last_claim: after}
    new = [] if record is not None else [after.last_claim]
    return Demand(replace(workload, demand={after.last_claim: None}).with_recorded(new), updates)


def _declaring(
    fact: SliceDeclared | WorkloadChanged | Answer, known: WorkloadRecord | None, now: datetime, cluster: ClusterId
) -> WorkloadRecord | None:
    """Return the record of a TPUNodeGroup after a fact, None if that is outdated; an end may be told again."""
    if not isinstance(fact, SliceDeclared):
        return changed(fact, known, now, cluster) or (known if fact.state.ended else None)
    if known is not None and _is_late(fact.workload, known, WorkloadState.ACTIVE):
        return None
    return replace(_updated(fact.workload, known, WorkloadState.ACTIVE, now, cluster), template_error="")


def _declared_spec(
    fact: SliceDeclared | WorkloadChanged | Answer, job: WorkloadJob, settings: ClusterSettings
) -> SliceSpec | Refusal | None:
    """Return the spec of what a TPUNodeGroup declares, why it has none, or None if the fact does not say."""
    match fact:
        case SliceDeclared(group=group):
            return declared_slice(group, job, settings)
        case WorkloadChanged(template_error=str(error)) if error:
            return Refusal(reason=Reason.DOES_NOT_FIT, message=f"{error}.")
        case _:
            return None


def _proven(fact: WorkloadChanged | Answer, known: WorkloadRecord | None) -> WorkloadState:
    """Return the state that a fact proves.

    Every change of an object gives it a higher resourceVersion, its deletion too. A deletion at one that is not beyond
    what is on record is not the API server's word about that object: a relay erred, or the server lost what came since.
    """
    if fact.state is not WorkloadState.DELETED or known is None:
        return fact.state
    deleted_at, last = fact.workload.resource_version, known.resource_version or "0"
    beyond = deleted_at.isdecimal() and last.isdecimal() and int(deleted_at) > int(last)
    return WorkloadState.DELETED if beyond else WorkloadState.MISSING


def is_recorded(fact: WorkloadChanged | Answer, known: WorkloadRecord) -> bool:
    """Return whether the record rests on this state of the workload, and has all that the fact says."""
    told, unproven = fact.workload, (WorkloadState.DELETED, WorkloadState.MISSING)
    if isinstance(fact, WorkloadChanged) and texts_of(fact) != texts_of(known):
        return False
    same = fact.state is known.state or (fact.state, known.state) == unproven
    said = (told.generation, told.resource_version, told.groups)
    return same and said == (known.generation, known.resource_version, known.groups)


def with_current_desire(
    record: SliceRecord, own: WorkloadRecord | None, listed_at: datetime | None = None
) -> SliceRecord:
    """Return the record with its current desire and demand; without a record of its JobSet they stay.

    `listed_at`: when a list last confirmed all demand on record.
    """
    if record.unclaimed:
        return record
    if record.release_requested:
        message = "an operator requested its release"
        return replace(record, desire=Desire.ABSENT, desire_message=message).with_claim(awaited_since=None)
    if own is None:
        return record
    active, has = own.state is WorkloadState.ACTIVE, own.has(record.replicated_job, record.job_index)
    message = f"the {own.owner.kind} {_DESIRE_MESSAGES[own.state]}"
    elsewhere = "and its Jobs share the first one's slice" if own.groups is None else f"scaled to {own.groups}"
    confirmed_at = own.demand_confirmed_at(record.last_claim, listed_at)
    awaited_since = (
        record.claim.awaited_since if record.wanted else max(confirmed_at or own.state_since, own.state_since)
    )
    placed = with_place(record, own) if active and has else record
    return placed.with_changes(
        desire=Desire.PRESENT if active and has else Desire.ABSENT,
        desire_message=message if has or not active else f"{message}, {elsewhere}",
    ).with_claim(
        demand_confirmed_at=confirmed_at,
        awaited_since=awaited_since if active and has else None,
        rejection=placed.claim.rejection_at(own.edition),
    )


def is_overtaken(record: SliceRecord, own: WorkloadRecord) -> bool:
    """Return whether a slice was last looked at for a need that is not there now, and nobody will look at it again.

    It was needed, or was not, and is otherwise now; or it is in line, or refused for a limit of chips, although no
    leader is known to wait for it.
    """
    if record.next_reconcile_at is not None:
        return False
    waits = record.reason in IN_LINE or record.reason in LIMITED
    forgotten = waits and own.demand.get(record.last_claim) is None and not own.owner.kind.declares
    return forgotten or with_current_desire(record, own).desire is not record.desire


def in_progress(record: SliceRecord, now: datetime) -> bool:
    """Return whether a slice only waits for a slot, for its next attempt or for its pool, or was requested just now.

    What ends that requests a reconcile, or else the sweep does; demand that is confirmed again changes nothing.
    """
    just_now = record.reason is Reason.REQUESTED and record.created_at <= now < record.created_at + _MOMENTS
    awaits = just_now or record.phase is Phase.WAITING or record.reason in _IN_PROGRESS
    due = record.next_reconcile_at is not None or record.reason in IN_LINE
    return awaits and record.wanted and due


def _is_late(workload: WorkloadRef, known: WorkloadRecord, state: WorkloadState) -> bool:
    """Return whether a later fact is on record: of one in a Kueue queue, its time orders those of one generation."""
    if known.state.ended:
        return True
    if state.ended or workload.generation != known.generation:
        return not state.ended and workload.generation < known.generation
    if workload.as_of is not None and known.as_of is not None:
        return workload.as_of < known.as_of
    return known.state is WorkloadState.SUSPENDED and state is WorkloadState.ACTIVE


def _is_edited_as_it_runs(workload: WorkloadRef) -> bool:
    """Return whether templates may change while it runs: a leader that waits for another shape is of the new one."""
    return workload.owner.kind is OwnerKind.LEADER_WORKER_SET


def _was_suspended_since(known: WorkloadRecord | None, record: SliceRecord, generation: int) -> bool:
    """Return whether the JobSet may have been suspended since the demand for the slice was last confirmed.

    The suspension need not have been reported: a template can only be changed while its JobSet is suspended, and
    suspending it increases the generation. Demand that nobody confirmed since its Job came to hosts is as old as these.
    """
    if known is None:
        return False
    if known.state is WorkloadState.SUSPENDED or generation > known.generation:
        return True
    last = known.demand.get(record.last_claim) or record.current.create_requested_at
    return last is not None and last < known.state_since


def _updated(
    workload: WorkloadRef, known: WorkloadRecord | None, state: WorkloadState, now: datetime, cluster: ClusterId
) -> WorkloadRecord:
    before = known or replace(WorkloadRecord.of(cluster, workload, now), state=state)
    same = before.state is state and before.generation >= workload.generation
    return replace(
        before,
        owner=workload.owner,
        state=state,
        generation=max(workload.generation, before.generation),
        edited=before.edited_by(workload),
        resource_version=workload.resource_version,
        as_of=workload.as_of if workload.as_of is not None else before.as_of,
        groups=workload.groups if workload.generation >= before.generation else before.groups,
        gangs=before.gangs if state is WorkloadState.ACTIVE else {},
        ladders=before.ladders if state is WorkloadState.ACTIVE else {},
        state_since=before.state_since if same else now,
        last_seen_at=now,
        next_report_at=now + RELEASE_LASTS if state.ended and before.demand else now,
        expire_at=now + TOMBSTONE_TTL if state.ended else None,
    )


def _with_request(record: SliceRecord, spec: SliceSpec | Refusal) -> SliceRecord:
    if isinstance(spec, Refusal):
        return record.with_claim(refusal=spec)
    same = record.spec is not None and record.spec.fingerprint == spec.fingerprint
    kept = record.claim if same else record.claim.with_changes(rejection=None)
    return replace(record, spec=spec, claim=kept.with_changes(refusal=None))


def _with_pods(record: SliceRecord, spec: SliceSpec | Refusal) -> SliceRecord:
    """Return the record of the same request with what its pods turn out to be: their key, and whether they scatter."""
    if isinstance(spec, Refusal) or record.spec is None:
        return record
    return record.with_changes(spec=replace(record.spec, key=spec.key, scatters=spec.scatters))


def _request_changed(record: SliceRecord, spec: SliceSpec | Refusal) -> bool:
    """Return whether the spec differs; once a pool may exist, only changes of the tenant's request count."""
    if isinstance(spec, Refusal):
        return record.claim.refusal != spec
    if record.claim.refusal is not None or record.spec is None or record.current.create_requested_at is None:
        return record.claim.refusal is not None or record.spec != spec
    return record.spec.fingerprint != spec.fingerprint
