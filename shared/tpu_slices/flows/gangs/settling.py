"""Decides for all claims of a gang at once: whether their slices are made, held or let go."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from tpu_slices.domain.capacity.warmth import Needed, Short, short_of
from tpu_slices.domain.gangs.deciding import Case, decided, in_line, lacks_chips
from tpu_slices.domain.gangs.members import members_of
from tpu_slices.domain.gangs.told import scaled
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.reasons import OF_WAITING_GANGS, Phase
from tpu_slices.domain.model.slices import ClaimId, ClusterId, WorkloadUid
from tpu_slices.domain.model.texts import digest
from tpu_slices.domain.planning.policy import Held
from tpu_slices.domain.records.gangs import Gang, GangKey, GangState, InLine, gang_key, reserved
from tpu_slices.domain.records.heartbeats import NEVER_HEARD, RelayHeartbeat
from tpu_slices.domain.records.limiters import Budget, CapacityPool
from tpu_slices.domain.records.reservations import Reservation
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.flows.budget import make_room
from tpu_slices.flows.failures import Failures
from tpu_slices.flows.retrying import retry_on_conflict
from tpu_slices.ports.deps import IntakeDeps
from tpu_slices.ports.store import Change, Names, Stored

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
class Settled:
    """A workload and the line of its cluster, as they are from now on: both are to be saved, or neither."""

    workload: WorkloadRecord
    """With its gangs; a report is due if they say something else."""
    line: tuple[Change, ...]
    """Empty: it is as it was."""
    told: Collection[ClaimId]
    """The claims that are to be reconciled for it: also those that were to be before, if that request was lost."""
    short: Sequence[Short] = ()
    """What they lack who wait for chips alone."""


@dataclass(frozen=True, slots=True)
class Beside:
    """What is known beside a workload."""

    settings: ClusterSettings
    heartbeat: Stored[RelayHeartbeat] | None
    budget: Stored[Budget] | None
    """As it was read before any of the slices. Else a creation that is saved between the two reads counts as
    another's, and the line is saved nevertheless."""
    unreadable: Collection[ClaimId] = ()
    """The claims of the workload whose slices cannot be read."""

    @property
    def line(self) -> Mapping[GangKey, InLine]:
        return self.budget.value.gangs if self.budget is not None else {}

    def silent(self, now: datetime) -> bool:
        """Return whether the relay is not heard, or the cluster is paused."""
        relay = self.heartbeat.value.relay if self.heartbeat is not None else NEVER_HEARD
        return relay.silent(now) or self.settings.paused is not None


def saved(settled: Settled, settings: ClusterSettings, deps: IntakeDeps) -> Sequence[ClaimId]:
    """Let warm slices go for those who wait for chips, and return the claims that are to be reconciled."""
    for short in settled.short:
        if ended := make_room(settings, short, deps):
            deps.publisher.request_reconcile(settings.cluster, [each.name for each in ended])
    return sorted(settled.told)


def _once(cluster: ClusterId, uid: WorkloadUid, deps: IntakeDeps) -> Sequence[ClaimId]:
    budget = deps.store.budget(cluster)
    read = deps.store.together(cluster, Names(settings=True, workloads=[uid], heartbeat=True))
    stored, settings = read.workloads.get(uid), read.settings
    if settings is None:
        return ()
    if stored is None or not stored.value.gangs:
        before = budget.value.gangs if budget is not None else {}
        left = _line(cluster, budget, {key: each for key, each in before.items() if each.workload != uid}, deps)
        if left:
            deps.store.commit(*left)
        return ()
    slices = deps.store.having(cluster, stored.value.demand)
    beside = Beside(settings, read.heartbeat, budget, slices.unreadable)
    settled = settled_with(stored.value, [each.value for each in slices.values()], beside, deps)
    changes = [*settled.line]
    if settled.workload != stored.value:
        changes.append(Change(stored, settled.workload))
    if changes:
        deps.store.commit(*changes)
    return saved(settled, settings, deps)


def settled_with(workload: WorkloadRecord, slices: Collection[SliceRecord], known: Beside, deps: IntakeDeps) -> Settled:
    """Return how the gangs of a workload are from now on that is about to be saved; `slices`: those of its claims."""
    settings, uid, now = known.settings, workload.owner.uid, deps.clock.now()
    line, held = known.line, _held(workload, slices, known.line, settings, deps)
    places = {key: each for key, each in line.items() if each.workload != uid}
    own = {key: line[key] for name in workload.gangs if (key := gang_key(uid, name)) in line}
    members = {name: members_of(workload, name, slices, known.unreadable) for name in workload.gangs}
    reservations = _reservations(workload.cluster, slices, deps)
    gangs, short = dict[str, Gang](), list[Short]()
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
            settings=settings,
            held=held.plus(beside) if held is not None else None,
            silent=known.silent(now),
            reservations=reservations,
        )
        gangs[name] = decided(case)
        own.pop(case.key, None)
        short += _short(case, gangs[name])
        if (place := in_line(case, gangs[name])) is not None:
            own[case.key] = place
    told = _told(workload.gangs, gangs)
    after = replace(workload, gangs=gangs, next_report_at=now if told else workload.next_report_at)
    return Settled(
        workload=after if gangs != workload.gangs else workload,
        line=_line(workload.cluster, known.budget, {**places, **own}, deps),
        told={*_wakened(gangs.values(), slices), *(it for name in told for it in _concerned(gangs[name], slices))},
        short=short,
    )


def _reservations(
    cluster: ClusterId, slices: Iterable[SliceRecord], deps: IntakeDeps
) -> Mapping[CapacityPool, Reservation]:
    """Return what is known of reservations, if slices are of some."""
    if not any(each.spec is not None and each.spec.capacity.reservation for each in slices):
        return {}
    limiter = deps.store.limiter(cluster)
    return limiter.value.reservations if limiter is not None else {}


def _concerned(gang: Gang, slices: Iterable[SliceRecord]) -> Iterable[ClaimId]:
    """Return the claims of a gang that says something else: of one that stands, those that are not ready."""
    stands = gang.state is GangState.STANDS
    of_gang = (each for each in slices if each.replicated_job in gang.replicated_jobs)
    return [each.last_claim for each in of_gang if not (stands and each.phase is Phase.READY)]


def _wakened(gangs: Iterable[Gang], slices: Collection[SliceRecord]) -> Iterable[ClaimId]:
    """Return the claims that wait for a gang that waits no more: nobody else would look at them."""
    jobs = {job for gang in gangs if not gang.waits for job in gang.replicated_jobs}
    some = (each for each in slices if each.wanted and each.reason in OF_WAITING_GANGS)
    return [each.last_claim for each in some if each.replicated_job in jobs]


def _short(case: Case, gang: Gang) -> list[Short]:
    """Return what a gang lacks that was decided on so, if it waits for chips alone."""
    if case.held is None or not lacks_chips(case, gang):
        return []
    needed = Needed(gang.chips, gang.chips, case.held.in_namespace)
    return [short_of({case.namespace: needed}, case.held.in_cluster, case.policy)]


def _held(
    workload: WorkloadRecord,
    slices: Iterable[SliceRecord],
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


def _line(
    cluster: ClusterId, budget: Stored[Budget] | None, line: Mapping[GangKey, InLine], deps: IntakeDeps
) -> tuple[Change, ...]:
    """Return the change of the line of a cluster; none: it is as it was."""
    now = deps.clock.now()
    known = budget.value if budget is not None else Budget.of(cluster, now)
    return (Change(budget, replace(known, gangs=line, changed_at=now)),) if line != known.gangs else ()


def _told(before: Mapping[str, Gang], after: Mapping[str, Gang]) -> Collection[str]:
    """Return the gangs whose claims say something else from now on."""

    def says(gang: Gang | None) -> tuple[object, ...] | None:
        return (gang.state, gang.reason, gang.message) if gang is not None else None

    return [name for name, gang in after.items() if says(gang) != says(before.get(name))]
