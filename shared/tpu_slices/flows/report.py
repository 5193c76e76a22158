"""Makes the reports of JobSets that are due, and announces them to the cluster."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache, partial
from types import MappingProxyType

from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.reasons import IN_LINE, LIMITED, Phase, Reason
from tpu_slices.domain.model.slices import ClusterId, WorkloadUid
from tpu_slices.domain.model.vendors import GKE
from tpu_slices.domain.reconciling.demand import is_overtaken
from tpu_slices.domain.reconciling.giving_up import with_given_up
from tpu_slices.domain.reconciling.patience import is_forgotten
from tpu_slices.domain.records.heartbeats import STALE_AFTER, silent_since
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import Report, ReportQueue, WorkloadRecord
from tpu_slices.domain.reporting.notifications import Notifications, notifications
from tpu_slices.domain.reporting.reports import (
    RENEW,
    goes_without_saying,
    is_news,
    next_report,
    report,
)
from tpu_slices.domain.reporting.unread import NotRead
from tpu_slices.domain.reporting.waits import QueueState
from tpu_slices.flows.failures import Failure, Failures
from tpu_slices.flows.retrying import retry_on_conflict
from tpu_slices.ports.deps import IntakeDeps, ReconcileDeps
from tpu_slices.ports.errors import Permanent, StaleRecord, Temporary
from tpu_slices.ports.publisher import WorkloadUpdate
from tpu_slices.ports.store import READ_FIRST, Change, Stored, Together

PAGE = 200
"""The most JobSets that one sweep reports on; the others are reported on a minute later."""
TURN = 10
"""How many JobSets of a namespace are reported on before the next namespace has its turn."""
LINE = 100
"""How many positions of a cluster's queue are read; slices behind them only learn that they are behind them."""
CHANGED_WITHIN = timedelta(seconds=90)
"""How long ago a slice may have changed: longer than it takes until the next sweep, and until the change is saved.

What is missed, as no sweep came through or too many JobSets changed at once, is reported when the JobSet's report is
renewed or, of one that was told to be READY and has no next report, after the inventory check.
"""
FEW = 50
"""The most slices that are all read for a report; of a workload that has more, they are counted by reason."""
SAMPLE = 20
"""So many slices of each reason are read then: what they say of it stands for the others."""
MOST_TROUBLES = 3
"""With this many temporary errors a sweep stops reporting on a cluster: the problem is not with single JobSets."""


@dataclass(frozen=True, slots=True)
class Reported:
    """A JobSet and the report that was announced, for the log."""

    workload: WorkloadRecord
    report: Report


def report_due(
    clusters: Collection[ClusterId],
    deps: ReconcileDeps,
    failures: Failures,
    read: Mapping[ClusterId, Together] = MappingProxyType({}),
) -> list[Reported]:
    """Report on JobSets that are due, or have a slice that changed lately; return the announced reports.

    First reports come before those on changes, of which at most half as many are made as there may be, and these before
    renewed ones. Namespaces take turns: whatever number of JobSets one namespace has, another's first report does not
    wait for theirs. An error of one JobSet does not stop the others; unless it is temporary, its report is postponed.
    """
    reporting = _Reporting(QueueStates(deps, read), deps, failures)
    queues = _queues(clusters, deps, failures)
    reporting.report_in_turn(queue for queue in queues if queue.first)
    for cluster in clusters:
        reporting.report_on_changes(cluster)
    reporting.report_in_turn(queue for queue in queues if not queue.first)
    return reporting.announced


def _queues(clusters: Collection[ClusterId], deps: ReconcileDeps, failures: Failures) -> list[ReportQueue]:
    now = deps.clock.now()
    read = [failures.attempt(each, partial(deps.store.report_queues, each, now), ()) for each in clusters]
    return [queue for queues in read for queue in queues]


class _Reporting:
    """The reports of one sweep."""

    def __init__(self, states: QueueStates, deps: ReconcileDeps, failures: Failures) -> None:
        self.room = PAGE
        self.announced: list[Reported] = []
        self._deps = deps
        self._failures = failures
        self._states = states
        self._seen: set[tuple[ClusterId, WorkloadUid]] = set()
        self._temporary: Counter[ClusterId] = Counter()

    def report_in_turn(self, queues: Iterable[ReportQueue]) -> None:
        """Report on the JobSets of queues, some of each at a time, as long as there is room."""
        left = deque(queues)
        while left and self.room:
            queue = left.popleft()
            if self._report_on_some(queue):
                left.append(queue)

    def report_on_changes(self, cluster: ClusterId) -> None:
        """Report on the JobSets of slices that changed lately."""
        read = partial(self._changed, cluster, min(self.room, PAGE // 2))
        self._report_on_all(cluster, self._failures.attempt(cluster, read, (), "no reports on changes"))

    def _changed(self, cluster: ClusterId, most: int) -> Collection[Stored[WorkloadRecord]]:
        uids = self._deps.store.changed_workloads(cluster, self._deps.clock.now() - CHANGED_WITHIN, most)
        unseen = [uid for uid in uids if (cluster, uid) not in self._seen]
        return self._deps.store.workloads(cluster, unseen).values()

    def _report_on_some(self, queue: ReportQueue) -> bool:
        """Report on the JobSets of a queue whose turn it is; return whether there may be more."""
        most, now = min(TURN, self.room), self._deps.clock.now()
        about = f"no reports in namespace {queue.namespace}"
        found = self._failures.attempt(
            queue.cluster, partial(self._deps.store.due_reports, queue, now, most), (), about
        )
        return self._report_on_all(queue.cluster, found) and len(found) == most

    def _report_on_all(self, cluster: ClusterId, found: Iterable[Stored[WorkloadRecord]]) -> bool:
        """Report on JobSets that were not reported on yet; return whether there were any, and may be more."""
        fresh = [stored for stored in found if (cluster, stored.value.owner.uid) not in self._seen]
        for stored in fresh:
            if self._temporary[cluster] >= MOST_TROUBLES:
                return False
            self._seen.add((cluster, stored.value.owner.uid))
            self._report_on(stored)
            self.room -= 1
        return bool(fresh)

    def _report_on(self, stored: Stored[WorkloadRecord]) -> None:
        workload = stored.value
        try:
            saved = _on_jobset(stored, self._states, self._deps)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other JobSets are still reported on
            self._failures.found.append(Failure(workload.cluster, error, f"no report on {workload.owner.full_name}"))
            if isinstance(error, Temporary):
                self._temporary[workload.cluster] += 1
            else:
                _postpone(stored, self._deps)
        else:
            self.announced += [saved.reported] if saved and saved.reported else []
            if saved and saved.notifying.to_send:
                about = f"no notification of {workload.owner.full_name}"
                self._failures.attempt(workload.cluster, partial(_notify, saved, self._deps), None, about)


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read of a workload's slices."""

    readable: Sequence[SliceRecord]
    others: NotRead


def report_of(workload: WorkloadRecord, states: QueueStates, deps: ReconcileDeps) -> Report:
    """Return the current report of a JobSet."""
    return _report_from(workload, _read_all(workload, deps), states, deps)


def _report_from(workload: WorkloadRecord, slices: _Read, states: QueueStates, deps: IntakeDeps) -> Report:
    queue = states.beside(workload.cluster, slices.readable)
    return report(workload, slices.readable, queue, deps.clock.now(), slices.others)


def _read(workload: WorkloadRecord, deps: IntakeDeps) -> _Read:
    """Return what a report needs of a workload's slices, at reads that do not grow with their number.

    | the workload                        | read                                                     |
    |-------------------------------------|----------------------------------------------------------|
    | was suspended lately                | those that stand, or are gone                            |
    | is active, and has more than a few  | some of each reason, and their number                    |
    | else: it has few, is over, or has   | all                                                      |
    | been suspended for long             |                                                          |
    """
    if workload.suspension_lasts_at(deps.clock.now()) is not None:
        return _Read([each.value for each in deps.store.hearing(workload.cluster, workload.owner.uid)], NotRead())
    if workload.state is not WorkloadState.ACTIVE or len(workload.demand) <= FEW:
        return _read_all(workload, deps)
    alike = [*deps.store.alike(workload.cluster, workload.owner.uid, SAMPLE)]
    more: Counter[tuple[Phase, Reason]] = Counter()
    for each in alike:
        more[each.first[0].value.phase, each.first[0].value.reason] += each.count - len(each.first)
    return _Read([stored.value for each in alike for stored in each.first], NotRead(alike=+more))


def _read_all(workload: WorkloadRecord, deps: IntakeDeps) -> _Read:
    slices = deps.store.having(workload.cluster, workload.demand)
    return _Read([stored.value for stored in slices.values()], NotRead(slices.unreadable))


class QueueStates:
    """The state of each cluster that reports depend on: read once, and of the queue only if a slice is in it."""

    def __init__(self, deps: IntakeDeps, read: Mapping[ClusterId, Together] = MappingProxyType({})) -> None:
        """`read`: settings and heartbeats that were read already."""
        self._deps, self._known = deps, read
        self.apart_from_line = cache(self._read)
        self._with_line = cache(self._read_line)

    def beside(self, cluster: ClusterId, slices: Iterable[SliceRecord]) -> QueueState:
        queued = any(record.reason in IN_LINE for record in slices)
        return self._with_line(cluster) if queued else self.apart_from_line(cluster)

    def _read(self, cluster: ClusterId) -> QueueState:
        read = self._known.get(cluster) or self._deps.store.together(cluster, READ_FIRST)
        heartbeat = read.heartbeat.value if read.heartbeat else None
        settings, now = read.settings, self._deps.clock.now()
        return QueueState(
            vendor=settings.vendor if settings else GKE,
            paused=settings.paused if settings else None,
            silent_since=silent_since(heartbeat, now),
            heard_at=silent_since(heartbeat, now, STALE_AFTER),
            demand_listed_at=heartbeat.demand_confirmed_at if heartbeat else None,
            pinning=heartbeat.pinning_at(now) if heartbeat else None,
            settings=settings,
        )

    def _read_line(self, cluster: ClusterId) -> QueueState:
        store = self._deps.store
        queued = [each.id for each in store.queued_slices(cluster, LINE) if each.reason in IN_LINE]
        places = {id_: number for number, id_ in enumerate(queued, start=1)}
        running = len(store.slots(cluster)) if places else 0
        return replace(self.apart_from_line(cluster), places=places, running=running)


@dataclass(frozen=True, slots=True)
class _Saved:
    """A report that is on record."""

    after: WorkloadRecord
    """But for what is said of notifications."""
    notifying: Notifications
    at: datetime
    reported: Reported | None
    """None: it was not announced."""


def _on_jobset(stored: Stored[WorkloadRecord], states: QueueStates, deps: ReconcileDeps) -> _Saved | None:
    """Report on a JobSet; once more if another process wrote its record meanwhile: what is announced is saved."""
    cluster, uid = stored.value.cluster, stored.value.owner.uid

    def again() -> _Saved | None:
        now_stored = deps.store.workloads(cluster, [uid]).get(uid)
        return _on_record(now_stored, states, deps) if now_stored else None

    try:
        return _on_record(stored, states, deps)
    except StaleRecord:
        return retry_on_conflict(again, deps.clock)


def _on_record(stored: Stored[WorkloadRecord], states: QueueStates, deps: ReconcileDeps) -> _Saved | None:
    """Announce the report if it is news, then save that: announced twice it is still one Event.

    A next one is due before: what was announced and is not on record is looked at again, however late. One that says
    what the last one said is only saved to be due later. See `_request_looks`: what would be said of slices
    that nobody looks at may be over.

    Whom to notify outside the cluster is saved, and left to `_notify`.
    """
    workload, now = stored.value, deps.clock.now()
    slices = _read(workload, deps)
    settings = states.apart_from_line(workload.cluster).settings
    _request_looks(workload, slices, settings.limits if settings else Limits(), deps)
    made = _report_from(workload, slices, states, deps)
    notifying = notifications(workload, made, slices.readable, settings, now) if settings else Notifications({})
    is_due = workload.next_report_at is not None and workload.next_report_at <= now
    announced = is_news(made, workload, now) and not goes_without_saying(made, workload, now)
    if not (announced or is_due or notifying.to_send) and (
        made == workload.report or goes_without_saying(made, workload, now)
    ):
        return None
    lasts = workload.state is WorkloadState.SUSPENDED and workload.suspension_lasts_at(now) is None
    planned = {} if lasts else workload.asked  # it may last longer than records are kept
    workload = _with_chips_awaited(replace(workload, asked=planned), slices.readable, now)
    workload = with_given_up(workload, slices.readable)
    after = replace(workload, report=made, next_report_at=next_report(made, workload, now))
    if announced:
        stored = _with_due_report(stored, now, deps) if workload.next_report_at is None else stored
        after = with_announced(workload, made, now)
        deps.publisher.announce_workloads(workload.cluster, [update_of(after, made)])
    deps.store.commit(Change(stored, notifying.noted(after, now)))
    if after.gives_all_up and after.state is WorkloadState.ACTIVE:
        _let_others_go(stored.value, after, slices.readable, deps)
    return _Saved(after, notifying, now, Reported(workload, made) if announced else None)


def _request_looks(workload: WorkloadRecord, slices: _Read, limits: Limits, deps: ReconcileDeps) -> None:
    """Request that slices are reconciled that nobody would look at again.

    The requests were lost when their JobSet was suspended or resumed, or the settings are others since.
    """
    forgotten = (it for it in slices.readable if is_overtaken(it, workload) or is_forgotten(it, limits))
    if claims := sorted(record.last_claim for record in forgotten):
        deps.publisher.request_reconcile(workload.cluster, claims)


def _notify(saved: _Saved, deps: ReconcileDeps) -> None:
    """Publish whom to notify, and note that on whatever is on record now; until then the next sweep does it again."""
    cluster, uid = saved.after.cluster, saved.after.owner.uid

    def note() -> None:
        if (stored := deps.store.workloads(cluster, [uid]).get(uid)) is not None:
            after = saved.notifying.sent(stored.value, saved.after.next_report_at, saved.at)
            deps.store.commit(Change(stored, after))

    deps.publisher.notify(cluster, saved.notifying.to_send)
    retry_on_conflict(note, deps.clock)


def _let_others_go(
    before: WorkloadRecord, after: WorkloadRecord, read: Iterable[SliceRecord], deps: ReconcileDeps
) -> None:
    """Request that the other slices of a run that is given up are let go: all once, and again those seen to stand."""
    left = [record.last_claim for record in read if record.chips_bought and not record.goes]
    deps.publisher.request_reconcile(after.cluster, sorted(left if before.is_given_up else after.demand))


def _with_chips_awaited(workload: WorkloadRecord, slices: Iterable[SliceRecord], now: datetime) -> WorkloadRecord:
    """Return the record with the chips that its slices are refused for: it is told when some are released."""
    if workload.state is not WorkloadState.ACTIVE:
        return workload
    fewest = min((it.spec.chips for it in slices if it.reason in LIMITED and it.spec is not None), default=None)
    since = None if fewest is None else workload.chips_awaited_since or now
    return replace(workload, chips_awaited=fewest, chips_awaited_since=since)


def _with_due_report(stored: Stored[WorkloadRecord], now: datetime, deps: ReconcileDeps) -> Stored[WorkloadRecord]:
    due = replace(stored.value, next_report_at=now)
    (revision,) = deps.store.commit(Change(stored, due))
    return Stored(due, revision)


def _postpone(stored: Stored[WorkloadRecord], deps: ReconcileDeps) -> None:
    with suppress(Temporary, Permanent):
        deps.store.commit(Change(stored, replace(stored.value, next_report_at=deps.clock.now() + RENEW)))


def with_announced(workload: WorkloadRecord, made: Report, now: datetime) -> WorkloadRecord:
    """Return the record of a JobSet whose report is announced now."""
    return replace(workload.with_announced(made, now), next_report_at=next_report(made, workload, now))


def with_change_told(before: WorkloadRecord | None, after: WorkloadRecord, deps: IntakeDeps) -> WorkloadRecord:
    """Return the record of a workload that is suspended or resumed, with the report that is announced of that at once.

    Else the last one would be told as the present until the next sweep, which reports once more. Nothing is announced
    of a workload of which nothing was.
    """
    changed = before is not None and before.state is not after.state and not after.state.ended
    if not changed or after.announced_at is None:
        return after
    made, now = _report_from(after, _read(after, deps), QueueStates(deps), deps), deps.clock.now()
    if not is_news(made, after, now):
        return after
    told = after.with_announced(made, now)
    deps.publisher.announce_workloads(after.cluster, [update_of(told, made)])
    return told


def update_of(workload: WorkloadRecord, made: Report) -> WorkloadUpdate:
    assert workload.announced_at is not None
    return WorkloadUpdate(
        owner=workload.owner,
        report=made,
        at=workload.announced_at,
        count=workload.announced_count,
        since=workload.announced.since if workload.announced else None,
        ended=workload.ended,
    )
