"""Records a fact from the relay, and requests a reconcile of the slices that it affects."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import assert_never

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import (
    Answer,
    Fact,
    Heartbeat,
    HostsChanged,
    LeaderBound,
    SlicesWanted,
    WorkloadChanged,
)
from tpu_slices.domain.model.slices import ClusterId, SliceId, WorkloadUid, slice_id
from tpu_slices.domain.model.workloads import WorkloadRecord
from tpu_slices.domain.reconciling import demand, occupancy
from tpu_slices.domain.reconciling.inventory import with_heartbeat
from tpu_slices.flows.next_reconcile import clear
from tpu_slices.flows.retrying import retry_on_conflict
from tpu_slices.ports.deps import IntakeDeps
from tpu_slices.ports.errors import Permanent, StaleRecord
from tpu_slices.ports.store import Change, Stored


def receive(fact: Fact, cluster: ClusterId, deps: IntakeDeps) -> None:
    """Record a fact and request reconciles. Permanent: unknown cluster. Temporary: the message is redelivered."""
    settings = deps.store.settings(cluster)
    if settings is None:
        raise Permanent(f'no settings for cluster "{cluster}": write clusters/{cluster}, or stop its relay')
    retry_on_conflict(lambda: _record(fact, settings, deps), deps.clock)


def _record(fact: Fact, settings: ClusterSettings, deps: IntakeDeps) -> None:
    match fact:
        case SlicesWanted():
            _slices_wanted(fact, settings, deps)
        case WorkloadChanged() | Answer():
            _changed(fact, settings.cluster, deps)
        case HostsChanged() | LeaderBound():
            _about_a_slice(fact, settings.cluster, deps)
        case Heartbeat():
            heartbeat = deps.store.heartbeat(settings.cluster)
            known = heartbeat.value if heartbeat else None
            deps.store.commit(Change(heartbeat, with_heartbeat(known, fact, settings.cluster, deps.clock.now())))
        case _:
            assert_never(fact)


def _slices_wanted(fact: SlicesWanted, settings: ClusterSettings, deps: IntakeDeps) -> None:
    cluster, uid = settings.cluster, fact.workload.owner.uid
    known = deps.store.workloads(cluster, [uid]).get(uid)
    waiting = [slice_id(demand.job_of(cluster, fact.workload, leader)) for leader in demand.legitimate(fact)]
    slices = deps.store.slices(cluster, {*waiting, *(known.value.demand if known else ())})
    records = {id_: stored.value for id_, stored in slices.items()}
    change = demand.wanted(
        fact,
        known.value if known else None,
        records,
        deps.clock.now(),
        settings,
    )
    if change is None:
        _repeat_requests(known, deps)
        return
    revision, *_ = deps.store.commit(
        Change(known, change.workload), *(Change(slices.get(id_), record) for id_, record in change.slices.items())
    )
    demanded = [slice_id(each.job) for each in demand.demands(fact, cluster, records)]
    _request_reconcile(Stored(change.workload, revision), {*waiting, *demanded}, deps)


def _changed(fact: WorkloadChanged | Answer, cluster: ClusterId, deps: IntakeDeps) -> None:
    known = deps.store.workloads(cluster, [fact.workload.owner.uid]).get(fact.workload.owner.uid)
    record = demand.changed(fact, known.value if known else None, deps.clock.now(), cluster)
    if record is None:
        _repeat_requests(known, deps)
        return
    revision, *_ = deps.store.commit(Change(known, record))
    _request_reconcile(Stored(record, revision), record.demand, deps)


def _about_a_slice(fact: HostsChanged | LeaderBound, cluster: ClusterId, deps: IntakeDeps) -> None:
    """Record a fact about a slice; one without a record is left to the inventory check, which finds its pool."""
    stored = deps.store.slices(cluster, [fact.slice_id]).get(fact.slice_id)
    if stored is None:
        return
    now = deps.clock.now()
    stale_demand: tuple[tuple[WorkloadUid, SliceId], ...] = ()
    if isinstance(fact, HostsChanged):
        record = demand.counted(fact, stored.value, now)
    else:
        record = occupancy.bound(fact, stored.value, now)
        stale_demand = occupancy.demand_in_doubt(fact, stored.value) if record is not None else ()
    if record is not None:
        deps.store.commit(Change(stored, record), *_stale_demand(stale_demand, cluster, deps))
    if record is not None or stored.value.next_reconcile_at is not None:
        deps.publisher.request_reconcile(cluster, {fact.slice_id, *(slice_ for _, slice_ in stale_demand)})


def _stale_demand(
    demand: Collection[tuple[WorkloadUid, SliceId]], cluster: ClusterId, deps: IntakeDeps
) -> Iterator[Change]:
    """Yield the changes after which this demand counts as stale until it is confirmed again."""
    workloads = deps.store.workloads(cluster, [uid for uid, _ in demand]) if demand else {}
    for uid, slice_ in demand:
        stored = workloads.get(uid)
        if stored is not None and stored.value.demand.get(slice_) is not None:
            yield Change(stored, occupancy.with_stale_demand(stored.value, slice_))


def _repeat_requests(known: Stored[WorkloadRecord] | None, deps: IntakeDeps) -> None:
    """Publish the reconcile requests for an earlier fact again, if they may have been lost."""
    if known is not None and known.value.next_reconcile_at is not None:
        _request_reconcile(known, known.value.demand, deps)


def _request_reconcile(jobset: Stored[WorkloadRecord], slices: Collection[SliceId], deps: IntakeDeps) -> None:
    """Request a reconcile of the slices, then clear the JobSet's `next_reconcile_at`."""
    deps.publisher.request_reconcile(jobset.value.cluster, slices)
    try:
        deps.store.commit(Change(jobset, replace(jobset.value, next_reconcile_at=None)))
    except StaleRecord:  # the sweep may have written its report meanwhile
        clear(jobset.value, deps)
