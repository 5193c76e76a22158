"""Decides for all claims of a gang at once: whether their slices are made, held or let go."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tpu_slices.domain.capacity.warmth import Short, short_of
from tpu_slices.domain.gangs.deciding import Case, decided, in_line, lacks_chips
from tpu_slices.domain.gangs.members import members_of
from tpu_slices.domain.gangs.told import scaled
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.slices import ClaimId, ClusterId, WorkloadUid
from tpu_slices.domain.model.texts import digest
from tpu_slices.domain.planning.policy import Held
from tpu_slices.domain.records.gangs import Gang, GangKey, InLine, gang_key, reserved
from tpu_slices.domain.records.heartbeats import NEVER_HEARD
from tpu_slices.domain.records.limiters import Budget
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.flows.budget import make_room
from tpu_slices.flows.failures import Failures
from tpu_slices.flows.retrying import retry_on_conflict
from tpu_slices.ports.deps import IntakeDeps
from tpu_slices.ports.store import Change, Names, Stored, Together

MOST_SETTLED = 100
"""The most workloads that one sweep settles: others each time, so that those that never fit keep none from it."""


def settle_line(cluster: ClusterId, deps: IntakeDeps, failures: Failures) -> int:
    """Settle the gangs of a cluster that do not stand; return how many slices are to be reconciled for that.

    That of one workload fails by itself: its gangs are settled a minute later.
    """
    stored = deps.store.budget(cluster)
    line = sorted(stored.value.gangs.values(), key=lambda each: each.since) if stored is not None else ()
    return _settle_some(cluster, dict.fromkeys(each.workload for each in line), deps, failures)


def settle_others(cluster: ClusterId, workloads: Iterable[WorkloadRecord], deps: IntakeDeps, failures: Failures) -> int:
    """Settle gangs whose leaders wait and that are not in line, as the document of that was lost, say."""
    stored = deps.store.budget(cluster)
    line = {each.workload for each in stored.value.gangs.values()} if stored is not None else set()
    waiting = [each.owner.uid for each in workloads if each.gangs and each.in_demand]
    return _settle_some(cluster, [uid for uid in waiting if uid not in line], deps, failures)


def _settle_some(cluster: ClusterId, uids: Collection[WorkloadUid], deps: IntakeDeps, failures: Failures) -> int:
    """Settle the gangs of so many of these workloads in their order; return how many slices are to be reconciled."""
    now, told = deps.clock.now(), 0
    some = {*sorted(uids, key=lambda uid: digest(f"{uid} {now}"))[:MOST_SETTLED]}
    for uid in (each for each in uids if each in some):
        claims = failures.attempt(cluster, partial(settle, cluster, uid, deps), (), "a gang is settled in a minute")
        if claims:
            deps.publisher.request_reconcile(cluster, sorted(claims))
        told += len(claims)
    return told


def settle(cluster: ClusterId, uid: WorkloadUid, deps: IntakeDeps) -> Sequence[ClaimId]:
    """Decide on the gangs of a workload, and save that; return the claims that are to be reconciled for it."""
    return retry_on_conflict(lambda: _once(cluster, uid, deps), deps.clock)


@dataclass(frozen=True, slots=True)
class _Settled:
    """The gangs of a workload, and the line of its cluster, as they are from now on."""

    gangs: Mapping[str, Gang]
    line: Mapping[GangKey, InLine]
    short: Sequence[Short] = ()
    """What they lack who wait for chips alone."""


def _once(cluster: ClusterId, uid: WorkloadUid, deps: IntakeDeps) -> Sequence[ClaimId]:
    budget = deps.store.budget(cluster)
    read = deps.store.together(cluster, Names(settings=True, workloads=[uid], heartbeat=True))
    stored = read.workloads.get(uid)
    before = budget.value.gangs if budget is not None else {}
    if read.settings is None:
        return ()
    if stored is None or not stored.value.gangs:
        settled = _Settled({}, {key: each for key, each in before.items() if each.workload != uid})
        _save(cluster, stored, budget, settled, deps)
        return ()
    slices = deps.store.having(cluster, stored.value.demand)
    if slices.unreadable:
        return ()
    reserves = any(each.value.spec is not None and each.value.spec.capacity.reservation for each in slices.values())
    known = replace(read, limiter=deps.store.limiter(cluster) if reserves else None)
    settled = _settled(stored.value, [each.value for each in slices.values()], before, known, deps)
    _save(cluster, stored, budget, settled, deps)
    for short in settled.short:
        if ended := make_room(read.settings, short, deps):
            deps.publisher.request_reconcile(cluster, [each.name for each in ended])
    told = _told(stored.value.gangs, settled.gangs)
    jobs = {job for name in told for job in settled.gangs[name].replicated_jobs}
    return [claim for claim, each in slices.items() if each.value.replicated_job in jobs]


def _settled(
    workload: WorkloadRecord,
    slices: Sequence[SliceRecord],
    line: Mapping[GangKey, InLine],
    read: Together,
    deps: IntakeDeps,
) -> _Settled:
    settings, uid = read.settings, workload.owner.uid
    assert settings is not None
    relay, now = read.heartbeat.value.relay if read.heartbeat else NEVER_HEARD, deps.clock.now()
    held = _held(workload, slices, line, settings, deps)
    places = {key: each for key, each in line.items() if each.workload != uid}
    own = {key: line[key] for name in workload.gangs if (key := gang_key(uid, name)) in line}
    members = {name: members_of(workload, name, slices) for name in workload.gangs}
    gangs: dict[str, Gang] = {}
    short: list[Short] = []
    for name, gang in sorted(workload.gangs.items()):
        beside = sum(each.chips for other, each in members.items() if other != name)
        beside += sum(each.chips for key, each in own.items() if key != gang_key(uid, name))
        case = Case(
            workload=uid,
            name=workload.owner.name,
            namespace=workload.owner.namespace,
            key=gang_key(uid, name),
            gang=scaled(gang, workload.groups),
            members=members[name],
            line=places,
            now=now,
            limits=settings.limits,
            policy=settings.policy,
            held=held.plus(beside) if held is not None else None,
            silent=relay.silent(now) or settings.paused is not None,
            reservations=read.limiter.value.reservations if read.limiter is not None else {},
        )
        gangs[name] = decided(case)
        own.pop(case.key, None)
        short += _short(case, gangs[name])
        if (place := in_line(case, gangs[name])) is not None:
            own[case.key] = place
    return _Settled(gangs, {**places, **own}, short)


def _short(case: Case, gang: Gang) -> list[Short]:
    """Return what a gang lacks that was decided on so, if it waits for chips alone."""
    if case.held is None or not lacks_chips(case, gang):
        return []
    needed, held = {case.namespace: gang.chips}, {case.namespace: case.held.in_namespace}
    return [short_of(needed, held, case.held.in_cluster, case.policy)]


def _held(
    workload: WorkloadRecord,
    slices: Sequence[SliceRecord],
    line: Mapping[GangKey, InLine],
    settings: ClusterSettings,
    deps: IntakeDeps,
) -> Held | None:
    """Return the chips that others hold, and that are reserved for them; None: no limit counts."""
    cluster, namespace, uid = workload.cluster, workload.owner.namespace, workload.owner.uid
    if not settings.policy.counts(namespace):
        return None
    own = sum({each.id: each.chips_bought for each in slices}.values())
    return Held(
        in_namespace=deps.store.chips_bought(cluster, namespace) - own + reserved(line, namespace, but=uid),
        in_cluster=deps.store.chips_bought(cluster) - own + reserved(line, but=uid),
    )


def _save(
    cluster: ClusterId,
    stored: Stored[WorkloadRecord] | None,
    budget: Stored[Budget] | None,
    settled: _Settled,
    deps: IntakeDeps,
) -> None:
    """Save what was decided of a workload and of the line, both or neither; a report is due of what is told."""
    now = deps.clock.now()
    known = budget.value if budget is not None else Budget.of(cluster, now)
    changes = []
    if settled.line != known.gangs:
        changes.append(Change(budget, replace(known, gangs=settled.line, changed_at=now)))
    if stored is not None and settled.gangs != stored.value.gangs:
        due = now if _told(stored.value.gangs, settled.gangs) else stored.value.next_report_at
        changes.append(Change(stored, replace(stored.value, gangs=settled.gangs, next_report_at=due)))
    if changes:
        deps.store.commit(*changes)


def _told(before: Mapping[str, Gang], after: Mapping[str, Gang]) -> Collection[str]:
    """Return the gangs whose claims say something else from now on."""

    def says(gang: Gang | None) -> tuple[object, ...] | None:
        return (gang.state, gang.reason, gang.message) if gang is not None else None

    return [name for name, gang in after.items() if says(gang) != says(before.get(name))]
