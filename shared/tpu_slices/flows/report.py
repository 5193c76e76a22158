"""How JobSets stand with their slices: made anew when it is due, told to the cluster when it is news."""

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
"""How many JobSets one sweep reports on; the longest due come first, the rest next minute."""
LINE = 100
"""How many places of a cluster's line are known; who is behind them is told how many are before."""
MOST_TROUBLES = 3
"""So many in one sweep, and what is left waits for the next: something is wrong with more than one JobSet."""


@dataclass(frozen=True, slots=True)
class Reported:
    """A JobSet and what the cluster was told about it, for the log."""

    workload: WorkloadRecord
    report: Report


def report_due(deps: ReconcileDeps) -> tuple[list[Reported], list[str]]:
    """Report on every JobSet that is due; give what was news, and what went wrong.

    One JobSet's trouble stops no other: one that cannot be reported on goes to the end of the line.
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
        except Exception as trouble:  # noqa: BLE001 - whatever it is, the others wait to be told
            failures.append(f"{due.cluster}: {due.owner.namespace}/{due.owner.name} is not reported on: {trouble!r}")
            if not isinstance(trouble, Temporary):
                _put_off(stored, deps)
            elif len(failures) >= MOST_TROUBLES:
                break
            continue
        if reported is not None:
            reports.append(reported)
    return reports, failures


def report_of(workload: WorkloadRecord, queue: QueueState, deps: ReconcileDeps) -> Report:
    """Say how a JobSet stands now."""
    slices = deps.store.slices(workload.cluster, workload.demand)
    return report(workload, (stored.value for stored in slices.values()), queue, deps.clock.now())


def read_queue_state(cluster: ClusterId, store: SliceStore) -> QueueState:
    """Read what a report goes by beside the JobSet and its slices."""
    settings = store.settings(cluster)
    inline = [record.id for record in store.queued_slices(cluster, LINE) if record.reason is Reason.OPERATION_LIMIT]
    places = {id_: number for number, id_ in enumerate(inline, start=1)}
    return QueueState(places, len(store.slots(cluster)) if places else 0, settings.paused if settings else None)


def calling_for_report(before: SliceRecord, after: SliceRecord, deps: ReconcileDeps) -> tuple[Change, ...]:
    """Give what to save beside a slice that turned, so that its JobSet is reported on; mostly nothing."""
    if after.transition_count == before.transition_count:
        return ()
    stored = deps.store.workloads(after.cluster, [after.owner.uid]).get(after.owner.uid)
    called = called_for(stored.value, deps.clock.now()) if stored else None
    return (Change(stored, called),) if called else ()


def _on_jobset(
    stored: Stored[WorkloadRecord], queue: Callable[[ClusterId], QueueState], deps: ReconcileDeps
) -> Reported | None:
    """Tell, then note it: an Event that is told twice is one Event. Whoever wrote meanwhile has made it due again."""
    workload, now = stored.value, deps.clock.now()
    made = report_of(workload, queue(workload.cluster), deps)
    after = replace(workload, report=made, next_report_at=next_report(made, now))
    news = is_news(made, workload, now)
    if news:
        after = replace(after, announced_at=now, announced_count=workload.announced_count + 1)
        deps.publisher.announce_workloads(workload.cluster, [_update(after, made)])
    with suppress(StaleRecord):
        deps.store.commit(Change(stored, after))
    return Reported(workload, made) if news else None


def _put_off(stored: Stored[WorkloadRecord], deps: ReconcileDeps) -> None:
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
