"""Decides for all claims of a workload at once at which rung of its ladder they ask for slices."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from tpu_slices.domain.capacity.reservations import PATIENT, beyond_reservation, lack, state_at, told
from tpu_slices.domain.capacity.stepping import Case, began, is_empty, is_there, may_step, next_look, stepped, waits
from tpu_slices.domain.model.capacity import LADDER, ZonesOf
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import SlicesWanted, WorkloadState
from tpu_slices.domain.model.slices import (
    ClaimId,
    ClusterId,
    RungSpec,
    SliceSpec,
    WorkloadUid,
    is_at,
    is_earlier_form,
)
from tpu_slices.domain.planning.ladders import Chosen, ladder_of
from tpu_slices.domain.reconciling.limiter import shortage_of
from tpu_slices.domain.records.awaited import Shortage
from tpu_slices.domain.records.ladders import OnLadder
from tpu_slices.domain.records.limiters import CapacityPool, ConcurrencyLimiter, Slot
from tpu_slices.domain.records.queues import capacity_pool_of
from tpu_slices.domain.records.reservations import ReservationState
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.flows.failures import Failures
from tpu_slices.flows.retrying import retry_on_conflict
from tpu_slices.flows.slots import limiter_of
from tpu_slices.ports.deps import IntakeDeps
from tpu_slices.ports.errors import StaleRecord
from tpu_slices.ports.store import Change, Names, Together

MOST_STEPPED = 100
"""The most workloads that one sweep decides on: those first that have waited for it longest."""
MOST_ON_LADDERS = 2_000
"""The most workloads that are noted as waiting; others are decided on when their claims are tried."""
TRIED_WITHIN = timedelta(minutes=5)
"""After what time a place is looked at again where somebody tries whether it is short still."""
_SOON = timedelta(minutes=1)


def step_when_due(limiter: ConcurrencyLimiter | None, cluster: ClusterId, deps: IntakeDeps, failures: Failures) -> int:
    """Decide on the workloads that are due; return how many claims are to be reconciled for that."""
    now, told = deps.clock.now(), 0
    waiting = limiter.on_ladders if limiter is not None else {}
    due = sorted((at, uid) for uid, at in waiting.items() if at <= now)[:MOST_STEPPED]
    for _, uid in due:
        claims = failures.attempt(cluster, partial(step, cluster, uid, deps), (), "a workload steps in a minute")
        if claims:
            deps.publisher.request_reconcile(cluster, sorted(claims))
        told += len(claims)
    return told


def step_after(record: SliceRecord, own: WorkloadRecord | None, deps: IntakeDeps) -> None:
    """Decide on the workload of a claim that was reconciled, if that shows that it may have to step."""
    spec = record.made_as if is_empty(record) else record.spec
    at = own.ladders.get(spec.ladder) if spec is not None and own is not None else None
    if at is not None and record.spec is not None and waits(record) and not is_there(record.spec, at):
        deps.publisher.request_reconcile(record.cluster, [record.name])  # it was tried while its workload stepped
    if own is None or not may_step(record, at, deps.clock.now()):
        return
    if claims := step(record.cluster, record.owner.uid, deps):
        deps.publisher.request_reconcile(record.cluster, sorted(claims))


def step(cluster: ClusterId, uid: WorkloadUid, deps: IntakeDeps) -> Sequence[ClaimId]:
    """Decide where a workload asks for slices, and save that; return the claims that are to be reconciled for it."""
    return retry_on_conflict(lambda: _once(cluster, uid, deps), deps.clock)


def _once(cluster: ClusterId, uid: WorkloadUid, deps: IntakeDeps) -> Sequence[ClaimId]:
    read = deps.store.together(cluster, Names(settings=True, workloads=[uid], limiter=True, slots=True))
    stored, settings = read.workloads.get(uid), read.settings
    if settings is None or settings.paused is not None or uid in read.workloads.unreadable:
        return ()
    if stored is None or stored.value.state is not WorkloadState.ACTIVE:
        _save(read, uid, None, Next(), deps)
        return ()
    slices = deps.store.having(cluster, stored.value.demand)
    if slices.unreadable:
        return ()
    ladders, asked, looks, better = dict[str, OnLadder](), list[ClaimId](), list[datetime](), set[CapacityPool]()
    for name, case in _cases(stored.value, [each.value for each in slices.values()], read, deps.clock.now()):
        before, after = stored.value.ladders.get(name), stepped(case)
        if after != case.at or before is not None:
            ladders[name] = after
        if (after.rung, after.passed, after.nowhere) != (case.at.rung, case.at.passed, case.at.nowhere):
            asked += [each.last_claim for each in case.claims if waits(each) or is_empty(each) or after.whole]
        looks += [] if (at := next_look(case, after)) is None else [at]
        better |= {*_left(case, after)}
    _save(read, uid, ladders, Next(min(looks, default=None), better), deps)
    return asked


def check_rung(record: SliceRecord, own: WorkloadRecord | None, deps: IntakeDeps) -> None:
    """Raise StaleRecord if the workload of a creation that is about to be saved asks at another rung by now.

    `own`: as it was when that was decided. So slices of one workload are not bought in two zones while it steps. Who is
    by itself, or has a ladder of one zone, is not read again.
    """
    spec = record.spec
    if own is None or spec is None or spec.jobset_chips <= spec.chips or len({each.zone for each in spec.rungs}) <= 1:
        return
    stored = deps.store.workloads(record.cluster, [own.owner.uid]).get(own.owner.uid)
    places = [each.ladders.get(spec.ladder) for each in (own, stored.value if stored is not None else own)]
    if places[1] is not None and places[1].nowhere:
        raise StaleRecord(f"{own.owner.full_name} asks nowhere by now: {places[1].nowhere}")
    decided, now = (at.rung if at is not None else 0 for at in places)
    if decided != now:
        raise StaleRecord(f"{own.owner.full_name} steps from rung {decided + 1} to {now + 1} of its ladder")


def has_ladder(fact: SlicesWanted, settings: ClusterSettings) -> bool:
    """Return whether leaders wait that have a ladder, or others of their workload do."""
    named = (dict(each.requested_annotations).get(LADDER) for each in fact.requests if fact.waiting)
    namespace = fact.workload.owner.namespace
    return any(isinstance(ladder_of(each, namespace, settings), Chosen) for each in named)


@dataclass(frozen=True, slots=True)
class Next:
    """What follows from where a workload asks."""

    at: datetime | None = None
    """When it is decided on again; None: not by itself."""
    better: Collection[CapacityPool] = ()
    """The reservations before its rung that have no room now."""


def _left(case: Case, at: OnLadder) -> Iterator[CapacityPool]:
    """Yield the reservations before the rung of a workload that waits, if they have no room now."""
    spec = next((each.spec for each in case.waiting if each.spec is not None), None)
    for number in range(at.rung if spec is not None else 0):
        rung = case.rungs[number]
        if spec is not None and rung.capacity.reservation and not rung.against and number in case.avoided:
            yield _pool(spec, number)


def _cases(
    workload: WorkloadRecord, slices: Sequence[SliceRecord], read: Together, now: datetime
) -> Iterator[tuple[str, Case]]:
    """Yield each ladder of a workload, with the claims that have it."""
    settings = read.settings
    assert settings is not None
    needed = [each for each in slices if each.wanted and workload.has(each.replicated_job, each.job_index)]
    for name in sorted({each.spec.ladder for each in needed if each.spec and each.spec.ladder}):
        claims = [each for each in needed if each.spec and each.spec.ladder == name]
        specs = [each.spec for each in [each for each in claims if waits(each)] or claims if each.spec is not None]
        limiter = limiter_of(read.limiter, settings, now)
        running, whole = [slot.value for slot in read.slots or ()], _moves_whole(workload, claims)
        together = _hosts(claims) if whole else 0
        reserved = dict(_reserved(specs, running, limiter, now, claims if whole else ()))
        known = {**dict(_shortages(specs, limiter, now)), **reserved}
        since = min((began(each) for each in claims if waits(each)), default=workload.state_since)
        at = workload.ladders.get(name) or OnLadder(since=since)
        ladder = settings.ladders.get(name.partition("@")[0])
        yield (
            name,
            Case(
                name=name.partition("@")[0],
                at=at if at.rung < len(specs[0].rungs) else OnLadder(since=now),
                rungs=_possible(_merged(specs), specs, together, limiter, now),
                claims=claims,
                earlier=[each for each in needed if _is_earlier(each, name, {it.replicated_job for it in claims})],
                what=_what(specs[0], settings),
                avoided=dict(_avoided(known, specs, {each.maker for each in claims}, read, now))
                | {number: _has_room_at(specs[0], number, limiter, now) for number in reserved},
                shortages=known,
                anywhere=ladder is not None and ladder.zones is ZonesOf.ANY,
                whole=whole,
                now=now,
                mended_after=settings.limits.blocked_retry_after,
            ),
        )


def _is_earlier(record: SliceRecord, name: str, jobs: Collection[str]) -> bool:
    """Return whether a claim has a slice that was made before its template had this ladder with these rungs.

    By an earlier form of the ladder, of the same name and with other rungs; or, of the replicatedJobs that have this
    one now, without a ladder or by another, for which it did not ask anew since.
    """
    made_as, has = record.made_as, record.current.create_requested_at is not None
    if made_as is None or not has or record.goes or is_empty(record):
        return False
    asks_anew = record.spec is not None and record.spec.ladder == name
    unasked = record.replicated_job in jobs and made_as.ladder != name and not asks_anew
    return unasked or is_earlier_form(made_as, name)


def _merged(specs: Sequence[SliceSpec]) -> tuple[RungSpec, ...]:
    """Return the rungs of several claims: against all is what is against each of them."""
    against = [[each.against for each in spec.rungs] for spec in specs]
    return tuple(
        replace(rung, against=rung.against if all(each[number] for each in against) else "")
        for number, rung in enumerate(specs[0].rungs)
    )


def _shortages(
    specs: Iterable[SliceSpec], limiter: ConcurrencyLimiter, now: datetime
) -> Iterator[tuple[int, Shortage]]:
    """Yield the rungs whose places refused as many hosts as some of the claims need."""
    for spec in {(each.accelerator, each.hosts): each for each in specs}.values():
        for number in range(len(spec.rungs)):
            short = shortage_of(_pool(spec, number), limiter, now)
            if short is not None and spec.hosts >= short.hosts:
                yield number, short


def _reserved(
    specs: Iterable[SliceSpec],
    running: Sequence[Slot],
    limiter: ConcurrencyLimiter,
    now: datetime,
    together: Sequence[SliceRecord],
) -> Iterator[tuple[int, Shortage]]:
    """Yield the rungs whose reservations are known to have no hosts for some of the claims now.

    `together`: the claims of a gang that is there with all of its slices, or not at all.
    """
    for spec in {(each.accelerator, each.hosts): each for each in specs}.values():
        for number in range(len(spec.rungs)):
            pool, rung = _pool(spec, number), spec.rungs[number]
            lacks = [each for each in together if not _has(each, rung)]
            hosts = max(_hosts(lacks), spec.hosts)
            short = lack(pool, hosts, running, limiter.reservations.get(pool), now)
            if short is not None:
                yield number, short


def _has_room_at(spec: SliceSpec, number: int, limiter: ConcurrencyLimiter, now: datetime) -> datetime:
    """Return when the reservation of a rung may have room: when it begins, or after some looks at it."""
    known = limiter.reservations.get(_pool(spec, number))
    starts_at = known.seen.starts_at if known is not None else None
    return starts_at if starts_at is not None and now < starts_at else now + TRIED_WITHIN


def _possible(
    rungs: Sequence[RungSpec], specs: Sequence[SliceSpec], together: int, limiter: ConcurrencyLimiter, now: datetime
) -> tuple[RungSpec, ...]:
    """Return the rungs with what is against those whose reservation ended, or never has the hosts of a gang.

    `together`: the hosts that its slices need at once; 0: they come one by one.
    """

    def against(number: int) -> str:
        known = limiter.reservations.get(_pool(specs[0], number))
        if known is None:
            return ""
        if state_at(known, now) is ReservationState.ENDED:
            return told(known, together, now)
        return (beyond_reservation(known, together, now) or "") if together else ""

    return tuple(replace(each, against=each.against or against(number)) for number, each in enumerate(rungs))


def _has(record: SliceRecord, rung: RungSpec) -> bool:
    """Return whether a claim has its slice, or will, at a rung."""
    made_as = record.made_as if record.current.create_requested_at is not None else None
    return made_as is not None and is_at(made_as, rung)


def _hosts(claims: Iterable[SliceRecord]) -> int:
    return sum(each.spec.hosts for each in claims if each.spec is not None)


def _avoided(
    known: Mapping[int, Shortage], specs: Sequence[SliceSpec], own: set[ClaimId], read: Together, now: datetime
) -> Iterator[tuple[int, datetime]]:
    """Yield until when nobody comes to a rung: a shortage is remembered so long, or somebody else tries it."""
    tried = {slot.value.capacity_pool for slot in read.slots or () if slot.value.slice_id not in own}
    for number, short in known.items():
        if short.until is not None and now < short.until:
            yield number, short.until
        elif any(_pool(spec, number) in tried for spec in specs):
            yield number, now + TRIED_WITHIN


def _pool(spec: SliceSpec, number: int) -> CapacityPool:
    rung = spec.rungs[number]
    return capacity_pool_of(replace(spec, zone=rung.zone, capacity=rung.capacity))


def _what(spec: SliceSpec, settings: ClusterSettings) -> str:
    kind = settings.accelerators.get(spec.accelerator)
    return f"{kind.generation if kind is not None else spec.accelerator} {spec.topology}"


def _moves_whole(workload: WorkloadRecord, claims: Sequence[SliceRecord]) -> bool:
    """Return whether all claims are of gangs that have not started, and none is used."""
    gangs = [workload.gang(each.replicated_job) for each in claims]
    return all(gang is not None and not gang.ran for gang in gangs) and not any(each.occupied for each in claims)


def _save(
    read: Together,
    uid: WorkloadUid,
    ladders: Mapping[str, OnLadder] | None,
    follows: Next,
    deps: IntakeDeps,
) -> None:
    """Save where a workload is on its ladders, and what follows; a report is due of a step."""
    assert read.settings is not None
    now, stored, changes = deps.clock.now(), read.workloads.get(uid), list[Change]()
    if stored is not None and ladders is not None and ladders != stored.value.ladders:
        whys = [{name: each.message for name, each in some.items()} for some in (stored.value.ladders, ladders)]
        due = now if whys[0] != whys[1] else stored.value.next_report_at
        changes.append(Change(stored, replace(stored.value, ladders=ladders, next_report_at=due)))
    limiter = limiter_of(read.limiter, read.settings, now)
    if (noted := _looking(_noted(limiter, uid, follows.at, now), follows.better, now)) is not limiter:
        changes.append(Change(read.limiter, noted))
    if changes:
        deps.store.commit(*changes)


def _noted(limiter: ConcurrencyLimiter, uid: WorkloadUid, at: datetime | None, now: datetime) -> ConcurrencyLimiter:
    """Return the limiter with when a workload is decided on next: itself, if that is about as it is noted."""
    before, others = limiter.on_ladders.get(uid), {each: it for each, it in limiter.on_ladders.items() if each != uid}
    if at is None or (before is None and len(others) >= MOST_ON_LADDERS):
        return limiter if before is None else replace(limiter, on_ladders=others)
    if before is not None and before > now and abs(before - at) < _SOON:
        return limiter
    return replace(limiter, on_ladders={**others, uid: at})


def _looking(limiter: ConcurrencyLimiter, better: Collection[CapacityPool], now: datetime) -> ConcurrencyLimiter:
    """Return the limiter with reservations to be looked at soon for those who ask further down: itself, if all are."""
    soon = {
        pool: replace(known, needed_at=now, next_look_at=now + PATIENT)
        for pool in better
        if (known := limiter.reservations.get(pool)) is not None and known.next_look_at > now + PATIENT
    }
    return replace(limiter, reservations={**limiter.reservations, **soon}) if soon else limiter
