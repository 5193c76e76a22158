"""Makes the reports of JobSets that are due, and announces them to the cluster."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache

from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.records import SliceRecord
from tpu_slices.domain.model.slices import ClusterId, Owner, OwnerKind
from tpu_slices.domain.model.workloads import Report, WorkloadRecord
from tpu_slices.domain.reporting.reports import RENEW, QueueState, called_for, is_news, next_report, report
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.errors import Permanent, StaleRecord, Temporary
from tpu_slices.ports.publisher import WorkloadUpdate
from tpu_slices.ports.store import Change, SliceStore, Stored

PAGE = 200
"""The most JobSets that one sweep reports on, the earliest due first; the others are reported on a minute later."""
LINE = 100
"""How many positions of a cluster's queue are read; slices behind them only learn that they are behind them."""
MOST_TROUBLES = 3
"""With this many errors a sweep stops reporting at a temporary one: the problem is not with single JobSets."""


@dataclass(frozen=True, slots=True)
class Reported:
    """A JobSet and the report that was announced, for the log."""

    workload: WorkloadRecord
    report: Report


def report_due(deps: ReconcileDeps) -> tuple[list[Reported], list[str]]:
    """Report on every JobSet that is due; return the announced reports, and the errors.

    An error of one JobSet does not stop the others; unless it is temporary, its report is postponed.
    """
    reports: list[Reported] = []
    failures: list[str] = []
    queue = cache(lambda cluster: read_queue_state(cluster, deps.store))
    for due in deps.store.due_reports(deps.clock.now(), PAGE):
        stored = deps.store.workloads(due.cluster, [due.owner.uid]).get(due.owner.uid)
        if stored is None:
            continue
        try:
            reported = _on_jobset(stored, queue, deps)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other JobSets are still reported on
            failures.append(f"{due.cluster}: no report on {due.owner.namespace}/{due.owner.name}: {error!r}")
            if not isinstance(error, Temporary):
                _postpone(stored, deps)
            elif len(failures) >= MOST_TROUBLES:
                break
            continue
        if reported is not None:
            reports.append(reported)
    return reports, failures


def report_of(workload: WorkloadRecord, queue: QueueState, deps: ReconcileDeps) -> Report:
    """Return the current report of a JobSet."""
    slices = deps.store.slices(workload.cluster, workload.demand)
    return report(workload, (stored.value for stored in slices.values()), queue, deps.clock.now())


def read_queue_state(cluster: ClusterId, store: SliceStore) -> QueueState:
    """Return the state of the cluster that reports depend on."""
    settings = store.settings(cluster)
    queued = [record.id for record in store.queued_slices(cluster, LINE) if record.reason is Reason.OPERATION_LIMIT]
    places = {id_: number for number, id_ in enumerate(queued, start=1)}
    return QueueState(places, len(store.slots(cluster)) if places else 0, settings.paused if settings else None)


def calling_for_report(before: SliceRecord, after: SliceRecord, deps: ReconcileDeps) -> tuple[Change, ...]:
    """Return what to save together with a slice's transition so that its JobSet is reported on; mostly nothing."""
    if after.transition_count == before.transition_count:
        return ()
    stored = deps.store.workloads(after.cluster, [after.owner.uid]).get(after.owner.uid)
    called = called_for(stored.value, deps.clock.now()) if stored else None
    return (Change(stored, called),) if called else ()


def _on_jobset(
    stored: Stored[WorkloadRecord], queue: Callable[[ClusterId], QueueState], deps: ReconcileDeps
) -> Reported | None:
    """Announce the report, then save that: announced twice it is still one Event.

    If another process wrote the record meanwhile, it also made the next report due.
    """
    workload, now = stored.value, deps.clock.now()
    made = report_of(workload, queue(workload.cluster), deps)
    after = replace(workload, report=made, next_report_at=next_report(made, now))
    announced = is_news(made, workload, now)
    if announced:
        after = replace(after, announced_at=now, announced_count=workload.announced_count + 1)
        deps.publisher.announce_workloads(workload.cluster, [_update(after, made)])
    with suppress(StaleRecord):
        deps.store.commit(Change(stored, after))
    return Reported(workload, made) if announced else None


def _postpone(stored: Stored[WorkloadRecord], deps: ReconcileDeps) -> None:
    with suppress(Temporary, Permanent):
        deps.store.commit(Change(stored, replace(stored.value, next_report_at=deps.clock.now() + RENEW)))


def _update(workload: WorkloadRecord, made: Report) -> WorkloadUpdate:
    assert workload.announced_at is not None
    return WorkloadUpdate(
        owner=Owner(
            kind=OwnerKind.JOBSET, namespace=workload.owner.namespace, name=workload.owner.name, uid=workload.owner.uid
        ),
        report=made,
        at=workload.announced_at,
        count=workload.announced_count,
    )
