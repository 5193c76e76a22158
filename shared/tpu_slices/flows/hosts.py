"""Records what the relay reports of a pool's hosts, and who runs on them, on all slices that this concerns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from tpu_slices.domain.model.facts import Family, HostsChanged, Listed, Occupant, WorkloadState
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import ClaimId, ClusterId, SliceId, WorkloadUid
from tpu_slices.domain.reconciling import occupancy
from tpu_slices.domain.reconciling.inventory import to_be_repeated
from tpu_slices.domain.reconciling.occupancy import NewCount
from tpu_slices.domain.reconciling.taking import Taken, claimant, taken
from tpu_slices.domain.records.hosts import key_of
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.flows.counting import Counted, decided
from tpu_slices.flows.outcomes import Reconciled, announce
from tpu_slices.flows.report import update_of, with_change_told
from tpu_slices.ports.deps import IntakeDeps
from tpu_slices.ports.errors import StaleRecord
from tpu_slices.ports.store import Change, Found, Stored


def hosts_changed(
    fact: HostsChanged, stored: Stored[SliceRecord] | None, cluster: ClusterId, deps: IntakeDeps
) -> Reconciled | None:
    """Record a report and request reconciles, or return what is decided with it.

    If the pool has no record, or one that says gone, the inventory check finds it later.
    `stored`: the slice's record.
    """
    if stored is None or stored.value.current.gone:
        return None
    if occupancy.lets_deletion_go_on(stored.value, fact) and _is_over(stored.value, deps):
        deps.publisher.pass_on(cluster, stored.value.id, fact)
        return None
    now = deps.clock.now()
    after = occupancy.counted(stored.value.current.hosts, fact, now)
    count = NewCount(stored.value, after, now) if after else None
    changes = list(_changes(stored, count, deps)) if count else []
    counted = decided(stored, changes, deps)
    if counted is not None:
        done = _save(counted, deps)
        if due := {*_affected(changes, now, deps)} - {counted.decision.record.name}:
            deps.publisher.request_reconcile(cluster, sorted(due))
        return done
    if changes:
        deps.store.commit(*changes)
    elif stored.value.next_reconcile_at is None:
        return None
    looked_at = {*_affected(changes, now, deps)}
    if not any(isinstance(each.after, SliceRecord) for each in changes):
        looked_at.add(stored.value.name)
    if count is not None and count.can_wait:
        looked_at.discard(stored.value.name)
    deps.publisher.request_reconcile(cluster, sorted(looked_at))
    return None


def _is_over(record: SliceRecord, deps: IntakeDeps) -> bool:
    """Return whether its claim waits for nothing of a slice: no claim has it, or its workload ended."""
    if record.unclaimed:
        return True
    uid = record.owner.uid
    own = deps.store.workloads(record.cluster, [uid]).get(uid)
    return own is not None and own.value.state.ended


def _save(counted: Counted, deps: IntakeDeps) -> Reconciled:
    """Save and announce what is decided; what was saved before it is announced once more, as by a reconcile."""
    announce(counted.before, counted.before.announced_count, deps)
    if counted.reported is not None:
        workload, made = counted.reported.workload, counted.reported.report
        deps.publisher.announce_workloads(workload.cluster, [update_of(workload, made)])
    deps.store.commit(*counted.changes)
    announce(counted.decision.record, counted.before.transition_count, deps)
    return Reconciled(counted.before, counted.decision, counted.decision.record, counted.reported)


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


def _affected(changes: Iterable[Change], now: datetime, deps: IntakeDeps) -> Iterator[ClaimId | SliceId]:
    """Yield the slices that changed and are due, and those that are concerned as their workload was resumed."""
    for change in changes:
        before, after = change.before and change.before.value, change.after
        if isinstance(after, SliceRecord):
            if after.next_reconcile_at is not None and after.next_reconcile_at <= now:
                yield after.name
        elif isinstance(before, WorkloadRecord) and isinstance(after, WorkloadRecord) and after.state != before.state:
            yield from concerned(after, deps)


def concerned(workload: WorkloadRecord, deps: IntakeDeps) -> Collection[ClaimId]:
    """Return the claims that a change of their workload concerns at once: of an end all, else those whose slices hear.

    Of a suspension, those with a slice. The others are told once it has lasted (`flows.report`).
    """
    if workload.state.ended:
        return workload.demand
    heard = (each.value for each in deps.store.hearing(workload.cluster, workload.owner.uid))
    active = workload.state is WorkloadState.ACTIVE
    return [record.last_claim for record in heard if active or record.phase is not Phase.GONE]


def _without_hosts(record: SliceRecord, sequence: int) -> HostsChanged:
    return HostsChanged(
        slice_id=record.maker, attempt=record.attempt, usable=0, joined=0, closed=0, occupants=(), sequence=sequence
    )


def _changes(stored: Stored[SliceRecord], count: NewCount, deps: IntakeDeps) -> Iterator[Change]:
    """Yield the changes of the slice, of others if a claim gets it whose Job is there, and of demand.

    A report that says nothing new may still tell of a Job that was not on record when it came.
    """
    cluster, guests = stored.value.cluster, count.guests
    asked = {*guests, stored.value.last_claim} if guests and stored.value.unclaimed else {*guests}
    of_guests = {it.owner.uid for it in guests.values()}
    workloads = deps.store.workloads(cluster, of_guests)  # they guard what claims have
    having = deps.store.having(cluster, asked) if asked else Found[ClaimId, SliceRecord]({}, {})
    readable = {claim: each.value for claim, each in having.items()}
    settled = list(occupancy.settled_demand(count, readable))
    workloads |= deps.store.workloads(cluster, {uid for uid, _ in settled} - of_guests)
    told = list(_workloads(settled, count.arrivals, workloads, count.now))
    known = {uid: each.value for uid, each in workloads.items()} | {it.owner.uid: it for _, it in told}
    candidates = {claim: it for claim, it in guests.items() if claim not in having.unreadable}
    settings = deps.store.settings(cluster) if candidates else None
    by = claimant(count, candidates, readable, known, settings.limits) if settings is not None else None
    if by is not None and settings is not None:
        claim, occupant = by
        last = having[stored.value.last_claim] if stored.value.last_claim in readable else None
        own = readable.get(claim) or _new_claim(occupant, count, deps)
        got = taken(count, occupant, own, last.value if last else None)
        if last is None and got.other is not None:
            got = replace(got, other=with_free_name(got.other, deps))
        yield from _taken(stored, got, having.get(claim), last)
        if claim not in having:
            told = _with_recorded(told, claim, workloads[occupant.owner.uid])
    elif count.is_news:
        yield Change(stored, occupancy.with_hosts(count))
    yield from (Change(known, with_change_told(known.value, after, deps)) for known, after in told)


def with_free_name(record: SliceRecord, deps: IntakeDeps) -> SliceRecord:
    """Return the first record of a claim under a name that nothing has: what was made for it may be another claim's."""
    while is_taken(record.id, record.cluster, deps):
        record = record.with_next(None)
    return record


def is_taken(slice_: SliceId, cluster: ClusterId, deps: IntakeDeps) -> bool:
    """Return whether there is a record of this name, readable or not."""
    found = deps.store.slices(cluster, [slice_])
    return bool(found or found.unreadable)


def _new_claim(occupant: Occupant, count: NewCount, deps: IntakeDeps) -> SliceRecord:
    """Return a record of the claim of a Job that has none, and never waited for one: it requests what it runs on.

    Which key its pods have is not known before it waits.
    """
    job, made_as = occupant.workload_job(count.record.cluster), count.record.made_as
    spec = replace(made_as, key="") if made_as is not None else None
    return with_free_name(SliceRecord.of(job, count.now, spec), deps)


def _with_recorded(
    told: list[tuple[Stored[WorkloadRecord], WorkloadRecord]], claim: ClaimId, stored: Stored[WorkloadRecord]
) -> list[tuple[Stored[WorkloadRecord], WorkloadRecord]]:
    """Return the workloads that change, with that of a claim which gets its first record."""
    own = next((after for before, after in told if before is stored), stored.value)
    return [*(each for each in told if each[0] is not stored), (stored, own.with_recorded([claim]))]


def _taken(
    stored: Stored[SliceRecord], got: Taken, own: Stored[SliceRecord] | None, last: Stored[SliceRecord] | None
) -> Iterator[Change]:
    """Yield the changes of the slice that a claim gets, of what that had, and of the claim that had the slice."""
    yield Change(stored, got.has)
    if own is not None:
        yield Change(own, got.had)
    if got.other is not None:
        yield Change(last, got.other)


def _workloads(
    settled: Iterable[tuple[WorkloadUid, ClaimId]],
    arrivals: Iterable[Occupant],
    workloads: Mapping[WorkloadUid, Stored[WorkloadRecord]],
    now: datetime,
) -> Iterator[tuple[Stored[WorkloadRecord], WorkloadRecord]]:
    """Yield the workloads that change, before and after.

    A claim that has its slice is demand no more. A pod of a higher generation than its suspended workload has on record
    says that the workload was resumed.
    """
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
            yield stored, after
