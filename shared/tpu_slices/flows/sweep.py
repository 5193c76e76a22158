"""The sweep of a cluster, each minute: a table of duties."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import Family, Pinning
from tpu_slices.domain.model.observations import PoolSeen
from tpu_slices.domain.model.questions import RepeatQuestion
from tpu_slices.domain.model.reasons import SERVED
from tpu_slices.domain.model.slices import ClaimId, ClusterId, SliceId, WorkloadUid
from tpu_slices.domain.reconciling.inventory import (
    CHECK_AGAIN_AFTER,
    INVENTORY_CHECK_EVERY,
    QUESTIONS_PER_LIST,
    InventoryFindings,
    Records,
    check_inventory,
)
from tpu_slices.domain.reconciling.limiter import has_ended, is_used
from tpu_slices.domain.records.heartbeats import RelayHeartbeat
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.domain.reporting.counts import ClusterCount
from tpu_slices.flows import slots
from tpu_slices.flows.budget import counted, tell_waiting
from tpu_slices.flows.capacity.ladders import step_when_due
from tpu_slices.flows.due import request_due
from tpu_slices.flows.failures import Failure, Failures
from tpu_slices.flows.gangs.settling import settle_line, settle_others
from tpu_slices.flows.heartbeats import RelaySilence, call_for_reports, listen
from tpu_slices.flows.lists import ask_for_lists, ask_under_new_settings
from tpu_slices.flows.mirror.listing import list_mirror
from tpu_slices.flows.report import Reported, report_due
from tpu_slices.flows.reservations.looking import look_when_due
from tpu_slices.flows.retrying import retry_on_conflict
from tpu_slices.flows.spares.making import ask_spares, make_spares
from tpu_slices.ports.deps import IntakeDeps, ReconcileDeps
from tpu_slices.ports.errors import StaleRecord
from tpu_slices.ports.store import READ_FIRST, Change, Stored, Together


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What a sweep of a cluster did, for the log."""

    cluster: ClusterId
    is_known: bool = True
    """Whether it has settings, without which nothing is done, or that could not be read."""
    requested: int = 0
    asked: int = 0
    checked: InventoryFindings | None = None
    """What the inventory check found, if it was due."""
    count: ClusterCount | None = None
    reported: tuple[Reported, ...] = ()
    silence: RelaySilence | None = None
    refuses: bool = False
    """Whether no pod with chips can be created, as the relay says."""
    failures: tuple[Failure, ...] = ()

    @property
    def recovered(self) -> int:
        return len(self.checked.recovered) if self.checked is not None else 0


@dataclass(frozen=True, slots=True)
class SweptCluster:
    """What a duty may use of a cluster: its settings, and what the sweep has read of it."""

    settings: ClusterSettings
    read: Together
    deps: ReconcileDeps
    failures: Failures

    @property
    def cluster(self) -> ClusterId:
        return self.settings.cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Did:
    """What a duty did."""

    requested: int = 0
    asked: int = 0
    count: ClusterCount | None = None
    silence: RelaySilence | None = None
    checked: InventoryFindings | None = None


@dataclass(frozen=True, slots=True)
class Duty:
    """One thing that a sweep does for its cluster. `about`: what was not done if it fails."""

    about: str
    do: Callable[[SweptCluster], Did]
    contended: bool = False
    """Others write the same records: it is done again if they were faster."""

    def done(self, of: SweptCluster) -> Did:
        step = partial(self.do, of)
        step = partial(retry_on_conflict, step, of.deps.clock) if self.contended else step
        return of.failures.attempt(of.cluster, step, Did(), self.about)


def sweep(cluster: ClusterId, deps: ReconcileDeps) -> Swept:
    """Do the duties for a cluster, if it has settings, and report.

    | before reports                                                 | after them                                   |
    |----------------------------------------------------------------|----------------------------------------------|
    | settle gangs that do not stand                                 |                                              |
    | request reconciles of slices that are due                      | count slices and chips                       |
    | notice that the relay fell silent, or is heard again           | settle slots                                 |
    | call for reports of workloads that tell so                     | tell who waits for chips and fits            |
    |                                                                | ask for all demand if the settings changed   |
    |                                                                | make spares                                  |
    |                                                                | check the inventory, if that is due          |
    |                                                                | ask for lists, if records differ from what   |
    |                                                                | the relay sees                               |
    |                                                                | tell all of the mirror, if it differs        |

    Whatever is raised for one duty is that duty's failure: the others are done. GKE is asked last: it may answer late.
    """
    failures = Failures()
    read = failures.attempt(cluster, partial(deps.store.together, cluster, READ_FIRST), None)
    if read is None or read.settings is None:
        return Swept(cluster=cluster, is_known=read is None, failures=tuple(failures.found))
    swept = SweptCluster(read.settings, read, deps, failures)
    before = [duty.done(swept) for duty in BEFORE_REPORTS]
    reported = report_due([cluster], deps, failures, {cluster: read})
    did = [*before, *(duty.done(swept) for duty in AFTER_REPORTS)]
    return Swept(
        cluster=cluster,
        requested=sum(each.requested for each in did),
        asked=sum(each.asked for each in did),
        checked=next((each.checked for each in did if each.checked is not None), None),
        count=next((each.count for each in did if each.count is not None), None),
        reported=tuple(reported),
        silence=next((each.silence for each in did if each.silence is not None), None),
        refuses=_refuses(read.heartbeat, deps),
        failures=tuple(failures.found),
    )


def forgotten(deps: IntakeDeps) -> Mapping[ClusterId, int]:
    """Return how many slices are on record of each cluster that has no settings: it is not swept."""
    known = {*deps.store.clusters()}
    unknown = [cluster for cluster in deps.store.clusters_with_slices() if cluster not in known]
    return {cluster: deps.store.slice_count(cluster) for cluster in unknown}


def _refuses(heartbeat: Stored[RelayHeartbeat] | None, deps: ReconcileDeps) -> bool:
    """Return whether a relay that is heard says that no pod with chips can be created."""
    return heartbeat is not None and heartbeat.value.pinning_at(deps.clock.now()) is Pinning.REFUSED


def _requests_due(of: SweptCluster) -> Did:
    return Did(requested=request_due(of.cluster, of.deps, of.failures))


def _listens(of: SweptCluster) -> Did:
    return Did(silence=listen(of.read, of.deps))


def _calls_for_reports(of: SweptCluster) -> Did:
    call_for_reports(of.cluster, of.deps)
    return Did()


def _counts(of: SweptCluster) -> Did:
    return Did(count=counted(of.settings, of.deps))


def _tells_of_chips(of: SweptCluster) -> Did:
    return Did(requested=tell_waiting(of.settings, of.deps))


def _makes_spares(of: SweptCluster) -> Did:
    return Did(requested=make_spares(of.settings, of.deps))


def _asks_for_demand(of: SweptCluster) -> Did:
    if ask_under_new_settings(of.settings, of.deps):
        ask_spares(of.settings, of.deps)
    return Did()


def _asks_for_lists(of: SweptCluster) -> Did:
    return Did(asked=ask_for_lists(of.cluster, of.deps))


def _settles_gangs(of: SweptCluster) -> Did:
    return Did(requested=settle_line(of.cluster, of.deps, of.failures))


def _lists_mirror(of: SweptCluster) -> Did:
    list_mirror(of.settings, of.deps)
    return Did()


def _settles_slots(of: SweptCluster) -> Did:
    """Request reconciles where an operation ended, read in one call, and hand on slots that nobody uses.

    First, let workloads step on their ladders that are due: what is short is known here.
    """
    settings, deps = of.settings, of.deps
    limiter = slots.settle_limit(settings, deps)
    if limiter is not None and limiter.reservations:
        look_when_due(limiter, settings, deps)
    stepped = step_when_due(limiter, settings.cluster, deps, of.failures)
    taken = deps.store.slots(settings.cluster)
    operations = deps.backend.pool_operations(settings) if taken else frozenset()
    doubtful = [slot for slot in taken if not is_used(slot.value, operations)]
    records = deps.store.slices(settings.cluster, [slot.value.id for slot in doubtful])
    finished: list[ClaimId | SliceId] = []
    left: list[int] = []
    for slot in doubtful:
        if slot.value.id in records.unreadable:
            continue  # it may still be that slice's
        stored = records.get(slot.value.id)
        if slots.is_left(slot, stored, settings.limits, deps):
            left.append(slot.value.number)
        elif stored is not None and has_ended(slot.value, stored.value, operations):
            finished.append(stored.value.name)
    if finished:
        deps.publisher.request_reconcile(settings.cluster, finished, ended=True)
    if served := slots.hand_on(taken, left, settings, deps):
        deps.publisher.request_reconcile(settings.cluster, [each.name for each in served])
    return Did(requested=len(finished) + stepped)


def _checks_inventory(of: SweptCluster) -> Did:
    settings, deps, now = of.settings, of.deps, of.deps.clock.now()
    stored = deps.store.heartbeat(settings.cluster)
    heartbeat = stored.value if stored else RelayHeartbeat.of(settings.cluster)
    if heartbeat.next_inventory_check_at is not None and heartbeat.next_inventory_check_at > now:
        return Did()
    active = {uid for uid, each in deps.store.live_standings(settings.cluster) if each.active}
    findings = _compare(of, active)
    ask_spares(settings, deps)
    repeated = ((Family.HOSTS, findings.unplaced), (Family.DEMAND, findings.unserved))
    questions = [
        RepeatQuestion(family=family, keys=tuple(keys[:QUESTIONS_PER_LIST])) for family, keys in repeated if keys
    ]
    deps.publisher.ask(settings.cluster, questions)
    at = now + (INVENTORY_CHECK_EVERY if findings.complete else CHECK_AGAIN_AFTER)
    _is_written(
        Change(stored, replace(heartbeat, next_inventory_check_at=at)), deps
    )  # else the next sweep checks again
    return Did(checked=findings, asked=len(questions))


def _compare(of: SweptCluster, active: Collection[WorkloadUid]) -> InventoryFindings:
    """Check the inventory and write the findings; return those that were written.

    What others wrote meanwhile is left to them: in a burst there is always such a record, and it holds up no other.

    `active`: the workloads that are; their records are only read if leaders of them wait, or slices are not SERVED.
    """
    cluster, deps = of.cluster, of.deps
    pools = deps.backend.inventory(of.settings)
    kept = {stored.value.id: stored for stored in deps.store.kept_slices(cluster)}
    others = deps.store.slices(cluster, _others(pools, {id_: each.value for id_, each in kept.items()}))
    kept.update(others)
    asked = {each.value.last_claim for each in kept.values()} | {pool.slice_id for pool in pools}
    claims = deps.store.having(cluster, asked - {each.value.claimed_by for each in kept.values()})
    kept.update((each.value.id, each) for each in claims.values())
    uids = {stored.value.owner.uid for stored in kept.values()} | {pool.job.owner.uid for pool in pools if pool.job}
    demanding = deps.store.demand_digests(cluster).keys()
    unready = {stored.value.owner.uid for stored in kept.values() if stored.value.reason not in SERVED}
    settled = frozenset(uids.intersection(active) - demanding - unready)
    workloads = deps.store.workloads(cluster, (uids | demanding) - settled)
    demanded = {slice_ for stored in workloads.values() for slice_ in stored.value.in_demand}
    have_one = {each.value.claimed_by for each in kept.values()}
    gone = deps.store.having(cluster, demanded - have_one - claims.unreadable.keys())
    kept.update((each.value.id, each) for each in gone.values())
    records = Records(
        workloads={uid: stored.value for uid, stored in workloads.items()},
        slices={id_: stored.value for id_, stored in kept.items()},
        active=settled,
        unreadable=frozenset({*others.unreadable, *claims.unreadable, *gone.unreadable, *workloads.unreadable}),
    )
    findings = check_inventory(records, pools, deps.clock.now())
    for placeholder in findings.placeholders:  # unless the workload itself was told meanwhile
        _is_written(Change(None, placeholder), deps)
    recovered = tuple(_recovered(findings.recovered, deps))
    strays = tuple(each for each in findings.strays if _is_written(Change(None, each), deps))
    mended = tuple((before, to) for before, to in findings.mended if _is_written(Change(kept[before.id], to), deps))
    _request_found(findings, cluster, deps)
    _change_workloads(findings, workloads, deps)
    settle_others(cluster, (each.value for each in workloads.values()), deps, of.failures)
    found = (findings.recovered, findings.strays, findings.mended)
    complete = (recovered, strays, mended) == found
    return replace(findings, recovered=recovered, strays=strays, mended=mended, complete=complete)


def _change_workloads(
    findings: InventoryFindings, workloads: Mapping[WorkloadUid, Stored[WorkloadRecord]], deps: ReconcileDeps
) -> None:
    """Let what is asked for claims without records be read anew when it is told again, and call for reports.

    What somebody else changed meanwhile, the next check does.
    """
    for uid in findings.unserved:
        _is_written(Change(workloads[uid], replace(workloads[uid].value, asked={})), deps)
    for uid in findings.misreported:
        _is_written(Change(workloads[uid], replace(workloads[uid].value, next_report_at=deps.clock.now())), deps)


def _others(pools: Sequence[PoolSeen], kept: Mapping[SliceId, SliceRecord]) -> set[SliceId]:
    """Return what is read by name: slices of pools, and earlier ones, that are not among the kept ones."""
    earlier = {id_ for each in kept.values() for id_ in each.claim.earlier}
    return ({pool.id for pool in pools} | earlier) - kept.keys()


def _recovered(found: Iterable[SliceRecord], deps: ReconcileDeps) -> Iterator[SliceRecord]:
    """Write records of claims that have none; yield those that were written.

    With the records of their workloads, which are read before it is known that a claim has nothing. A workload that
    cannot be read is written by nobody. Spares have none.
    """
    for each in found:
        claim, uid = each.last_claim, each.owner.uid
        own = deps.store.workloads(each.cluster, [uid])
        having = deps.store.having(each.cluster, [claim])
        guards = (Change(stored, stored.value.with_recorded([claim])) for stored in own.values())
        known = own or own.unreadable or each.owner.kind.is_spare
        if known and not (having or having.unreadable) and _is_written(Change(None, each), deps, *guards):
            yield each


def _is_written(change: Change, deps: ReconcileDeps, *guards: Change) -> bool:
    """Write a record, unless somebody has written it, or what it rests on, since it was read."""
    try:
        deps.store.commit(change, *guards)
    except StaleRecord:
        return False
    return True


def _request_found(findings: InventoryFindings, cluster: ClusterId, deps: ReconcileDeps) -> None:
    found: list[SliceRecord] = [*findings.recovered, *findings.strays, *(after for _, after in findings.mended)]
    if found:
        deps.publisher.request_reconcile(cluster, [record.name for record in found])


BEFORE_REPORTS = (
    Duty("gangs", _settles_gangs),
    Duty("", _requests_due),
    Duty("relay", _listens),
    Duty("reports about the relay", _calls_for_reports, contended=True),
)
AFTER_REPORTS = (
    Duty("counts", _counts),
    Duty("slots", _settles_slots, contended=True),
    Duty("chips", _tells_of_chips),
    Duty("demand under new settings", _asks_for_demand, contended=True),
    Duty("spares", _makes_spares, contended=True),
    Duty("inventory check", _checks_inventory),
    Duty("lists", _asks_for_lists, contended=True),
    Duty("mirror", _lists_mirror, contended=True),
)
