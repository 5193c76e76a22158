"""Records what the relay reports of a pool's hosts, and who runs on them, on all slices that this concerns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from tpu_slices.domain.model.facts import HostsChanged, HostsListed, HostsListQuestion, Occupant, WorkloadState
from tpu_slices.domain.model.hosts import Hosts, digest_of, key_of
from tpu_slices.domain.model.records import SliceRecord
from tpu_slices.domain.model.slices import ClusterId, SliceId, WorkloadUid
from tpu_slices.domain.model.workloads import WorkloadRecord
from tpu_slices.domain.reconciling import occupancy
from tpu_slices.domain.reconciling.inventory import hosts_to_be_listed
from tpu_slices.ports.deps import IntakeDeps
from tpu_slices.ports.store import Change, Stored


@dataclass(frozen=True, slots=True)
class _Reported:
    """A slice's record, and the hosts of one of its attempts before and after a report."""

    stored: Stored[SliceRecord]
    attempt: int
    before: Hosts
    after: Hosts
    now: datetime

    @property
    def record(self) -> SliceRecord:
        return occupancy.with_hosts(self.stored.value, self.attempt, self.after, self.now)


def hosts_changed(fact: HostsChanged, cluster: ClusterId, deps: IntakeDeps) -> None:
    """Record a report; one of a pool without a record is left to the inventory check, which finds the pool."""
    stored = deps.store.slices(cluster, [fact.slice_id]).get(fact.slice_id)
    before = dict(stored.value.all_hosts).get(fact.attempt) if stored else None
    if stored is None or before is None:
        return
    now = deps.clock.now()
    after = occupancy.reported(before, fact, now)
    if after is None:
        if stored.value.next_reconcile_at is not None:
            deps.publisher.request_reconcile(cluster, [fact.slice_id])
        return
    reported = _Reported(stored, fact.attempt, before, after, now)
    concerned = list(_concerned(reported, cluster, deps))
    deps.store.commit(Change(stored, reported.record), *concerned)
    slices = (change.after.id for change in concerned if isinstance(change.after, SliceRecord))
    deps.publisher.request_reconcile(cluster, sorted({fact.slice_id, *slices}))


def hosts_listed(fact: HostsListed, cluster: ClusterId, deps: IntakeDeps) -> bool:
    """Record that pools which the list lacks have no hosts; return whether all records agree with the list."""
    agreed = True
    for stored in deps.store.kept_slices(cluster):
        for attempt, hosts in stored.value.all_hosts:
            recorded = digest_of(stored.value.id, attempt, hosts)
            listed = fact.digests.get(key_of(stored.value.id, attempt), 0)
            if recorded and not listed:
                hosts_changed(_without_hosts(stored.value.id, attempt, fact.sequence), cluster, deps)
            agreed = agreed and (recorded == listed or not listed)
    return agreed


def ask_for_hosts(cluster: ClusterId, deps: IntakeDeps) -> bool:
    """Ask the relay for all hosts if what it sees has differed from the records for a while; return whether it was."""
    stored, now = deps.store.heartbeat(cluster), deps.clock.now()
    if stored is None or not hosts_to_be_listed(stored.value, now):
        return False
    deps.publisher.ask(cluster, [HostsListQuestion()])
    deps.store.commit(Change(stored, replace(stored.value, hosts_asked_at=now)))
    return True


def _without_hosts(slice_id: SliceId, attempt: int, sequence: int) -> HostsChanged:
    return HostsChanged(
        slice_id=slice_id, attempt=attempt, usable=0, joined=0, closed=0, occupants=(), sequence=sequence
    )


def _concerned(reported: _Reported, cluster: ClusterId, deps: IntakeDeps) -> Iterator[Change]:
    """Yield the changes of other slices, whose Jobs came to these hosts or left them, and of demand."""
    record = reported.stored.value
    arrivals = occupancy.arrived(reported.before, reported.after)
    moved = occupancy.moved(record, reported.before, reported.after)
    if not arrivals and not moved:
        return
    others = deps.store.slices(cluster, moved)
    for slice_, occupant in moved.items():
        if slice_ in others.unreadable:
            continue
        stored = others.get(slice_)
        known = stored.value if stored else SliceRecord.of(occupant.workload_job(cluster), reported.now)
        after = occupancy.with_place(known, reported.record, reported.attempt, occupant, reported.now)
        if after is not None and (stored is not None or occupant in arrivals):
            yield Change(stored, after)
    settled = list(occupancy.settled_demand(record, arrivals))
    workloads = deps.store.workloads(cluster, {uid for uid, _ in settled})
    yield from _workloads(settled, arrivals, workloads, reported.now)


def _workloads(
    settled: Iterable[tuple[WorkloadUid, SliceId]],
    arrivals: Iterable[Occupant],
    workloads: Mapping[WorkloadUid, Stored[WorkloadRecord]],
    now: datetime,
) -> Iterator[Change]:
    """Yield the changes of workloads: demand that is settled, and the news that one was resumed."""
    generations = {occupant.owner.uid: occupant.generation for occupant in arrivals}
    for uid, stored in workloads.items():
        known = stored.value
        after = replace(known, demand={**known.demand, **{slice_: None for owner, slice_ in settled if owner == uid}})
        if known.state is WorkloadState.SUSPENDED and generations.get(uid, 0) > known.generation:
            after = replace(
                after,
                state=WorkloadState.ACTIVE,
                generation=generations[uid],
                state_since=now,
                next_reconcile_at=now,
                next_report_at=now,
            )
        if after != known:
            yield Change(stored, after)
