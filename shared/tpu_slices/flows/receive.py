"""Records a fact from the relay, and requests a reconcile of the slices that it affects.

Whoever fails between the two has the fact delivered again, which requests the same: nothing is marked as not requested.
Slices that are new are not requested again within half a minute: who reconciles them may be late. Then the sweep does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
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
from tpu_slices.domain.model.slices import SLICES_PER_WORKLOAD, ClaimId, ClusterId, claim_id, slice_id
from tpu_slices.domain.reconciling import demand
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.flows.hosts import hosts_changed
from tpu_slices.flows.lists import UNDER_WAY, heard, listed
from tpu_slices.flows.node_groups import declared_by, node_group_told
from tpu_slices.flows.outcomes import Reconciled
from tpu_slices.flows.retrying import retry_on_conflict
from tpu_slices.flows.round_trip import echo_received
from tpu_slices.ports.deps import IntakeDeps
from tpu_slices.ports.errors import Permanent
from tpu_slices.ports.store import Change, Found, Names, Stored, Together

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
            names = Names(settings=True, workloads=[owner.uid], claims=[declared_by(owner, cluster)])
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
            names = Names(settings=True, workloads=[workload.owner.uid], claims=_waiting(fact, cluster))
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


def _waiting(fact: SlicesWanted, cluster: ClusterId) -> list[ClaimId]:
    return [claim_id(demand.job_of(cluster, fact.workload, leader)) for leader in demand.legitimate(fact)]


def _slices_wanted(
    fact: SlicesWanted, told_at: datetime, settings: ClusterSettings, read: Together, deps: IntakeDeps
) -> None:
    cluster = settings.cluster
    known = read.workloads.get(fact.workload.owner.uid)
    fact = _without_outdated(fact, known.value if known else None, told_at, cluster, deps)
    waiting = _waiting(fact, cluster)
    named = {*waiting, *(known.value.demand if known else ())}
    slices, needed = _with_displaced(fact, read.having, named, cluster, deps)
    records = {id_: stored.value for id_, stored in slices.items()}
    change = demand.wanted(fact, known.value if known else None, records, told_at, settings)
    if change is None:
        return
    if len(change.workload.demand) > SLICES_PER_WORKLOAD:
        raise Permanent(
            f"the {fact.workload.owner.kind} {fact.workload.owner.full_name} has more than {SLICES_PER_WORKLOAD} slices"
        )
    demanded = {*waiting, *needed}
    now = deps.clock.now()
    requests = {id_ for id_ in demanded if _has_news(id_, change, records, now)}
    changed = (each for each in change.slices.items() if each[0] not in slices.unreadable)
    deps.store.commit(Change(known, change.workload), *(Change(slices.get(id_), record) for id_, record in changed))
    deps.publisher.request_reconcile(cluster, sorted(requests), fact.workload.owner.uid)


def _with_displaced(
    fact: SlicesWanted,
    slices: Found[ClaimId, SliceRecord],
    names: Collection[ClaimId],
    cluster: ClusterId,
    deps: IntakeDeps,
) -> tuple[Found[ClaimId, SliceRecord], set[ClaimId]]:
    """Return the slices of these names, with those that the leaders need, and the names of these; some are read.

    A leader whose slice a sibling took needs the one that the sibling left. The workload's record may not name that: it
    was found without a record, or the database was set back.
    """
    read = set(_waiting(fact, cluster))
    while True:
        records = {id_: stored.value for id_, stored in slices.items()}
        needed = {claim_id(each.job) for each in demand.demands(fact, cluster, records)}
        missing = {*names, *needed} - read
        if not missing:
            return slices, needed
        slices |= deps.store.having(cluster, missing)
        read |= missing


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


def _has_news(id_: ClaimId, change: demand.Demand, records: Mapping[ClaimId, SliceRecord], now: datetime) -> bool:
    """Return whether a waiting leader may change what is decided about a slice."""
    if id_ in change.slices or id_ not in records:
        return True
    record = records[id_]
    return record.claim.unawaited_since is not None or not demand.in_progress(record, now)


def _changed(
    fact: WorkloadChanged | Answer, known: Stored[WorkloadRecord] | None, cluster: ClusterId, deps: IntakeDeps
) -> None:
    """Record a workload's state; one that is recorded already may come again because the requests were not sent."""
    record = demand.changed(fact, known.value if known else None, deps.clock.now(), cluster)
    if record is not None:
        deps.store.commit(Change(known, record))
        deps.publisher.request_reconcile(cluster, sorted(record.demand))
    elif known is not None and demand.is_recorded(fact, known.value):
        deps.publisher.request_reconcile(cluster, sorted(known.value.demand))
