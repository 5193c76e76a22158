"""Records a fact from the relay, and requests a reconcile of the slices that it affects.

Whoever fails between the two has the fact delivered again, which requests the same: nothing is marked as not requested.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import assert_never

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import (
    Answer,
    DemandListed,
    Echo,
    Fact,
    Heartbeat,
    HostsChanged,
    HostsListed,
    SlicesWanted,
    WorkloadChanged,
    WorkloadsListed,
)
from tpu_slices.domain.model.records import SliceRecord
from tpu_slices.domain.model.slices import SLICES_PER_WORKLOAD, ClusterId, SliceId, slice_id
from tpu_slices.domain.reconciling import demand
from tpu_slices.domain.reconciling.inventory import with_heartbeat
from tpu_slices.flows.demand_list import demand_listed
from tpu_slices.flows.heartbeats import change_heartbeat
from tpu_slices.flows.hosts import hosts_changed, hosts_listed
from tpu_slices.flows.retrying import retry_on_conflict
from tpu_slices.flows.round_trip import echo_received
from tpu_slices.flows.workload_list import workloads_listed
from tpu_slices.ports.deps import IntakeDeps
from tpu_slices.ports.errors import Permanent
from tpu_slices.ports.store import Change


def receive(fact: Fact, cluster: ClusterId, deps: IntakeDeps, published_at: datetime | None = None) -> None:
    """Record a fact and request reconciles. Permanent: unknown cluster. Temporary: the message is redelivered.

    `published_at`: who waited then may not wait any more, and a relay that was heard then may be silent. None: now.
    """
    settings = deps.store.settings(cluster)
    if settings is None:
        raise Permanent(f'no settings for cluster "{cluster}": write clusters/{cluster}, or stop its relay')
    now = deps.clock.now()
    told_at = min(published_at or now, now)
    retry_on_conflict(lambda: _record(fact, told_at, settings, deps), deps.clock)


def _record(fact: Fact, told_at: datetime, settings: ClusterSettings, deps: IntakeDeps) -> None:
    match fact:
        case SlicesWanted():
            _slices_wanted(fact, told_at, settings, deps)
        case WorkloadChanged() | Answer():
            _changed(fact, settings.cluster, deps)
        case WorkloadsListed():
            workloads_listed(fact, settings.cluster, deps)
        case DemandListed():
            demand_listed(fact, told_at, settings, deps)
        case HostsChanged():
            hosts_changed(fact, settings.cluster, deps)
        case HostsListed():
            if hosts_listed(fact, settings.cluster, deps):
                change_heartbeat(lambda known, now: replace(known, hosts_confirmed_at=now), settings.cluster, deps)
        case Heartbeat():
            recorded = deps.store.hosts_digest(settings.cluster)
            change_heartbeat(lambda known, _: with_heartbeat(known, fact, recorded, told_at), settings.cluster, deps)
        case Echo():
            echo_received(fact, settings.cluster, deps)
        case _:
            assert_never(fact)


def _slices_wanted(fact: SlicesWanted, told_at: datetime, settings: ClusterSettings, deps: IntakeDeps) -> None:
    cluster, uid = settings.cluster, fact.workload.owner.uid
    known = deps.store.workloads(cluster, [uid]).get(uid)
    waiting = [slice_id(demand.job_of(cluster, fact.workload, leader)) for leader in demand.legitimate(fact)]
    slices = deps.store.slices(cluster, {*waiting, *(known.value.demand if known else ())})
    records = {id_: stored.value for id_, stored in slices.items()}
    change = demand.wanted(
        fact,
        known.value if known else None,
        records,
        told_at,
        settings,
    )
    if change is None:
        return
    if len(change.workload.demand) > SLICES_PER_WORKLOAD:
        raise Permanent(
            f"the {fact.workload.owner.kind} {fact.workload.owner.full_name} has more than {SLICES_PER_WORKLOAD} slices"
        )
    demanded = {*waiting, *(slice_id(each.job) for each in demand.demands(fact, cluster, records))}
    requests = {id_ for id_ in demanded if _has_news(id_, change, records)}
    changed = (each for each in change.slices.items() if each[0] not in slices.unreadable)
    deps.store.commit(Change(known, change.workload), *(Change(slices.get(id_), record) for id_, record in changed))
    deps.publisher.request_reconcile(cluster, sorted(requests))


def _has_news(id_: SliceId, change: demand.Demand, records: Mapping[SliceId, SliceRecord]) -> bool:
    """Return whether a waiting leader may change what is decided about a slice."""
    return id_ in change.slices or id_ not in records or not demand.in_progress(records[id_])


def _changed(fact: WorkloadChanged | Answer, cluster: ClusterId, deps: IntakeDeps) -> None:
    """Record a workload's state; one that is recorded already may come again because the requests were not sent."""
    known = deps.store.workloads(cluster, [fact.workload.owner.uid]).get(fact.workload.owner.uid)
    record = demand.changed(fact, known.value if known else None, deps.clock.now(), cluster)
    if record is not None:
        deps.store.commit(Change(known, record))
        deps.publisher.request_reconcile(cluster, sorted(record.demand))
    elif known is not None and demand.is_recorded(fact, known.value):
        deps.publisher.request_reconcile(cluster, sorted(known.value.demand))
