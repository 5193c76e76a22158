"""Records a fact from the relay, and requests a reconcile of the slices that it affects.

Whoever fails between the two has the fact delivered again, which requests the same: nothing is marked as not requested.
Slices that are new are not requested again within half a minute: who reconciles them may be late. Then the sweep does.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import assert_never

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import (
    Answer,
    Echo,
    Fact,
    Heartbeat,
    HostsChanged,
    Listed,
    SliceDeclared,
    SlicesWanted,
    WorkloadChanged,
)
from tpu_slices.domain.model.joining import JoinToken
from tpu_slices.domain.model.slices import SLICES_PER_WORKLOAD, ClaimId, ClusterId, WorkloadUid, claim_id, slice_id
from tpu_slices.domain.reconciling import demand
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.flows.capacity.ladders import has_ladder, step
from tpu_slices.flows.gangs.settling import Beside, Settled, saved, settled_with
from tpu_slices.flows.hosts import concerned, hosts_changed, with_free_name
from tpu_slices.flows.lists import UNDER_WAY, heard, listed
from tpu_slices.flows.node_groups import declared_by, node_group_told
from tpu_slices.flows.outcomes import Reconciled
from tpu_slices.flows.report import with_change_told
from tpu_slices.flows.retrying import retry_on_conflict
from tpu_slices.flows.round_trip import echo_received
from tpu_slices.ports.deps import IntakeDeps
from tpu_slices.ports.errors import Permanent, StaleRecord
from tpu_slices.ports.store import Change, Found, Names, Stored, Together

DELIVERED_AGAIN = timedelta(minutes=15)
"""Within which the message of a `receive` that was killed is delivered again, several times: infra/messaging.yaml has
the pauses of its subscription."""
_OfTheRelay = Listed | Echo | JoinToken


def receive(
    fact: Fact, cluster: ClusterId, deps: IntakeDeps, published_at: datetime | None = None
) -> Reconciled | None:
    """Record a fact and request reconciles. Permanent: unknown cluster. Temporary: the message is redelivered.

    Return what was decided with it: how many of a slice's hosts are there, or that it is READY.

    `published_at`: who waited then may not wait any more, and a relay that was heard then may be silent. None: now.
    """
    now = deps.clock.now()
    told_at = min(published_at or now, now)
    return retry_on_conflict(lambda: _record(fact, cluster, told_at, deps), deps.clock)


def _record(fact: Fact, cluster: ClusterId, told_at: datetime, deps: IntakeDeps) -> Reconciled | None:
    match fact:
        case SliceDeclared() | WorkloadChanged() | Answer() if fact.workload.owner.kind.declares:
            owner = fact.workload.owner
            names = Names(settings=True, workloads=[owner.uid], claims=[declared_by(owner, cluster)], claims_last=True)
            read = deps.store.together(cluster, names)
            node_group_told(fact, told_at, _check_known(cluster, read.settings), read, deps)
        case SliceDeclared(workload=workload):
            raise Permanent(f"workload.owner.kind: a {workload.owner.kind} declares no slice")
        case WorkloadChanged(workload=workload) | Answer(workload=workload):
            known = deps.store.workloads(cluster, [workload.owner.uid]).get(workload.owner.uid)
            if known is None:
                _check_known(cluster, deps.store.settings(cluster))
            _changed(fact, known, cluster, deps)
        case HostsChanged():
            id_ = slice_id(fact.slice_id, fact.attempt)
            stored = deps.store.slices(cluster, [id_]).get(id_)
            if stored is None:
                _check_known(cluster, deps.store.settings(cluster))
            return hosts_changed(fact, stored, cluster, deps)
        case Heartbeat():
            last = deps.store.heartbeat(cluster)
            if last is None:
                _check_known(cluster, deps.store.settings(cluster))
            heard(fact, last, told_at, cluster, deps)
        case SlicesWanted(workload=workload):
            of_gangs = any(each.gang for each in fact.requests)
            names = Names(settings=True, workloads=[workload.owner.uid], heartbeat=of_gangs)
            read = deps.store.together(cluster, names)
            _slices_wanted(fact, told_at, _check_known(cluster, read.settings), read, deps)
        case _:
            _check_known(cluster, deps.store.settings(cluster))
            _of_the_relay(fact, told_at, cluster, deps)
    return None


def _check_known(cluster: ClusterId, settings: ClusterSettings | None) -> ClusterSettings:
    """Return the settings; what is on record of a cluster needs none, since no stranger's fact is about it."""
    if settings is None:
        raise Permanent(f'no settings for cluster "{cluster}": write clusters/{cluster}, or stop its relay')
    return settings


def _of_the_relay(fact: _OfTheRelay, told_at: datetime, cluster: ClusterId, deps: IntakeDeps) -> None:
    """Record what a relay tells of everything that it sees."""
    match fact:
        case Listed():
            listed(fact, told_at, cluster, deps)
        case Echo():
            echo_received(fact, cluster, deps)
        case JoinToken():
            deps.publisher.request_join(cluster, fact)
        case _:
            assert_never(fact)


def _slices_wanted(
    fact: SlicesWanted,
    told_at: datetime,
    settings: ClusterSettings,
    read: Together,
    deps: IntakeDeps,
) -> None:
    """Record demand, and request reconciles where a waiting leader is news; the slices are read after the workload.

    So who guards the workload's record with what is read knows its claims. Where it asks is decided whenever it tells:
    whoever died after the demand was saved, and before that, is made up for.
    """
    cluster, owner = settings.cluster, fact.workload.owner
    known = read.workloads.get(owner.uid)
    workload = known.value if known else None
    fact = _without_outdated(fact, workload, told_at, cluster, deps)
    asked = demand.asked_by(fact, workload, settings)
    budget = deps.store.budget(cluster) if any(each.gang for each in fact.requests) else None
    slices = deps.store.having(cluster, asked.digests.keys() - asked.before)
    records = {claim: stored.value for claim, stored in slices.items()}
    change = demand.wanted(asked, records, told_at)
    if change is None:
        return
    if len(change.workload.demand) > SLICES_PER_WORKLOAD:
        raise Permanent(f"the {owner.kind} {owner.full_name} has more than {SLICES_PER_WORKLOAD} slices")
    records |= _hearing(owner.uid, asked.before, cluster, deps)
    now = deps.clock.now()
    news = {claim for claim, record in records.items() if _is_news(record, now)}
    change = replace(change, workload=with_change_told(workload, change.workload, deps))
    settled = Settled(change.workload, (), ())
    if change.workload.gangs and not slices.unreadable:
        settled = _with_gangs(change, Beside(settings, read.heartbeat, budget), deps)
    _save(replace(change, workload=settled.workload), known, slices, settled.line, deps)
    moved = step(cluster, owner.uid, deps) if has_ladder(fact, settings) else ()
    told = sorted({*change.slices, *slices.unreadable, *news, *saved(settled, settings, deps), *moved})
    deps.publisher.request_reconcile(cluster, told, owner.uid)


def _with_gangs(change: demand.Demand, beside: Beside, deps: IntakeDeps) -> Settled:
    """Return how the gangs of a workload are with what is changed of it; those stay of which some cannot be read."""
    workload = change.workload
    others = deps.store.having(workload.cluster, workload.demand.keys() - change.slices.keys())
    if others.unreadable:
        return Settled(workload, (), ())
    slices = [*change.slices.values(), *(each.value for each in others.values())]
    return settled_with(workload, slices, beside, deps)


def _hearing(
    workload: WorkloadUid, claims: Collection[ClaimId], cluster: ClusterId, deps: IntakeDeps
) -> dict[ClaimId, SliceRecord]:
    """Return the slices of those of the claims that hear of it when a leader waits, read at no more than twice as many.

    All of the workload's that hear are read; if these are more than the claims, the slices of the claims instead.
    """
    if not claims:
        return {}
    heard = deps.store.hearing(cluster, workload, len(claims) + 1)
    found = {each.value.last_claim: each.value for each in heard}
    if len(heard) > len(claims):
        found = {claim: each.value for claim, each in deps.store.having(cluster, claims).items()}
    return {claim: record for claim, record in found.items() if claim in claims}


def _save(
    change: demand.Demand,
    known: Stored[WorkloadRecord] | None,
    slices: Found[ClaimId, SliceRecord],
    line: Sequence[Change],
    deps: IntakeDeps,
) -> None:
    """Write the workload, its slices and the line of the gangs; new slices under names that nothing has.

    A slice that was made for a claim without a record may still be on record: another claim has it, or this one was
    forgotten.
    """
    changed = {claim: record for claim, record in change.slices.items() if claim not in slices.unreadable}
    planned = {claim: it for claim, it in change.workload.asked.items() if claim not in slices.unreadable}
    rest = [Change(known, replace(change.workload, asked=planned)), *line]
    rest += [Change(slices[claim], record) for claim, record in changed.items() if claim in slices]
    new = [record for claim, record in changed.items() if claim not in slices]
    try:
        deps.store.commit(*rest, *(Change(None, record) for record in new))
    except StaleRecord:
        free = [with_free_name(record, deps) for record in new]
        if free == new:
            raise
        deps.store.commit(*rest, *(Change(None, record) for record in free))


def _without_outdated(
    fact: SlicesWanted, known: WorkloadRecord | None, told_at: datetime, cluster: ClusterId, deps: IntakeDeps
) -> SlicesWanted:
    """Return a fact that comes late without the leaders that were not in demand when all demand was confirmed since.

    If a leader waits nevertheless, the digests differ, and the relay tells its demand again.
    """
    if deps.clock.now() - told_at <= UNDER_WAY:
        return fact
    heartbeat = deps.store.heartbeat(cluster)
    confirmed_at = heartbeat.value.demand_confirmed_at if heartbeat is not None else None
    if confirmed_at is None or confirmed_at - told_at <= UNDER_WAY:
        return fact
    awaited = set(known.in_demand) if known is not None else set[ClaimId]()
    still = (each for each in fact.waiting if claim_id(demand.job_of(cluster, fact.workload, each)) in awaited)
    return replace(fact, waiting=tuple(still))


def _is_news(record: SliceRecord, now: datetime) -> bool:
    """Return whether it may change what is decided about a slice that a leader waits."""
    return record.claim.unawaited_since is not None or not demand.in_progress(record, now)


def _changed(
    fact: WorkloadChanged | Answer, known: Stored[WorkloadRecord] | None, cluster: ClusterId, deps: IntakeDeps
) -> None:
    """Record a workload's state; one that is recorded already may come again because the requests were not sent.

    Later than that it is repeated since hosts of the workload's are being closed: that concerns none of its others.
    """
    now = deps.clock.now()
    if known is not None and demand.is_recorded(fact, known.value):
        if now - known.value.state_since <= DELIVERED_AGAIN:
            deps.publisher.request_reconcile(cluster, sorted(concerned(known.value, deps)))
        return
    record = demand.changed(fact, known.value if known else None, now, cluster)
    if record is not None:
        record = with_change_told(known.value if known else None, record, deps)
        deps.store.commit(Change(known, record))
        deps.publisher.request_reconcile(cluster, sorted(concerned(record, deps)))
