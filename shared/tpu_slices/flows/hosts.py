"""Records what the relay reports of a pool's hosts, and who runs on them, on all slices that this concerns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from tpu_slices.domain.model.facts import Family, HostsChanged, Listed, Occupant, WorkloadState
from tpu_slices.domain.model.slices import ClaimId, ClusterId, SliceId, WorkloadUid
from tpu_slices.domain.reconciling import occupancy
from tpu_slices.domain.reconciling.inventory import to_be_repeated
from tpu_slices.domain.reconciling.occupancy import NewCount
from tpu_slices.domain.records.hosts import key_of
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.flows.counting import Counted, decided
from tpu_slices.flows.outcomes import Reconciled, announce
from tpu_slices.flows.report import update_of
from tpu_slices.ports.deps import IntakeDeps
from tpu_slices.ports.errors import StaleRecord
from tpu_slices.ports.store import Change, Stored


def hosts_changed(
    fact: HostsChanged, stored: Stored[SliceRecord] | None, cluster: ClusterId, deps: IntakeDeps
) -> Reconciled | None:
    """Record a report and request reconciles, or return what is decided with it.

    One of a pool that has no record, or is gone by that, is left to the inventory check, which finds the pool.
    `stored`: the slice's record.
    """
    if stored is None or stored.value.current.gone:
        return None
    if occupancy.lets_deletion_go_on(stored.value, fact) and _is_over(stored.value, deps):
        deps.publisher.pass_on(cluster, stored.value.name, fact)
        return None
    now = deps.clock.now()
    after = occupancy.counted(stored.value.current.hosts, fact, now)
    count = NewCount(stored.value, after, now) if after else None
    changes = list(_changes(stored, count, deps)) if count else []
    counted = decided(stored, changes, deps)
    if counted is not None:
        return _save(stored, counted, deps)
    if changes:
        deps.store.commit(*changes)
    elif stored.value.next_reconcile_at is None:
        return None
    looked_at: set[ClaimId | SliceId] = {stored.value.name, *_affected(changes)}
    if count is not None and count.can_wait:
        looked_at.remove(stored.value.name)
    deps.publisher.request_reconcile(cluster, sorted(looked_at))
    return None


def _is_over(record: SliceRecord, deps: IntakeDeps) -> bool:
    """Return whether nobody will need a slice again, whatever is reconciled before: no claim has it, or all ended."""
    if record.unclaimed:
        return True
    uid = record.owner.uid
    own = deps.store.workloads(record.cluster, [uid]).get(uid)
    return own is not None and own.value.state.ended


def _save(stored: Stored[SliceRecord], counted: Counted, deps: IntakeDeps) -> Reconciled:
    """Save and announce what is decided; what was saved before it is announced once more, as by a reconcile."""
    announce(stored.value, stored.value.announced_count, deps)
    if counted.reported is not None:
        workload, made = counted.reported.workload, counted.reported.report
        deps.publisher.announce_workloads(workload.cluster, [update_of(workload, made)])
    deps.store.commit(*counted.changes)
    announce(counted.decision.record, stored.value.transition_count, deps)
    return Reconciled(stored.value, counted.decision, counted.decision.record, counted.reported)


def hosts_listed(fact: Listed, cluster: ClusterId, deps: IntakeDeps) -> bool:
    """Record that pools which a part of the list lacks have no hosts; return whether none has to be told again.

    The relay is asked to repeat what the list has otherwise. A record with a higher position takes that of the list,
    and is compared with the next one: positions went back, or a count overtook the list. A list that is late lowers
    none, as it is not what was asked for last, or the records agree.
    """
    unlike, heartbeat = list[str](), deps.store.heartbeat(cluster)
    awaited = heartbeat is not None and heartbeat.value.compared(Family.HOSTS).awaits(fact, deps.clock.now())
    for stored in deps.store.kept_slices(cluster):
        record = stored.value
        key = key_of(record.maker, record.attempt)
        if not fact.within(key):
            continue
        lowered = occupancy.lowered(record, fact) if awaited else record
        if lowered != record:
            with suppress(StaleRecord):
                deps.store.commit(Change(stored, lowered))
            unlike.append(key)
            continue
        listed = fact.digests.get(key, 0)
        if record.hosts_digest == listed:
            continue
        if listed:
            unlike.append(key)
            continue
        now_stored = deps.store.slices(cluster, [record.id]).get(record.id)
        hosts_changed(_without_hosts(record, fact.sequence), now_stored, cluster, deps)
    if asked := to_be_repeated(fact, unlike):
        deps.publisher.ask(cluster, asked)
    return not unlike


def _affected(changes: Iterable[Change]) -> Iterator[ClaimId | SliceId]:
    """Yield the slices that changed, and those of workloads that were resumed."""
    for change in changes:
        before, after = change.before and change.before.value, change.after
        if isinstance(after, SliceRecord):
            yield after.name
        elif isinstance(before, WorkloadRecord) and isinstance(after, WorkloadRecord) and after.state != before.state:
            yield from after.demand


def _without_hosts(record: SliceRecord, sequence: int) -> HostsChanged:
    return HostsChanged(
        slice_id=record.maker, attempt=record.attempt, usable=0, joined=0, closed=0, occupants=(), sequence=sequence
    )


def _changes(stored: Stored[SliceRecord], count: NewCount, deps: IntakeDeps) -> Iterator[Change]:
    """Yield the changes of the slice, of others whose Jobs are on its hosts or left them, and of demand.

    A report that says nothing new may still restore where a Job runs, so guests are looked up each time.
    """
    if count.is_news:
        yield Change(stored, occupancy.with_hosts(count))
    cluster, guests = stored.value.cluster, count.guests
    others = deps.store.having(cluster, guests)
    for claim, occupant in guests.items():
        if claim in others.unreadable:
            continue
        known = others.get(claim)
        guest = known.value if known else SliceRecord.of(occupant.workload_job(cluster), count.now)
        after = occupancy.with_place(guest, count, occupant)
        if after is not None and (known is not None or occupant in count.after.occupants):
            yield Change(known, after)
    records = {claim: each.value for claim, each in others.items()}
    settled = list(occupancy.settled_demand(count, records))
    workloads = deps.store.workloads(cluster, {uid for uid, _ in settled})
    yield from _workloads(settled, count.arrivals, workloads, count.now)


def _workloads(
    settled: Iterable[tuple[WorkloadUid, ClaimId]],
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
                next_report_at=now,
            )
        if after != known:
            yield Change(stored, after)
