"""How JobSets stand with their slices: made anew when it is due, told to the cluster when it is news."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from shared.domain.decisions import Reason
from shared.domain.jobsets import JobSetRecord, Report
from shared.domain.records import SliceRecord
from shared.domain.reports import RENEW, Line, called_for, is_news, next_report, report
from shared.domain.slices import ClusterId
from shared.ports import Change, JobSetUpdate, Permanent, Ports, SliceStore, StaleRecord, Temporary

PAGE = 200
"""How many JobSets one sweep reports on; the longest due come first, the rest next minute."""
LINE = 100
"""How many places of a cluster's line are known; who is behind them is told how many are before."""


@dataclass(frozen=True, slots=True)
class Reported:
    """A JobSet and what the cluster was told about it, for the log."""

    jobset: JobSetRecord
    report: Report


def report_due(ports: Ports) -> tuple[list[Reported], list[str]]:
    """Report on every JobSet that is due; give what was news, and what went wrong.

    One JobSet's trouble stops no other: one that cannot be reported on goes to the end of the line.
    """
    told: list[Reported] = []
    failures: list[str] = []
    for jobset in ports.store.due_reports(ports.clock.now(), PAGE):
        try:
            made = _on_jobset(jobset, ports)
        except (Temporary, Permanent) as trouble:
            failures.append(f"{jobset.cluster}: {jobset.namespace}/{jobset.name} is not reported on: {trouble}")
            continue
        if made is not None:
            told.append(Reported(jobset, made))
    return told, failures


def stands(jobset: JobSetRecord, ports: Ports) -> Report:
    """Say how a JobSet stands now."""
    slices = ports.store.slices(jobset.cluster, jobset.wants)
    records = tuple(stored.value for stored in slices.values())
    line = Line()
    if any(record.reason is Reason.OPERATION_LIMIT for record in records):
        line = _line(jobset.cluster, ports.store)
    return report(jobset, records, line, ports.clock.now())


def call(before: SliceRecord, after: SliceRecord, ports: Ports) -> tuple[Change, ...]:
    """Give what to save beside a slice that turned, so that its JobSet is reported on; mostly nothing."""
    if after.turns == before.turns:
        return ()
    stored = ports.store.jobsets(after.job.cluster, [after.job.uid]).get(after.job.uid)
    called = called_for(stored.value, ports.clock.now()) if stored else None
    return (Change(stored, called),) if called else ()


def _on_jobset(due: JobSetRecord, ports: Ports) -> Report | None:
    """Tell, then note it: an Event that is told twice is one Event. Whoever wrote meanwhile has made it due again."""
    stored = ports.store.jobsets(due.cluster, [due.uid]).get(due.uid)
    if stored is None:
        return None
    jobset, now = stored.value, ports.clock.now()
    try:
        made = stands(jobset, ports)
    except Permanent:
        ports.store.commit(Change(stored, replace(jobset, report_due_at=now + RENEW)))
        raise
    after = replace(jobset, report=made, report_due_at=next_report(made, now))
    news = is_news(made, jobset, now)
    if news:
        after = replace(after, reported_at=now, times_told=jobset.times_told + 1)
        ports.bus.report(jobset.cluster, [_update(after, made)])
    with suppress(StaleRecord):
        ports.store.commit(Change(stored, after))
    return made if news else None


def _update(jobset: JobSetRecord, made: Report) -> JobSetUpdate:
    assert jobset.reported_at is not None
    return JobSetUpdate(
        namespace=jobset.namespace,
        name=jobset.name,
        uid=jobset.uid,
        report=made,
        at=jobset.reported_at,
        times=jobset.times_told,
    )


def _line(cluster: ClusterId, store: SliceStore) -> Line:
    waiting = store.queued_slices(cluster, LINE)
    places = {record.id: number for number, record in enumerate(waiting, start=1)}
    return Line(places, len(store.slots(cluster)))
